"""What was measured of an exported model, and how to say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.inference.onnx.speed import Latency


@dataclass(frozen=True)
class Speeds:
    """How fast one model labels texts that come one by one, and 32 at a time."""

    single: Latency
    together: Latency
    memory_mb: float | None
    """Peak memory of a process that loads the model and labels 32 texts."""


@dataclass(frozen=True)
class Difference:
    """The score of the exported model minus that of the run's own, on the same rows of dev."""

    metric: str
    value: float
    low: float
    high: float
    p: float
    n: int
    shown: bool
    """Whether there is a difference beyond chance."""
    loses: bool


@dataclass(frozen=True)
class Measures:
    precision: str
    largest_logit_difference: float
    same_label: float | None
    """Share of the texts that get the same answer as from the run's own model; None for numbers."""
    speeds: Mapping[str, Speeds]
    """By name: onnx, torch and, where it is installed and has the model, pipeline (transformers)."""
    size_mb: Mapping[str, float]
    difference: Difference | None
    """None where the run has no predictions on dev."""
    float32_parts: tuple[str, ...] = ()
    """Parts of an int8 model that have to stay float32."""

    def sentence(self) -> str:
        """Return the result in one sentence, as in "2.1 times as fast, accuracy -0.002 (-0.006 to 0.002)"."""
        ours, torch = self.speeds["onnx"], self.speeds["torch"]
        times = ours.together.texts_per_second / torch.together.texts_per_second
        single = ours.single.texts_per_second / torch.single.texts_per_second
        fast = f"{times:.1f} times as fast as torch at 32 texts a call and {single:.1f} times at one"
        d = self.difference
        if d is None:
            return f"{fast}; no score was compared, because the run has no predictions on dev"
        verdict = "a loss" if d.loses else "a difference" if d.shown else "no difference shown"
        return f"{fast}, {d.metric} {d.value:+.3f} ({d.low:.3f} to {d.high:.3f}) on {d.n:,} rows: {verdict}"

    def lines(self) -> list[str]:
        """Return further facts, one per line."""
        size = f"{self.size_mb['onnx']:g} MB on disk (torch {self.size_mb['torch']:g})"
        outputs = "numbers" if self.same_label is None else "logits"
        facts = [f"largest difference of {outputs} {self.largest_logit_difference:.2g}"]
        if self.same_label is not None:
            facts.append(f"the same answer for {self.same_label:.1%} of the texts")
        lines = ["; ".join([*facts, size])]
        if self.float32_parts:
            lines.append(f"in float32, because int8 loses there: {', '.join(self.float32_parts)}")
        return lines

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns and rows of a table of speeds."""
        columns = ("model", "texts/s", "p50 ms", "p95 ms", "texts/s of 32", "p50 ms", "p95 ms", "memory MB")
        rows = []
        for name, speed in self.speeds.items():
            numbers = [
                f"{value:g}"
                for each in (speed.single, speed.together)
                for value in (each.texts_per_second, each.p50_ms, each.p95_ms)
            ]
            memory = "" if speed.memory_mb is None else f"{speed.memory_mb:.0f}"
            rows.append((name, *numbers, memory))
        return columns, rows
