"""`heedful demo`: the main job from start to end, on data made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.cli.output import Flag, Json, console, print_json, print_table
from heedful.errors import one_line


def demo(*, out: Path = Path("demo"), minilm: Flag = False, quick: Flag = False, json: Json = False) -> None:
    """Run the main job from start to end on data made here, with a report.

    Makes a world of texts, says what its tasks are like, trains a tokenizer,
    proves each attention mechanism causal or catches its leak, pretrains a
    small encoder, adapts it to the stars of reviews by several methods with 50
    and with 1,000 labels beside the same model from random weights, and lets a
    model read biographies to ask it where people were born. Less than five
    minutes on two cores; every number is measured in the run. All that is
    trained are ordinary runs and studies, for heedful report, study show and
    predict. A demo that was interrupted continues with the same command.

    Examples:

        heedful demo

        heedful demo --out /tmp/demo --quick

        heedful demo --minilm

    Parameters
    ----------
    out
        Folder for report.html, the figures, runs and studies; what an earlier demo left is replaced.
    minilm
        Adapt a real pretrained encoder (all-MiniLM-L6-v2) instead of one pretrained here; takes longer.
    quick
        Train nothing: tasks, tokenizer and attention alone.
    json
        Print the numbers as one JSON object.
    """
    from heedful.studies.demo.stages import demo as work

    facts = work(out, minilm=minilm, quick=quick)
    if json:
        print_json(facts)
        return
    show(facts, out)


def show(facts: dict[str, Any], out: Path) -> None:
    """The tables, what they say in words, and where to look."""
    from heedful.studies.demo.page import conclusions

    rows = [
        (f["attention"], f["causal"], f"{f['leak']:.2g}" if f["leak"] else "none") for f in facts["attention"]
    ]
    print_table("does the future reach the past?", ("attention", "causality check", "leak"), rows)
    if "reviews" in facts:
        show_reviews(facts["reviews"])
        show_birthplaces(facts["birthplaces"])
    last = console()
    for line in conclusions(facts):
        last.print(line, markup=False)
    last.print(
        f"done in {facts['seconds']:.0f} s; look at {one_line(str(out / 'report.html'))}", markup=False
    )
    if "reviews" in facts:
        look = "its runs and studies stand beside it, for heedful report, study show and predict"
        last.print(look, markup=False)


def show_reviews(found: list[dict[str, Any]]) -> None:
    """A line an arm, few labels beside many, and what simple rules reach."""
    from heedful.studies.demo.page import beginning

    sizes = list(dict.fromkeys(f["labels"] for f in found))
    arms: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for f in found:
        arms.setdefault((beginning(f["model"]), f["method"]), {})[f["labels"]] = f
    rows = [[*names, *(scored(own.get(size)) for size in sizes)] for names, own in arms.items()]
    first = {size: next((f for f in found if f["labels"] == size and f["accuracy"]), {}) for size in sizes}
    for name, key in (("bag of words", "bag_of_words"), ("most frequent stars", "majority")):
        rows.append([name, "", *(f"{own[key]:.3f}" if own else "" for own in first.values())])
    columns = ("beginning", "method", *(f"{size:,} labels" for size in sizes))
    print_table("stars of reviews, test accuracy with 95 % interval", columns, rows)


def scored(own: dict[str, Any] | None) -> str:
    """A score with its interval."""
    if own is None or own["accuracy"] is None:
        return "failed"
    return f"{own['accuracy']:.3f} ({own['low']:.3f} to {own['high']:.3f})"


def show_birthplaces(found: dict[str, Any]) -> None:
    """Exact match of each arm, and of one answer for all."""
    words = {"pretrained": "after reading the biographies", "nothing": "without reading them"}
    rows = [
        (words.get(name, name), f"{arm['exact_match']:.3f} ({arm['ci95'][0]:.3f} to {arm['ci95'][1]:.3f})")
        for name, arm in found.items()
    ]
    one = next(iter(found.values()), None)
    if one is not None:
        rows.append(("always the same answer", f"{one['constant_answer']:.3f}"))
        title = f"where was ... born? {one['n']} people whom no question of training is about"
        print_table(title, ("model", "exact match with 95 % interval"), rows)
