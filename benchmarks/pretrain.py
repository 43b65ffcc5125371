"""Pretraining `char-gpt` with heedful and with transformers' GPT-2 of the same shape: a step, side by side.

    python -m benchmarks.pretrain                       all cases, five turns
    python -m benchmarks.pretrain dropout --turns 3     one of them
    python -m benchmarks.pretrain --out docs/results/pretrain.json

A step is forward, backward, clipping and AdamW (fused on both sides) on 128 rows of 128 random tokens;
heedful's is the one of `heedful pretrain`, its batch included. `dropout` and `plain` have the activation of
`char-gpt` on both sides (gelu), `gpt2-dropout` and `gpt2-plain` that of GPT-2, which is transformers' default
(gelu with tanh, which it makes of single operations). Each run is a child process; sides take turns; the
figures are medians of the seconds a step. The roof is what plain products of this model's own shapes take in
the same run: three for each weight matrix, the output's among them, for the tokens of a step. Without dropout
70 % of it is the goal.
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

from benchmarks.machine import compared, cpu_seconds, interleaved, refuse_busy, write_rows

ROWS = LENGTH = 128
D_MODEL, LAYERS, HEADS, VOCABULARY = 256, 4, 8, 256
CASES = {
    "dropout": (0.1, "gelu", 2.8),
    "plain": (0.0, "gelu", 1.6),
    "gpt2-dropout": (0.1, "gelu_tanh", 2.8),
    "gpt2-plain": (0.0, "gelu_tanh", 1.6),
}
"""Dropout and activation on both sides, and how many times faster heedful is meant to be."""
WARM = 2
STEPS = 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if given.side:
        print(json.dumps(run_side(given.side, *CASES[given.cases[0]][:2])))
        return
    refuse_busy(given.force)
    for name in given.cases or CASES:
        goal = CASES[name][-1]
        sides = {side: (name, "--side", side) for side in ("heedful", "transformers", "roof")}
        ours, theirs, roof = interleaved(sides, "benchmarks.pretrain", given.turns).values()
        row = compared(name, "transformers", ours, theirs, goal, roof["seconds"] / ours["seconds"])
        print(f"{'':12} {ROWS * LENGTH / ours['seconds']:,.0f} tokens a second")
        if given.out:
            write_rows(given.out, "python -m benchmarks.pretrain", given.turns, [row])


def run_side(side: str, dropout: float, activation: str) -> dict[str, float]:
    """Seconds a step of one side, in this process."""
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
    """Random letters of the whole vocabulary, in documents that fill rows exactly."""
    import numpy as np

    rng = np.random.default_rng(0)
    letters = np.array([chr(0x100 + i) for i in range(VOCABULARY - 3)])  # and three special tokens
    with path.open("w", encoding="utf-8") as file:
        for _ in range(ROWS * (WARM + STEPS)):
            file.write("".join(rng.choice(letters, LENGTH + 1)) + "\n")
    return path


def heedful_step(dropout: float, activation: str, folder: Path) -> Any:
    """One step of `heedful pretrain char-gpt`."""
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
    """The usual loop around GPT2LMHeadModel, with torch's fused AdamW and its clipping."""
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
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    data = torch.randint(VOCABULARY, (WARM + STEPS, ROWS, LENGTH))

    def step(number: int) -> None:
        model(input_ids=data[number], labels=data[number]).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def roof_step(dropout: float, activation: str, folder: Path) -> Any:
    """The products of a step alone: each weight with the input, and with the gradient both ways."""
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
