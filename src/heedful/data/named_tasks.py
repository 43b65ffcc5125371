"""The named tasks: their columns, their own rules, and where their files come from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from heedful.data import cache
from heedful.data.columns import ColumnChoice
from heedful.errors import UserError, shorten

Kind = Literal["classify", "text2text"]


def unescape_newlines(text: str) -> str:
    r"""Turn the two characters `\n`, which Yelp's files have for a line break, into a line break."""
    return text.replace("\\n", "\n")


@dataclass(frozen=True)
class HubSource:
    """A data set of the Hub: its id, the columns kept under our names, its first label's number."""

    id: str
    columns: dict[str, str]
    first_label: int = 0


@dataclass(frozen=True)
class TaskRules:
    """What is known of a task before its files are read."""

    kind: Kind = "classify"
    columns: ColumnChoice = field(default_factory=ColumnChoice)
    change: Callable[[str], str] | None = None
    corpus: str | None = None
    """The file that is the task's corpus, instead of the texts of train."""
    more_splits: tuple[str, ...] = ()
    """Splits besides train, dev and test."""
    train_of: tuple[int, int] | None = None
    """So many rows of so many of train's file are train; the others are test."""
    hub: HubSource | None = None


NAMED = {
    "boolq": TaskRules(
        columns=ColumnChoice("question", "passage"),
        train_of=(8000, 9427),
        hub=HubSource("google/boolq", {"question": "question", "passage": "passage", "answer": "label"}),
    ),
    "sst2": TaskRules(hub=HubSource("stanfordnlp/sst2", {"sentence": "text", "label": "label"})),
    "yelp": TaskRules(
        change=unescape_newlines,
        hub=HubSource("Yelp/yelp_review_full", {"text": "text", "label": "label"}, first_label=1),
    ),
    "birthplaces": TaskRules(
        kind="text2text", columns=ColumnChoice("1", None, "2"), corpus="wiki.txt", more_splits=("unseen",)
    ),
}
WORLD = {
    "world/birthplaces": NAMED["birthplaces"],
    "world/boolq": NAMED["boolq"],
    "world/reviews": NAMED["yelp"],
    "world/sentiment": NAMED["sst2"],
}


def find_named_folder(name: str, data_dir: Path | None) -> Path:
    """Find a named task's files: `data_dir`, `$HEEDFUL_DATA/<name>`, the Hub; a world's are made here."""
    if data_dir is not None:
        if not data_dir.is_dir():
            raise UserError(f"--data-dir {data_dir}: no such folder")
        return data_dir
    if name in WORLD:
        from heedful.data.world import make_task_folder

        return make_task_folder(name)
    parent = os.environ.get("HEEDFUL_DATA")
    if parent and (Path(parent).expanduser() / name).is_dir():
        return Path(parent).expanduser() / name
    source = NAMED[name].hub
    if source is None:
        raise UserError(
            f'task "{name}" is not here and not on the Hub; {explain_placement(name)}, or use world/{name}'
        )
    return download_from_hub(name, source)


def find_rules(place: Path) -> TaskRules:
    """Give a task's rules by its place: a task of a made world has those of its name."""
    from heedful.data.world import FACTS

    folder = place.resolve()
    for home in (folder, folder.parent):
        try:
            tasks = json.loads((home / FACTS).read_text("utf-8"))["tasks"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(tasks, dict) and folder.is_dir() and folder.name in tasks:
            return WORLD.get(f"world/{folder.name}", TaskRules())
    return TaskRules()


def explain_placement(name: str) -> str:
    """Say how to give a task's files."""
    return f"give its folder with --data-dir, or put it at $HEEDFUL_DATA/{name}"


def download_from_hub(name: str, source: HubSource) -> Path:
    """Fetch a data set from the Hub once, and keep it as Parquet files in the cache."""

    def build(folder: Path) -> None:
        for split, rows in load_hub_dataset(name, source).items():
            kept = {"train": "train", "validation": "dev", "test": "test"}.get(split)
            if kept is None:
                continue
            rows = rows.select_columns(list(source.columns)).rename_columns(source.columns)
            labels = set(rows.unique("label"))
            if labels == {-1}:
                rows = rows.remove_columns("label")
            elif source.first_label:
                table = rows.with_format("arrow")[:]
                numbers = [label + source.first_label for label in rows["label"]]
                rows = type(rows)(table.set_column(table.column_names.index("label"), "label", [numbers]))
            rows.to_parquet(str(folder / f"{kept}.parquet"))

    return cache.build_once(
        "hub", cache.digest("hub", 1, source.id, source.columns, source.first_label), build
    )


def load_hub_dataset(name: str, source: HubSource) -> Any:
    """Load a data set through `datasets`, or say in one line why that failed."""
    try:
        import datasets
        from huggingface_hub import HfApi
        from huggingface_hub.constants import HF_HUB_OFFLINE
    except ImportError:
        raise UserError(
            f"task \"{name}\" is not here; {explain_placement(name)}, or pip install 'heedful[hub]'"
        ) from None
    try:
        if (
            not HF_HUB_OFFLINE
        ):  # then datasets looks in its own cache; otherwise it would retry for half a minute
            HfApi().dataset_info(source.id, timeout=10)
        return datasets.load_dataset(source.id)
    except Exception as error:  # each version of the Hub's libraries has errors of its own
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise UserError(
            f'task "{name}" is not here and {source.id} cannot be fetched from the Hub '
            f"({shorten(reason[0], 80)}); {explain_placement(name)}"
        ) from None
