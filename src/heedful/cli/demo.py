"""`heedful demo`: everything once, from data to report, on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.cli.output import Flag, console, print_json, print_table
from heedful.errors import one_line


def command(
    *, out: Path = Path("demo"), minilm: Flag = False, quick: Flag = False, json: Flag = False
) -> None:
    """Run everything once, from data to report, on generated data.

    The demo generates a world of texts, describes its tasks, trains a
    tokenizer, checks whether each attention mechanism is causal, pretrains a
    small encoder, and adapts it to the stars of reviews by several methods,
    with 50 and with 1,000 labels and next to the same model with random
    weights. Another model reads biographies and is asked where people were
    born. It takes less than five minutes on two cores, and every number is
    measured. The results are ordinary runs and studies, for heedful report,
    study show and predict. The same command continues an interrupted demo.

    Examples:
      heedful demo
      heedful demo --out /tmp/demo --quick
      heedful demo --minilm

    Parameters
    ----------
    out
        Folder for report.html, figures, runs and studies. An earlier demo there is replaced.
    minilm
        Adapt a real pretrained encoder (all-MiniLM-L6-v2) instead of the small one. Takes longer.
    quick
        Train no models: only tasks, tokenizer and attention.
    json
        Print the numbers as one JSON object.
    """
    from heedful.studies.demo.page import conclusions
    from heedful.studies.demo.stages import demo as work

    facts = work(out, minilm=minilm, quick=quick)
    if json:
        print_json(facts)
        return
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
    page = one_line(str(out / "report.html"))
    last.print(f"done in {facts['seconds']:.0f} s; look at {page}", markup=False)
    if "reviews" in facts:
        last.print("its runs and studies are next to it, for heedful report, study show and predict")


def show_reviews(results: list[dict[str, Any]]) -> None:
    """Print one line per arm, with few and with many labels, and the baselines."""
    from heedful.studies.demo.page import describe_start

    sizes = list(dict.fromkeys(f["labels"] for f in results))
    arms: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for f in results:
        arms.setdefault((describe_start(f), f["method"]), {})[f["labels"]] = f
    rows = [[*names, *(format_score(scores.get(size)) for size in sizes)] for names, scores in arms.items()]
    first = {size: next((f for f in results if f["labels"] == size and f["accuracy"]), {}) for size in sizes}
    for name, key in (("bag of words", "bag_of_words"), ("most frequent stars", "majority")):
        rows.append([name, "", *(f"{scores[key]:.3f}" if scores else "" for scores in first.values())])
    columns = ("start", "method", *(f"{size:,} labels" for size in sizes))
    print_table("stars of reviews, test accuracy with 95 % interval", columns, rows)


def format_score(scores: dict[str, Any] | None) -> str:
    if scores is None or scores["accuracy"] is None:
        return "failed"
    return f"{scores['accuracy']:.3f} ({scores['low']:.3f} to {scores['high']:.3f})"


def show_birthplaces(arms: dict[str, Any]) -> None:
    """Print the exact match of each arm, and of the most frequent answer."""
    words = {"pretrained": "after reading the biographies", "nothing": "without reading them"}
    rows = [
        (words.get(name, name), f"{arm['exact_match']:.3f} ({arm['ci95'][0]:.3f} to {arm['ci95'][1]:.3f})")
        for name, arm in arms.items()
    ]
    one = next(iter(arms.values()), None)
    if one is not None:
        rows.append(("always the same answer", f"{one['constant_answer']:.3f}"))
        title = f"where was ... born? {one['n']} people whom no training question is about"
        print_table(title, ("model", "exact match with 95 % interval"), rows)
