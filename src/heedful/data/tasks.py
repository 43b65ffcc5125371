"""Tasks: a folder with train, dev and test files, a single file, or a named task."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, get_args

import numpy as np

from heedful.data import cache, splits
from heedful.data.answers import Answers, find_kind, guess_kind, name_answers
from heedful.data.class_folders import find_class_folders
from heedful.data.columns import (
    ColumnChoice,
    Layout,
    Sheet,
    find_layout,
    find_split_column,
    follow_layout,
    has_columns,
    open_sheet,
)
from heedful.data.hub_datasets import download_from_hub, parse_hub_id
from heedful.data.manifest import save_manifest
from heedful.data.named_tasks import TASKS, WORLD_PREFIX, Kind, TaskRules, find_named_folder, find_rules
from heedful.data.names import SPLIT_NAMES
from heedful.data.notices import notify
from heedful.data.readers import FORMATS, KINDS, is_data_file
from heedful.data.split_columns import describe_split_column, find_leaks
from heedful.data.splits import Index, Mode, Split
from heedful.data.store import ExampleStore, load_examples
from heedful.data.text_files import split_name
from heedful.data.times import is_timed
from heedful.errors import UserError, shorten, unknown
from heedful.paths import MEMORY, expand_path
from heedful.runs.directory import is_output

NEAR = 0.75
"""How similar a name must be to another to be taken for a misspelling of it."""

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NULL", "?")
"""What programs write, in any case, where a value is missing. "none" is more often a label."""


@dataclass(frozen=True)
class Task:
    """A task: its splits and its label names (none for numbers and in text2text)."""

    name: str
    kind: Kind
    label_names: list[str]
    splits: dict[str, Split]
    folder: Path
    seed: int = 0
    corpus: Path | None = None
    rules: TaskRules = field(default_factory=TaskRules, repr=False)
    columns: dict[str, str] = field(default_factory=dict, repr=False)
    """The columns of train's file by role; they are numbers if the file has no header."""
    answers: Answers = field(default_factory=lambda: Answers("classify"), repr=False)
    """How the label column is read, and why."""
    split_notes: tuple[str, ...] = field(default=(), repr=False)
    """How rows are split by a column, in words; then, for files that were split before, what leaks."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything a model can learn from: rows, labels, and the split of each row."""
        parts = {name: split.fingerprint for name, split in self.splits.items()}
        return cache.digest("task", self.kind, self.label_names, parts)

    def save_manifest(self, path: Path) -> None:
        save_manifest(self.splits.values(), path, self.seed)


def load_task(
    name_or_path: str,
    *,
    data_dir: Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    split: str = "hash",
    seed: int = 0,
    kind: Kind | None = None,
    strict: bool = False,
) -> Task:
    """Load a task by name (`boolq`, `sst2`, `yelp`, `birthplaces`, `world/...`), folder or file.

    Unless there is a file per split, rows are split by a hash of their content and `seed`; `split="first"`
    splits them by their order, `split="none"` leaves all rows in train. Rows with the same value in the
    column `group`, such as an author, stay together: the hash is that of the value. With the column
    `time` the latest rows are test, those before dev, and the earliest train. Columns are found by name or
    content unless they are named; those of a file without a header are called 1, 2, 3, ... The `kind` of the
    answers is found from the data unless it is named: "classify" (one label per text), "labels" (any number
    of labels), "number", "ordered" (classes with an order), or "text2text" (free answers). Bad rows (an
    empty cell, a broken line) are skipped with a notice; `strict` refuses them.
    """
    mode, by = parse_split_mode(split), find_split_column(group, time)
    if by is not None and mode == "first":
        raise UserError(f"--split first and --{by.kind} exclude each other; leave one away")
    path, rules = find_task(name_or_path, data_dir)
    rules = replace(rules, kind=kind or rules.kind)
    usual = rules.columns
    stated = (text_column or usual.text, pair_column or usual.pair, label_column or usual.label)
    wanted = ColumnChoice(*stated, by)
    files = list_split_files(path, rules.more_splits)
    if rules.train_of:
        files.pop("test", None)  # published without labels; a part of train's file is test
    rows, sheets, answers = read_files(files, wanted, rules, strict)
    parts = partition(files, rows, rules, mode, seed)
    task_name = name_or_path if name_or_path in TASKS else path.stem
    task = Task(
        name=task_name,
        kind=answers.kind,
        label_names=list(answers.names),
        splits={
            name: make_split(name, rows[source], index, answers, how)
            for name, (source, index, how) in parts.items()
        },
        folder=path,
        seed=seed,
        corpus=path / rules.corpus if rules.corpus and (path / rules.corpus).is_file() else None,
        rules=rules,
        columns=named_columns(*sheets["train"]),
        answers=answers,
    )
    if answers.reason and answers.kind in ("labels", "number"):
        what = "any number of labels per text" if answers.kind == "labels" else "a number per text"
        notify(f"{path}: {what} (--kind {answers.kind}), because {answers.reason}")
    leaks = tuple(find_leaks(task.splits))
    for sentence in leaks:
        notify(f"{path}: {sentence}", warning=True)
    task = replace(task, split_notes=(*describe_split_column(task.splits), *leaks))
    report_missing_labels(task)
    report_doubtful_names(task)
    if any(part.index is not None for part in task.splits.values()):
        manifest = cache.get_cache_folder() / "manifests" / f"{task.fingerprint}.tsv"
        if not manifest.exists():
            task.save_manifest(manifest)
    return task


def report_missing_labels(task: Task) -> None:
    """Mention labels that a split has no row of: they are not learned, or not measured."""
    for name, split in task.splits.items():
        if split.targets is None or not task.label_names:
            continue
        if task.kind == "labels":
            counts = split.targets.sum(0, dtype=np.int64)
        else:
            counts = np.bincount(split.targets, minlength=len(task.label_names))
        missing = [label for label, count in zip(task.label_names, counts, strict=True) if not count]
        if missing:
            listed = ", ".join(f'"{shorten(label, 30)}"' for label in missing[:5])
            listed += f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
            cut = ", try another --split-seed" if split.index is not None else ""
            remedy = f"add rows{cut}, or merge rare labels"
            notify(f"{task.folder}: {name} has no row with the label {listed}; {remedy}", warning=True)


def report_doubtful_names(task: Task) -> None:
    """Mention labels that are probably the same, and those that are probably no label."""
    alike: dict[str, list[str]] = {}
    for name in task.label_names:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    for names in [names for names in alike.values() if len(names) > 1][:3]:
        listed = ", ".join(f'"{shorten(name, 30)}"' for name in names)
        notify(f"{task.folder}: {listed} differ in case or spaces alone; are they one label?", warning=True)
    if missing := [name for name in task.label_names if name.upper() in MISSING]:
        listed = ", ".join(f'"{name}"' for name in missing)
        what = f"the label {listed} is" if len(missing) == 1 else f"the labels {listed} are"
        notify(
            f"{task.folder}: {what} learned like any other; empty the cells if a label is missing there",
            warning=True,
        )


def parse_split_mode(split: str) -> Mode:
    if split not in get_args(Mode):
        raise unknown("way to split", split, get_args(Mode))
    return cast(Mode, split)


def find_task(name: str, data_dir: Path | None = None) -> tuple[Path, TaskRules]:
    """Return the file or folder of a task, and its rules if it is named or belongs to a generated world.

    A name that is neither is that of a data set on the Hub, which is downloaded. The folder of a run that has
    the name of its task, as of `--out imdb`, is not the task.
    """
    rules = TASKS.get(name)
    if rules:
        return find_named_folder(name, data_dir), rules
    parent = os.environ.get("HEEDFUL_DATA")
    candidates = [expand_path(name)]
    candidates += [expand_path(above) / name for above in (data_dir, parent) if above]
    existing = [path for path in candidates if path.exists()]
    for path in existing if looks_like_path(name) else (path for path in existing if not is_output(path)):
        return path, find_rules(path)
    if looks_like_path(name):
        raise missing_path_error(name)
    names = [*TASKS, *(path.name for path in list_folders(parent))]
    source = parse_hub_id(name)
    near = difflib.get_close_matches(name, names, n=1, cutoff=NEAR)
    if source is None or near or name.startswith(WORLD_PREFIX):
        raise unknown("task", name, names)
    absent = f'"{shorten(name)}" is no file, folder or named task here ({", ".join(TASKS)})'
    return download_from_hub(source, absent), TaskRules()


def list_folders(parent: str | None) -> list[Path]:
    """Return the folders in `$HEEDFUL_DATA`, whose names are names of tasks."""
    folder = expand_path(parent) if parent else None
    return [path for path in folder.iterdir() if path.is_dir()] if folder and folder.is_dir() else []


def looks_like_path(name: str) -> bool:
    """Return whether a name that does not exist was meant as a path, not as a task or a Hub data set."""
    first, slash, rest = name.partition("/")
    return (
        name.startswith((".", "/", "~"))
        or name.endswith("/")
        or "\\" in name
        or "/" in rest
        or split_name(Path(name))[1] in FORMATS
        or bool(slash and first and Path(first).is_dir())
    )


def missing_path_error(name: str) -> UserError:
    """Return the error for a path that does not exist, with the nearest file or the missing folder."""
    path = expand_path(name)
    text = f"{shorten(name, 200)}: no such file or folder"
    if path.is_relative_to(cache.get_cache_folder() / MEMORY):
        return UserError(f"{text}; it was made from data in Python: give that again")
    if not path.parent.is_dir():
        return UserError(f"{text}; there is no folder {path.parent}")
    near = difflib.get_close_matches(
        path.name, [other.name for other in path.parent.iterdir()], n=1, cutoff=0.6
    )
    return UserError(f'{text}; did you mean "{path.parent / near[0]}"?' if near else text)


def list_split_files(path: Path, more: Iterable[str] = ()) -> dict[str, Path]:
    """Return the file of each split, of which one is train; a folder of class folders counts as a file."""
    if path.is_file():
        return {"train": path}
    by_class = find_class_folders(path)
    files = {} if by_class and not has_data_files(path) else split_files(path, more)
    if "train" not in files and by_class:
        return by_class
    if "train" not in files:
        names = ", ".join(shorten(file.name, 30) for file in data_files(path)[:8])
        raise UserError(
            f"{path}: no train file (train.csv, .tsv, .jsonl, .parquet or .txt); there are {names}"
        )
    return files


def has_data_files(folder: Path) -> bool:
    return any(is_data_file(path) for path in folder.iterdir())


def data_files(folder: Path) -> list[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if is_data_file(path))
    except OSError as error:
        raise UserError(f"{folder}: {cache.describe_os_error(error)}") from None
    if not files:
        raise UserError(f"{folder}: no data files; {KINDS}, or a folder of .txt files per class")
    return files


def split_files(folder: Path, more: Iterable[str] = ()) -> dict[str, Path]:
    """Return the file of each split: `train.csv`, or one with the word in its name, as `ptb.train.txt`."""
    files = data_files(folder)
    split_file = {}
    for split, names in (SPLIT_NAMES | {name: (name,) for name in more}).items():
        exact = [path for path in files if split_name(path)[0].lower() in names]
        inside = [
            path for path in files if set(names) & set(re.split(r"[._ -]", split_name(path)[0].lower()))
        ]
        candidates = exact or inside
        if len(candidates) > 1:
            listed = ", ".join(path.name for path in candidates)
            raise UserError(f"{folder}: several files for {split} ({listed}); keep one")
        if candidates:
            split_file[split] = candidates[0]
    return split_file


def read_files(
    files: dict[str, Path], wanted: ColumnChoice, rules: TaskRules, strict: bool
) -> tuple[dict[str, ExampleStore], dict[str, tuple[Sheet, Layout]], Answers]:
    """Read the file of each split; the others must have train's columns and labels."""
    sheet = open_sheet(files["train"], wanted.names())
    leader = find_layout(sheet, wanted, kind=rules.kind)
    train, answers = read_train(sheet, leader, rules, strict)
    rows, sheets = {"train": train}, {"train": (sheet, leader)}
    for name, path in files.items():
        if name == "train":
            continue
        sheet = open_sheet(path, leader.columns())
        layout = follow_layout(sheet, leader, name)
        rows[name] = load_examples(sheet, layout, answers.kind, rules.change, strict=strict)
        sheets[name] = sheet, layout
        answers.refuse_unknown(sheet, rows[name].labels, files["train"])
    return {name: rows[name] for name in files}, {name: sheets[name] for name in files}, answers


def read_train(sheet: Sheet, layout: Layout, rules: TaskRules, strict: bool) -> tuple[ExampleStore, Answers]:
    """Read train's file, and find the kind of its answers where it is not known."""
    kind = rules.kind or guess_kind(sheet, layout)
    rows = load_examples(sheet, layout, kind, rules.change, strict=strict)
    answers = Answers(rules.kind) if rules.kind else find_kind(sheet, layout, rows.labels)
    if answers.kind == "labels" and kind != "labels":  # a row without a label is not a bad one
        rows = load_examples(sheet, layout, "labels", rules.change, strict=strict)
    return rows, name_answers(answers, sheet, layout, rows.labels)


def named_columns(sheet: Sheet, layout: Layout) -> dict[str, str]:
    roles = {"text": layout.text, "pair": layout.pair, "label": layout.label}
    roles |= {} if layout.by is None else {layout.by.kind: layout.by.name}
    header = "by name" if sheet.header else "by number: the file has no header"
    return {role: name for role, name in roles.items() if name is not None} | {"selection": header}


Parts = dict[str, tuple[str, Index | None, str]]


def partition(
    files: dict[str, Path], rows: dict[str, ExampleStore], rules: TaskRules, mode: Mode, seed: int
) -> Parts:
    """Return which rows of which file each split has, and a description of that."""
    train = rows["train"]
    hashed = f"by {train.by.name}" if train.by else "by content hash"
    seeded = "" if is_timed(train) else f", seed {seed}"
    how = f"{hashed}{seeded}" if mode == "hash" else "by order"
    whole: Parts = {name: (name, None, files[name].name) for name in rows}
    if mode == "none":
        return whole
    if rules.train_of:
        count = min(rules.train_of[0], round(len(train) * rules.train_of[0] / rules.train_of[1]))
        chosen, others = splits.choose_smallest(train, count, seed, mode)
        cut = {"train": chosen, "test": others}
        portion = f"of the {len(train):,}"
    elif len(rows) == 1:
        cut = splits.split_train_dev_test(train, seed, mode)
        portion = "80/10/10"
    elif "dev" not in rows:
        cut = splits.split_off_dev(train, seed, mode)
        portion = "90/10"
    else:
        return whole
    splits.refuse_empty(str(files["train"]), cut, train)
    description = f"{portion} of {files['train'].name}, {how}"
    parts = whole | {name: ("train", index, description) for name, index in cut.items()}
    return {name: parts[name] for name in dict.fromkeys([*SPLIT_NAMES, *parts]) if name in parts}


def add_split(
    task: Task, source: str, *, name: str = "data", columns: ColumnChoice | None = None, strict: bool = False
) -> Task:
    """Return the task with one more split: the rows of another file, or of the test split of other data.

    Its columns are those of the task where it has them, and are found otherwise.
    """
    path, rules = find_task(source)
    files = list_split_files(path, rules.more_splits)
    file = files.get("test", files["train"])
    roles = ("text", "pair", "label")
    stated = [getattr(columns, role) if columns else None for role in roles]
    sheet = open_sheet(file, [name for name in (*stated, *map(task.columns.get, roles)) if name])
    usual = [
        task.columns[role] if role in task.columns and has_columns(sheet, task.columns[role]) else None
        for role in roles
    ]
    text, pair, label = (one or other for one, other in zip(stated, usual, strict=True))
    layout = find_layout(sheet, ColumnChoice(text, pair, label), kind=task.kind)
    has_pairs = task.splits["train"].pairs is not None
    if has_pairs != (layout.pair is not None):
        remedy = "pairs of texts; --pair-column names the second text"
        raise UserError(f"{file}: {task.name} has {remedy if has_pairs else 'single texts, not pairs'}")
    rows = load_examples(sheet, layout, task.kind, task.rules.change, strict=strict)
    task.answers.refuse_unknown(sheet, rows.labels, task.folder)
    split = make_split(name, rows, None, task.answers, file.name)
    return replace(task, splits={**task.splits, name: split})


def make_split(name: str, rows: ExampleStore, index: Index | None, answers: Answers, how: str) -> Split:
    targets = answers.decode(rows)
    if targets is not None and index is not None:
        targets = targets[index]
    return Split(name, rows, index, targets, how)
