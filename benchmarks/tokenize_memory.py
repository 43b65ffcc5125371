"""Measure the speed and the memory of tokenizing a large file on all cores.

    python -m benchmarks.tokenize_memory                2 GB of text and 2 GB of CSV; needs twice that on disk
    python -m benchmarks.tokenize_memory --mb 200       a quick run
    python -m benchmarks.tokenize_memory --way text     one of the three ways
    taskset -c 0 python -m benchmarks.tokenize_memory   on one core

A child process tokenizes each file with an empty cache, and starts further processes. `csv task` loads the
file as a task (first its columns, then its ids); `csv` and `text` stream it as a corpus. MB/s is per second
of wall time; CPU time divided by wall time is the number of busy cores. The memory is the sum of the peaks of
all processes, which is an upper bound of their peak together. It must stay below 500 MB for files of any
size.
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
    """Write a CSV file and a text file of `mb` megabytes: rows of 5 to 100 words with Zipf's frequencies.

    Most words are English words of MiniLM's vocabulary; every tenth is invented and is split into pieces.
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
                line = " ".join([words[index] for index in drawn[start:end]])
                text.write(line + "\n")
                table.write(f'"{line}, ""said"" she",{"positive" if end % 3 else "negative"}\n')


def tokenize_one(way: str, path: Path, tokenizer: str) -> dict[str, float]:
    """Tokenize a file in this process and return the time and the number of tokens."""
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


def run_watched(command: list[str], cache: str) -> dict[str, float]:
    """Run a child; return what it printed and the peak memory of it and its processes."""
    peak = 0
    environment = os.environ | {"HEEDFUL_CACHE": cache}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as child:
        while child.poll() is None:
            peak = max(peak, sum(map(peak_kb, family(child.pid))))
            time.sleep(LOOK_SECONDS)
        assert child.stdout is not None
        output = child.stdout.read()
    if child.returncode:
        sys.exit(child.returncode)
    measurement: dict[str, float] = json.loads(output)
    return measurement | {"peak_mb": peak * 1024 / 10**6}


def family(pid: int) -> list[int]:
    """List a process and all its descendants.

    A forked child that has not yet started its program is left out: it shares its parent's memory.
    """
    pids = [pid]
    for parent in pids:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                started = map(int, task.read_text().split())
                pids += [child for child in started if command_line(child) != command_line(parent)]
    return pids


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def peak_kb(pid: int) -> int:
    """Return the peak memory of a process in units of 1,024 bytes; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=2000, help="size of each file in MB (default: 2000)")
    parser.add_argument(
        "--tokenizer", default="minilm", help="name or folder of a tokenizer (default: minilm)"
    )
    parser.add_argument("--way", choices=WAYS, action="append", help="run only this way; can be repeated")
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
                measurement = run_watched([*command, "--child", way, str(path)], empty)
            size, seconds, cpu = path.stat().st_size / 10**6, measurement["seconds"], measurement["cpu"]
            worst = max(worst, measurement["peak_mb"])
            print(
                f"{way:8} {size:6.0f} MB {size / seconds:6.1f} MB/s  {seconds:6.1f} s wall {cpu:6.1f} s CPU "
                f"({cpu / seconds:.1f} cores)  peak {measurement['peak_mb']:4.0f} MB  "
                f"{measurement['tokens']:,} tokens",
                flush=True,
            )
    print(f"peak {worst:.0f} MB, limit {LIMIT_MB} MB: {'met' if worst < LIMIT_MB else 'EXCEEDED'}")
    return int(worst >= LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
