"""What studies say alike: intervals, tables of runs, curves, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.paired import compare, holm, listed
from heedful.runs.answers import Figure, Note
from heedful.runs.directory import CHECKS, Run
from heedful.runs.files import read_jsonl
from heedful.runs.schemas import SplitResult
from heedful.runs.studies import Outcome

ALPHA = 0.05
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
    return listed([setting(name, chosen[name]) for name in names]) if names else "these settings"


def interval(split: SplitResult | None) -> str:
    """A 95 % interval as text."""
    if split is None or split.ci95 is None or None in split.ci95:
        return ""
    return f"{split.ci95[0]:.3f} to {split.ci95[1]:.3f}"


def scored(split: SplitResult) -> str:
    """A score with its interval, in a sentence."""
    return f"{split.value:.3f} (95 % interval {interval(split)})"


def note_of(outcome: Outcome) -> str:
    """Why a run has no score, or that it collapsed."""
    if outcome.ended is not None:
        return f"{outcome.state}: {outcome.ended.reason}"
    return "collapsed" if collapsed(outcome) else ""


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
    others = [o for o in outcomes if o.results is not None and o.name != chosen.name]
    if not others or len(right(chosen, split)) < 2:
        return []
    best = right(chosen, split)
    corrected = holm([compare(best, right(o, split)).p for o in others])
    return [o for o, p in zip(others, corrected, strict=True) if p >= ALPHA]


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
        },
    )
