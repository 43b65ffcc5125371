"""What the page Try it computes: answers, explanations, neighbors, mistakes and labeled files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from heedful.errors import UserError
from heedful.inference.abstention import AnswerRule
from heedful.inference.explanations import explain as explain_answer
from heedful.inference.explanations.explain import has_gradients
from heedful.inference.files import Labeler
from heedful.inference.predictor import LinearPredictor
from heedful.inference.row_writers import SUFFIXES
from heedful.options.types import ExplanationMethod
from heedful.progress import ProgressBar, ProgressFile, progress_files
from heedful.studio.work.mistakes import Mistakes, count_mistakes, find_predictions, read_mistakes
from heedful.studio.work.subjects import Subject, is_run, open_subject, read_item, read_name, read_number
from heedful.studio.work.training_rows import TrainingRows, index_rows

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore
    from heedful.studio.worker import Report

MOST_NEIGHBORS, MOST_LISTED = 50, 200
PREVIEW_ROWS, PREVIEW_CHARACTERS = 50, 300


def describe(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return what a model takes and answers, and of which splits its mistakes are known."""
    name = read_name(params)
    subject = open_subject(models, name)
    predictor = subject.labeler.predictor
    folder = models.find(name)
    splits = []
    for split in find_predictions(folder) if is_run(folder) else ():
        try:
            mistakes = load_mistakes(models, name, split)
        except UserError:
            continue
        if mistakes.scored:
            splits.append(count_mistakes(find_predictions(folder)[split], mistakes))
    return {
        "kind": predictor.kind,
        "free": subject.free,
        "labels": predictor.labels,
        "pairs": subject.labeler.pairs,
        "calibrated": subject.calibrated,
        "notes": list(subject.notes),
        "methods": list_methods(subject),
        "splits": splits,
    }


def list_methods(subject: Subject) -> list[str]:
    """Return how the answers of a model can be explained, the best way first."""
    if subject.free:
        return []
    predictor = subject.labeler.predictor
    if isinstance(predictor, LinearPredictor):
        return ["exact", "occlusion"]
    return ["gradients", "occlusion"] if has_gradients(predictor) else ["occlusion"]


def answer(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return the answer of a model to a text."""
    return open_subject(models, read_name(params)).answer(*read_item(params))


def explain(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return which words of a text carried an answer, and whether that can be trusted."""
    subject = open_subject(models, read_name(params))
    method: Any = params.get("method") or None
    if method is not None and method not in get_args(ExplanationMethod):
        raise UserError(f'"method" is one of {", ".join(get_args(ExplanationMethod))}')
    texts = subject.labeler.prepare_text(*read_item(params))
    chosen: dict[str, Any] = {key: str(params[key]) for key in ("label", "against") if params.get(key)}
    with report_progress(report, "removing words"):
        return explain_answer(subject.labeler.predictor, *texts, method=method, **chosen).facts()


def find_neighbors(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return the training rows that are the nearest to a text."""
    name = read_name(params)
    subject = open_subject(models, name)
    texts = subject.labeler.prepare_text(*read_item(params))
    count = read_number(params, "count", 8, 1, MOST_NEIGHBORS)

    def load(folder: Path) -> TrainingRows:
        return index_rows(folder, subject.labeler.predictor, report)

    index = models.get("training rows", subject.name, load)
    return {
        "rows": [asdict(one) for one in index.nearest(*texts, count)],
        "compared": len(index.rows),
        "total": index.rows.of or len(index.rows),
        "how": index.how,
    }


def list_mistakes(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return a part of the rows of a split that a run got wrong, the most confident first."""
    name, split = read_name(params), read_name(params, "split")
    mistakes = load_mistakes(models, name, split)
    rows = mistakes.rows
    for key in ("right", "predicted"):
        if params.get(key) is not None:
            rows = tuple(row for row in rows if getattr(row, key) == params[key])
    start = read_number(params, "start", 0, 0, 10**9)
    count = read_number(params, "count", 20, 1, MOST_LISTED)
    return {
        "rows": [asdict(row) for row in rows[start : start + count]],
        "found": len(rows),
        "wrong": len(mistakes.rows),
        "scored": mistakes.scored,
        "numbers": mistakes.numbers,
        "kinds": [] if mistakes.numbers else mistakes.kinds,
    }


def load_mistakes(models: ModelStore, name: str, split: str) -> Mistakes:
    """Return the mistakes of a split, read again when the file has changed."""
    files = find_predictions(models.find(name))
    if split not in files:
        stored = ", ".join(files) or "none"
        raise UserError(f'"{name}" has no predictions on "{split[:40]}"; there are those on {stored}')
    version = files[split].stat().st_mtime_ns
    return models.get(f"mistakes {split} {version}", name, lambda folder: read_mistakes(files[split]))


def label_file(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Label every row of an uploaded file; the labeled file is beside it."""
    subject = open_subject(models, read_name(params))
    source = models.folder.resolve(read_name(params, "source"))
    suffix = str(params.get("suffix"))
    if suffix not in SUFFIXES:
        raise UserError(f"a labeled file is one of {', '.join(SUFFIXES)}")
    out = source.with_name(f"labeled{suffix}")
    predictor = subject.labeler.predictor
    rule = subject.labeler.rule if params.get("calibrate", True) else AnswerRule()
    labeler = Labeler(models.find(subject.name), predictor, rule)
    every = bool(params.get("probabilities")) and predictor.kind in ("classify", "ordered")
    with report_progress(report, "labeling"):
        try:
            done = labeler.label_file(
                source, out, text_column=None, pair_column=None, overwrite=True,
                probabilities=every and bool(predictor.classes),
            )  # fmt: skip
        except UserError as error:  # its name is that of the upload, without our folder
            raise UserError(str(error).replace(f"{source.parent}/", "")) from None
    return {
        "rows": done.rows,
        "counts": done.counts,
        "columns": list(done.columns),
        "calibrated": rule is not None and rule.temperature != 1.0,
        "preview": preview(out),
        "file": out.name,
    }


def preview(file: Path) -> dict[str, Any]:
    """Return the first rows of a labeled file as texts."""
    from itertools import islice

    from heedful.data.bad_rows import BadRows
    from heedful.data.columns import open_sheet

    sheet = open_sheet(file)
    names = list(sheet.names)
    every = sheet.rows(names, BadRows()) if sheet.is_typed else sheet.cells(range(len(names)), BadRows())
    rows = [["" if cell is None else str(cell)[:PREVIEW_CHARACTERS] for cell in cells]
            for _, cells in islice(every, PREVIEW_ROWS)]  # fmt: skip
    return {"columns": names, "rows": rows}


class Reported(ProgressFile):
    """Counts of work, sent to the page in place of a file."""

    def __init__(self, report: Report, message: str) -> None:
        super().__init__(Path())
        self.report, self.message = report, message

    def update(self, bar: ProgressBar, note: str) -> None:
        share = min(1.0, bar.done / bar.total) if bar.total else -1.0
        self.report(share, f"{self.message}: {bar.done:,}" + (f" of {bar.total:,}" if bar.total else ""))


@contextmanager
def report_progress(report: Report, message: str) -> Iterator[None]:
    """Send the progress of all work in the body of a `with` to the page, which may cancel it."""
    reported = Reported(report, message)
    progress_files.append(reported)
    try:
        yield
    finally:
        progress_files.remove(reported)
