"""How fast is a large file tokenized on all cores, and how much memory does it take?

    python -m benchmarks.tokenize_memory                2 GB of text and 2 GB of CSV; takes twice the disk
    python -m benchmarks.tokenize_memory --mb 200       a quick run
    python -m benchmarks.tokenize_memory --way text     one way of three
    taskset -c 0 python -m benchmarks.tokenize_memory   on one core

Each file is tokenized by a child process with an empty cache, and by the processes that it starts. `csv task`
loads the file as a task (columns in the cache, then ids), `csv` and `text` stream it as a corpus. MB/s is by
wall time; CPU time by wall time says how many cores were busy. The memory is the sum over the child and its
processes of what each held at most, and so no less than what they held together; it must stay below 500 MB
whatever the size of the file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

LIMIT_MB = 500
LOOK_SECONDS = 0.05
WORDS = 50_000
WAYS = {"text": "corpus.txt", "csv": "corpus.csv", "csv task": "corpus.csv"}


def make_files(folder: Path, mb: int, seed: int = 0) -> None:
    """Write a CSV and a text file of `mb` megabytes: rows of 5 to 100 words, with Zipf's frequencies.

    Most words are English, whole words of MiniLM's vocabulary; every tenth is made up and falls into pieces.
    """
    from heedful.text.model_folders import minilm_folder

    random = np.random.default_rng(seed)
    pieces = (minilm_folder() / "vocab.txt").read_text("utf-8").split()
    english = np.array([piece for piece in pieces if piece.isalpha() and len(piece) > 1])
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    made_up = ["".join(random.choice(letters, 8)) for _ in range(WORDS // 10)]
    words = random.choice(english, WORDS).tolist()
    words[::10] = made_up
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()
    with (folder / "corpus.txt").open("w") as text, (folder / "corpus.csv").open("w") as table:
        table.write("text,label\n")
        while text.tell() < mb * 10**6:
            drawn = random.choice(WORDS, 500_000, p=share).tolist()
            ends = np.cumsum(random.integers(5, 100, 9_000)).tolist()
            for start, end in zip([0, *ends], ends, strict=False):
                if end > len(drawn):
                    break
                line = " ".join([words[place] for place in drawn[start:end]])
                text.write(line + "\n")
                table.write(f'"{line}, ""said"" she",{"positive" if end % 3 else "negative"}\n')


def tokenize_one(way: str, path: Path, tokenizer: str) -> dict[str, float]:
    """Tokenize a file in this process, and measure it."""
    from heedful.data import load_task, tokenize
    from heedful.text import load

    loaded = load(tokenizer)
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    tokens = 0
    if way == "csv task":
        for split in load_task(str(path)).splits.values():
            tokens += len(tokenize(split, loaded).ids)
    else:
        tokens = len(tokenize(path, loaded).ids)
    return {"seconds": time.perf_counter() - start, "cpu": sum(os.times()[:4]) - cpu, "tokens": tokens}


def watched(command: list[str], cache: str) -> dict[str, float]:
    """Run a child; gives what it printed and the most memory that it and its processes held."""
    most = 0
    environment = os.environ | {"HEEDFUL_CACHE": cache}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as child:
        while child.poll() is None:
            most = max(most, sum(map(peak_kb, family(child.pid))))
            time.sleep(LOOK_SECONDS)
        assert child.stdout is not None
        said = child.stdout.read()
    if child.returncode:
        sys.exit(child.returncode)
    found: dict[str, float] = json.loads(said)
    return found | {"peak_mb": most * 1024 / 10**6}


def family(pid: int) -> list[int]:
    """List a process and all that it started, directly or not.

    One that has not yet become its own program is left out: its memory is still its parent's.
    """
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                started = map(int, task.read_text().split())
                found += [child for child in started if command_of(child) != command_of(parent)]
    return found


def command_of(pid: int) -> bytes:
    """Give the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def peak_kb(pid: int) -> int:
    """Give the most memory that a process ever held, in units of 1,024 bytes; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=2000, help="size of each file (2000)")
    parser.add_argument("--tokenizer", default="minilm", help="a tokenizer's name or folder (minilm)")
    parser.add_argument("--way", choices=WAYS, action="append", help="only this way; can be repeated")
    parser.add_argument("--child", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(tokenize_one(options.child[0], Path(options.child[1]), options.tokenizer)))
        return 0
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="heedful-bench-") as name:
        make_files(Path(name), options.mb)
        for way in options.way or WAYS:
            path = Path(name) / WAYS[way]
            command = [sys.executable, "-m", "benchmarks.tokenize_memory", "--tokenizer", options.tokenizer]
            with tempfile.TemporaryDirectory(dir=name) as empty:
                found = watched([*command, "--child", way, str(path)], empty)
            size, seconds, cpu = path.stat().st_size / 10**6, found["seconds"], found["cpu"]
            worst = max(worst, found["peak_mb"])
            print(
                f"{way:8} {size:6.0f} MB {size / seconds:6.1f} MB/s  {seconds:6.1f} s wall {cpu:6.1f} s CPU "
                f"({cpu / seconds:.1f} cores)  peak {found['peak_mb']:4.0f} MB  {found['tokens']:,} tokens",
                flush=True,
            )
    print(f"peak {worst:.0f} MB, limit {LIMIT_MB} MB: {'kept' if worst < LIMIT_MB else 'BROKEN'}")
    return int(worst >= LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
