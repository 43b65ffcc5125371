"""The sections of a run's report, in the order in which a reader asks for them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from heedful.report import run_figures
from heedful.report.charts import Chart
from heedful.report.charts.vega import add_title_note
from heedful.report.facts import RunFacts
from heedful.report.formats import is_number
from heedful.report.other_metrics import draw_label_scores, list_other_metrics
from heedful.report.page import Cell, Page
from heedful.report.sentences.runs import describe_checks, describe_run, describe_split, format_score
from heedful.report.sentences.verdicts import KINDS, count_findings, list_findings, make_headline
from heedful.runs.directory import CONFIG
from heedful.runs.json_files import read_text
from heedful.runs.schemas import Prediction, SplitResult

WRONG_MOST, RIGHT_MOST, TEXTS_MOST, CONFUSIONS_MOST = 25, 15, 15, 20
TEXT_LETTERS = 400
SPLIT_COLUMNS = ("metric", "value", "n", "ci95", "confusion", "predicted_counts", "baselines")
"""Fields of a split result with a form of their own; every other number gets a column."""
COLUMN_NAMES = {"macro_f1": "macro F1", "of": "size of the whole split", "value_at_half": "at 0.5"}
REPRODUCE = (
    "Save the configuration below as config.toml to run this again. The same type of machine with the same "
    "versions gives the same bits."
)
Columns = tuple[list[str], list[list[Any]]]
"""The headings and the rows of a table."""
Heading = Callable[[str], None]


def add_run(
    page: Page, run: RunFacts, add_heading: Heading, prefix: str = "", *, is_page: bool = False
) -> None:
    """Add all sections of a run; the file names of its figures start with `prefix`.

    If the page is about this run alone, its scores and what its checks found are at the top.
    """

    def add_figure(chart: Chart | None, name: str, *, lead: bool = False) -> None:
        if chart is not None:
            page.figure(add_title_note(chart, run.note), name=f"{prefix} {name}", lead=lead)

    if is_page:
        covers = (
            [describe_split(run, str(run.detail_split)), describe_checks(run.checks)]
            if run.results
            else describe_run(run)
        )
        page.open_with(make_headline(run), covers)
        serious = [finding for finding in list_findings(run.checks) if finding.kind in ("bad", "warning")]
        page.findings(serious, count_findings(run.checks), lead=True)
        add_figure(run_figures.draw_scores(run), "scores", lead=True)
    if run.results is not None:
        add_heading("Scores")
        if not is_page:
            add_figure(run_figures.draw_scores(run), "scores")
        page.table(*make_score_table(run))
        if other := list_other_metrics(run):
            add_figure(draw_label_scores(run), "labels")
            caption = f"Other metrics on {run.detail_split}"
            page.table(("metric", "value", "95 % interval"), other, caption)
    if run.metrics:
        add_heading("Curves")
        for name in ("dev_falls_while_train_rises", "still_improving"):
            check = run.check(name)
            if check is not None and check.status in ("failed", "warning"):
                page.note(check.message, KINDS[check.status])
        add_figure(run_figures.draw_score_curves(run), run.metric)
        add_figure(run_figures.draw_loss_curves(run), "loss")
    labels = run.results.labels if run.results else None
    confusion = run.detail_result.confusion if run.detail_result else None
    if labels and confusion is not None:
        add_heading("Labels")
        add_figure(run_figures.draw_confusion(labels, confusion, str(run.detail_split)), "confusion")
        if len(labels) > run_figures.LABELS_MOST:
            caption = f"The {CONFUSIONS_MOST} most frequent confusions on {run.detail_split}"
            rows = make_confusion_rows(labels, confusion)
            page.table(("true label", "predicted label", "examples"), rows, caption)
        headings = ("label", "precision", "recall", "F1", "examples", "predicted")
        page.table(headings, make_label_rows(labels, confusion), f"Scores per label on {run.detail_split}")
    if any(p.label is not None for p in run.predictions):
        add_answers(page, run, add_heading, add_figure)
    else:
        add_texts(page, run, add_heading)
    if run.checks:
        add_heading("Checks")
        page.findings(list_findings(run.checks))
    add_heading("How to reproduce it")
    page.text(REPRODUCE)
    page.code(f"heedful run config.toml --out {shlex.quote(run.path.resolve().name + '-again')}")
    with page.details("Configuration (config.toml)"):
        page.code(read_text(run.path / CONFIG))
    if run.environment is not None:
        with page.details("Environment"):
            page.facts(describe_environment(run))


def make_score_table(run: RunFacts) -> Columns:
    assert run.results is not None
    splits = run.results.splits
    extra = [
        f.name
        for f in fields(SplitResult)
        if f.name not in SPLIT_COLUMNS and any(is_number(getattr(s, f.name)) for s in splits.values())
    ]
    baselines = {split: run_figures.name_baselines(s.baselines) for split, s in splits.items()}
    names = list(dict.fromkeys(name for values in baselines.values() for name in values))
    headings = ["split", str(run.first_result.unit), run.metric, "95 % interval"]
    headings += [COLUMN_NAMES.get(name, name.replace("_", " ")) for name in extra] + names
    rows: list[list[Any]] = []
    for split, s in splits.items():
        row = [split, s.n, make_value_cell(s), make_interval_cell(s), *(getattr(s, name) for name in extra)]
        rows.append([*row, *(baselines[split].get(name) for name in names)])
    return headings, rows


def make_value_cell(result: SplitResult | None) -> Cell | None:
    if result is None:
        return None
    if result.value is None:
        return Cell("not a number", "")
    return Cell(format_score(result.value, result), result.value)


def make_interval_cell(result: SplitResult | None) -> Cell | None:
    """Make the cell of an interval, sorted by its lower end."""
    low, high = (result.ci95 if result else None) or (None, None)
    if result is None or low is None or high is None:
        return None
    return Cell(f"{format_score(low, result)} to {format_score(high, result)}", low)


def make_label_rows(labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for i, label in enumerate(labels):
        hits, occurrences = confusion[i][i], sum(confusion[i])
        predicted = sum(row[i] for row in confusion)
        precision, recall = (hits / n if n else None for n in (predicted, occurrences))
        f1 = 2 * hits / (occurrences + predicted) if occurrences + predicted else None
        rows.append([label, precision, recall, f1, occurrences, predicted])
    return rows


def make_confusion_rows(labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Return the most frequent confusions, for tasks with too many labels for a confusion matrix."""
    counts = [
        (-count, i, j) for i, row in enumerate(confusion) for j, count in enumerate(row) if count and i != j
    ]
    return [[labels[i], labels[j], -negative] for negative, i, j in sorted(counts)[:CONFUSIONS_MOST]]


def add_answers(
    page: Page, run: RunFacts, add_heading: Heading, add_figure: Callable[[Chart | None, str], None]
) -> None:
    """Add the model's answers: confidence and wrong answers; for free text also right ones."""
    add_heading("Answers")
    add_figure(run_figures.draw_reliability(run), "confidence")
    answers = [p for p in run.predictions if p.label is not None]
    answers.sort(key=lambda p: run_figures.get_confidence(p) or -1.0, reverse=True)
    wrong = [p for p in answers if not run_figures.is_right(p)]
    if not wrong:
        page.text(f"All {len(answers):,} answers on {run.detail_split} are right.")
    else:
        caption = f"{len(wrong):,} of {len(answers):,} answers on {run.detail_split} are wrong"
        page.table(*make_answer_table(wrong, WRONG_MOST, caption))
    right = [p for p in answers if run_figures.is_right(p)]
    if right and run.results is not None and not run.results.labels:
        page.table(*make_answer_table(right, RIGHT_MOST, f"{len(right):,} answers are right"))


def make_answer_table(
    answers: Sequence[Prediction], most: int, caption: str
) -> tuple[list[str], list[list[Any]], str]:
    """Make the table of the first answers; columns without content are left out."""
    headings = ["text", "second text", "true", "predicted", "confidence"]
    rows: list[list[Any]] = []
    for p in answers[:most]:
        texts = [shorten_text(text) for text in (p.text, p.pair, p.label, p.predicted)]
        rows.append([*texts, run_figures.get_confidence(p)])
    columns = [i for i in range(len(headings)) if any(row[i] is not None for row in rows)]
    if len(answers) > most:
        caption += f"; these are the {most} most confident"
    return [headings[i] for i in columns], [[row[i] for i in columns] for row in rows], caption


def add_texts(page: Page, run: RunFacts, add_heading: Heading) -> None:
    """Add what a language model has written, and its scores on given texts and the hardest of a split."""
    sentences = run.results.sentences if run.results else None
    samples = run.results.samples if run.results else None
    losses = [(p.loss / p.tokens, p) for p in run.predictions if p.tokens and p.loss is not None]
    if not sentences and not losses and not samples:
        return
    add_heading("Texts")
    if samples:
        written = [[sample.prompt, sample.text] for sample in samples]
        page.table(("prompt", "continued by the model"), written, "Samples")
    if sentences:
        rows = [[shorten_text(s.text), s.tokens, s.loss, s.perplexity, s.unknown] for s in sentences]
        headings = ("text", "tokens", "loss per token", "perplexity", "unknown tokens")
        page.table(headings, rows, "Given texts")
    if losses:
        hardest = sorted(losses, key=lambda pair: -pair[0])[:TEXTS_MOST]
        caption = f"The {len(hardest)} hardest of the {len(losses):,} texts of {run.detail_split}"
        rows = [[shorten_text(p.text), p.tokens, loss] for loss, p in hardest]
        page.table(("text", "tokens", "loss per token"), rows, caption)


def shorten_text(text: str | None) -> str | None:
    return text if text is None or len(text) <= TEXT_LETTERS else text[: TEXT_LETTERS - 1] + "…"


def describe_environment(run: RunFacts) -> Mapping[str, Any]:
    e = run.environment
    assert e is not None
    values = {f.name.replace("_", " "): getattr(e, f.name) for f in fields(e) if f.name != "packages"}
    facts = {name.replace(" gb", ", GB"): str(value) for name, value in values.items() if value is not None}
    return facts | dict(e.packages)
