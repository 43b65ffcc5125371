"""Checks of how a run went: its warm-up, and its curves."""

from __future__ import annotations

import math
from collections.abc import Iterable

from heedful.evaluation.checks.findings import percent
from heedful.evaluation.metrics import ACCURACY, Metric
from heedful.runs.schemas import Check, Metrics

WARMUP_LIMIT = 0.5
"""Warm-up is there to survive the first steps: papers use 1 to 10 % of a run, so half is a slip."""


def warmup(warmup_steps: int, total_steps: int) -> Check:
    """Does the learning rate reach its value, and early enough to be used?"""
    name = "warmup"
    if total_steps < 1:
        return Check(name, "skipped", "The run had no steps.")
    share = warmup_steps / total_steps
    steps = f"{warmup_steps:,} of {total_steps:,} steps"
    if warmup_steps >= total_steps:
        sentence = (
            f"Warm-up is as long as the run or longer ({steps}); the learning rate you asked for is never "
            f"used; shorten the warm-up or train longer."
        )
        return Check(name, "failed", sentence, share, WARMUP_LIMIT)
    if share > WARMUP_LIMIT:
        sentence = (
            f"Warm-up takes {percent(share)} of the run ({steps}); most of it trains below the learning rate "
            f"you asked for; shorten the warm-up or train longer."
        )
        return Check(name, "warning", sentence, share, WARMUP_LIMIT)
    sentence = f"Warm-up takes {percent(share)} of the run." if warmup_steps else "There is no warm-up."
    return Check(name, "passed", sentence, share, WARMUP_LIMIT)


def dev_falls_while_train_rises(rows: Iterable[Metrics], metric: Metric = ACCURACY) -> Check:
    """Did the run go on learning train by heart after dev was at its best? Takes the rows of metrics.jsonl.

    Dev's last value is compared with its best; a fall within one standard error is chance.
    """
    name = "dev_falls_while_train_rises"
    finite = [row for row in rows if row.value is not None and math.isfinite(row.value)]
    dev, scored, train = ([r for r in finite if r.split == s] for s in ("dev", "train_eval", "train"))
    train = scored or train
    if len(dev) < 2 or len(train) < 2:
        return Check(name, "skipped", f"Train and dev have too few values of {metric.title} to compare.")
    best, last = max(dev, key=lambda row: metric.sort_key(value(row))), dev[-1]
    at_best = value(min(train, key=lambda row: abs(row.step - best.step)))
    fall = metric.improvement(value(last), value(best))
    rise = metric.improvement(at_best, value(train[-1]))
    limit = metric.noise(value(best), best.n)
    if fall <= limit or rise <= 0:
        sentence = f"Dev's last {metric.title} is {value(last):.3f}, its best {value(best):.3f}."
        return Check(name, "passed", sentence, max(fall, 0.0), limit)
    sentence = (
        f"Dev got worse while train got better: from epoch {best.epoch:.3g} to {last.epoch:.3g} "
        f"{metric.title} went from {value(best):.3f} to {value(last):.3f} on dev and from {at_best:.3f} to "
        f"{value(train[-1]):.3f} on train; the model learns its training texts by heart; keep the best "
        f"checkpoint, train for fewer epochs, or give more data or dropout."
    )
    return Check(name, "warning", sentence, fall, limit)


def still_improving(rows: Iterable[Metrics], metric: Metric, longer: str) -> Check:
    """Did the run end while dev was still getting better? `longer` is an option that trains longer.

    Both the metric and the loss are best at the last evaluation, and the metric has gained more since half of
    the run than it may change by chance.
    """
    name = "still_improving"
    finite = [row for row in rows if row.value is not None and math.isfinite(row.value)]
    dev = [row for row in finite if row.split == "dev"]
    if len(dev) < 2:
        return Check(name, "skipped", f"Dev has too few values of {metric.title} to say.")
    last, before = dev[-1], dev[max(0, len(dev) // 2 - 1)]
    best = max(dev, key=lambda row: metric.sort_key(value(row), row.loss or 0.0))
    lowest = min((row.loss for row in dev if row.loss is not None), default=None)
    gain, limit = metric.improvement(value(before), value(last)), metric.noise(value(last), last.n)
    numbers = (
        f"from epoch {before.epoch:.3g} to {last.epoch:.3g} dev's {metric.title} went from "
        f"{value(before):.3f} to {value(last):.3f}"
    )
    if best is not last or last.loss != lowest or gain <= limit:
        return Check(name, "passed", f"Dev no longer improved beyond chance: {numbers}.", gain, limit)
    sentence = (
        f"Still improving when it stopped: {numbers}, its best; more training may give more; try {longer}."
    )
    return Check(name, "warning", sentence, gain, limit)


def value(row: Metrics) -> float:
    assert row.value is not None
    return row.value
