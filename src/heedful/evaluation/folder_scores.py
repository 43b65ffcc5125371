"""Scoring a model that has no run beside it: an export, an ONNX folder, or a classifier of the Hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.answers import Answers
from heedful.data.columns import ColumnChoice, Layout, Sheet, find_layout, has_columns, open_sheet
from heedful.data.label_sets import choose_separator, split_cell
from heedful.data.labels import SEPARATORS, LabelIndex
from heedful.data.store import ExampleStore, load_examples
from heedful.data.tasks import find_task, list_split_files
from heedful.errors import UserError
from heedful.evaluation.decision_threshold import decide
from heedful.evaluation.kind_scorer import score_others
from heedful.evaluation.metrics import Metric, check_metric, confusion, find_metric, macro_f1
from heedful.inference.columns import wanted_columns
from heedful.inference.files import Labeler
from heedful.inference.loading import load_run
from heedful.inference.predictor import Floats, Predictor
from heedful.objectives import Evaluation
from heedful.objectives.readings import score_labels
from heedful.problems import Problem, find_problem_of_task
from heedful.runs.schemas import SplitResult

SPLIT = "data"
UNSCORED = ""
"""The metric of an evaluation that has no value yet."""


def score_folder(
    path: Path,
    data: str,
    columns: ColumnChoice | None = None,
    *,
    strict: bool = False,
    metric: str | None = None,
) -> SplitResult:
    """Score the answers of a model on a file, or on the test split of a task.

    The metric is by default the usual one of the kind of its answers. Columns that are not named are those of
    the data that the model was trained on, where it says so, and are found otherwise.
    """
    labeler = Labeler(path, load_run(path))
    predictor = labeler.predictor
    if not predictor.labels and predictor.kind != "number":
        raise UserError(f"{path}: writes free answers; heedful evaluate scores its run")
    problem = find_problem_of_task(predictor.kind)
    by = find_metric(metric or problem.metric, predictor.labels)
    check_metric(by.name, problem.name)
    rows, layout, targets = read_labeled(labeler, data, columns, strict=strict)
    texts = [str(rows.get("text", i)) for i in range(len(rows))]
    pairs = None if layout.pair is None else [str(rows.get("pair", i)) for i in range(len(rows))]
    evaluation = evaluate_outputs(predictor, targets, predictor.predict_proba(texts, pairs), by)
    return make_result(evaluation, by, predictor, problem)


def read_labeled(
    labeler: Labeler, data: str, columns: ColumnChoice | None, *, strict: bool
) -> tuple[ExampleStore, Layout, npt.NDArray[Any]]:
    """Read the rows of a file, and the right answer of each as the model's outputs have it."""
    predictor, names = labeler.predictor, labeler.predictor.labels
    source, rules = find_task(data)
    files = list_split_files(source, rules.more_splits)
    file, stated = files.get("test", files["train"]), columns or ColumnChoice()
    wanted, _ = wanted_columns(labeler.config)
    sheet = open_sheet(file, [name for name in (*stated.names(), *wanted.names()) if name])
    text, pair, label = (
        one or (usual if usual and has_columns(sheet, usual) else None)
        for one, usual in (
            (stated.text, wanted.text),
            (stated.pair, wanted.pair),
            (stated.label, wanted.label or name_columns(sheet, predictor)),
        )
    )
    layout = find_layout(sheet, ColumnChoice(text, pair, label), kind=predictor.kind)
    labeler.check_pairs(layout.pair is not None, "--pair-column names the second text")
    rows = load_examples(sheet, layout, predictor.kind, labeler.change, strict=strict)
    separator = ""
    if predictor.kind == "labels" and not layout.indicators:
        separator = find_known_separator(rows.labels, names)
    answers = Answers(predictor.kind, names=tuple(names), separator=separator)
    answers.refuse_unknown(sheet, rows.labels, labeler.run)
    targets = answers.decode(rows)
    if targets is None:
        raise UserError(f"{file}: has no rows with a label")
    return rows, layout, targets


def name_columns(sheet: Sheet, predictor: Predictor) -> str | None:
    """Return the columns named like the labels of a model that gives several per text, if all are there."""
    several = predictor.kind == "labels" and set(predictor.labels) <= set(sheet.names)
    return ",".join(predictor.labels) if several else None


def find_known_separator(index: LabelIndex, names: list[str]) -> str:
    """Return what stands between the labels of a cell, so that all are labels of the model."""
    for separator in ("", *SEPARATORS):
        if all(name in names for cell in index.ids for name in split_cell(cell, separator)):
            return separator
    return choose_separator(index)


def evaluate_outputs(
    predictor: Predictor, targets: npt.NDArray[Any], outputs: Floats, metric: Metric
) -> Evaluation:
    """Score rows of `predict_proba` by what the model answers, its thresholds included."""
    if predictor.kind in ("labels", "number"):
        answers = predictor.choose_answers(outputs)
        probabilities = outputs if predictor.kind == "labels" else None
        nan = float("nan")
        scored = Evaluation(UNSCORED, nan, nan, len(targets), targets, answers, probabilities)
        return metric.score(scored)
    return decide(metric.score(score_labels(targets, outputs)), predictor.decision, metric, SPLIT)


def make_result(e: Evaluation, metric: Metric, predictor: Predictor, problem: Problem) -> SplitResult:
    result = SplitResult(
        **metric.describe(),
        value=e.value,
        n=e.n,
        ci95=metric.evaluation_interval(e),
        loss=None if np.isnan(e.loss) else e.loss,
        other_metrics=score_others(problem.metrics, e, predictor.labels) if problem.name != "label" else None,
    )
    if predictor.kind in ("labels", "number") or e.labels is None or e.predicted is None:
        return result
    cells = confusion(e.labels, e.predicted, len(predictor.labels))
    return replace(
        result,
        macro_f1=macro_f1(cells),
        confusion=tuple(tuple(int(c) for c in row) for row in cells),
        threshold=e.threshold,
        value_at_half=e.value_at_half,
    )
