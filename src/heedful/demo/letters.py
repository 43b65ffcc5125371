"""The first stage of the demo: a problem with few labels, solved by `heedful solve` in a minute."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from heedful.logs import notice
from heedful.options.solve import SolveOptions
from heedful.report.charts import Chart, bars
from heedful.report.facts import load_study
from heedful.report.page import Page
from heedful.report.study_sections import add_study_runs, draw_figure
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.files import new_folder
from heedful.runs.schemas import Prediction
from heedful.solve.plan import format_minutes
from heedful.training.signals import StoppedError

Facts = dict[str, Any]
MODEL, TASK = "minilm", "world/messages"
SIMPLE = {"tfidf": "bag_of_words", "majority": "majority"}
"""Candidates that are simple rules, by the name that they have as a baseline of the others."""
MORE_TIME = 3
"""A machine that can finish no candidate in the time is given this many times as much."""
SHOWN = 6
"""Letters that the page shows with their answers."""
COST = "score-against-cost"
"""The figure of the answer that the page shows first."""
OWN_FILE = (
    "heedful solve reviews.csv --minutes 10",
    "heedful predict runs/solve-reviews --in texts.csv --out labeled.csv",
)
"""The commands that do the same with a file of one's own."""


def write_letters(folder: Path, labels: int) -> None:
    """Write train.csv with this many labeled letters and test.csv, as a person would have them."""
    from heedful.data import load_task

    if folder.is_dir():
        return
    task = load_task(TASK)
    with new_folder(folder) as new:
        for split, rows in (("train", labels), ("test", None)):
            with (new / f"{split}.csv").open("x", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(("text", "label"))
                for row in islice(task.splits[split], rows):
                    writer.writerow((row.text, task.label_names[row.label or 0]))


def solve_letters(letters: Path, out: Path, labels: int, minutes: float) -> tuple[Facts, Answer]:
    """Solve the problem in the given time; return what was measured, and the answer."""
    from heedful.solve.runner import UnsolvedError, solve

    try:
        folder, answer = solve(SolveOptions(task=str(letters), model=MODEL, out=out, minutes=minutes))
    except UnsolvedError as error:
        minutes *= MORE_TIME
        notice(f"{error}; this machine is given {format_minutes(minutes)}")
        folder, answer = solve(SolveOptions(task=str(letters), model=MODEL, out=out, minutes=minutes))
    if not answer.finished:
        raise StoppedError("solve was stopped")
    return {"labels": labels, "minutes": minutes, **read_scores(letters, folder.path, answer)}, answer


def read_scores(letters: Path, folder: Path, answer: Answer) -> Facts:
    """Return the scores of the candidates and, on new letters, of the chosen one and of simple rules."""
    from heedful.data import load_task
    from heedful.evaluation.baselines import score_task_baselines

    titles = answer.facts["titles"]
    facts: Facts = {
        "seconds": round(answer.facts["seconds"], 1),
        "chosen": answer.facts["chosen"],
        "candidates": [
            {"name": name, "title": titles[name], "held_out": score}
            for name, score in sorted(answer.facts["dev"].items(), key=lambda item: -item[1])
        ],
        "left_out": list(answer.facts["left_out"]),
        "title": titles[answer.facts["chosen"]],
        "answer": answer.summary[0],
        "accuracy": None,
        "n": 0,
    }
    test = Run.open(folder).read_results().splits.get("test")
    if test is None or test.ci95 is None:
        return facts
    low, high = test.ci95
    # Solve scores test for the chosen candidate alone.
    scores: Facts = {**score_task_baselines(load_task(str(letters)), ("test",))["test"]}
    if (simple := SIMPLE.get(facts["chosen"])) is not None:
        scores[simple] = test.value
    rules = {name: scores.get(name) for name in SIMPLE.values()}
    return facts | {"accuracy": test.value, "low": low, "high": high, "n": test.n} | rules


def add_letters(page: Page, facts: Facts, answer: Answer, folder: Path) -> None:
    """Add the problem, its answer with the candidates, and some new letters with their desks."""
    page.section(f"A problem solved in {format_minutes(facts['minutes'])}")
    page.text(
        f"Letters reach a newspaper, and one of six desks should read each; {facts['labels']:,} letters have "
        "a label. All six kinds of letters use the same sentences. Only their subject tells the desk, and "
        "most subjects of new letters are in none of the labeled ones. A bag of words (tf-idf) can only "
        "count words that had a label. MiniLM, a pretrained encoder, has read a lot of text before, and "
        "knows that a hedgehog and a fox belong together.",
        "heedful solve does not know which of them is right. It measures this machine, tries what fits in "
        f"{format_minutes(facts['minutes'])}, from cheap to dear, chooses on held-out letters, and scores "
        "the chosen model once on new ones.",
    )
    if facts["n"]:
        caption = f"Scored once on {facts['n']:,} letters that no choice was made with."
        page.figure(draw_scores(facts), caption, "letters", lead=True)
    add_sentences(page, answer.summary)
    add_figures(page, answer, lambda name: name == COST)
    candidates, *others = answer.tables
    page.table(candidates.columns, candidates.rows, candidates.title)
    if facts["n"]:
        answers = choose_examples(Run.open(folder).read_predictions("test"))
        cells = [(p.text, p.label, p.predicted, p.probabilities[p.predicted]) for p in answers]
        page.table(("letter", "desk", "answer", "confidence"), cells, "Some new letters; the mistakes first")
    page.text("The same with a file of your own, such as a CSV file with a text and a label in each row:")
    page.code("\n".join(OWN_FILE))
    with page.details("What else was found, and the runs"):
        add_figures(page, answer, lambda name: name != COST)
        for table in others:
            page.table(table.columns, table.rows, table.title)
        add_study_runs(page, load_study(folder), page.part, folder.name)


def add_figures(page: Page, answer: Answer, shown: Callable[[str], bool]) -> None:
    for figure in answer.figures:
        if shown(figure.name):
            page.figure(draw_figure(figure, figure.name), figure.caption, figure.name)


def draw_scores(facts: Facts) -> Chart:
    chosen = {"label": facts["title"], "value": facts["accuracy"], "low": facts["low"], "high": facts["high"]}
    titles = {"tfidf": "bag of words (tf-idf)", "majority": "most frequent desk"}
    rules = [
        {"label": titles[name], "value": facts[baseline], "weak": True}
        for name, baseline in SIMPLE.items()
        if name != facts["chosen"] and facts[baseline] is not None
    ]
    return bars(
        [chosen, *rules],
        title="Which desk should read the letter? Accuracy on new letters",
        subtitle="what heedful solve chose, with its 95 % interval, and simple rules from the same labels",
        y_title="accuracy",
        y_domain=(0, 1),
        form=".2f",
    )


def add_sentences(page: Page, summary: Sequence[str]) -> None:
    """Add the sentences of an answer, with its commands as code."""
    for is_command, lines in groupby(summary, lambda line: line.startswith("  heedful ")):
        if is_command:
            page.code("\n".join(line.strip() for line in lines))
        else:
            page.text(*lines)


def choose_examples(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Return at most two mistakes, then correct answers of different desks."""
    wrong = [p for p in predictions if p.predicted != p.label][:2]
    right: dict[Any, Prediction] = {}
    for p in predictions:
        if p.predicted == p.label:
            right.setdefault(p.label, p)
    return [*wrong, *right.values()][:SHOWN]
