"""Compare attention mechanisms with torch's fused kernel, forward and backward.

    python -m benchmarks.attention                      all parts
    python -m benchmarks.attention softmax additive     some parts
    python -m benchmarks.attention long --lengths 4096 16384 --turns 3

`softmax` compares dropout and a trainable bias with torch's implementation and with the plain kernel.
`additive` compares a training step of a small decoder with additive and with softmax attention. `long`
compares the linear mechanisms with the fused softmax at several lengths, causal and not. The sides take turns
in one process, and the numbers are medians.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.machine import refuse_busy
from heedful.attention import MECHANISMS, Mask, Mechanism, make
from heedful.attention.dropout import Dropout
from heedful.lab.cost import OPTIONS

LONG = ("linformer", "bigbird", "performer")
GOALS = {False: 10.0, True: 3.5}
"""The intended speed relative to the fused softmax at length 16,384: not causal, causal."""


def time_in_turns(sides: dict[str, Callable[[], None]], count: int) -> dict[str, float]:
    """Return the median milliseconds of each side; the sides take turns after one warm-up."""
    milliseconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(count + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if turn:
                milliseconds[name].append(1000 * (time.perf_counter() - start))
    return {name: median(times) for name, times in milliseconds.items()}


def make_passes(attend: Callable[..., Tensor], *tensors: Tensor) -> Callable[[], None]:
    """Return a function that runs the forward and the backward pass of one call."""
    grad = torch.randn(tensors[0].shape)

    def run() -> None:
        attend(*tensors).backward(grad)

    return run


def random_parameter(*size: int) -> Tensor:
    return torch.randn(size, requires_grad=True)


def call(
    mechanism: Mechanism, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, causal: bool = True
) -> Tensor:
    """Call a mechanism, with a causal mask or without a mask."""
    out: Tensor = mechanism(q, k, v, Mask(causal=causal), bias)
    return out


def softmax(count: int) -> None:
    """Compare dropout and a trainable bias with torch's, and with the plain kernel as a lower bound."""
    for b, h, t, d in (
        (32, 12, 128, 64),
        (32, 8, 128, 32),
        (32, 3, 100, 16),
        (4, 8, 512, 64),
        (1, 8, 2048, 64),
    ):
        qkv = [random_parameter(b, h, t, d) for _ in range(3)]
        bias = random_parameter(1, h, t, t)
        block = torch.ones(t, t, dtype=torch.bool).tril()
        plain = make("softmax", n_heads=h, d_head=d, max_len=t)
        dropping = make("softmax", n_heads=h, d_head=d, max_len=t, dropout=0.1)

        def torch_bias(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, block: Tensor = block) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, bias.masked_fill(~block, float("-inf")))

        def torch_dropout(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)

        ms = time_in_turns(
            {
                "plain": make_passes(partial(call, plain), *qkv),
                "dropout": make_passes(partial(call, dropping), *qkv),
                "torch dropout": make_passes(torch_dropout, *qkv),
                "bias": make_passes(partial(call, plain), *qkv, bias),
                "torch bias": make_passes(torch_bias, *qkv, bias),
            },
            count,
        )
        print(f"[{b}, {h}, {t}, {d}]  plain kernel {ms['plain']:.1f} ms")
        for name in ("dropout", "bias"):
            theirs = ms[f"torch {name}"]
            print(
                f"  {name}: {ms[name]:.1f} ms, torch {theirs:.1f} ms, {theirs / ms[name]:.2f} times faster, "
                f"{ms[name] / ms['plain']:.2f} times the plain kernel",
                flush=True,
            )


def additive(count: int) -> None:
    """Compare training gpt-nano with additive and softmax attention, with and without dropout."""
    from heedful.checkpoints import load

    ids = torch.randint(256, (32, 101))

    def step(attention: str, dropout: bool) -> Callable[[], None]:
        model = load("gpt-nano", head="causal", attention=attention, vocab_size=256).train()
        for part in model.modules() if not dropout else ():
            if hasattr(part, "dropout") and isinstance(part.dropout, float):
                part.dropout = 0.0
            if isinstance(part, Dropout):
                part.p = 0.0
        optimizer = torch.optim.AdamW(model.parameters())

        def run() -> None:
            logits = model(ids[:, :-1])
            F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()

        return run

    for dropout in (True, False):
        ms = time_in_turns({name: step(name, dropout) for name in ("softmax", "additive")}, max(count, 15))
        print(
            f"step {'with' if dropout else 'without'} dropout: softmax {ms['softmax']:.1f} ms, "
            f"additive {ms['additive']:.1f} ms: {ms['additive'] / ms['softmax']:.2f} times (goal 3)"
        )


def long(count: int, lengths: list[int]) -> None:
    """Compare each linear mechanism with the fused softmax, for one text and 8 heads of width 64."""
    for t in lengths:
        for causal in (False, True):
            qkv = [random_parameter(1, 8, t, 64) for _ in range(3)]
            sides = {}
            for name in ("softmax", *LONG):
                if causal and not MECHANISMS[name].causal:
                    continue
                mechanism = make(name, n_heads=8, d_head=64, max_len=t, **OPTIONS.get(name, {}))
                sides[name] = make_passes(partial(call, mechanism, causal=causal), *qkv)
            ms = time_in_turns(sides, count)
            goal = f" (goal {GOALS[causal]:g})" if t == 16384 else ""
            print(f"{t} {'causal' if causal else 'not causal'}: softmax {ms['softmax']:.0f} ms")
            for name in sides:
                if name != "softmax":
                    times = ms["softmax"] / ms[name]
                    print(f"  {name}: {ms[name]:.0f} ms, {times:.2f} times faster{goal}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=["softmax", "additive", "long", []], default=[])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 8192, 16384])
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    args = parser.parse_args()
    refuse_busy(args.force)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    parts = args.parts or ["softmax", "additive", "long"]
    if "softmax" in parts:
        softmax(args.turns)
    if "additive" in parts:
        additive(args.turns)
    if "long" in parts:
        long(args.turns, args.lengths)


if __name__ == "__main__":
    main()
