"""Compare generation: transformers' `generate` with its cache, and Heedful's, one text or 32 at a time.

    python -m benchmarks.generate
    python -m benchmarks.generate --turns 3 --out generate.json

The model is GPT-2's architecture, 4 layers 256 wide with 8,000 tokens and random weights, the same for both
sides, which take the most probable token 128 times after prompts of 16. Each side is a child process with one
thread; they take turns. Tokens per second are counted in processor time, which other work on the machine
disturbs least; the last column is the time that passed. That both choose the same tokens is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import busy_share, cpu_seconds, run_child

SIZES = (1, 32)
SIDES = ("transformers", "heedful")
LAYERS, WIDTH, HEADS, VOCABULARY = 4, 256, 8, 8000
PROMPT, NEW = 16, 128
GOAL = 1.5
Generate = Callable[[list[list[int]]], list[list[int]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(run_side(args.side, args.model)))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{busy_share():.0%} of the machine's processors are in use by others", file=sys.stderr)
    measured: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        for turn in range(args.turns):
            for side in SIDES:
                measured[side].append(run_child("benchmarks.generate", "--side", side, "--model", folder))
                print(f"  {turn + 1}/{args.turns} {side}", file=sys.stderr)
    rows = [compare(size, measured) for size in SIZES]
    if args.out:
        args.out.write_text(json.dumps({"turns": args.turns, "rows": rows}, indent=2) + "\n", "utf-8")


def write_model(folder: Path) -> None:
    """Write a model with random weights in transformers' form, which both sides load."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=PROMPT + NEW, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        bos_token_id=None, eos_token_id=None, initializer_range=0.1,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)


def run_side(side: str, folder: str) -> dict[str, Any]:
    """Return the tokens per second of one side, by processor time and by the time that passed."""
    import torch

    torch.set_num_threads(1)
    generate = {"heedful": make_heedful, "transformers": make_transformers}[side](folder)
    draw = torch.Generator().manual_seed(1)
    prompts: list[list[int]] = torch.randint(VOCABULARY, (max(SIZES), PROMPT), generator=draw).tolist()
    result: dict[str, Any] = {}
    for size in SIZES:
        generate(prompts[:1])
        start, before = time.perf_counter(), cpu_seconds()
        new = generate(prompts[:size])
        cpu, wall = cpu_seconds() - before, time.perf_counter() - start
        count = sum(map(len, new))
        result |= {f"cpu-{size}": count / cpu, f"wall-{size}": count / wall, f"tokens-{size}": new[0]}
    return result


def make_heedful(folder: str) -> Generate:
    from heedful import checkpoints
    from heedful.inference.generation import generate
    from heedful.models import LanguageModel

    model = checkpoints.load_to_use(folder, "causal")
    assert isinstance(model, LanguageModel)
    return lambda prompts: [one.ids for one in generate(model, prompts, max_tokens=NEW)]


def make_transformers(folder: str) -> Generate:
    import torch
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder).eval()

    def generate(prompts: list[list[int]]) -> list[list[int]]:
        ids = torch.tensor(prompts)
        options = {"max_new_tokens": NEW, "do_sample": False, "use_cache": True, "pad_token_id": 0}
        with torch.inference_mode():
            whole = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        return [row[PROMPT:] for row in whole.tolist()]

    return generate


def compare(size: int, measured: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Print both sides for one number of texts, and return the row."""
    tokens = [one[f"tokens-{size}"] for each in measured.values() for one in each]
    if any(one != tokens[0] for one in tokens):
        print(f"batch {size}: the sides choose different tokens", file=sys.stderr)
    rates = {side: median(one[f"cpu-{size}"] for one in each) for side, each in measured.items()}
    wall = {side: median(one[f"wall-{size}"] for one in each) for side, each in measured.items()}
    times = rates["heedful"] / rates["transformers"]
    print(
        f"batch {size:3}: {rates['heedful']:,.0f} tokens per second of CPU, transformers "
        f"{rates['transformers']:,.0f}: {times:.2f} times (goal {GOAL:g}); "
        f"{wall['heedful']:,.0f} per second that passed",
        flush=True,
    )
    return {"batch": size, "rates": rates, "wall": wall, "times": times, "goal": GOAL}


if __name__ == "__main__":
    main()
