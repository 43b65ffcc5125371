"""Mini-GPT: dot-product against additive attention, shared projections, and masks that leak.

python attention_experiments.py --data 1b_benchmark.train.tokens --dev 1b_benchmark.dev.tokens
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import heedful, one_line_errors, show

SENTENCES = [
    "After learning language models model natural language.",
    "The quick brown fox jumps over the lazy dog.",
]


def describe(path: str) -> None:
    """Total and unique tokens, and the length histogram."""
    from heedful.data import corpus_texts

    lengths: Counter[int] = Counter()
    words: Counter[str] = Counter()
    for text in corpus_texts(path):
        found = text.split()
        words.update(found)
        lengths[len(found) // 10 * 10] += 1
    print(f"total tokens: {words.total():,}, unique tokens: {len(words):,}")
    most = max(lengths.values())
    for begin in sorted(lengths):
        print(f"{begin:4}-{begin + 9:<4} {lengths[begin]:7,} {'#' * max(1, 50 * lengths[begin] // most)}")


def main() -> None:
    """One study with every variant."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", help="one tokenised sentence a line; by default generated biographies")
    p.add_argument("--dev", help="the same, for the dev perplexity; by default a part of --data")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch_size", type=int, default=32)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--max_len", type=int, default=100)
    p.add_argument("--min_count", type=int, default=3)
    p.add_argument("--steps", type=int, help="stop after so many steps")
    p.add_argument("--sentences", nargs="*", default=[], help="two sentences of your own, for example")
    p.add_argument("--out", type=Path, default=Path("runs/attention-experiments"))
    given = p.parse_args()
    with one_line_errors():
        data = given.data or "world/birthplaces"
        if given.data is None:
            print("no --data: using world/birthplaces, which is generated")
        describe(data)
        words = ["--epochs", given.epochs, "--batch-size", given.batch_size, "--lr", given.lr]
        words += ["--block", given.max_len, "--min-count", given.min_count, "--out", given.out]
        words += ["--dev", given.dev] if given.dev else []
        words += ["--steps", given.steps] if given.steps else []
        heedful("study", "attention", data, "--sentences", *SENTENCES, *given.sentences, *map(str, words))
        show(given.out)


if __name__ == "__main__":
    main()
