"""What fits in the time: the candidates to try, how long each may take, and what is left out and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.solve.candidates import SETUP_SECONDS, Candidate, DataFacts, Speed, epoch_seconds

REPORT_SECONDS = 5.0
"""Time to write the answer and the report."""
LEAST_STEPS = 60
"""Fine-tuning with fewer optimizer steps is not worth its time."""
EVALUATIONS = (3, 8)
"""The fewest and the most evaluations of a fine-tuning run."""
EVALUATION_SHARE = 0.15
"""Evaluations may take this share of the training time."""
TEST_SHARE, LEAST_TEST = 0.1, 200
"""Share of the time to score test in; a larger test split is sampled, to no fewer than this many rows."""
TRAIN_EVAL_ROWS = 200
"""Number of training rows that are scored at an evaluation, to see the curve of train."""


@dataclass(frozen=True)
class PlanEntry:
    """A candidate in the plan."""

    candidate: Candidate
    seconds: float
    """The time that it is expected to take."""
    settings: dict[str, Any]
    """Options that the time decided."""
    reason: str = ""
    """Why it is left out; empty if it is planned."""

    @property
    def planned(self) -> bool:
        return not self.reason


def reserve_seconds(facts: DataFacts, speed: Speed, startup: float) -> float:
    """Return the time that must be left at the end: to score test with the chosen model, and to report.

    A candidate that must be ended by force takes its process with it, so that another one has to start.
    """
    return REPORT_SECONDS + startup + 1.2 * facts.test * speed.forward_row


def limit_test(facts: DataFacts, speed: Speed, minutes: float) -> DataFacts:
    """Return the facts with as many rows of test as can be scored in a part of the time."""
    affordable = int(TEST_SHARE * 60 * minutes / max(speed.forward_row, 1e-9))
    rows = {**facts.rows, "test": max(min(facts.test, LEAST_TEST), min(facts.test, affordable))}
    return replace(facts, rows=rows) if facts.test else facts


def make_plan(
    candidates: Sequence[Candidate],
    facts: DataFacts,
    speed: Speed | None,
    seconds: float,
    slowness: float = 1.0,
    no_encoder: str = "",
) -> list[PlanEntry]:
    """Plan the candidates that fit in the given seconds, in their order.

    Parameters
    ----------
    candidates
        Those that are not done yet.
    facts, speed
        What is known about the data and the machine; without a speed there is no encoder.
    seconds
        Time for all of them.
    slowness
        By how much the runs so far took longer than expected.
    no_encoder
        Why there is no encoder.

    """
    entries, left = [], seconds
    for candidate in candidates:
        entry = plan_candidate(candidate, facts, speed, left, slowness, no_encoder)
        entries.append(entry)
        if entry.planned:
            left -= entry.seconds
    return entries


def plan_candidate(
    candidate: Candidate,
    facts: DataFacts,
    speed: Speed | None,
    left: float,
    slowness: float,
    no_encoder: str,
) -> PlanEntry:
    if reason := candidate.unsuited(facts):
        return PlanEntry(candidate, 0.0, {}, reason)
    if speed is None and candidate.encoder:
        return PlanEntry(candidate, 0.0, {}, no_encoder)
    speed = speed or Speed()
    seconds = slowness * (SETUP_SECONDS + candidate.seconds(facts, speed))
    settings: dict[str, Any] = {}
    if candidate.by_epochs:
        epochs = speed.epochs
        if seconds > left:
            per_epoch = slowness * epoch_seconds(facts, speed)
            epochs = math.floor((left - (seconds - speed.epochs * per_epoch)) / per_epoch)
        settings = fit_length(candidate, facts, speed, epochs)
        if not settings:
            return PlanEntry(candidate, seconds, {}, describe_lack(seconds, left))
        seconds -= slowness * (speed.epochs - epochs) * epoch_seconds(facts, speed)
    elif seconds > left:
        return PlanEntry(candidate, seconds, {}, describe_lack(seconds, left))
    return PlanEntry(candidate, seconds, settings)


def fit_length(candidate: Candidate, facts: DataFacts, speed: Speed, epochs: int) -> dict[str, Any]:
    """Return the options of a run of this many epochs; none if it would be too short to be worth it."""
    per_epoch = math.ceil(facts.train / speed.batch_size)
    steps = epochs * per_epoch
    if epochs < 1 or steps < min(LEAST_STEPS, speed.epochs * per_epoch):
        return {}
    scoring = (facts.dev + min(TRAIN_EVAL_ROWS, facts.train)) * speed.forward_row
    affordable = EVALUATION_SHARE * epochs * facts.train * speed.train_row / max(scoring, 1e-9)
    evaluations = max(EVALUATIONS[0], min(EVALUATIONS[1], int(affordable)))
    settings: dict[str, Any] = {"epochs": epochs, "eval_every": max(1, math.ceil(steps / evaluations))}
    if candidate.rate is not None and speed.lr is not None:
        settings["lr"] = candidate.rate * speed.lr
    return settings


def describe_lack(needed: float, left: float) -> str:
    return f"needs about {format_seconds(needed)}; {format_seconds(max(0.0, left))} would be left"


def format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def describe_plan(
    entries: Sequence[PlanEntry], facts: DataFacts, speed: Speed | None, minutes: float
) -> list[str]:
    """Return the plan as lines to print."""
    rows = ", ".join(f"{n:,} {split}" for split, n in facts.rows.items())
    lines = [f"{facts.name}: {facts.labels} labels; rows: {rows}"]
    if speed is not None:
        train, forward = (f"{1000 * seconds:.2g} ms" for seconds in (speed.train_row, speed.forward_row))
        lines.append(f"measured here: {train} to train on a row, {forward} to read one")
    lines.append(f"plan for {minutes:g} minutes:")
    for entry in entries:
        name, epochs = entry.candidate.name, entry.settings.get("epochs")
        if entry.planned:
            length = f", {epochs} epochs" if epochs else ""
            condition = f", if {entry.candidate.after} is among the best" if entry.candidate.after else ""
            lines.append(f"  {name}: about {format_seconds(entry.seconds)}{length}{condition}")
        else:
            lines.append(f"  {name} is left out: {entry.reason}")
    return lines
