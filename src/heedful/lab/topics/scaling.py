"""Time and memory of every mechanism against length."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heedful.attention import MECHANISMS
from heedful.errors import UserError, unknown
from heedful.lab import cost
from heedful.lab.approximations import exponent
from heedful.lab.base import Finding, Number, Table, at_most, exactly, fact, near
from heedful.lab.cost import HEADS, OPTIONS, WIDTH, CostCurve, CostQuery, LengthCost
from heedful.lab.vectors import check_positive
from heedful.progress import track
from heedful.report.charts import lines

EXPLICIT = "softmax, explicit weights"
LINEAR = ("linformer", "bigbird", "performer")
SHORTEST = 256
FITTED = 3
"""Exponents are of the last lengths: at the first ones what does not grow counts most."""


@dataclass(frozen=True)
class ScalingResults:
    """The costs by mechanism, causal or not."""

    not_causal: dict[str, CostCurve]
    causal: dict[str, CostCurve]


def scaling(
    *, max_length: int = 4096, mechanisms: tuple[str, ...] | None = None, seconds: float = 60.0
) -> Finding[ScalingResults]:
    """Time and memory of every mechanism against length, forward and backward, causal and not.

    Each mechanism is measured in a child process of its own, with 8 heads of
    64: performer with 256 features, linformer with rank 256, bigbird with 8
    blocks of 64. Softmax is measured twice: with the fused kernel, and with
    explicit weights. Only memory decides whether the topic passes.

    Examples:
      heedful lab scaling --figure scaling.svg
      heedful lab scaling --mechanisms softmax performer --max-length 16384 --seconds 300
      heedful lab scaling --json

    Parameters
    ----------
    max_length
        The longest text; lengths are 256, 512, 1024 and so on up to it.
    mechanisms
        Mechanisms to measure (heedful list attentions), and softmax with explicit weights. By default all.
    seconds
        Time limit of each mechanism, for all its lengths together.
    """
    check_positive(seconds=seconds)
    if max_length < 4 * SHORTEST:
        raise UserError(f"max-length is at least {4 * SHORTEST}, three lengths, not {max_length}")
    lengths = tuple(SHORTEST * 2**i for i in range(int(np.log2(max_length / SHORTEST)) + 1))
    safe = [name for name, cls in MECHANISMS.items() if not cls.unsafe]
    names = safe if mechanisms is None else mechanisms
    for name in names:
        if name not in safe:
            raise unknown("attention", name, safe)
    curves: dict[bool, dict[str, CostCurve]] = {False: {}, True: {}}
    jobs = [
        (causal, name)
        for causal in curves
        for name in (EXPLICIT, *names)
        if not causal or name == EXPLICIT or MECHANISMS[name].causal
    ]
    for causal, name in track(jobs, "measuring", len(jobs)):
        curves[causal][name] = measure_mechanism(name, causal, lengths, seconds)
    labeled = curves[False] | {f"{name}, causal": outcome for name, outcome in curves[True].items()}
    return Finding(
        topic="scaling",
        claim="explicit weights take memory with the square of the length, linear mechanisms with the length",
        construction=(
            f"one text, {HEADS} heads of {WIDTH}, scale = 1/sqrt({WIDTH}); forward and backward, float32",
            "; ".join(f"{n}: {', '.join(f'{k} {v}' for k, v in OPTIONS[n].items())}" for n in OPTIONS),
            "each mechanism in its own child process; memory is the rise of its peak, time the quickest pass",
            f"time (or memory) = a length^b, b fitted to the last {FITTED} lengths",
        ),
        numbers=tuple(n for name, outcome in labeled.items() for n in verify(name, outcome)),
        results=ScalingResults(curves[False], curves[True]),
        figure=lines(
            {
                add_exponent(name, outcome): [(m.length, total(m)) for m in outcome.measured]
                for name, outcome in labeled.items()
            },
            title="Time against length, forward and backward",
            subtitle="in brackets the exponent b of time = a length^b; a curve that ends early met a limit",
            x_title="length",
            y_title="milliseconds",
            log_x=True,
            log_y=True,
        ),
        tables=(
            *(Table(("mechanism", *map(str, lengths), "exponent", "limit met"),
                    tuple((name, *values(outcome, lengths, title), slope(outcome, title), outcome.limit)
                          for name, outcome in labeled.items()),
                    title)
              for title in ("forward, ms", "backward, ms", "memory, MB")),
        ),
    )  # fmt: skip


def measure_mechanism(name: str, causal: bool, lengths: tuple[int, ...], seconds: float) -> CostCurve:
    """Measure a mechanism; lengths whose weights would fill the memory are left out, and it says so."""
    if name != EXPLICIT:
        return cost.measure(CostQuery(name, lengths, causal, OPTIONS.get(name, {})), seconds)
    # Scores, weights, and the gradients of both.
    fits = tuple(n for n in lengths if 4 * 4 * HEADS * n * n / 2**20 < 0.5 * cost.read_available_mb())
    if not fits:
        return CostCurve((), "memory")
    outcome = cost.measure(CostQuery("softmax", fits, causal, explicit=True), seconds)
    return outcome if outcome.limit or fits == lengths else replace(outcome, limit="memory")


def total(measured: LengthCost) -> float:
    """Return the milliseconds of both passes."""
    return measured.forward_ms + measured.backward_ms


def amounts(outcome: CostCurve, title: str) -> list[float | None]:
    take = {"forward, ms": "forward_ms", "backward, ms": "backward_ms", "memory, MB": "mb"}
    return [total(m) if title == "time" else getattr(m, take[title]) for m in outcome.measured]


def values(outcome: CostCurve, lengths: tuple[int, ...], title: str) -> list[float | None]:
    """Return the amounts, with None where a limit was met."""
    measured = amounts(outcome, title)
    return [*measured, *[None] * (len(lengths) - len(measured))]


def slope(outcome: CostCurve, title: str) -> float | None:
    """Return the fitted exponent, if there are enough lengths."""
    points = [(m.length, y) for m, y in zip(outcome.measured, amounts(outcome, title), strict=True) if y]
    if len(points) < FITTED:
        return None
    x, y = np.array(points[-FITTED:], dtype=float).T
    return exponent(x, y)


def add_exponent(name: str, outcome: CostCurve) -> str:
    b = slope(outcome, "time")
    return name if b is None else f"{name} ({b:.2f})"


def verify(name: str, outcome: CostCurve) -> list[Number]:
    """Verify that all is finite and memory grows as the mechanism promises; times decide nothing."""
    memory, kind = slope(outcome, "memory, MB"), name.removesuffix(", causal")
    bad = sum(not m.finite for m in outcome.measured) + outcome.failed
    numbers = [exactly(f"{name}: lengths that failed or are not finite", bad, 0)]
    if memory is not None:
        label = f"{name}: exponent of memory"
        if kind == EXPLICIT:
            numbers.append(near(label, memory, 2, 0.4))
        else:
            numbers.append(at_most(label, memory, 1.25) if kind in LINEAR else fact(label, memory))
    time = slope(outcome, "time")
    return numbers if time is None else [*numbers, fact(f"{name}: exponent of time", time)]
