"""Compare a pretraining step of `char-gpt` in Heedful with one of transformers' GPT-2 of the same shape.

    python -m benchmarks.pretrain                       all cases, five turns
    python -m benchmarks.pretrain dropout --turns 3     one case
    python -m benchmarks.pretrain plain --sides heedful nanogpt nanogpt-compiled
    python -m benchmarks.pretrain --out docs/results/pretrain.json

A step is forward, backward, clipping and AdamW (fused on both sides) on 128 rows of 128 random tokens.
Heedful's step is that of `heedful pretrain`, including making the batch. The cases `dropout` and `plain` use
the activation of `char-gpt` on both sides (gelu); `gpt2-dropout` and `gpt2-plain` use that of GPT-2 (gelu
with tanh, which transformers computes with separate operations). Each run is a child process, the sides take
turns, and the numbers are medians of the seconds per step. The side "nanogpt" is a decoder like that of
nanoGPT, written anew with torch's modules: pre-norm blocks, one product for q, k and v, torch's fused
attention, gelu, and the embedding as output layer. A side with "-compiled" goes through torch.compile, which
needs a C++ compiler; without one it is left out. The roof is the time of plain matrix products with the
shapes of this model: three per weight matrix, including the output layer, for the tokens of a step. The goal
without dropout is 70 %.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
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
SIDES = ("transformers", "transformers-compiled", "nanogpt", "nanogpt-compiled")
"""What Heedful is compared with, if it is asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--sides", nargs="+", default=["transformers"], choices=SIDES)
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
    chosen = [side for side in args.sides if can_compile() or not side.endswith("-compiled")]
    if len(chosen) < len(args.sides):
        print("there is no C++ compiler here: the compiled sides are left out", file=sys.stderr)
    for name in args.cases or CASES:
        goal = CASES[name][-1]
        sides = {side: (name, "--side", side) for side in ("heedful", *chosen, "roof")}
        medians = measure_in_turns(sides, "benchmarks.pretrain", args.turns)
        ours, roof = medians["heedful"], medians["roof"]["seconds"] / medians["heedful"]["seconds"]
        rows = [compare_sides(name, side, ours, medians[side], goal, roof) for side in chosen]
        print(f"{'':12} {ROWS * LENGTH / ours['seconds']:,.0f} tokens per second")
        if args.out:
            write_rows(args.out, "python -m benchmarks.pretrain", args.turns, rows)


def can_compile() -> bool:
    """Whether torch.compile finds the C++ compiler that it needs on a CPU."""
    return any(shutil.which(name) for name in ("c++", "g++", "clang++"))


def run_side(side: str, dropout: float, activation: str) -> dict[str, float]:
    """Measure the seconds per step of one side, in this process."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        step = {
            "heedful": heedful_step,
            "transformers": transformers_step,
            "transformers-compiled": partial(transformers_step, compiled=True),
            "nanogpt": nanogpt_step,
            "nanogpt-compiled": partial(nanogpt_step, compiled=True),
            "roof": roof_step,
        }[side](dropout, activation, Path(folder))
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


def transformers_step(dropout: float, activation: str, folder: Path, *, compiled: bool = False) -> Any:
    """Return a step of the usual training loop for GPT2LMHeadModel."""
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
    run = torch_compile(model) if compiled else model
    return make_step(model, lambda ids: run(input_ids=ids, labels=ids).loss)


def nanogpt_step(dropout: float, activation: str, folder: Path, *, compiled: bool = False) -> Any:
    """Return the same step for a decoder as nanoGPT describes it, in our own words."""
    from torch import Tensor, nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
            self.qkv, self.out = nn.Linear(D_MODEL, 3 * D_MODEL), nn.Linear(D_MODEL, D_MODEL)
            self.up, self.down = nn.Linear(D_MODEL, 4 * D_MODEL), nn.Linear(4 * D_MODEL, D_MODEL)
            self.dropout = nn.Dropout(dropout)

        def forward(self, x: Tensor) -> Tensor:
            b, t, d = x.shape
            q, k, v = self.qkv(self.before(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
            p = dropout if self.training else 0.0
            seen = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)  # [b, h, t, d / h]
            x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(b, t, d)))
            approximate = "none" if activation == "gelu" else "tanh"
            return x + self.dropout(self.down(F.gelu(self.up(self.between(x)), approximate=approximate)))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, D_MODEL), nn.Embedding(LENGTH, D_MODEL)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm, self.dropout = nn.LayerNorm(D_MODEL), nn.Dropout(dropout)
            for part in self.modules():
                if isinstance(part, nn.Linear | nn.Embedding):
                    nn.init.normal_(part.weight, std=0.02)

        def forward(self, ids: Tensor) -> Tensor:
            x = self.dropout(self.tokens(ids) + self.places.weight[: ids.shape[1]])
            logits = self.norm(self.blocks(x)) @ self.tokens.weight.T
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    model = Decoder()
    return make_step(model, torch_compile(model) if compiled else model)


def torch_compile(model: Any) -> Any:
    import torch

    return torch.compile(model)


def make_step(model: Any, find_loss: Callable[[Any], Any]) -> Callable[[int], None]:
    """Return the step of the usual training loop, with fused AdamW and clipping."""
    import torch

    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    data = torch.randint(VOCABULARY, (WARM + STEPS, ROWS, LENGTH))

    def step(number: int) -> None:
        find_loss(data[number]).backward()
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
