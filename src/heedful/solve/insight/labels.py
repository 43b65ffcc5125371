"""Which labels may be wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.errors import shorten
from heedful.evaluation.metrics import ACCURACY, Metric
from heedful.runs.answers import Note, Table
from heedful.runs.schemas import Prediction
from heedful.solve.insight.findings import Help, Insight
from heedful.statistics.label_errors import LabelErrors, find_label_errors

SUSPICIOUS, LETTERS = 10, 100
"""Number of rows that are listed as probably labeled wrongly, and letters of each text."""
RELIABLE = 0.85
"""A model that is right less often than this also suspects rows that are only difficult."""
MOST_SUSPICIOUS = 0.3
"""If a larger share of the rows than this is suspicious, the problem is difficult, and no row is listed."""


def examine_labels(
    rows: Sequence[Prediction], names: Sequence[str], metric: Metric = ACCURACY, *, useful: bool = True
) -> Insight:
    """List the held-out rows whose label is probably wrong, and say what correcting them would change.

    Nothing is listed where the model cannot tell: if it is not shown to be `useful`, that is, better than
    always answering the most frequent label, or if it suspects too many rows.
    """
    if not useful:
        return refuse_list("the model is not shown to be better than the most frequent label")
    labels = np.array([names.index(str(row.label)) for row in rows])
    probabilities = np.array([[row.probabilities[name] for name in names] for row in rows])
    errors = find_label_errors(labels, probabilities)
    if len(errors.rows) > MOST_SUSPICIOUS * len(rows):
        count = f"{len(errors.rows):,} of {len(rows):,} held-out ones"
        return refuse_list(f"the model doubts {count}, so most of these are difficult and not wrong")
    cells = [
        (shorten(str(rows[i].text), LETTERS), str(rows[i].label), names[j], f"{margin:.2f}")
        for i, j, margin in zip(errors.rows, errors.suggested, errors.margins, strict=True)
    ]
    if not cells:
        return Insight()
    title = f"rows that may be labeled wrongly: {len(cells):,} of {len(rows):,} held-out ones"
    title += " (or are difficult: the model often errs)" if errors.agreement < RELIABLE else ""
    columns = ("text", "label", "more probable", "by how much")
    helps = [describe_correction(rows, names, labels, errors, metric)] if errors.agreement >= RELIABLE else []
    return Insight(tables=(Table(columns, tuple(cells[:SUSPICIOUS]), title),), helps=tuple(helps))


def describe_correction(
    rows: Sequence[Prediction],
    names: Sequence[str],
    labels: npt.NDArray[np.int64],
    errors: LabelErrors,
    metric: Metric,
) -> Help:
    """Say what the score would be if all suspicious labels were wrong and were corrected."""
    corrected = labels.copy()
    corrected[errors.rows] = errors.suggested
    outputs = np.array([names.index(str(row.predicted)) for row in rows])
    if metric.reads == "probabilities":
        outputs = np.array([[row.probabilities[name] for name in names] for row in rows])
    now, after = (float(metric.compute(truth, outputs)) for truth in (labels, corrected))
    count = f"{len(errors.rows):,} suspicious of the {len(rows):,} held-out rows"
    return Help(
        max(0.0, metric.improvement(now, after)),
        f"Cleaner labels: if the {count} are labeled wrongly, correcting them gives {metric.title} "
        f"{after:.2f} instead of {now:.2f}; that is the most that it can give.",
    )


def refuse_list(reason: str) -> Insight:
    return Insight((Note(f"rows that may be labeled wrongly are not listed: {reason}"),))
