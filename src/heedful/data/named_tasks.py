"""Named tasks: the rules of each task, and where its files come from.

Another package adds a task through an entry point of the group `heedful.tasks` that names a `TaskRules`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from heedful.data import cache
from heedful.data.columns import ColumnChoice
from heedful.data.hub_datasets import HubSource, download_from_hub
from heedful.data.names import WORLD_FACTS
from heedful.errors import UserError
from heedful.paths import expand_path
from heedful.plugins import Registry
from heedful.runs.json_files import read_json_if_intact

Kind = Literal["classify", "labels", "number", "ordered", "text2text"]


def unescape_newlines(text: str) -> str:
    r"""Replace the two characters `\n`, which Yelp's files have for a line break, by a line break."""
    return text.replace("\\n", "\n")


@dataclass(frozen=True)
class TaskRules:
    kind: Kind | None = None
    """None if it is to be found from the data."""
    columns: ColumnChoice = field(default_factory=ColumnChoice)
    change: Callable[[str], str] | None = None
    """Applied to every text."""
    corpus: str | None = None
    """Name of the file that is the task's corpus; by default the corpus is the texts of train."""
    more_splits: tuple[str, ...] = ()
    """Splits besides train, dev and test."""
    train_of: tuple[int, int] | None = None
    """How many rows of how many in train's file are train; the others are test."""
    hub: HubSource | None = None
    """The dataset to download when the files are not on this machine."""
    files: Path | Callable[[Path], object] | None = None
    """The folder of the task's files, or a function that writes them into an empty folder."""


BOOLQ = TaskRules(
    columns=ColumnChoice("question", "passage"),
    train_of=(8000, 9427),
    hub=HubSource("google/boolq", {"question": "question", "passage": "passage", "answer": "label"}),
)
SST2 = TaskRules(hub=HubSource("stanfordnlp/sst2", {"sentence": "text", "label": "label"}))
YELP = TaskRules(
    change=unescape_newlines,
    hub=HubSource("Yelp/yelp_review_full", {"text": "text", "label": "label"}, first_label=1),
)
BIRTHPLACES = TaskRules(
    kind="text2text", columns=ColumnChoice("1", None, "2"), corpus="wiki.txt", more_splits=("unseen",)
)
MESSAGES = TaskRules(columns=ColumnChoice("text", None, "label"))
WORLD_PREFIX = "world/"
TASKS: Registry[TaskRules] = Registry(
    "task",
    {
        name: f"{__name__}:{rules}"
        for name, rules in {
            "boolq": "BOOLQ",
            "sst2": "SST2",
            "yelp": "YELP",
            "birthplaces": "BIRTHPLACES",
            "world/birthplaces": "BIRTHPLACES",
            "world/boolq": "BOOLQ",
            "world/messages": "MESSAGES",
            "world/reviews": "YELP",
            "world/sentiment": "SST2",
        }.items()
    },
)


def find_named_folder(name: str, data_dir: Path | None) -> Path:
    """Return the folder of a named task's files, which may be written or downloaded first.

    The folder is `data_dir`, `$HEEDFUL_DATA/<name>`, or that of the task's own `files` or Hub dataset.
    """
    if data_dir is not None:
        if not data_dir.is_dir():
            raise UserError(f"--data-dir {data_dir}: no such folder")
        return data_dir
    if name.startswith(WORLD_PREFIX):
        from heedful.data.world import make_task_folder

        return make_task_folder(name)
    parent = os.environ.get("HEEDFUL_DATA")
    if parent and (expand_path(parent) / name).is_dir():
        return expand_path(parent) / name
    rules = TASKS[name]
    if rules.files is not None:
        return make_files(name, rules.files)
    if rules.hub is not None:
        return download_from_hub(rules.hub, f'task "{name}" is not here', f"; {explain_placement(name)}")
    world = f", or use {WORLD_PREFIX}{name}" if WORLD_PREFIX + name in TASKS else ""
    raise UserError(f'task "{name}" is not here and not on the Hub; {explain_placement(name)}{world}')


def make_files(name: str, files: Path | Callable[[Path], object]) -> Path:
    """Return a task's own folder; files that a function writes are kept in the cache.

    They are written again when the module of the function changes.
    """
    if isinstance(files, Path):
        return files
    key = cache.digest("task", TASKS.package(name), name, cache.hash_file(Path(inspect.getfile(files))))
    return cache.build_once("tasks", key, files)


def find_rules(path: Path) -> TaskRules:
    """Return the rules of a task given by its path: a folder of a generated world has those of its name."""
    folder = path.resolve()
    for parent in (folder, folder.parent):
        tasks = (read_json_if_intact(parent / WORLD_FACTS) or {}).get("tasks")
        if isinstance(tasks, dict) and folder.is_dir() and folder.name in tasks:
            return TASKS.get(WORLD_PREFIX + folder.name, TaskRules())
    return TaskRules()


def explain_placement(name: str) -> str:
    return f"give its folder with --data-dir, or put it at $HEEDFUL_DATA/{name}"
