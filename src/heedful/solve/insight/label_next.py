"""The rows without a label that are the most useful to label next."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.data.unlabeled import Pool, UnlabeledRow
from heedful.errors import shorten
from heedful.inference.row_writers import Dialect, RowWriter
from heedful.linear.tfidf import fit_tfidf
from heedful.runs.answers import Table
from heedful.runs.files import write_text
from heedful.statistics.label_next import COUNT, POOL, choose_rows_to_label, measure_margins

FILE = "label-next.csv"
LETTERS = 100
"""Letters of each text in the table; the file has the whole texts."""
UNCERTAIN = 0.25
"""At most this share of the rows counts as uncertain: in a small pool the others are different, but sure."""


@dataclass(frozen=True)
class RowToLabel:
    file: str
    row: int
    text: str
    predicted: str
    """The label that the model gives."""
    margin: float
    """How much more probable it is than the second."""


@dataclass(frozen=True)
class LabelNext:
    """The rows to label next, the first to label first."""

    model: str
    """The candidate that labeled them."""
    unlabeled: str
    """The file of --unlabeled; empty if there was none."""
    total: int
    """Number of rows without a label."""
    labeled: int
    """Number of those that the model labeled in the time."""
    rows: tuple[RowToLabel, ...] = ()


def rank_rows(rows: Sequence[UnlabeledRow], probabilities: npt.ArrayLike) -> list[int]:
    """Return all rows, the most useful first: uncertain and different ones, then the others by their margin.

    Only the most uncertain rows are compared with one another, by their words.
    """
    table = np.asarray(probabilities, np.float64)
    order = np.argsort(measure_margins(table), kind="stable")
    uncertain = order[: min(max(COUNT, int(UNCERTAIN * len(order))), COUNT * POOL)]
    texts = [f"{rows[i].text} {rows[i].pair or ''}" for i in uncertain]
    features = fit_tfidf(texts, None, table.shape[1])[1]
    chosen = uncertain[choose_rows_to_label(table[uncertain], features)]
    return [*chosen.tolist(), *order[~np.isin(order, chosen)].tolist()]


def list_useful_rows(
    model: str, unlabeled: str, pool: Pool, labels: Sequence[str], probabilities: npt.ArrayLike, out: Path
) -> LabelNext:
    """Rank the rows that have probabilities, the first ones of the pool, and write all of them to a file."""
    table = np.asarray(probabilities, np.float64)
    margins, best = measure_margins(table), table.argmax(1)
    ranked = rank_rows(pool.rows[: len(table)], table)
    paired = any(pool.rows[i].pair is not None for i in ranked)
    file = io.StringIO()
    columns = ["file", "row", "text", *(["pair"] if paired else []), "predicted", "margin"]
    writer = RowWriter(file, Dialect(","), columns, safe=True)
    for i in ranked:
        row = pool.rows[i]
        texts = [row.text, row.pair] if paired else [row.text]
        writer.write([[row.file, row.row, *texts, labels[best[i]], round(float(margins[i]), 4)]])
    write_text(out, file.getvalue())
    useful = tuple(
        RowToLabel(
            pool.rows[i].file,
            pool.rows[i].row,
            shorten(pool.rows[i].text, LETTERS),
            labels[best[i]],
            round(float(margins[i]), 3),
        )
        for i in ranked[:COUNT]
    )
    return LabelNext(model, unlabeled, pool.total, len(table), useful)


def list_rows_to_label(found: LabelNext) -> Table:
    """Return the table of the rows to label, with the names of their files if there are several."""
    several = len({row.file for row in found.rows}) > 1
    cells = tuple(
        (f"{row.file} {row.row}" if several else row.row, row.text, row.predicted, row.margin)
        for row in found.rows
    )
    of = f"{found.labeled:,}" if found.labeled == found.total else f"{found.labeled:,} of {found.total:,}"
    title = f"rows to label next: uncertain, and different from one another; chosen from {of} without a label"
    return Table(("row", "text", "predicted", "margin"), cells, title)


def describe_rows_to_label(folder: Path) -> str:
    path = shlex.quote(str(folder / FILE))
    return f"Rows without a label, the most useful to label first: {path}"
