"""The columns that a run was trained on, which are looked for in files and tables to label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.data.columns import ColumnChoice, find_layout, find_split_column, open_sheet
from heedful.data.named_tasks import TASKS, find_rules
from heedful.errors import UserError


def wanted_columns(config: Mapping[str, Any]) -> tuple[ColumnChoice, Path | None]:
    """Return the columns that a run's options and its task name, and the task's files if it has some."""
    if not config["task"]:  # a classifier that no run of heedful made
        return ColumnChoice(), None
    named = TASKS.get(config["task"])
    rules = named or find_rules(Path(config["task"]))
    stated = (config.get(f"{role}_column") for role in ("text", "pair", "label"))
    defaults = (rules.columns.text, rules.columns.pair, rules.columns.label)
    text, pair, label = (one or default for one, default in zip(stated, defaults, strict=True))
    wanted = ColumnChoice(text, pair, label, find_split_column(config.get("group"), config.get("time")))
    return wanted, None if named else Path(config["task"])


def trained_columns(path: Path | None, wanted: ColumnChoice) -> ColumnChoice:
    """Return the columns of the task's files, where these still exist."""
    if path is None:
        return wanted
    from heedful.data.tasks import list_split_files

    try:
        sheet = open_sheet(list_split_files(path)["train"], wanted.names())
        layout = find_layout(sheet, wanted)
    except (UserError, OSError):
        return wanted
    return ColumnChoice(layout.text, layout.pair, layout.label) if sheet.header else wanted
