"""How much memory does it take to tokenize a large file, and how fast is it?

    python -m benchmarks.tokenize_memory              2 GB of CSV and 2 GB of text; takes the disk twice that
    python -m benchmarks.tokenize_memory --mb 200     a quick run

Each file is tokenized by a child process with an empty cache. The child's peak resident memory must stay
below 500 MB whatever the size. `csv task` loads the file as a task (columns in the cache, then ids), `csv`
and `text` stream it as a corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMIT_MB = 500
WORDS = 50_000
WAYS = {"text": "corpus.txt", "csv": "corpus.csv", "csv task": "corpus.csv"}


def make_files(folder: Path, mb: int, seed: int = 0) -> None:
    """Write a CSV and a text file of `mb` megabytes: rows of 5 to 100 words, with Zipf's frequencies.

    Most words are English, whole words of MiniLM's vocabulary; every tenth is made up and falls into pieces.
    """
    from heedful.text.places import minilm_folder

    random = np.random.default_rng(seed)
    pieces = (minilm_folder() / "vocab.txt").read_text("utf-8").split()
    english = [piece for piece in pieces if piece.isalpha() and len(piece) > 1]
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    made_up = ["".join(random.choice(letters, 8)) for _ in range(WORDS)]
    words = [str(random.choice(english)) if place % 10 else made_up[place] for place in range(WORDS)]
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
    from heedful.runs.environment import peak_memory_gb
    from heedful.text import load

    loaded = load(tokenizer)
    start = time.perf_counter()
    tokens = 0
    if way == "csv task":
        for split in load_task(str(path)).splits.values():
            tokens += len(tokenize(split, loaded).ids)
    else:
        tokens = len(tokenize(path, loaded).ids)
    seconds = time.perf_counter() - start
    return {"peak_mb": round(peak_memory_gb() * 1000), "seconds": round(seconds, 1), "tokens": tokens}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=int, default=2000, help="size of each file")
    parser.add_argument("--tokenizer", default="minilm", help="a tokenizer's name or folder")
    parser.add_argument("--child", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(tokenize_one(options.child[0], Path(options.child[1]), options.tokenizer)))
        return 0
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="heedful-bench-") as name:
        make_files(Path(name), options.mb)
        for way, file in WAYS.items():
            path = Path(name) / file
            command = [sys.executable, "-m", "benchmarks.tokenize_memory", "--tokenizer", options.tokenizer]
            with tempfile.TemporaryDirectory(dir=name) as empty:
                done = subprocess.run(
                    [*command, "--child", way, str(path)],
                    env={**os.environ, "HEEDFUL_CACHE": empty},
                    stdout=subprocess.PIPE,
                    check=True,
                )
            found = json.loads(done.stdout)
            size = path.stat().st_size / 10**6
            speed = size / found["seconds"]
            worst = max(worst, found["peak_mb"])
            peak = f"peak {found['peak_mb']:4} MB"
            print(
                f"{way:9} {size:6.0f} MB  {peak}  {speed:5.1f} MB/s  {found['tokens']:,} tokens", flush=True
            )
    print(f"peak {worst:.0f} MB, limit {LIMIT_MB} MB: {'kept' if worst < LIMIT_MB else 'BROKEN'}")
    return int(worst >= LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
