"""What the page Solve computes: what a file of labeled texts contains, and what is wrong with it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError, shorten

if TYPE_CHECKING:
    from heedful.data import Task
    from heedful.data.columns import Sheet
    from heedful.studio.model_store import ModelStore

    Report = Callable[[float, str], None]

PREVIEW_ROWS = 5
CELL_LETTERS = 240
MOST_CONTRADICTIONS = 20
MOST_LABELS = 60
MAX_LEN = 256
"""How many tokens of a text the usual encoder reads."""
COLUMNS = ("text_column", "pair_column", "label_column", "group", "time", "kind")
"""What a person may say about the file."""

OPTION = re.compile(r" \(--[^)]*\)")
"""What a notice says about an option of the command line."""
FIELDS = {
    "--text-column": '"Text" below',
    "--pair-column": '"Second text"',
    "--label-column": '"Label" below',
    "--group": '"Rows that belong together"',
    "--time": '"Time"',
    "--kind": '"Kind"',
    ", another --split-seed": "",
}
SHOWN = ("kind", "kind_reason", "labels", "splits", "shared", "max_len")


def describe(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return what a file contains; if it cannot be solved as it is, the problem and its columns."""
    from heedful.data.columns import open_sheet

    path = models.folder.resolve(str(params.get("source", "")))
    if not path.is_file():
        raise UserError(f"{path.name}: is a folder; choose a file of labeled texts")
    stated = {name: str(params[name]) for name in COLUMNS if params.get(name)}
    described: dict[str, Any] = {"name": path.name, "bytes": path.stat().st_size, "columns": []}
    try:
        report(0.0, "reading")
        sheet = open_sheet(path, [stated[name] for name in COLUMNS[:5] if name in stated])
        described |= {"columns": list(sheet.names), "header": sheet.header, "preview": preview(sheet)}
        described |= describe_content(path, stated, report)
    except UserError as error:
        described["problem"] = name_fields(str(error).replace(str(path), path.name))
    return described


def name_fields(message: str) -> str:
    """Return a message with the fields of the page in place of options of the command line."""
    for option, field in FIELDS.items():
        message = message.replace(option, field)
    return message


def preview(sheet: Sheet) -> list[list[str]]:
    rows = sheet.sample[:PREVIEW_ROWS]
    return [["" if cell is None else shorten(str(cell), CELL_LETTERS) for cell in row] for row in rows]


def describe_content(path: Path, stated: dict[str, str], report: Report) -> dict[str, Any]:
    from heedful.api.data import DataSummary, choose_tokenizer
    from heedful.data import load_task, stats
    from heedful.data.notices import collect_notices
    from heedful.problems import find_problem
    from heedful.solve.request import read_facts

    options: dict[str, Any] = dict(stated)
    if "kind" in stated:
        options["kind"] = find_problem(stated["kind"]).load_as
    with collect_notices() as notices:
        task = load_task(str(path), **options)
        read_facts(task)
    report(0.4, "counting tokens")
    counter, counted_in = choose_tokenizer(None)
    counted = {name: stats.count_tokens(part, counter) for name, part in task.splits.items()}
    report(0.9, "looking for duplicates")
    facts = {"tokenizer": counted_in} | stats.describe_task(task, counted, MAX_LEN)
    summary = DataSummary(facts, {name: counts.lengths for name, counts in counted.items()})
    bad_rows = [row for split in task.splits.values() for row in split.rows.bad_rows]
    return {
        "facts": {
            key: facts[key] for key in ("kind", "kind_reason", "labels", "splits", "shared", "max_len")
        },
        "roles": {role: name for role, name in facts["columns"].items() if role != "selection"},
        "selection": facts["columns"].get("selection", ""),
        "tokenizer": counted_in,
        "labels": count_labels(facts),
        "examples": facts["examples"],
        "lengths": summary.figure(),
        "notices": [OPTION.sub("", notice.replace(f"{path}: ", "")) for notice in notices],
        "bad_rows": list(dict.fromkeys(row.replace(str(path), path.name) for row in bad_rows)),
        "contradictions": list(list_contradictions(task)),
        "split_notes": facts["split_notes"],
    }


def count_labels(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the most frequent labels with the number of rows that have them, in all splits."""
    totals: dict[str, int] = defaultdict(int)
    for part in facts["splits"].values():
        for label, count in part.get("label_counts", {}).items():
            totals[label] += count
    ordered = (
        sorted(totals.items(), key=lambda item: -item[1]) if facts["kind"] != "ordered" else totals.items()
    )
    return [{"label": label, "rows": count} for label, count in list(ordered)[:MOST_LABELS]]


def list_contradictions(task: Task) -> Iterator[dict[str, Any]]:
    """Yield texts that have several labels."""
    if task.kind not in ("classify", "ordered"):
        return
    labels: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for split in task.splits.values():
        if split.labels is not None:
            for example, label in zip(split, split.labels, strict=True):
                labels[example.text, example.pair].add(task.label_names[int(label)])
    several = ((text, found) for (text, _), found in labels.items() if len(found) > 1)
    for _, (text, found) in zip(range(MOST_CONTRADICTIONS), several, strict=False):
        yield {"text": shorten(text, CELL_LETTERS), "labels": list_names(sorted(found))}


def list_names(names: Sequence[str]) -> list[str]:
    return [shorten(name, 40) for name in names]
