"""One row of the list: what the files of a run or a study say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal

from heedful.options.model_names import ENSEMBLE, LINEAR_MODELS
from heedful.runs.schemas import Results, SplitResult

Kind = Literal["run", "study", "solve"]
State = Literal["running", "starting", "queued", "finished", "stopped", "failed", "pruned", "damaged"]
SPARK_POINTS = 60
"""The most points of a sparkline."""
DETAIL_SPLITS = ("test", "dev")
"""The split whose score is shown, the first that was scored."""


@dataclass(frozen=True)
class Score:
    split: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True


@dataclass(frozen=True)
class Fired:
    """A check that found something."""

    status: str
    """failed or warning."""
    text: str
    """What it found, in a few words."""
    message: str


@dataclass(frozen=True)
class Work:
    """How far the present work is."""

    label: str
    done: int
    total: int | None
    note: str = ""
    left: float | None = None
    """Seconds that it will take, at the pace so far."""


@dataclass(frozen=True)
class Row:
    """A run, a study or a solution."""

    name: str
    """The path of its folder below the studio's."""
    kind: Kind
    state: State
    task: str = ""
    model: str = ""
    method: str = ""
    note: str = ""
    question: str = ""
    """Of a study: what it asks; of a solution: what it solves."""
    study: str = ""
    """Of a run of a study: the name of the study."""
    reason: str = ""
    """Why there is no result."""
    work: Work | None = None
    score: Score | None = None
    spark: tuple[float, ...] = ()
    """The scores of dev, in order; of a study, those of its best run."""
    checks: tuple[Fired, ...] = ()
    seconds: float | None = None
    """How long it was trained."""
    changed: float = 0.0
    """When its folder last changed, in seconds since 1970."""
    runs: int = 0
    """Of a study: how many runs it has, and how many of them have ended."""
    over: int = 0
    stops: bool = False
    """Whether it can be stopped from here."""
    resumes: bool = False
    """Whether it can be continued from here."""
    answers: bool = False
    """Whether it has a model that labels texts."""
    members: tuple[str, ...] = field(default=(), repr=False)
    """Of a study: the runs in it that have a folder."""


def choose_score(results: Results) -> Score | None:
    """Return the score on test, or on dev."""
    for split in (*DETAIL_SPLITS, *results.splits):
        if split in results.splits:
            return make_score(split, results.splits[split])
    return None


def make_score(split: str, result: SplitResult) -> Score | None:
    low, high = (end if end is not None and isfinite(end) else None for end in result.ci95 or (None, None))
    if result.value is None or not isfinite(result.value):
        return None
    return Score(split, str(result.title), result.value, low, high, bool(result.higher_is_better))


def thin_spark(values: list[float]) -> tuple[float, ...]:
    """Return at most `SPARK_POINTS` values, evenly spaced, with the first and the last one."""
    if len(values) <= SPARK_POINTS:
        return tuple(values)
    step = (len(values) - 1) / (SPARK_POINTS - 1)
    return tuple(values[round(i * step)] for i in range(SPARK_POINTS))


def describe_options(row: Row, config: Mapping[str, Any]) -> Row:
    """Return the row of a run with what its configuration says: task, model, method and note."""
    from heedful.report.facts import shorten_name

    command = str(config.get("command", ""))
    options = config.get(command)
    options = options if isinstance(options, Mapping) else {}
    model = str(options.get("model", ""))
    method = options.get("method") or ("" if command == "adapt" else options.get("objective"))
    if model in (*LINEAR_MODELS, ENSEMBLE):
        method = ""  # they have no methods
    task = str(options.get("task") or options.get("corpus") or options.get("data") or "")
    return replace(
        row,
        task=shorten_name(task) if task else "",
        model=shorten_name(model),
        method=str(method or ""),
        note=str(options.get("note") or ""),
    )
