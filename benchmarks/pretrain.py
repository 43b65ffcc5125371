"""Compare a pretraining step of `char-gpt` in Heedful with one of transformers' GPT-2 of the same shape.

    python -m benchmarks.pretrain                       all cases, five turns
    python -m benchmarks.pretrain dropout --turns 3     one case
    python -m benchmarks.pretrain --out docs/results/pretrain.json

A step is forward, backward, clipping and AdamW (fused on both sides) on 128 rows of 128 random tokens.
Heedful's step is that of `heedful pretrain`, including making the batch. The cases `dropout` and `plain` use
the activation of `char-gpt` on both sides (gelu); `gpt2-dropout` and `gpt2-plain` use that of GPT-2 (gelu
with tanh, which transformers computes with separate operations). Each run is a child process, the sides take
turns, and the numbers are medians of the seconds per step. The roof is the time of plain matrix products with
the shapes of this model: three per weight matrix, including the output layer, for the tokens of a step. The
goal without dropout is 70 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import compare_sides, cpu_seconds, measure_in_turns, refuse_busy, write_rows

ROWS = LENGTH = 128
D_MODEL, LAYERS, HEADS, VOCABULARY = 256, 4, 8, 256
CASES = {
    "dropout": (0.1, "gelu", 2.8),
    "plain": (0.0, "gelu", 1.6),
    "gpt2-dropout": (0.1, "gelu_tanh", 2.8),
    "gpt2-plain": (0.0, "gelu_tanh", 1.6),
}
"""Dropout and activation of both sides, and the intended speed of Heedful relative to transformers."""
WARM = 2
STEPS = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if args.side:
        print(json.dumps(run_side(args.side, *CASES[args.cases[0]][:2])))
        return
    refuse_busy(args.force)
    for name in args.cases or CASES:
        goal = CASES[name][-1]
        sides = {side: (name, "--side", side) for side in ("heedful", "transformers", "roof")}
        ours, theirs, roof = measure_in_turns(sides, "benchmarks.pretrain", args.turns).values()
        row = compare_sides(name, "transformers", ours, theirs, goal, roof["seconds"] / ours["seconds"])
        print(f"{'':12} {ROWS * LENGTH / ours['seconds']:,.0f} tokens per second")
        if args.out:
            write_rows(args.out, "python -m benchmarks.pretrain", args.turns, [row])


def run_side(side: str, dropout: float, activation: str) -> dict[str, float]:
    """Measure the seconds per step of one side, in this process."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        step = {"heedful": heedful_step, "transformers": transformers_step, "roof": roof_step}[side](
            dropout, activation, Path(folder)
        )
        seconds, cpu = [], []
        for number in range(WARM + STEPS):
            start, before = time.perf_counter(), cpu_seconds()
            step(number)
            seconds.append(time.perf_counter() - start)
            cpu.append(cpu_seconds() - before)
    return {"seconds": median(seconds[WARM:]), "cpu": median(cpu[WARM:])}


def write_text(path: Path) -> Path:
    """Write random letters of the whole vocabulary, as documents that exactly fill a row."""
    import numpy as np

    rng = np.random.default_rng(0)
    letters = np.array([chr(0x100 + i) for i in range(VOCABULARY - 3)])  # three are special tokens
    with path.open("w", encoding="utf-8") as file:
        for _ in range(ROWS * (WARM + STEPS)):
            file.write("".join(rng.choice(letters, LENGTH + 1)) + "\n")
    return path


def heedful_step(dropout: float, activation: str, folder: Path) -> Any:
    """Return a step of `heedful pretrain char-gpt`."""
    from heedful.options.training import PretrainOptions
    from heedful.runs.directory import Run
    from heedful.training.build import build_pretrain

    options = PretrainOptions(
        model="char-gpt",
        corpus=str(write_text(folder / "text.txt")),
        tokenizer="char",
        block=LENGTH,
        batch_size=ROWS,
        dropout=dropout,
        model_options=(f"activation={activation}",),
        dev_share=0.0,
        epochs=1,
        precision="float32",
        device="cpu",
    )
    loop = build_pretrain(options).make_loop(Run(folder / "run"), options)
    loop.model.train()
    return loop.step


def transformers_step(dropout: float, activation: str, folder: Path) -> Any:
    """Return a step of the usual training loop for GPT2LMHeadModel, with fused AdamW and clipping."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=LENGTH,
            n_embd=D_MODEL,
            n_layer=LAYERS,
            n_head=HEADS,
            activation_function="gelu" if activation == "gelu" else "gelu_new",
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
        )
    )
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    data = torch.randint(VOCABULARY, (WARM + STEPS, ROWS, LENGTH))

    def step(number: int) -> None:
        model(input_ids=data[number], labels=data[number]).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def roof_step(dropout: float, activation: str, folder: Path) -> Any:
    """Return only the matrix products of a step: each weight matrix in the forward and backward pass."""
    import torch

    rows, d = 1024, D_MODEL
    shapes = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)]
    parts = [(torch.randn(rows, n), torch.randn(m, n), torch.randn(rows, m)) for n, m in shapes * LAYERS] + [
        (torch.randn(rows, d), torch.randn(VOCABULARY, d), torch.randn(rows, VOCABULARY))
    ]

    def step(number: int) -> None:
        for _ in range(ROWS * LENGTH // rows):
            for x, weight, gradient in parts:
                torch.mm(x, weight.T)
                torch.mm(gradient, weight)
                torch.mm(gradient.T, x)

    return step


if __name__ == "__main__":
    sys.exit(main())
