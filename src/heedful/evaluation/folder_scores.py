"""Scoring a model that has no run beside it: an export, an ONNX folder, or a classifier of the Hub."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heedful.data import labels
from heedful.data.columns import ColumnChoice, find_layout, open_sheet
from heedful.data.store import load_examples
from heedful.data.tasks import find_task, list_split_files
from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS, confusion, macro_f1
from heedful.inference.files import Labeler
from heedful.inference.loading import load_run
from heedful.objectives.readings import score_labels
from heedful.runs.schemas import SplitResult


def score_folder(
    path: Path, data: str, columns: ColumnChoice | None = None, *, strict: bool = False
) -> SplitResult:
    """Score the labels of a model on a file, or on the test split of a task; the metric is accuracy.

    Columns that are not named are those of the data that the model was trained on, where it says so, and are
    found otherwise.
    """
    labeler = Labeler(path, load_run(path))
    names = labeler.predictor.classes
    if not names:
        raise UserError(f"{path}: writes free answers; heedful evaluate scores its run")
    source, rules = find_task(data)
    files = list_split_files(source, rules.more_splits)
    file, stated = files.get("test", files["train"]), columns or ColumnChoice()
    wanted = labeler.wanted
    sheet = open_sheet(file, [name for name in (*stated.names(), *wanted.names()) if name])
    text, pair, label = (
        one or (usual if usual in sheet.names else None)
        for one, usual in (
            (stated.text, wanted.text),
            (stated.pair, wanted.pair),
            (stated.label, wanted.label),
        )
    )
    layout = find_layout(sheet, ColumnChoice(text, pair, label))
    labeler.check_pairs(layout.pair is not None, "--pair-column names the second text")
    rows = load_examples(sheet, layout, None, labeler.change, strict=strict)
    numbers = {name: number for number, name in enumerate(names)}
    labels.refuse_unseen(sheet.path, sheet.unit, rows.labels, path, numbers)
    renumber = np.array([numbers[name] for name in rows.labels.ids], np.int64)
    targets = renumber[rows.label_ids]
    texts = [str(rows.get("text", i)) for i in range(len(rows))]
    pairs = None if layout.pair is None else [str(rows.get("pair", i)) for i in range(len(rows))]
    metric = METRICS["accuracy"]
    scored = metric.score(score_labels(targets, labeler.predictor.predict_proba(texts, pairs)))
    assert scored.predicted is not None
    cells = confusion(targets, scored.predicted, len(names))
    return SplitResult(
        **metric.describe(),
        value=scored.value,
        n=scored.n,
        ci95=metric.evaluation_interval(scored),
        loss=scored.loss,
        macro_f1=macro_f1(cells),
        confusion=tuple(tuple(int(c) for c in row) for row in cells),
    )
