"""The page of the demo: each stage adds its section and returns its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.demo import sentences
from heedful.report.charts import bars, lines, small_multiples
from heedful.report.facts import load_study
from heedful.report.page import Page
from heedful.report.study_sections import CHARTS, add_study
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.files import new_folder
from heedful.runs.json_files import read_json
from heedful.runs.schemas import Results

Facts = dict[str, Any]
SENTENCE = ("the", "old", "bridge", "that", "a", "storm", "broke", "was", "mended")
STARTS = {"pretrained": "pretrained here", "untrained": "random weights"}
MEASURED = "Every number here was measured in this run, on data made in it."
DRAWN = ("letters", "score-against-cost", "heads", "attention", "pretraining", "reviews", "birthplaces")
"""The figures that are also written as files."""


def tasks(page: Page) -> list[Facts]:
    """Add the tasks of the world: rows, and what a model must beat."""
    from heedful.data import load_task
    from heedful.evaluation.baselines import score_task_baselines

    rows = []
    for name in ("world/sentiment", "world/reviews", "world/boolq"):
        task = load_task(name)
        simple = score_task_baselines(task, ["dev"])["dev"]
        ceiling = read_json(task.folder / "world.json")["tasks"][name.removeprefix("world/")]["best_possible"]
        sizes = {split: len(rows) for split, rows in task.splits.items()}
        rows.append({"task": name, **sizes, **simple, "best possible": ceiling})
    page.section("A world of texts")
    page.text("Tasks in the form of well-known ones, invented here; the best possible accuracy is known.")
    columns = ["task", "train", "dev", "test", "chance", "majority", "bag_of_words", "best possible"]
    page.table([c.replace("_", " ") for c in columns], [[r[c] for c in columns] for r in rows])
    return rows


def tokenizer(page: Page, folder: Path) -> Facts:
    from heedful.data import corpus_texts
    from heedful.text import train
    from heedful.text.compare import measure, split_sample

    trained = train(corpus_texts("world/reviews"), kind="wordpiece", vocab_size=2000, lowercase=True)
    with new_folder(folder) as new:
        trained.save(new)
    held_out = split_sample(corpus_texts("world/reviews", split="dev")).held_out
    tokens = measure("trained here", trained, held_out).tokens_per_word
    facts = {"vocabulary": trained.vocab_size, "tokens_per_word": round(tokens, 3)}
    page.section("A tokenizer trained here")
    page.facts({name.replace("_", " "): value for name, value in facts.items()})
    return facts


def attention(page: Page) -> list[Facts]:
    """Measure for every causal mechanism in a small decoder how much the future changes the past."""
    import torch

    from heedful.attention import MECHANISMS, Mask, make
    from heedful.checkpoints import load
    from heedful.evaluation.checks import causality

    torch.manual_seed(0)
    n = len(SENTENCE)
    q, k = torch.randn(2, 1, 1, n, 16).unbind(0)
    rows, panels = [], {}
    for name, cls in MECHANISMS.items():
        if not cls.causal:
            continue
        options: Facts = {"unsafe": True} if cls.unsafe else {}
        if name == "bigbird":
            options = {"block": 2, "window": 1, "n_global": 1, "n_random": 0}
        mechanism = make(name, n_heads=1, d_head=16, max_len=64, **options)
        if cls.explicit_weights:
            with torch.no_grad():
                panels[name] = mechanism(q, k, torch.eye(n)[None, None], Mask(causal=True))[0, 0].tolist()
        spec = name + (":unsafe=true" if cls.unsafe else "")
        check = causality(load("gpt-nano", head="causal", attention=spec, vocab_size=256))
        rows.append({"attention": name, "causal": check.status, "leak": check.value or 0.0})
    chart = small_multiples(
        panels,
        x_labels=SENTENCE,
        y_labels=SENTENCE,
        title="Who attends to whom",
        subtitle="the same random queries and keys through each mechanism, causal; two leak on purpose",
        x_title="key",
        y_title="query",
        value_title="weight",
        domain=(0, 1),
    )
    page.section("Attention mechanisms, and whether they can see the future")
    page.figure(chart, "Weights of one head; a row sums to one where the mechanism is safe.", "attention")
    page.table(["attention", "causality", "leak"], [list(row.values()) for row in rows])
    return rows


def pretraining(page: Page, run: Run, results: Results) -> Facts:
    """Add the small encoder: how well it predicts hidden words of new notes."""
    curve = [[row.step, row.value] for row in run.read_metrics() if row.split == "dev"]
    dev = results.splits["dev"]
    page.section("Pretraining a small encoder")
    page.text(
        f"{results.total_parameters:,} parameters learn to fill in hidden words of notes in guest books, in "
        f"{results.steps or 0:,} steps and {results.seconds:.0f} seconds. They contain no stars; but "
        "half of the guests are of one mind, so that similar words occur together, and the others end with a "
        "verdict in words: the meaning of words can be learned from the company they keep."
    )
    title = "Perplexity of hidden words, in notes that were not trained on"
    chart = lines({"dev": curve}, title=title, x_title="step", y_title="perplexity", log_y=True)
    page.figure(chart, name="pretraining")
    return {
        "parameters": results.total_parameters,
        "steps": results.steps,
        "perplexity": dev.value,
        "ci95": dev.ci95,
        "seconds": round(results.seconds, 1),
    }


def describe_start(row: Facts) -> str:
    return STARTS.get(row["model"], str(row["model"]))


def reviews(page: Page, rows: Sequence[Facts], studies: Sequence[Path]) -> None:
    sizes = list(dict.fromkeys(row["labels"] for row in rows))
    page.section("Adapting to the stars of reviews")
    drawn = [
        {
            "label": f"{describe_start(row)}, {row['method']}",
            "group": f"{row['labels']:,} labels",
            "value": row["accuracy"],
            "low": row.get("low"),
            "high": row.get("high"),
            "note": "" if row["accuracy"] is not None else "failed",
        }
        for row in rows
    ]
    scored = [row for row in rows if row["accuracy"] is not None]
    for size in sizes:
        if row := next((row for row in scored if row["labels"] == size), None):
            drawn.append({"label": "bag of words", "group": f"{size:,} labels", "value": row["bag_of_words"]})
    page.figure(
        bars(
            drawn,
            title="Stars of reviews, test accuracy",
            subtitle="with 95 % intervals; full: every weight, head: frozen features, lora: small changes",
            y_title="accuracy",
            y_domain=(0, 1),
            form=".2f",
            rules={"most frequent stars": scored[0]["majority"]} if scored else None,
        ),
        "Learning rates chosen on dev; a bag of words is logistic regression on the same labels.",
        "reviews",
        lead=not page.lead,
    )
    columns = ("labels", "start", "method", "test accuracy", "95 % interval", "bag of words")
    cells = []
    for row in scored:
        interval = f"{row['low']:.3f} to {row['high']:.3f}"
        names = (row["labels"], describe_start(row), row["method"], row["accuracy"], interval)
        cells.append((*names, *(row[name] for name in ("bag_of_words", "lr", "trained", "seconds"))))
    page.table((*columns, "learning rate", "parameters trained", "seconds"), cells)
    for size, folder in zip(sizes, studies, strict=True):
        study = load_study(folder)
        page.part(f"With {size:,} labels")
        page.text(*study.answer.summary)
        with page.details("The whole study"):
            add_study(page, study, page.part, folder.name)


def conclusions(facts: Facts) -> list[str]:
    rows = [row for row in facts.get("reviews", ()) if row["accuracy"] is not None]
    summary = []
    if letters := facts.get("letters"):
        summary.append(sentences.describe_letters(letters))
    for size in dict.fromkeys(row["labels"] for row in rows):
        ranked = sorted((row for row in rows if row["labels"] == size), key=lambda row: -row["accuracy"])
        best, simple = ranked[0], max(ranked[0]["majority"], ranked[0]["bag_of_words"])
        if best["low"] <= simple:
            summary.append(sentences.REVIEWS_NOT_ABOVE.format(size=size, simple=simple))
            continue
        other = next((row for row in ranked if row["model"] != best["model"]), None)
        at_best = (
            "" if other is None else sentences.REVIEWS_OTHER.format(start=describe_start(other), **other)
        )
        about = {"size": size, "start": describe_start(best), "other": at_best}
        summary.append(sentences.REVIEWS_BEST.format(**best, **about))
    born = facts.get("birthplaces", {})
    if {"pretrained", "nothing"} <= set(born):
        read = born["pretrained"]
        shares = (read["exact_match"], born["nothing"]["exact_match"], read["constant_answer"])
        after, without, constant = map(sentences.format_share, shares)
        about = {"n": read["n"], "after": after, "without": without, "constant": constant}
        summary.append(sentences.BIRTHPLACES.format(**about))
    return summary


def birthplaces(page: Page, folder: Path, answer: Answer) -> Facts:
    """Add what a model knows after reading biographies, beside one that has not read them."""
    names = ("exact_match", "ci95", "constant_answer")
    facts: Facts = {
        name: {key: arm[key] for key in names} | {"n": arm["groups"]["dev"]["n"]}
        for name, arm in answer.facts["arms"].items()
    }
    page.section("What a model knows: birthplaces")
    page.text(*answer.summary[:2])
    figure = next(one for one in answer.figures if one.name == "arms")
    page.figure(CHARTS[figure.kind](figure.data, **figure.options), figure.caption, "birthplaces")
    with page.details("The whole study"):
        add_study(page, load_study(folder), page.part, folder.name)
    return facts


def further(page: Page, commands: Sequence[Sequence[str]]) -> None:
    page.section("Look further")
    page.text("Everything above was made by ordinary runs and studies in the demo's folder.")
    page.code("\n".join(shlex.join(("heedful", *words)) for words in commands))
