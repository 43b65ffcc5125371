"""Whether more labels would help, and which rows to label next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from heedful.errors import shorten
from heedful.runs.answers import Table
from heedful.statistics.label_next import COUNT, choose_rows_to_label, measure_margins
from heedful.statistics.learning_curve import SMALL_GAIN, LearningCurve

LETTERS = 100


def describe_curve(curve: LearningCurve, metric: str = "accuracy", factor: str = "twice") -> str:
    """Say what more labels would bring, or that it cannot be told."""
    between = f"{curve.interval.low:.2f} to {curve.interval.high:.2f}"
    if curve.verdict == "rising":
        article = "an" if metric[:1] in "aeiou" else "a"
        return (
            f"{factor.capitalize()} the labels would give {article} {metric} of about {curve.expected:.2f} "
            f"({between})."
        )
    if curve.verdict == "flat":
        gain = f"{factor} as many give less than {SMALL_GAIN:g} more {metric}"
        return f"More labels of the same kind would hardly help: {gain}."
    return (
        f"Whether more labels would help cannot be told: with {factor} as many, the {metric} would be "
        f"between {curve.interval.low:.2f} and {curve.interval.high:.2f}."
    )


def list_rows_to_label(
    texts: Sequence[str], probabilities: npt.ArrayLike, features: Any, count: int = COUNT
) -> Table:
    """List the unlabeled rows that are the most useful to label, the first to label first."""
    margins = measure_margins(probabilities)
    rows = choose_rows_to_label(probabilities, features, count)
    cells = tuple((int(row) + 1, shorten(texts[row], LETTERS), round(float(margins[row]), 3)) for row in rows)
    return Table(
        ("row", "text", "margin"), cells, "rows to label next: uncertain, and different from one another"
    )
