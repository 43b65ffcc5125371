"""What fits in the time: the candidates to try, how long each may take, and what is left out and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from heedful.solve.candidates import Candidate, DataFacts, Speed

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
DEV_SHARE, LEAST_DEV = 0.04, 300
"""The same for dev, which every candidate scores."""
TRAIN_EVAL_ROWS = 200
"""Number of training rows that are scored at an evaluation, to see the curve of train."""
FOLDS = 5
"""Number of parts for cross-validation, where dev has fewer than `LEAST_DEV` rows."""
FOLD_COUNTS = (5, 3, 2)
"""How many of the parts are held out in turn: fewer where the time is short."""
MOST_TIME_FOLDS = 3
"""The same where folds are parts of time: each has fewer earlier rows to train on than the one before it."""
UNMEASURED_SHARE = 0.4
"""A candidate whose time is only estimated is planned in at most this share of the time that is left."""
NOT_FINISHED = "was not finished"
NOT_IN_TIME = f"{NOT_FINISHED} in time"
TIME_OVER, WOULD_BE_LEFT = "the time was over", "would be left"
TIME_REASONS = (NOT_FINISHED, TIME_OVER, WOULD_BE_LEFT)
"""Parts of the reasons that more minutes would remove."""
FEWER = 0.7
"""The next number of training rows to try, relative to the last one."""


@dataclass(frozen=True)
class Budget:
    """What candidates are planned with."""

    facts: DataFacts
    speed: Speed | None = None
    """None without an encoder."""
    no_encoder: str = ""
    """Why there is no encoder."""
    slowness: float = 1.0
    """By how much the runs so far took longer than expected."""
    folds: int = 0
    """How many folds of cross-validation each candidate has."""


@dataclass(frozen=True)
class PlanEntry:
    """A candidate in the plan."""

    candidate: Candidate
    seconds: float
    """The time that it is expected to take, with its folds."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Options that the time decided."""
    reason: str = ""
    """Why it is left out; empty if it is planned."""
    run_seconds: float = 0.0
    """The part of `seconds` that one run takes."""

    @property
    def planned(self) -> bool:
        return not self.reason

    def is_whole(self, budget: Budget) -> bool:
        """Whether it is planned with all training rows and the usual number of epochs."""
        usual = 0 if budget.speed is None else budget.speed.epochs
        return (
            self.planned and "train_rows" not in self.settings and self.settings.get("epochs", usual) == usual
        )


def reserve_seconds(facts: DataFacts, speed: Speed, startup: float) -> float:
    """Return the time that must be left at the end: to score test with the chosen model, and to report.

    A candidate that must be ended by force takes its process with it, so that another one has to start.
    """
    return REPORT_SECONDS + startup + 1.2 * facts.test * speed.forward_row


def limit_rows(facts: DataFacts, speed: Speed, minutes: float) -> DataFacts:
    """Return the facts with as many rows of dev and test as can be scored in a part of the time."""
    rows = dict(facts.rows)
    for split, share, least in (("dev", DEV_SHARE, LEAST_DEV), ("test", TEST_SHARE, LEAST_TEST)):
        if split in rows:
            affordable = int(share * 60 * minutes / max(speed.forward_row, 1e-9))
            rows[split] = min(rows[split], max(least, affordable))
    return replace(facts, rows=rows)


def choose_folds(candidates: Sequence[Candidate], budget: Budget, seconds: float) -> int:
    """Return how many folds are held out in turn: none if dev is large enough to select on.

    Fewer than all if the main candidates otherwise do not fit in the time as a whole.
    """
    most = count_possible_folds(budget.facts)
    folds = 0
    for folds in (count for count in FOLD_COUNTS if count <= most):
        entries = make_plan(candidates, replace(budget, folds=folds), seconds)
        if all(entry.is_whole(budget) for entry in entries if is_main(entry.candidate, budget)):
            break
    return folds


def count_possible_folds(facts: DataFacts) -> int:
    """Return how many folds there may be: none if dev is large enough or the rows are too few."""
    units = facts.train if facts.units is None else facts.units
    if facts.dev >= LEAST_DEV or min(facts.train, units) < 2 * FOLDS:
        return 0
    return MOST_TIME_FOLDS if facts.timed else FOLDS


def is_main(candidate: Candidate, budget: Budget) -> bool:
    suited = candidate.unsuited(budget.facts) is None and (budget.speed is not None or not candidate.encoder)
    return suited and not candidate.after


def make_plan(candidates: Sequence[Candidate], budget: Budget, seconds: float) -> list[PlanEntry]:
    """Plan those of the candidates that fit in the given seconds, in their order."""
    entries, left = [], seconds
    for candidate in candidates:
        entry = plan_candidate(candidate, budget, left)
        entries.append(entry)
        if entry.planned:
            left -= entry.seconds
    return entries


def plan_candidate(candidate: Candidate, budget: Budget, left: float) -> PlanEntry:
    """Plan one candidate in the seconds that are left: with fewer epochs or rows if it must be."""
    facts, speed = budget.facts, budget.speed
    if reason := candidate.unsuited(facts):
        return PlanEntry(candidate, 0.0, reason=reason)
    if speed is None and candidate.encoder:
        return PlanEntry(candidate, 0.0, reason=budget.no_encoder)
    speed = speed or Speed()
    # Another learning rate with less training than the first would compare nothing.
    whole_only = candidate.whole or bool(candidate.after)
    rows, least = facts.train, facts.train if candidate.after else max(LEAST_STEPS, 5 * facts.labels)
    while rows >= min(least, facts.train):
        part = replace(facts, rows={**facts.rows, "train": rows})
        entry = fit_time(candidate, part, speed, budget, left)
        if entry is not None:
            fewer: dict[str, Any] = {"train_rows": rows} if rows < facts.train else {}
            if budget.folds and candidate.evaluates:
                fewer["select"] = "last"  # what a fold selects may not be scored on it
            entry = replace(entry, settings={**entry.settings, **fewer})
            if entry.is_whole(budget) or not whole_only:
                return entry
        rows = int(FEWER * rows)
    whole = scale(candidate.total_seconds(facts, speed), budget) / planned_share(candidate)
    return PlanEntry(candidate, whole, reason=describe_lack(whole, left))


def plan_anyway(candidate: Candidate, budget: Budget) -> PlanEntry:
    """Plan a candidate though it is not expected to fit, with no more rows than take as long as its setup.

    That is for one without the encoder, where nothing else could give an answer: an estimate may be wrong.
    """
    facts, speed = budget.facts, budget.speed or Speed()
    rows, least = facts.train, max(LEAST_STEPS, 5 * facts.labels)
    while int(FEWER * rows) >= least and candidate.seconds(facts, speed) > candidate.setup:
        rows = int(FEWER * rows)
        facts = replace(facts, rows={**facts.rows, "train": rows})
    seconds = candidate.total_seconds(facts, speed)
    fewer = {"train_rows": rows} if rows < budget.facts.train else {}
    return PlanEntry(candidate, scale(seconds, budget), fewer, run_seconds=budget.slowness * seconds)


def planned_share(candidate: Candidate) -> float:
    """Return the share of the time left in which a candidate is planned.

    The time of one without the encoder was not measured, and it cannot stop by itself.
    """
    return 1.0 if candidate.encoder else UNMEASURED_SHARE


def scale(seconds: float, budget: Budget) -> float:
    """Return what a run and its folds, which train on a part of the rows, take on this machine."""
    return budget.slowness * seconds * (1 + budget.folds * (FOLDS - 1) / FOLDS)


def fit_time(
    candidate: Candidate, facts: DataFacts, speed: Speed, budget: Budget, left: float
) -> PlanEntry | None:
    """Return the entry of a candidate with these training rows; None if it does not fit."""
    seconds = candidate.total_seconds(facts, speed)
    if candidate.epoch_share is None:
        total = scale(seconds, budget)
        fits = total <= planned_share(candidate) * left
        return PlanEntry(candidate, total, run_seconds=budget.slowness * seconds) if fits else None
    per_epoch, epochs = candidate.epoch_seconds(facts, speed), speed.epochs
    if scale(seconds, budget) > left:
        before = seconds - speed.epochs * per_epoch
        epochs = math.floor((left / scale(1.0, budget) - before) / per_epoch)
    settings = fit_length(candidate, facts, speed, epochs)
    if not settings:
        return None
    seconds -= (speed.epochs - epochs) * per_epoch
    return PlanEntry(candidate, scale(seconds, budget), settings, run_seconds=budget.slowness * seconds)


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
    return f"needs about {format_seconds(needed)}; {format_seconds(max(0.0, left))} {WOULD_BE_LEFT}"


def explain_lack(
    candidates: Sequence[Candidate], reasons: Mapping[str, str], facts: DataFacts, minutes: float
) -> str:
    """Return why there is no answer: the time is too short if all candidates that suit the data lacked it."""
    suited = {
        c.name: reasons.get(c.name, NOT_IN_TIME)
        for c in candidates
        if c.unsuited(facts) is None and not c.after
    }
    short = bool(suited) and all(any(part in reason for part in TIME_REASONS) for reason in suited.values())
    why = (
        f"{format_minutes(minutes)} {'is' if minutes == 1 else 'are'} too short"
        if short
        else "no candidate could be finished"
    )
    listed = [f"{name} ({reason})" for name, reason in suited.items() if name in reasons]
    return f"{why}: {', '.join(listed)}" if listed else why


def format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def format_minutes(minutes: float) -> str:
    return "one minute" if minutes == 1 else f"{minutes:g} minutes"


def describe_plan(entries: Sequence[PlanEntry], budget: Budget, minutes: float) -> list[str]:
    """Return the plan as lines to print."""
    facts, speed = budget.facts, budget.speed
    rows = ", ".join(f"{n:,} {split}" for split, n in facts.rows.items())
    lines = [f"{facts.name}: {facts.labels} labels; rows in use: {rows}"]
    lines += facts.split_notes[:1]
    if speed is not None:
        train, forward = (f"{1000 * seconds:.2g} ms" for seconds in (speed.train_row, speed.forward_row))
        lines.append(f"measured here: {train} to train on a row, {forward} to read one")
    if budget.folds:
        lines.append(f"dev is small: {budget.folds} of {FOLDS} folds of train are held out in turn as well")
    lines.append(f"plan for {format_minutes(minutes)}:")
    for reason, group in groupby(entries, lambda entry: entry.reason):
        alike = list(group)
        if reason:
            names = ", ".join(entry.candidate.name for entry in alike)
            lines.append(f"  {names} {'is' if len(alike) == 1 else 'are'} left out: {reason}")
        else:
            lines += [f"  {describe_entry(entry)}" for entry in alike]
    return lines


def describe_entry(entry: PlanEntry) -> str:
    settings = entry.settings
    what = f", {settings['epochs']} epochs" if "epochs" in settings else ""
    what += f", {settings['train_rows']:,} training rows" if "train_rows" in settings else ""
    condition = f", if {entry.candidate.after} is among the best" if entry.candidate.after else ""
    return f"{entry.candidate.name}: about {format_seconds(entry.seconds)}{what}{condition}"
