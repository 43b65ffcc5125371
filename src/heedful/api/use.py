"""Using what was trained: `heedful.load`, `predict`, `evaluate` and `report`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from heedful.api.training import Folder
from heedful.errors import UserError
from heedful.process_state import keep_process_state, keeps_process_state
from heedful.results import EvaluationResult, RunResult
from heedful.runs.directory import ESTIMATOR
from heedful.runs.json_files import read_json

if TYPE_CHECKING:
    from heedful.estimators import TextClassifier, TextRegressor
    from heedful.inference.explanations import Explanation
    from heedful.inference.files import LabeledFile
    from heedful.inference.predictions import PredictedLabel
    from heedful.inference.predictor import Predictor
    from heedful.options.types import ExplanationMethod
    from heedful.report.outputs import ReportFiles


def load(path: Folder, *, device: str = "auto") -> Predictor | TextClassifier | TextRegressor:
    """Load a trained model, ready to `predict`.

    Parameters
    ----------
    path
        The folder of a finished run or study, or its result; a folder that `heedful export` wrote; a
        classifier of transformers, by its folder or its id on the Hub; or what `TextClassifier.save` or
        `TextRegressor.save` wrote, which becomes such an estimator again.
    device
        auto, cpu, cuda, cuda:1 or mps.

    Examples
    --------
    >>> heedful.load("runs/reviews").predict(["What a lovely place."])

    """
    from heedful.inference.loading import load_run, needs_torch

    folder = Path(path)
    with keep_process_state(uses_torch=needs_torch(folder)):
        if (folder / ESTIMATOR).is_file():
            from heedful import estimators

            name = read_json(folder / ESTIMATOR).get("estimator", "TextClassifier")
            loaded: TextClassifier | TextRegressor = getattr(estimators, name).load(folder, device=device)
            return loaded
        return load_run(folder, device=device)


@overload
def predict(
    run: Folder,
    texts: str,
    pairs: str | None = None,
    *,
    min_confidence: float | None = None,
    max_risk: float | None = None,
    calibrate: bool = False,
    device: str = "auto",
) -> PredictedLabel: ...
@overload
def predict(
    run: Folder,
    texts: Path,
    pairs: None = None,
    *,
    out: Folder,
    text_column: str | None = None,
    pair_column: str | None = None,
    overwrite: bool = False,
    strict: bool = False,
    min_confidence: float | None = None,
    max_risk: float | None = None,
    calibrate: bool = False,
    device: str = "auto",
) -> LabeledFile: ...
@overload
def predict(
    run: Folder,
    texts: Any,
    pairs: Any = None,
    *,
    min_confidence: float | None = None,
    max_risk: float | None = None,
    calibrate: bool = False,
    device: str = "auto",
) -> list[PredictedLabel]: ...
@keeps_process_state
def predict(
    run: Folder,
    texts: Any,
    pairs: Any = None,
    *,
    out: Folder | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    overwrite: bool = False,
    strict: bool = False,
    probabilities: bool = False,
    raw_cells: bool = False,
    min_confidence: float | None = None,
    max_risk: float | None = None,
    calibrate: bool = False,
    device: str = "auto",
) -> Any:
    """Label one text, many texts, or the rows of a file with the best model of a run.

    To label texts again and again, load the model once with `heedful.load`.

    Parameters
    ----------
    run
        The folder of a run, its result or a study, one that `heedful export` wrote, or a classifier of
        transformers: a folder or its id on the Hub.
    texts
        One text; texts in a list, an array, a series or a table; or the `Path` of a file, with `out`.
    pairs
        The second text, or texts, if the task has pairs.
    out
        The file to write (.csv, .tsv, .jsonl or .parquet), with all columns of the old one and the columns
        label and confidence.
    text_column
        Name of the column with the text, in a file. By default found as for a task.
    pair_column
        Name of the column with the second text of a pair, in a file.
    overwrite
        Replace `out`.
    strict
        Refuse a file with bad rows; otherwise a row without a text gets no label.
    probabilities
        Also write a column per label with its probability, in a file.
    raw_cells
        In .csv and .tsv files, a cell that a spreadsheet would take for a formula gets a ' before it, unless
        this is set.
    min_confidence
        Answer "not sure" below this confidence.
    max_risk
        Answer "not sure" as often as is needed to keep the share of wrong answers at or below this, with 95 %
        confidence on texts like the run's dev rows; refused if these are too few.
    calibrate
        Calibrate the probabilities on the run's dev rows by a temperature.
    device
        auto, cpu, cuda, cuda:1 or mps.

    Returns
    -------
    PredictedLabel
        The label of one text; a list of them for several. For a file, a count of its labels.

    Examples
    --------
    >>> heedful.predict("runs/reviews", "What a lovely place.").label
    >>> heedful.predict("runs/reviews", Path("reviews.csv"), out="labeled.csv").counts

    """
    from heedful.inference.files import Labeler
    from heedful.inference.loading import load_run, load_with_held_out_rows

    load = load_with_held_out_rows if calibrate or max_risk is not None else load_run
    if out is not None or isinstance(texts, Path):
        if out is None or not isinstance(texts, str | os.PathLike):
            raise UserError("heedful.predict: a file needs both its Path and out=, the file to write")
        predictor = load(Path(run), device=device)
        rule = predictor.answer_rule(min_confidence=min_confidence, max_risk=max_risk, calibrate=calibrate)
        labeler = Labeler(Path(run), predictor, rule)
        return labeler.label_file(
            Path(texts),
            Path(out),
            text_column=text_column,
            pair_column=pair_column,
            overwrite=overwrite,
            strict=strict,
            probabilities=probabilities,
            raw_cells=raw_cells,
        )
    if text_column or pair_column or overwrite or strict or probabilities or raw_cells:
        raise UserError(
            "heedful.predict: columns, overwrite, strict, probabilities and raw_cells belong to a file, with "
            "out=; heedful.load(...).predict_proba(texts) gives an array of probabilities"
        )
    predictor = load(Path(run), device=device)
    rule = predictor.answer_rule(min_confidence=min_confidence, max_risk=max_risk, calibrate=calibrate)
    if isinstance(texts, str):
        return Labeler(Path(run), predictor, rule).label_text(texts, pairs)
    return predictor.predict(texts, pairs, rule=rule)


@keeps_process_state
def explain(
    run: Folder,
    text: str,
    pair: str | None = None,
    *,
    label: str | None = None,
    against: str | None = None,
    method: ExplanationMethod | None = None,
    orders: int = 19,
    seed: int = 0,
    device: str = "auto",
) -> Explanation:
    """Show which words of a text carried the answer of a model, and whether that can be trusted.

    What is explained is the log-odds of the predicted label against the most probable other one, or the
    number. The deletion test removes the most important words first, and compares with random orders.

    Parameters
    ----------
    run
        The folder of a run, its result or a study, one that `heedful export` wrote, or a classifier of
        transformers: a folder or its id on the Hub.
    text
        The text to label.
    pair
        The second text, if the task has pairs.
    label
        The label to explain. By default the predicted one.
    against
        The label that it is compared with. By default the most probable other one.
    method
        exact (linear models), gradients (networks) or occlusion (every model). By default the first of these
        that is possible.
    orders
        Number of random orders of the deletion test; 0 for no test.
    seed
        Seed of the random orders.
    device
        auto, cpu, cuda, cuda:1 or mps.

    Examples
    --------
    >>> explanation = heedful.explain("runs/reviews", "What a lovely place.")
    >>> explanation.top[0].text, explanation.deletion.sentence

    """
    from heedful.inference.explanations import explain_run

    options: dict[str, Any] = {"label": label, "against": against, "method": method, "orders": orders}
    return explain_run(Path(run), text, pair, **options, seed=seed, device=device)


@keeps_process_state
def evaluate(
    run: Folder,
    *,
    split: Literal["train", "dev", "test"] | None = None,
    data: Any = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    strict: bool = False,
    metric: str | None = None,
    corpus: str | None = None,
    sentences: Sequence[str] = (),
) -> EvaluationResult:
    """Score the best model of a run, with a 95 % interval; nothing is written.

    Parameters
    ----------
    run
        The folder of a run or its result; with `data`, also one that `heedful export` wrote, or a classifier
        of transformers: a folder or its id on the Hub.
    split
        train, dev or test. By default test, or dev for a language model without a test split. Use test only
        for the one model that dev selected: the best of many test scores is too high.
    data
        Other data with labels: a file, a folder or task whose test split is scored, or data in memory as for
        `heedful.adapt`.
    text_column, pair_column, label_column
        Columns of `data`. By default those of the run's own data.
    strict
        Refuse bad rows of `data` instead of skipping them.
    metric
        Metric to score by (heedful list metrics). By default that which the run was selected by.
    corpus
        For language models: score this text instead of a split.
    sentences
        For language models: sentences whose loss and perplexity to report.

    Examples
    --------
    >>> heedful.evaluate("runs/reviews", split="dev").ci95

    """
    from heedful.data.columns import ColumnChoice
    from heedful.data.sources import materialize
    from heedful.evaluation.metrics import check_metric
    from heedful.inference.loading import is_export
    from heedful.runs.directory import Run
    from heedful.training import rescore

    folder = Path(run)
    columns = ColumnChoice(text_column, pair_column, label_column)
    if data is None and (columns.names() or strict):
        raise UserError("--text-column, --pair-column, --label-column and --strict belong to --data FILE")
    if data is not None and split is not None:
        raise UserError("--split is a part of the run's own data, --data other data; give one of them")
    if is_export(folder):
        from heedful.evaluation.folder_scores import score_folder

        if data is None or corpus is not None or sentences:
            raise UserError(
                f"{folder}: has no data of its own; --data FILE has the labeled texts to score it on"
            )
        result = score_folder(folder, materialize(data), columns, strict=strict, metric=metric)
        return EvaluationResult(RunResult(folder), {rescore.NEW: result})
    if Run.open(folder).read_config().get("command") != "pretrain":
        if corpus is not None or sentences:
            raise UserError(f"{folder}: --corpus and --sentences are for language models (heedful pretrain)")
        if data is not None:
            result = rescore.evaluate_data(folder, materialize(data), columns, strict=strict, metric=metric)
            return EvaluationResult(RunResult(folder), {rescore.NEW: result})
        name = split or "test"
        result = rescore.evaluate_split(folder, name, metric=metric)
        return EvaluationResult(RunResult(folder), {name: result})
    if data is not None:
        raise UserError(f"{folder}: is a language model; --corpus FILE scores it on other text")
    if metric is not None:
        check_metric(metric, "next_token")
    model = rescore.LanguageModelScores(folder)
    results = {corpus: model.score_corpus(corpus)} if corpus is not None else {}
    if split is not None or not (results or sentences):
        results |= dict([model.score_split(split)])
    return EvaluationResult(RunResult(folder), results, model.score_single_sentences(tuple(sentences)))


def report(
    *folders: Folder,
    out: Folder = "report.html",
    figures: Folder | None = None,
    pdf: Folder | None = None,
    markdown: Folder | None = None,
    bundle: Folder | None = None,
    theme: str = "default",
    slides: Folder | None = None,
) -> ReportFiles:
    """Report runs and studies in one HTML file that works offline and by e-mail.

    Parameters
    ----------
    folders
        Runs and studies: what a function returned, or folders.
    out
        The HTML file.
    figures
        Folder for all figures as PNG, SVG and PDF.
    pdf
        Also write this PDF file; needs Chromium or a browser based on it.
    markdown
        Also write this Markdown file; its pictures are in `figures` or next to it.
    bundle
        Also write a zip of the report, figures, predictions, configurations and a script that reruns all.
    theme
        Chart theme: default, contrast, or one of an installed package.
    slides
        Also write this HTML file to project in class: one figure per screen, moved with the arrow keys.

    Examples
    --------
    >>> heedful.report(run, study, out="report.html")

    """
    from heedful.report.outputs import write_report

    files = {"figures": figures, "pdf": pdf, "markdown": markdown, "bundle": bundle, "slides": slides}
    paths = {name: None if path is None else Path(path) for name, path in files.items()}
    return write_report([Path(folder) for folder in folders], Path(out), theme=theme, **paths)
