"""`heedful demo`: the main job from start to end, on data made here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.output import Flag, Json, console, print_json, print_table

if TYPE_CHECKING:
    from heedful.report.page import Page

WORDS = ("the", "old", "bridge", "that", "a", "storm", "broke", "was", "mended")
ARMS = (("full", 50, 1e-4, 20, 20), ("head", 1000, 1e-3, 40, None), ("full", 1000, 1e-4, 5, 80))
"""Method, labelled rows, learning rate, epochs, and how many steps apart dev is scored."""


def demo(*, out: Path = Path("demo"), quick: Flag = False, json: Json = False) -> None:
    """Run the main job from start to end on data made here, with a report.

    Makes a world of texts, says what its tasks are like, trains a tokenizer,
    proves each attention mechanism causal or catches its leak, and adapts a
    real pretrained encoder (minilm, where it is installed) to the sentiment of
    sentences, with few and with many labels. A few minutes on two cores; every number is
    measured in the run.

    Examples:

        heedful demo

        heedful demo --out /tmp/demo --quick

    Parameters
    ----------
    out
        Folder for report.html, the figures and the runs; what is there from an earlier demo is replaced.
    quick
        Leave out the adapting, which takes most of the time.
    json
        Print the numbers as one JSON object.
    """
    from heedful.report.page import Page

    began = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    page = Page(
        "Heedful: the demo", summary="Every number here was measured in this run, on data made in it."
    )
    facts: dict[str, Any] = {"tasks": tasks(page)}
    facts["tokenizer"] = tokenizer(page, out)
    facts["attention"] = attention(page, out)
    if not quick:
        facts["adapting"] = adapting(page, out)
    page.write(out / "report.html")
    facts["seconds"] = round(time.monotonic() - began, 1)
    if json:
        print_json(facts)
        return
    show(facts, out)


def step(text: str) -> None:
    """Say what comes, on stderr."""
    import sys

    print(f"==> {text}", file=sys.stderr)


def tasks(page: Page) -> list[dict[str, Any]]:
    """The tasks of the world: rows, and what a model must beat."""
    from heedful.data import load_task
    from heedful.evaluation.baselines import baselines
    from heedful.runs.files import read_json

    step("a world of texts, and what a model on its tasks must beat")
    found = []
    for name in ("world/sentiment", "world/reviews", "world/boolq"):
        task = load_task(name)
        simple = baselines(task, ["dev"])["dev"]
        ceiling = read_json(task.folder / "world.json")["tasks"][name.removeprefix("world/")]["best_possible"]
        sizes = {split: len(rows) for split, rows in task.splits.items()}
        found.append({"task": name, **sizes, **simple, "best possible": ceiling})
    page.section("A world of texts")
    page.text("Tasks in the form of well-known ones, invented here; the best possible accuracy is known.")
    columns = ["task", "train", "dev", "test", "chance", "majority", "bag_of_words", "best possible"]
    page.table(
        [c.replace("_", " ") for c in columns],
        [["" if r[c] is None else r[c] for c in columns] for r in found],
    )
    return found


def tokenizer(page: Page, out: Path) -> dict[str, Any]:
    """A tokenizer of the world's own."""
    import shutil

    from heedful.data import corpus_texts
    from heedful.text import train
    from heedful.text.compare import draw, measure

    step("a tokenizer trained on them")
    made = train(corpus_texts("world/reviews"), kind="wordpiece", vocab_size=2000, lowercase=True)
    shutil.rmtree(out / "tokenizer", ignore_errors=True)
    made.save(out / "tokenizer")
    measured = measure("trained here", made, draw(corpus_texts("world/reviews", split="dev")).held_out)
    facts = {"vocabulary": made.vocab_size, "tokens_a_word": round(measured.tokens_a_word, 3)}
    page.section("A tokenizer of its own")
    page.facts({name.replace("_", " "): value for name, value in facts.items()})
    return facts


def attention(page: Page, out: Path) -> list[dict[str, Any]]:
    """Every causal mechanism in a small decoder: how much does a changed future change the past?"""
    import torch

    from heedful.attention import MECHANISMS, Mask, make
    from heedful.checkpoints import load
    from heedful.evaluation.checks import causality
    from heedful.report.charts import save, small_multiples

    step("every attention mechanism, its pattern and its leak")
    torch.manual_seed(0)
    n = len(WORDS)
    q, k = torch.randn(2, 1, 1, n, 16).unbind(0)
    found, panels = [], {}
    for name, cls in MECHANISMS.items():
        if not cls.causal:
            continue
        options: dict[str, Any] = {"unsafe": True} if cls.unsafe else {}
        if name == "bigbird":
            options = {"block": 2, "window": 1, "n_global": 1, "n_random": 0}
        mechanism = make(name, n_heads=1, d_head=16, max_len=64, **options)
        if cls.explicit_weights:
            with torch.no_grad():
                panels[name] = mechanism(q, k, torch.eye(n)[None, None], Mask(causal=True))[0, 0].tolist()
        spec = name + (":unsafe=true" if cls.unsafe else "")
        model = load("gpt-nano", head="causal", attention=spec, vocab_size=256)
        check = causality(model)
        found.append({"attention": name, "causal": check.status, "leak": check.value or 0.0})
    chart = small_multiples(
        panels,
        x_labels=WORDS,
        y_labels=WORDS,
        title="Who attends to whom",
        subtitle="the same random queries and keys through each mechanism, causal; two leak on purpose",
        x_title="key",
        y_title="query",
        value_title="weight",
        domain=(0, 1),
    )
    save(chart, out / "attention.png")
    save(chart, out / "attention.svg")
    page.section("Attention")
    page.figure(chart, "Weights of one head; a row sums to one where the mechanism is safe.")
    page.table(["attention", "causality", "leak"], [[f["attention"], f["causal"], f["leak"]] for f in found])
    return found


def adapting(page: Page, out: Path) -> list[dict[str, Any]]:
    """The pretrained encoder on the sentiment of sentences, with few and many labels."""
    from heedful.errors import UserError
    from heedful.report.charts import bars, save
    from heedful.text.places import minilm_folder
    from heedful.training.adapt import adapt
    from heedful.training.options import AdaptOptions

    try:
        minilm_folder()
    except UserError as error:
        step(f"adapting is left out: {error}")
        return []
    found: list[dict[str, Any]] = []
    for method, rows, lr, epochs, eval_every in ARMS:
        step(f"minilm on the sentiment of sentences: {method}, {rows:,} labels, {epochs} epochs")
        finished = adapt(
            AdaptOptions(
                model="minilm",
                task="world/sentiment",
                method=method,
                train_rows=rows,
                lr=lr,
                epochs=epochs,
                eval_every=eval_every,
                train_eval_rows=0,
                out=out / "runs" / f"{method}-{rows}",
                overwrite=True,
            )
        )
        r = finished.results.splits["test"]
        low, high = r.ci95 or (None, None)
        found.append(
            {
                "method": method,
                "labels": rows,
                "accuracy": r.value,
                "low": low,
                "high": high,
                "trained": finished.results.trainable_parameters,
                "seconds": round(finished.results.seconds, 1),
                "bag_of_words": (r.baselines or {}).get("bag_of_words"),
                "folder": str(finished.folder),
            }
        )
    chart = bars(
        [
            {
                "label": f"{f['method']}, {f['labels']:,} labels",
                "group": group,
                "value": f[value],
                "low": f["low"] if group == "minilm" else None,
                "high": f["high"] if group == "minilm" else None,
            }
            for f in found
            for group, value in (("minilm", "accuracy"), ("bag of words on the same labels", "bag_of_words"))
        ],
        title="MiniLM on the sentiment of sentences, test accuracy",
        subtitle="with 95 % intervals; head: on frozen features; full: every weight",
        y_title="accuracy",
        y_domain=(0, 1),
        rules={"chance": 0.5},
    )
    save(chart, out / "adapting.png")
    save(chart, out / "adapting.svg")
    page.section("Adapting a pretrained encoder")
    page.figure(chart)
    page.table(
        ["method", "labels", "test accuracy", "bag of words", "parameters trained", "seconds"],
        [
            [f["method"], f["labels"], f["accuracy"], f["bag_of_words"], f["trained"], f["seconds"]]
            for f in found
        ],
    )
    return found


def show(facts: dict[str, Any], out: Path) -> None:
    """The tables, and where to look."""
    rows = [
        (f["attention"], f["causal"], f"{f['leak']:.2g}" if f["leak"] else "none") for f in facts["attention"]
    ]
    print_table("does the future reach the past?", ("attention", "causality check", "leak"), rows)
    if facts.get("adapting"):
        arms = [
            (
                f["method"],
                f"{f['labels']:,}",
                f"{f['accuracy']:.3f}",
                f"{f['low']:.3f} to {f['high']:.3f}",
                f"{f['bag_of_words']:.3f}",
                f"{f['trained']:,}",
                f"{f['seconds']:.0f}",
            )
            for f in facts["adapting"]
        ]
        numbers = ("labels", "test accuracy", "bag of words", "parameters", "seconds")
        print_table(
            "minilm on the sentiment of sentences (chance is 0.500)",
            ("method", *numbers[:2], "95 % interval", *numbers[2:]),
            arms,
            right=numbers,
        )
    console().print(f"done in {facts['seconds']:.0f} s; look at {out / 'report.html'}", markup=False)
