"""`heedful data show`: describe the data of a task before anything is trained on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from heedful.api.data import show as describe_task
from heedful.cli.output import Flag, Json, describe_from, print_facts, print_json, print_table
from heedful.errors import shorten
from heedful.options.training import MAX_LEN
from heedful.options.types import Positive, Seed
from heedful.problems import find_problem_of_task

SHOWN_LABELS = 20
BAR_WIDTH = 40
EXAMPLE_TITLES = {"number": "number", "text2text": ""}


@describe_from(describe_task)
def command(
    task: str,
    /,
    *,
    data_dir: Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    time: str | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    seed: Seed = 0,
    strict: Flag = False,
    tokenizer: str | None = None,
    max_len: Positive = MAX_LEN,
    batches: Flag = False,
    batch_size: Positive = 32,
    figure: Path | None = None,
    json: Json = False,
) -> None:
    """Show rows, labels, lengths, baselines, duplicates and examples of a task.

    TASK is boolq, sst2, yelp or birthplaces; world/boolq, world/reviews,
    world/sentiment or world/birthplaces, which need no files; a folder with train,
    dev and test files (CSV, TSV, JSON lines, Parquet, Arrow, Excel or text); one
    file, which is split 80/10/10; a folder with one folder of .txt files per class;
    or a data set of the Hub (imdb, owner/name, owner/name:config).

    Examples:
      heedful data show world/boolq
      heedful data show sst2 --data-dir ~/data/sst2 --max-len 64
      heedful data show reviews.csv --text-column body --label-column stars
      heedful data show my-task/ --batches --figure lengths.png

    Parameters
    ----------
    task
        A named task, a folder or a file.
    figure
        Write a histogram of the lengths to this file: .png, .svg, .pdf or .html.
    """
    summary = describe_task(
        task,
        data_dir=data_dir,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        kind=kind,
        group=group,
        time=time,
        split=split,
        seed=seed,
        strict=strict,
        tokenizer=tokenizer,
        max_len=max_len,
        batches=batches,
        batch_size=batch_size,
    )
    facts = summary.facts
    if figure is not None:
        from heedful.report.charts import save_chart

        save_chart(summary.figure(), figure)
    if json:
        print_json(facts)
    else:
        print_all(facts)
        if figure is not None:
            print(f"\nwrote {figure}")


def print_all(facts: dict[str, Any]) -> None:
    splits, kind = facts["splits"], facts["kind"]
    columns = describe_columns(facts["columns"])
    problem = find_problem_of_task(kind)
    shown = {
        "kind": f"{problem.title} ({facts['kind_reason']})",
        "columns": columns,
        "tokens": facts["tokenizer"],
    }
    shown |= {name: f"{part['rows']:,} rows ({part['how']})" for name, part in splits.items()}
    shown |= {"split": "; ".join(facts["split_notes"])} if facts["split_notes"] else {}
    print_facts(facts["task"], shown)
    print_sizes(facts)
    print_labels(facts)
    print_baselines(facts)
    print_shared(facts)
    if waste := facts.get("padding_waste"):
        rows = [(name, f"{share:.1%}") for name, share in waste.items()]
        print()
        print_table("padding, share of train's positions", ["batches", "padding"], rows, right=["padding"])
    print_examples(facts)


def describe_columns(columns: dict[str, str]) -> str:
    roles = [f"{role} = {shorten(name, 30)}" for role, name in columns.items() if role != "selection"]
    return f"{', '.join(roles)} ({columns['selection']})"


def print_sizes(facts: dict[str, Any]) -> None:
    names = ["split", "rows", "tokens", "unique", "mean", "p50", "p90", "p95", "p99", "max"]
    names += [f"over {facts['max_len']}", "duplicates", "contradictions"]
    rows = []
    for name, part in facts["splits"].items():
        lengths = part["lengths"]
        row = [name, *(f"{part[key]:,}" for key in ("rows", "tokens", "unique_tokens"))]
        row += [lengths[key] for key in ("mean", "p50", "p90", "p95", "p99", "max")]
        row += [f"{part['truncated']:.1%}", part["duplicates"], part.get("contradictions", "")]
        rows.append(row)
    print()
    title = "sizes: tokens and unique are without special tokens, lengths (from mean to max) with them"
    print_table(title, names, rows, right=names[1:])


def print_labels(facts: dict[str, Any]) -> None:
    print()
    if find_problem_of_task(facts["kind"]).generates_text:
        answers = {name: part for name, part in facts["splits"].items() if "answers" in part}
        common = {
            name: ", ".join(f"{shorten(answer, 20)} {n}" for answer, n in part["common_answers"].items())
            for name, part in answers.items()
        }
        rows = [[name, f"{part['answers']:,}", common[name]] for name, part in answers.items()]
        print_table("answers", ["split", "different", "most frequent"], rows, right=["different"])
        return
    if any("histogram" in part for part in facts["splits"].values()):
        print_numbers(facts)
        return
    parts = {name: part["label_counts"] for name, part in facts["splits"].items() if "label_counts" in part}
    names = facts["labels"][:SHOWN_LABELS]
    rows = [
        [
            shorten(label, 40),
            *(share(counts[label], count_rows(facts, split)) for split, counts in parts.items()),
        ]
        for label in names
    ]
    more = len(facts["labels"]) - len(names)
    title = f"labels (and {more} more; --json has all)" if more else "labels"
    print_table(title, ["label", *parts], rows, right=list(parts))
    print_labels_per_row(facts)


def count_rows(facts: dict[str, Any], split: str) -> int:
    """Return the number of rows of a split, of which each label has a share."""
    rows: int = facts["splits"][split]["rows"]
    return rows


def share(count: int, rows: int) -> str:
    return f"{count:,} ({count / rows:.1%})"


def print_labels_per_row(facts: dict[str, Any]) -> None:
    parts = {n: part["labels_per_row"] for n, part in facts["splits"].items() if "labels_per_row" in part}
    if not parts:
        return
    sizes = sorted({int(size) for sizes in parts.values() for size in sizes})
    rows = [
        [
            size,
            *(share(counts.get(str(size), 0), count_rows(facts, split)) for split, counts in parts.items()),
        ]
        for size in sizes
    ]
    print()
    print_table("labels per row", ["labels", *parts], rows, right=["labels", *parts])


def print_numbers(facts: dict[str, Any]) -> None:
    """Print the quantiles of the numbers of each split, and a histogram of those of train."""
    parts = {name: part["numbers"] for name, part in facts["splits"].items() if "numbers" in part}
    names = list(next(iter(parts.values())))
    rows = [[split, *(f"{numbers[name]:.4g}" for name in names)] for split, numbers in parts.items()]
    shown = [{"p0": "min", "p50": "median", "p100": "max"}.get(name, name) for name in names]
    print_table("numbers", ["split", *shown], rows, right=shown)
    histogram = facts["splits"]["train"]["histogram"]
    edges, counts = histogram["edges"], histogram["counts"]
    bars = [
        (f"{low:.3g} to {high:.3g}", f"{count:,}", "#" * round(BAR_WIDTH * count / max(counts)))
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    print()
    print_table("numbers of train", ["from", "rows", ""], bars, right=["from", "rows"])


def print_baselines(facts: dict[str, Any]) -> None:
    scores = facts["baselines"]
    if not scores:
        return
    kinds = list(next(iter(scores.values())))
    rows = [[kind.replace("_", " "), *(f"{part[kind]:.1%}" for part in scores.values())] for kind in kinds]
    metric = find_problem_of_task(facts["kind"]).metric.replace("_", " ")
    print()
    columns = [f"{split} {metric}" for split in scores]
    print_table("baselines", ["baseline", *columns], rows, right=columns)


def print_shared(facts: dict[str, Any]) -> None:
    if not facts["shared"]:
        return
    rows = [[name, *(f"{n:,}" for n in counts.values())] for name, counts in facts["shared"].items()]
    columns = list(next(iter(facts["shared"].values())))
    print()
    print_table("found in both", ["splits", *columns], rows, right=columns)


def print_examples(facts: dict[str, Any]) -> None:
    rows = [
        (shorten(label, 20) if not place else "", text)
        for label, texts in list(facts["examples"].items())[:SHOWN_LABELS]
        for place, text in enumerate(texts)
    ]
    print()
    print_table("examples from train", [EXAMPLE_TITLES.get(facts["kind"], "label"), "text"], rows)
