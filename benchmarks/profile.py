"""Print where the processor time of a training step goes: products, attention, normalization, Python, ...

    python -m benchmarks.profile                      all cases
    python -m benchmarks.profile dropout lora         two of them

One thread, so that the parts add up. torch's profiler gives the time of each operation without those that it
calls, counted where it belongs: a product inside attention, forward or backward, is attention. What no
operation takes is Python, the profiler's own work included. The profiler counts time that passes, which other
work on the machine stretches: so the shares are the profiler's, and the milliseconds are these shares of the
processor time that a step takes without it. The roof is the time of the products outside attention: their
share is what would be left if the rest were free.
The cases plain and dropout are those of benchmarks.pretrain; full, lora and prefix adapt MiniLM to generated
reviews, with dropout.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import pretrain
from benchmarks.machine import busy_share

PARTS = {
    "optimizer": r"_fused_\w+_|foreach|Optimizer|linalg_vector_norm|clip",
    "loss": r"cross_entropy|nll_loss|log_softmax|OutputLoss|NllLoss|LogSoftmax",
    "attention": r"scaled_dot_product|ScaledDotProduct|ChunkedAttention|BlockAttention|Favor|softmax|Softmax",
    "dropout": r"ropout|bernoulli|random_",
    "normalization": r"layer_norm|LayerNorm|rms_norm",
    "activation": r"gelu|Gelu|relu|Relu|tanh|Tanh",
    "embedding": r"embedding|Embedding|index_select|IndexSelect",
    "products": r"::(add)?b?mm\b|::linear\b|::matmul\b|mkldnn|Mm\d|AddmmBackward",
}
"""Which part of a step an operation belongs to, by its own name or the nearest one above it."""
REST, PYTHON = "sums, copies and the rest", "Python"
PRETRAINING = {"plain": 0.0, "dropout": 0.1}
METHODS = ("full", "lora", "prefix")
WARM, STEPS = 2, 6
Step = Callable[[int], Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*PRETRAINING, *METHODS)
    parser.add_argument("cases", nargs="*", help=f"cases to profile (default: all): {', '.join(known)}")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    args = parser.parse_args()
    for name in args.cases:
        if name not in known:
            parser.error(f"there is no case {name}; there are {', '.join(known)}")
    print(f"{busy_share():.0%} of the machine's processors are in use by others", file=sys.stderr)
    rows = [profile_case(name) for name in args.cases or known]
    if args.out:
        args.out.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def profile_case(name: str) -> dict[str, Any]:
    """Profile the steps of one case, and print and return milliseconds per step and part."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        if name in PRETRAINING:
            step = pretrain.heedful_step(PRETRAINING[name], "gelu", Path(folder))
        else:
            step = adapt_step(name, Path(folder))
        torch.set_num_threads(1)
        whole = time_steps(step)
        shares = profile_steps(step)
    print(f"{name}: {whole:.1f} ms of processor time per step")
    for part, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"  {part:26} {share * whole:8.1f} ms  {share:6.1%}")
    return {"case": name, "step": whole, "shares": shares, "roof": shares.get("products", 0.0)}


def adapt_step(method: str, folder: Path) -> Step:
    """Return a step of `heedful adapt minilm` on generated reviews."""
    from heedful.options.training import AdaptOptions
    from heedful.runs.directory import Run
    from heedful.training.build import build_job

    options = AdaptOptions(
        model="minilm", task="world/reviews", method=method, train_rows=400, batch_size=16, max_len=128,
        epochs=1, head_start="random", precision="float32", device="cpu", threads=1, out=folder / "run",
    )  # fmt: skip
    loop = build_job(options).make_loop(Run(folder / "run"))
    loop.model.train()
    return loop.step


def time_steps(step: Step) -> float:
    """Return the processor time of a step in milliseconds."""
    spent = []
    for number in range(WARM + STEPS):
        start = time.process_time()
        step(number)
        spent.append(time.process_time() - start)
    return 1000 * median(spent[WARM:])


def profile_steps(step: Step) -> dict[str, float]:
    """Return the share of each part in the time of a step, by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        start = time.perf_counter()
        for number in range(STEPS):
            step(number)
        passed = time.perf_counter() - start
    spent: Counter[str] = Counter()
    for event in profiler.events() or ():
        spent[find_part(event)] += event.self_cpu_time_total / 1e6
    total = max(passed, sum(spent.values()))
    shares = {part: seconds / total for part, seconds in spent.items()}
    return {**shares, PYTHON: 1 - sum(shares.values())}


def find_part(event: Any) -> str:
    """Return the part of an operation: that of attention, dropout, ... if it is inside one."""
    names = []
    while event is not None:
        names.append(event.name)
        event = event.cpu_parent
    for part, pattern in PARTS.items():
        if any(re.search(pattern, name) for name in names):
            return part
    return REST


if __name__ == "__main__":
    main()
