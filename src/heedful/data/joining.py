"""Train and dev as one split, for a model that is fitted again when its settings are chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.data import cache
from heedful.data.labels import LabelIndex
from heedful.data.splits import Split
from heedful.data.store import COLUMNS, ExampleStore
from heedful.data.tasks import Task
from heedful.errors import UserError


def join_dev(task: Task) -> Task:
    """Return a task whose train has the rows of dev too, and which has no dev."""
    train, dev = task.splits["train"], task.splits.get("dev")
    if dev is None:
        raise UserError(f"--with-dev: {task.name} has no dev split")
    rows, first = train.rows, 0
    if dev.rows is not train.rows:
        rows, first = join_stores(train.rows, dev.rows), len(train.rows)
    index = np.concatenate([list_rows(train), list_rows(dev) + first])
    order = np.argsort(index, kind="stable")
    targets = None
    if train.targets is not None and dev.targets is not None:
        targets = np.concatenate([train.targets, dev.targets])[order]
    joined = Split("train", rows, index[order], targets, "train and dev")
    others = {name: split for name, split in task.splits.items() if name not in ("train", "dev")}
    return replace(task, splits={"train": joined, **others})


def list_rows(split: Split) -> Any:
    return np.arange(len(split.rows)) if split.index is None else split.index


def join_stores(first: ExampleStore, second: ExampleStore) -> ExampleStore:
    """Return a store with the rows of both; it is in the cache if one of them is.

    It has no labels: those of the splits are numbered by the task.
    """
    key = cache.digest("joined", first.fingerprint, second.fingerprint)
    source: Path | pa.Buffer
    if isinstance(first.source, Path) or isinstance(second.source, Path):

        def fill(folder: Path) -> None:
            with pa.OSFile(str(folder / "rows.arrow"), "wb") as file:
                write_rows(file, first, second)

        source = cache.build_once("rows", key, fill) / "rows.arrow"
    else:
        sink = pa.BufferOutputStream()
        write_rows(sink, first, second)
        source = sink.getvalue()
    return ExampleStore(source, np.empty(0, np.int32), LabelIndex(), key)


def write_rows(sink: Any, *stores: ExampleStore) -> None:
    schema = pa.schema([(name, pa.large_string()) for name in COLUMNS])
    with pa.ipc.new_file(sink, schema) as writer:
        for store in stores:
            for columns in store.scan(COLUMNS):
                arrays = [pa.array(values, pa.large_string()) for values in columns]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
