"""What studies say alike: intervals, tables of runs, curves, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.report.formats import join_names
from heedful.runs.answers import Figure, Note
from heedful.runs.directory import CHECKS, Run
from heedful.runs.json_files import read_jsonl
from heedful.runs.schemas import Metrics, SplitResult
from heedful.runs.studies import Outcome
from heedful.statistics.comparison import holm, mcnemar
from heedful.statistics.proportions import widest_interval

ALPHA = 0.05
COLLAPSED, NOT_ABOVE = "collapsed", "no better than the most frequent label"
CONSTANT = "constant_answer"
NO_ANSWER = "no better than one answer to everything"
WORDS = {"lr": "learning rate", "epochs": "epochs", "batch_size": "batch size"}


def named(option: str) -> str:
    """An option in words."""
    return WORDS.get(option, option.replace("_", " "))


def setting(option: str, value: Any) -> str:
    """One setting in words."""
    if option == "epochs":
        return f"{value} epoch{'s' if value != 1 else ''}"
    return f"{named(option)} {value:g}" if isinstance(value, float) else f"{named(option)} {value}"


def settings(chosen: Mapping[str, Any], names: Sequence[str]) -> str:
    """Settings in words."""
    return join_names([setting(name, chosen[name]) for name in names]) if names else "these settings"


def metric_of(outcomes: Iterable[Outcome]) -> str:
    """What is scored, in words."""
    scored = (o.results.splits["dev"].metric for o in outcomes if o.dev is not None and o.results)
    return next(scored, "score").replace("_", " ")


def interval(split: SplitResult | None) -> str:
    """A 95 % interval as text."""
    if split is None or split.ci95 is None or None in split.ci95:
        return ""
    return f"{split.ci95[0]:.3f} to {split.ci95[1]:.3f}"


def ends(outcome: Outcome) -> dict[str, float | None]:
    """The interval on dev, for a figure."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    low, high = (dev.ci95 if dev is not None else None) or (None, None)
    return {"low": low, "high": high}


def size_of(outcome: Outcome) -> int | None:
    """How many examples dev has."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    return dev.n if dev is not None else None


def scored(split: SplitResult) -> str:
    """A score with its interval, in a sentence."""
    return f"{split.value:.3f} (95 % interval {interval(split)})"


def note_of(outcome: Outcome) -> str:
    """Why a run has no score, or that it learnt nothing that shows."""
    if outcome.ended is not None:
        return f"{outcome.state}: {outcome.ended.reason}"
    return fallen([outcome])


def fallen(runs: Sequence[Outcome]) -> str:
    """That all of these runs collapsed, or that none is above the most frequent label; else nothing."""
    if not runs:
        return ""
    if all(collapsed(o) for o in runs):
        return COLLAPSED
    if any(above_majority(o) for o in runs):
        return ""
    return NO_ANSWER if all(CONSTANT in simple_of(o) for o in runs) else NOT_ABOVE


def partly_fallen(runs: Sequence[Outcome]) -> str:
    """What `fallen` says, or that some of these seeds collapsed."""
    lost = sum(collapsed(o) for o in runs)
    return fallen(runs) or (f"{lost} of {len(runs)} seeds collapsed" if lost else "")


def simple_of(outcome: Outcome) -> dict[str, float]:
    """What simple baselines have on dev."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    return dict((dev.baselines if dev is not None else None) or {})


def above_majority(outcome: Outcome) -> bool:
    """Whether dev's whole interval lies above what one label or answer to all reaches, where it is known."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    known = simple_of(outcome)
    simple = known.get("majority", known.get(CONSTANT))
    low = dev.ci95[0] if dev is not None and dev.ci95 is not None else None
    return low is None or simple is None or low > simple


def collapsed(outcome: Outcome) -> bool:
    """Whether a finished run gives one answer to everything, by its own check."""
    if outcome.results is None or not (outcome.folder / CHECKS).is_file():
        return False
    found = Run(outcome.folder).checks().checks
    return any(c.name == "collapse" and c.status in ("failed", "warning") for c in found)


def mostly_collapsed(outcomes: Sequence[Outcome]) -> list[Note]:
    """Warn when most runs learnt nothing."""
    finished = [o for o in outcomes if o.results is not None]
    fallen = [o for o in finished if collapsed(o)]
    if 2 * len(fallen) <= len(finished):
        return []
    text = (
        f"Most runs collapsed: {len(fallen)} of {len(finished)} give nearly one answer to everything; their "
        "learning rates are too high or too low, or they are too short."
    )
    return [Note(text, "warning")]


def right(outcome: Outcome, split: str = "dev") -> npt.NDArray[np.float64]:
    """1 for each example of a split that a run had right, else 0."""
    path = outcome.folder / f"predictions_{split}.jsonl"
    return read_right(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=512)
def read_right(path: Path, written: int) -> npt.NDArray[np.float64]:
    """Read a file of predictions; a study asks for the same ones again and again."""
    return np.array([row["predicted"] == row["label"] for row in read_jsonl(path)], float)


def as_good(chosen: Outcome, outcomes: Sequence[Outcome], split: str = "dev") -> list[Outcome]:
    """The finished runs that cannot be told apart from the chosen one, all tests taken together."""
    finished = [chosen, *(o for o in outcomes if o.results is not None and o.name != chosen.name)]
    if len(right(chosen, split)) < 2:
        return []
    # Any of them could have been chosen: every pair counts as a test.
    pairs = list(combinations(finished, 2))
    corrected = holm([mcnemar(right(a, split), right(b, split)) for a, b in pairs])
    return [b for (a, b), p in zip(pairs, corrected, strict=True) if a is chosen and p >= ALPHA]


def curves(outcomes: Mapping[str, Outcome], title: str, metric: str, split: str = "dev") -> Figure:
    """All runs overlaid."""
    return Figure(
        f"{split}-curves",
        "lines",
        {
            name: [[row.epoch, row.value] for row in o.metrics() if row.split == split]
            for name, o in outcomes.items()
        },
        {
            "title": title,
            "x_title": "epoch",
            "y_title": f"{metric} on {split.replace('_eval', '')}",
            "mark_best": "max",
            **least_axis(row for o in outcomes.values() for row in o.metrics() if row.split == split),
        },
    )


def least_axis(rows: Iterable[Metrics]) -> dict[str, float]:
    """How long an axis of shares is at least: as one interval, so that chance does not look like much."""
    found = widest_interval((row.value, row.n) for row in rows)
    return {} if found is None else {"y_least": found}
