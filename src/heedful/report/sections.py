"""The parts of a run's report, in the order in which a reader asks for them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from heedful.report import figures
from heedful.report.formats import format_duration, is_number
from heedful.report.page import Cell, Page
from heedful.report.parts import Chart, noted
from heedful.report.reading import RunFacts
from heedful.report.sentences.runs import number
from heedful.runs.schemas import Check, Prediction, SplitResult

WRONG_SHOWN, RIGHT_SHOWN = 25, 15
TEXT_SHOWN = 400
CONFUSIONS_SHOWN = 20
STATUS = ("failed", "warning", "passed", "skipped")
KIND: dict[str, Any] = {"failed": "bad", "warning": "warning"}
SPLIT_COLUMNS = ("metric", "value", "n", "ci95", "confusion", "predicted_counts", "baselines")
"""Fields of a split that are shown in a form of their own; other numbers get a column each."""


AGAIN = (
    "The configuration below, saved as config.toml, makes this run again: on the same type of machine and "
    "with the same versions to the same bits."
)
NAMES = {"macro_f1": "macro F1", "of": "of the whole split's"}


def add_run(page: Page, run: RunFacts, head: Callable[[str], None], prefix: str = "") -> None:
    """Add everything about one run; `head` starts a part, `prefix` begins the names of its figures."""

    def draw(chart: Chart | None, name: str, caption: str = "") -> None:
        if chart is not None:
            page.figure(noted(chart, run.note), caption, f"{prefix} {name}")

    if run.results is not None:
        head("Scores")
        draw(figures.score_bars(run), "scores")
        page.table(*score_table(run))
    if run.metrics:
        head("Curves")
        falls = run.check("dev_falls_while_train_rises")
        if falls is not None and falls.status in KIND:
            page.note(falls.found, KIND[falls.status])
        draw(figures.score_curves(run), run.metric)
        draw(figures.loss_curves(run), "loss")
    if run.results is not None and run.results.labels and class_rows(run):
        head("Labels")
        draw(figures.confusion_map(run), "confusion")
        if len(run.results.labels) > figures.LABELS_DRAWN:
            many = f"Labels taken for others on {run.scored}, the {CONFUSIONS_SHOWN} most frequent pairs"
            page.table(("true label", "predicted label", "examples"), confusions(run), many)
        columns = ("label", "precision", "recall", "F1", "examples", "predicted")
        page.table(columns, class_rows(run), f"Each label on {run.scored}")
    if run.metric == "perplexity":
        add_texts(page, run, head)
    elif any(p.label is not None for p in run.predictions):
        add_answers(page, run, head, draw)
    if run.checks:
        head("Checks")
        page.table(*check_table(run.checks))
    head("How it was made")
    page.text(AGAIN)
    page.code(reproduce(run))
    with page.details("Configuration (config.toml)"):
        page.code(run.config_text)
    if run.environment is not None:
        with page.details("Environment"):
            page.facts(environment(run))


def score_table(run: RunFacts) -> tuple[list[str], list[list[Any]]]:
    """Give the columns and a row a split."""
    assert run.results is not None
    splits = run.results.splits
    extra = [
        f.name
        for f in fields(SplitResult)
        if f.name not in SPLIT_COLUMNS and any(is_number(getattr(s, f.name)) for s in splits.values())
    ]
    simple = list(
        dict.fromkeys(name for s in splits.values() for name in figures.baseline_levels(s.baselines))
    )
    units = "tokens" if run.metric == "perplexity" else "examples"
    columns = ["split", units, figures.metric_name(run.metric), "95 % interval"]
    columns += [NAMES.get(name, name.replace("_", " ")) for name in extra] + simple
    rows = []
    for split, s in splits.items():
        row: list[Any] = [split, s.n, value_cell(s), interval_cell(s), *(getattr(s, name) for name in extra)]
        levels = figures.baseline_levels(s.baselines)
        rows.append([*row, *(levels.get(name) for name in simple)])
    return columns, rows


def value_cell(found: SplitResult | None) -> Cell | None:
    """Write a score; without one the cell is empty."""
    if found is None:
        return None
    if found.value is None:
        return Cell("not a number", "")
    return Cell(number(found.value, found.metric), found.value)


def interval_cell(found: SplitResult | None) -> Cell | None:
    """Write an interval; it sorts by its lower end."""
    low, high = (found.ci95 if found else None) or (None, None)
    if found is None or low is None or high is None:
        return None
    return Cell(f"{number(low, found.metric)} to {number(high, found.metric)}", low)


def class_rows(run: RunFacts) -> list[list[Any]]:
    """Give precision, recall and F1 of each label; what is undefined is left empty."""
    found = run.split(run.scored) if run.scored else None
    labels = run.results.labels if run.results else None
    if found is None or found.confusion is None or not labels:
        return []
    rows: list[list[Any]] = []
    for i, label in enumerate(labels):
        hit, occurs = found.confusion[i][i], sum(found.confusion[i])
        guessed = sum(row[i] for row in found.confusion)
        precision, recall = (hit / n if n else None for n in (guessed, occurs))
        f1 = 2 * hit / (occurs + guessed) if occurs + guessed else None
        rows.append([label, precision, recall, f1, occurs, guessed])
    return rows


def confusions(run: RunFacts) -> list[list[Any]]:
    """Give the most frequent confusions, where there are too many labels for a map."""
    found = run.split(run.scored) if run.scored else None
    labels = run.results.labels if run.results else None
    if found is None or found.confusion is None or not labels:
        return []
    counts = [
        (count, i, j)
        for i, row in enumerate(found.confusion)
        for j, count in enumerate(row)
        if count and i != j
    ]
    most = sorted(counts, key=lambda c: (-c[0], c[1], c[2]))[:CONFUSIONS_SHOWN]
    return [[labels[i], labels[j], count] for count, i, j in most]


def add_answers(
    page: Page, run: RunFacts, head: Callable[[str], None], draw: Callable[[Chart | None, str], None]
) -> None:
    """Add what the model answered: how sure it was, and what it got wrong."""
    head("Answers")
    draw(figures.reliability(run), "confidence")
    known = [p for p in run.predictions if p.label is not None]
    wrong = sorted((p for p in known if not figures.right(p)), key=sureness, reverse=True)
    total = f"{len(wrong):,} of {len(known):,} answers on {run.scored} are wrong"
    if not wrong:
        page.text(f"All {len(known):,} answers on {run.scored} are right.")
    else:
        shown = f"; the {WRONG_SHOWN} that the model was surest of" if len(wrong) > WRONG_SHOWN else ""
        page.table(*answer_table(wrong[:WRONG_SHOWN]), caption=f"{total}{shown}")
    if run.metric == "exact_match":
        hits = sorted((p for p in known if figures.right(p)), key=sureness, reverse=True)
        if hits:
            caption = f"{len(hits):,} answers are right" + ("; the surest" if len(hits) > RIGHT_SHOWN else "")
            page.table(*answer_table(hits[:RIGHT_SHOWN]), caption=caption)


def add_texts(page: Page, run: RunFacts, head: Callable[[str], None]) -> None:
    """Add what a language model made of single texts: those that were given, and the hardest of a split."""
    given = run.results.sentences if run.results else None
    hard = [(p.loss / p.tokens, p) for p in run.predictions if p.tokens and p.loss is not None]
    if not given and not hard:
        return
    head("Texts")
    if given:
        rows = [[cut(s.text), s.tokens, s.loss, s.perplexity, s.unknown] for s in given]
        columns = ("text", "tokens", "loss a token", "perplexity", "unknown tokens")
        page.table(columns, rows, "The texts that were given")
    if hard:
        hardest = sorted(hard, key=lambda pair: -pair[0])[:RIGHT_SHOWN]
        caption = f"The {len(hardest)} hardest of the {len(hard):,} texts of {run.scored}"
        page.table(
            ("text", "tokens", "loss a token"),
            [[cut(p.text), p.tokens, loss] for loss, p in hardest],
            caption,
        )


def sureness(prediction: Prediction) -> float:
    """Order answers by confidence; those without one come last."""
    found = figures.confidence(prediction)
    return -1.0 if found is None else found


def answer_table(rows: Sequence[Prediction]) -> tuple[list[str], list[list[Any]]]:
    """Give the columns and a row an answer; columns that nothing fills are left out."""
    names = ["text", "second text", "true", "predicted", "confidence"]
    cells = [[cut(p.text), cut(p.pair), cut(p.label), cut(p.predicted), figures.confidence(p)] for p in rows]
    kept = [i for i in range(len(names)) if any(row[i] is not None for row in cells)]
    return [names[i] for i in kept], [[row[i] for i in kept] for row in cells]


def cut(text: str | None) -> str | None:
    """Shorten a long text from data."""
    return text if text is None or len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"


def check_table(checks: Sequence[Check]) -> tuple[list[str], list[list[Any]]]:
    """Give the checks, the most serious first."""
    order = sorted(checks, key=lambda check: STATUS.index(check.status))
    rows = [[c.name.replace("_", " "), status_cell(c), c.found] for c in order]
    return ["check", "status", "what it found"], rows


def status_cell(check: Check) -> Cell:
    """Write a status in its colour; it sorts by gravity."""
    return Cell(check.status, str(STATUS.index(check.status)), KIND.get(check.status, "plain"))


def environment(run: RunFacts) -> Mapping[str, Any]:
    """Give the facts of a run's machine and versions."""
    e = run.environment
    assert e is not None
    plain = {f.name.replace("_", " "): getattr(e, f.name) for f in fields(e) if f.name != "packages"}
    known = {name.replace(" gb", ", GB"): str(value) for name, value in plain.items() if value is not None}
    return known | dict(e.packages)


def reproduce(run: RunFacts) -> str:
    """Give the command that makes a run again."""
    return f"heedful run config.toml --out {shlex.quote(run.path.resolve().name + '-again')}"


def comparison_table(runs: Sequence[RunFacts]) -> tuple[list[str], list[list[Any]]]:
    """Give several runs side by side: what sets them apart, scores with intervals, cost."""
    settings = differing(runs)
    metric = figures.metric_name(runs[0].metric)
    splits = [s for s in ("dev", "test") if any(run.split(s) is not None for run in runs)]
    columns = ["run", *(name.replace("_", " ") for name in settings)]
    simple = {split: apart(runs, split) for split in splits}
    for split in splits:
        columns += [f"{split} {metric}", "95 % interval", *(f"{split}, {name}" for name in simple[split])]
    columns += ["best epoch", "parameters trained", "time", "memory, GB", "checks"]
    rows: list[list[Any]] = []
    for run in runs:
        r = run.results
        row: list[Any] = [run.name, *(setting(run.options.get(name)) for name in settings)]
        for split in splits:
            found = run.split(split)
            levels = figures.baseline_levels(found.baselines if found else None)
            row += [value_cell(found), interval_cell(found), *(levels.get(name) for name in simple[split])]
        worst = min((c.status for c in run.checks), key=STATUS.index, default=None)
        if r is None:
            rows.append([*row, None, None, Cell(run.lacking or "", ""), None, worst])
            continue
        epoch = None if r.best_epoch is None else round(r.best_epoch, 2)
        memory = None if r.memory_gb is None else round(r.memory_gb, 1)
        rows.append(
            [*row, epoch, r.trainable_parameters, Cell(format_duration(r.seconds), r.seconds), memory, worst]
        )
    return columns, rows


def apart(runs: Sequence[RunFacts], split: str) -> list[str]:
    """Name the baselines that are not the same for all runs: no figure can draw them as one line."""
    found = [run.split(split) for run in runs]
    known = dict.fromkeys(
        name for f in found if f is not None for name in figures.baseline_levels(f.baselines)
    )
    return [name for name in known if name not in figures.agreed(found)]


def setting(value: Any) -> Any:
    """Write an option's value: numbers as they were typed, lists as words."""
    if is_number(value):
        return Cell(f"{value:g}" if isinstance(value, float) else str(value), float(value))
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def differing(runs: Sequence[RunFacts]) -> list[str]:
    """Name the options in which runs differ; what only the machine decides is not one."""
    names = dict.fromkeys(name for run in runs for name in run.options if name not in ("threads", "out"))
    return [name for name in names if len({repr(run.options.get(name)) for run in runs}) > 1]
