"""Mini-GPT: compare dot-product and additive attention, shared projections, and masks that leak.

python attention_experiments.py --data 1b_benchmark.train.tokens --dev 1b_benchmark.dev.tokens
python attention_experiments.py --oracle       compare with torch's own attention; takes seconds
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import find_file, heedful, one_line_errors, show

from heedful.errors import UserError

SENTENCES = [
    "After learning language models model natural language.",
    "The quick brown fox jumps over the lazy dog.",
]


def find_texts(data: Path | None, dev: Path | None) -> tuple[str, Path | None]:
    """Return both files, from here or $HEEDFUL_DATA/lm1b; without them, the generated biographies."""
    home = Path(os.environ.get("HEEDFUL_DATA", ".")) / "lm1b"
    if data is None or (data.name == str(data) and not data.is_file() and not (home / data).is_file()):
        print(f"no {data or '--data'} (here, or in $HEEDFUL_DATA/lm1b): using world/birthplaces, generated")
        return "world/birthplaces", None
    return str(find_file(data, home)), find_file(dev, home)


def describe(path: str) -> None:
    """Print the number of tokens, of unique tokens, and a histogram of the lengths."""
    from heedful.data import corpus_texts

    lengths: Counter[int] = Counter()
    words: Counter[str] = Counter()
    for text in corpus_texts(path):
        tokens = text.split()
        words.update(tokens)
        lengths[len(tokens) // 10 * 10] += 1
    print(f"total tokens: {words.total():,}, unique tokens: {len(words):,}")
    most = max(lengths.values())
    for begin in sorted(lengths):
        print(f"{begin:4}-{begin + 9:<4} {lengths[begin]:7,} {'#' * max(1, 50 * lengths[begin] // most)}")


def compare_with_torch() -> None:
    """Print the largest difference from torch's multi-head attention with the same weights, in float64."""
    import torch

    from heedful.attention import Mask
    from heedful.models import PRESETS
    from heedful.models.blocks import Attention

    torch.manual_seed(0)
    for heads, causal in ((1, False), (1, True), (3, True)):
        theirs = torch.nn.MultiheadAttention(48, heads, batch_first=True, dtype=torch.float64)
        torch.nn.init.normal_(theirs.in_proj_bias)
        config = PRESETS["gpt-nano"].config.replace(n_heads=heads, d_head=0).with_dropout(0.0)
        ours = Attention(config, causal=causal, cross=False).double()
        state = {}
        for kind, whole in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
            state |= {f"{name}_proj.{kind}": part for name, part in zip("qkv", whole.chunk(3), strict=True)}
        state |= {f"o_proj.{name}": value for name, value in theirs.out_proj.named_parameters()}
        ours.load_state_dict(state)
        x = torch.randn(2, 11, 48, dtype=torch.float64)
        future = torch.ones(11, 11, dtype=torch.bool).triu(1) if causal else None
        difference = (ours(x, Mask(causal=causal)) - theirs(x, x, x, attn_mask=future)[0]).abs().max().item()
        print(f"{heads} head{'s' * (heads > 1)}{', causal' * causal}: largest difference {difference:.1e}")
        if difference > 1e-12:
            raise UserError("the result differs from torch's multi-head attention")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, help="one tokenized sentence per line; default: generated data")
    p.add_argument("--dev", type=Path, help="the same, for the dev perplexity; default: part of --data")
    p.add_argument("--oracle", action="store_true", help="only compare with torch's multi-head attention")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch_size", type=int, default=32)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--max_len", type=int, default=100)
    p.add_argument("--min_count", type=int, default=3)
    p.add_argument("--steps", type=int, help="stop after this many steps")
    p.add_argument("--sentences", nargs="*", default=[], help="your own sentences to score")
    p.add_argument("--out", type=Path, default=Path("runs/attention-experiments"))
    args = p.parse_args()
    with one_line_errors():
        if args.oracle:
            compare_with_torch()
            return
        data, dev = find_texts(args.data, args.dev)
        describe(data)
        words = ["--epochs", args.epochs, "--batch-size", args.batch_size, "--lr", args.lr]
        words += ["--block", args.max_len, "--min-count", args.min_count, "--out", args.out]
        words += ["--dev", dev] if dev else []
        words += ["--steps", args.steps] if args.steps else []
        heedful("study", "attention", data, "--sentences", *SENTENCES, *args.sentences, *map(str, words))
        show(args.out)


if __name__ == "__main__":
    main()
