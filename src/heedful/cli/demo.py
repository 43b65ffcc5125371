"""`heedful demo`: what Heedful does in three minutes, on a real model and generated data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.cli.output import Flag, console, print_json, print_table
from heedful.errors import one_line


def command(
    *,
    out: Path = Path("demo"),
    long: Flag = False,
    minilm: Flag = False,
    quick: Flag = False,
    json: Flag = False,
) -> None:
    """Show in three minutes what Heedful does, on a real model and generated data.

    First heedful solve gets 300 labeled letters and one minute: it measures this
    machine, tries models from tf-idf to fine-tuning MiniLM, chooses one on
    held-out letters, and sends new letters to the right desk of a newspaper.
    Then the demo shows where MiniLM's heads look, and whether each attention
    mechanism is causal. Last, a model reads biographies and is asked where
    people were born. Every number is measured. The results are ordinary runs
    and studies, for heedful report, study show and predict. The same command
    continues an interrupted demo.

    Examples:
      heedful demo
      heedful demo --out /tmp/demo --quick
      heedful demo --long
      heedful demo --minilm

    Parameters
    ----------
    out
        Folder for report.html, figures, runs and studies. An earlier demo there is replaced.
    long
        Also describe tasks, train a tokenizer, pretrain a small encoder, and adapt it to the stars of
        reviews by several methods, with 50 and 1,000 labels, next to random weights. Takes some minutes more.
    minilm
        As --long, but compare the methods on all-MiniLM-L6-v2 instead of the small encoder. Takes longer.
    quick
        Train no models: only tasks, tokenizer and attention.
    json
        Print the numbers as one JSON object.
    """
    from heedful.demo.page import conclusions
    from heedful.demo.stages import demo as work

    facts = work(out, long=long, minilm=minilm, quick=quick, show=None if json else show_result)
    if json:
        print_json(facts)
        return
    last = console()
    for line in conclusions(facts):
        last.print(line, markup=False)
    page = one_line(str(out / "report.html"))
    last.print(f"done in {facts['seconds']:.0f} s; look at {page}", markup=False)
    if not quick:
        last.print("its runs and studies are next to it, for heedful report, study show and predict")


def show_result(name: str, facts: Any) -> None:
    """Print a result as soon as it is there."""
    printers: dict[str, Callable[[Any], None]] = {
        "letters": show_letters,
        "attention": show_attention,
        "reviews": show_reviews,
        "birthplaces": show_birthplaces,
    }
    printers[name](facts)


def show_letters(facts: dict[str, Any]) -> None:
    """Print the scores of the chosen model and of simpler ones, and how to do that with one's own file."""
    from heedful.demo.letters import OWN_FILE, SIMPLE

    rows, new = [], dict[str, str]()
    if facts["n"]:
        rules = {name: facts[baseline] for name, baseline in SIMPLE.items() if facts[baseline] is not None}
        new = {name: f"{score:.3f}" for name, score in rules.items()} | {facts["chosen"]: format_score(facts)}
    for candidate in facts["candidates"]:
        name, title = candidate["name"], candidate["title"]
        chosen = ", chosen" if name == facts["chosen"] else ""
        rows.append((f"{title}{chosen}", f"{candidate['held_out']:.3f}", new.get(name, "")))
    title = f"letters sent to the right desk, {facts['labels']:,} labels, {facts['seconds']:.0f} s"
    print_table(title, ("model", "held-out letters", "new letters with 95 % interval"), rows)
    out = console()
    out.print("the same with a file of your own:", markup=False)
    for line in OWN_FILE:
        out.print(f"  {line}", markup=False)


def show_attention(mechanisms: list[dict[str, Any]]) -> None:
    rows = [(f["attention"], f["causal"], f"{f['leak']:.2g}" if f["leak"] else "none") for f in mechanisms]
    print_table("does the future reach the past?", ("attention", "causality check", "leak"), rows)


def show_reviews(results: list[dict[str, Any]]) -> None:
    """Print one line per arm, with few and with many labels, and the baselines."""
    from heedful.demo.page import describe_start

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
