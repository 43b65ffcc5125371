"""`heedful.data.show`: describe the data of a task before anything is trained on it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful.api.training import store_data
from heedful.display import render_table, render_title
from heedful.errors import UserError
from heedful.options.training import MAX_LEN
from heedful.report.charts import Chart, histogram

if TYPE_CHECKING:
    from heedful.text import Tokenizer

DRAWN_LENGTHS = 100_000


@dataclass(frozen=True)
class DataSummary:
    """What a task's data is like; `facts` are all numbers, as `heedful data show --json` prints them."""

    facts: dict[str, Any]
    lengths: dict[str, Any]
    """The number of tokens of each row, by split."""

    @property
    def task(self) -> str:
        return str(self.facts["task"])

    @property
    def labels(self) -> list[str]:
        return list(self.facts["labels"])

    @property
    def splits(self) -> dict[str, dict[str, Any]]:
        """Rows, lengths, label counts and duplicates of each split."""
        return dict(self.facts["splits"])

    @property
    def baselines(self) -> dict[str, dict[str, float]]:
        """The scores of chance, the most frequent label and a bag of words, by split."""
        return dict(self.facts["baselines"])

    @property
    def examples(self) -> dict[str, list[str]]:
        return dict(self.facts["examples"])

    def figure(self) -> Chart:
        """Return a histogram of the lengths; of many rows, an evenly spaced part of the sorted lengths."""
        steps = {name: -(-len(values) // DRAWN_LENGTHS) for name, values in self.lengths.items()}
        drawn = {name: np.sort(values)[:: steps[name]].tolist() for name, values in self.lengths.items()}
        return histogram(
            drawn,
            title=f"{self.task}: length in tokens",
            subtitle=f"counted with {self.facts['tokenizer']}",
            x_title="tokens",
            share=True,
            rules={f"max_len {self.facts['max_len']}": self.facts["max_len"]},
        )

    def _repr_html_(self) -> str:
        columns = (
            "split",
            "rows",
            "tokens",
            "p50",
            "p95",
            "max",
            f"over {self.facts['max_len']}",
            "duplicates",
        )
        sizes = [
            (
                *(name, p["rows"], p["tokens"], *(p["lengths"][key] for key in ("p50", "p95", "max"))),
                *(f"{p['truncated']:.1%}", p["duplicates"]),
            )
            for name, p in self.splits.items()
        ]
        parts = [render_title(self.task), render_table(columns, sizes, "sizes")]
        counted = {name: p["label_counts"] for name, p in self.splits.items() if "label_counts" in p}
        if counted:
            rows = [(label, *(counts[label] for counts in counted.values())) for label in self.labels]
            parts.append(render_table(("label", *counted), rows, "labels"))
        if self.baselines:
            kinds = list(next(iter(self.baselines.values())))
            scores = [(k.replace("_", " "), *(s[k] for s in self.baselines.values())) for k in kinds]
            parts.append(render_table(("baseline", *self.baselines), scores, "baselines"))
        texts = [(label, text) for label, several in self.examples.items() for text in several]
        return "".join([*parts, render_table(("label", "text"), texts[:12], "examples from train")])


def show(
    task: Any,
    labels: Any = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    time: str | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    seed: int = 0,
    strict: bool = False,
    tokenizer: str | os.PathLike[str] | None = None,
    max_len: int = MAX_LEN,
    batches: bool = False,
    batch_size: int = 32,
) -> DataSummary:
    """Describe a task: rows, labels, lengths, baselines, duplicates and examples.

    Parameters
    ----------
    task
        A named task, a folder or a file; or data in memory: texts with `labels`, a DataFrame, a dict of
        splits.
    labels
        The labels of texts in memory.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/TASK, or the Hub.
    text_column
        Column with the text: its name, or its number in a file without a header.
    pair_column
        Column with the second text of a pair.
    label_column
        Column with the label, or several columns of 0 and 1 with commas between their names.
    kind
        Kind of the answers: label, labels, number, ordered or text. By default found from the data.
    group
        Column whose values, such as authors, are each on one side of the split.
    time
        Column with dates or numbers: the latest rows are test, those before dev.
    split
        How to split rows where the files do not: by a hash of their content, in their order, or not at all.
    seed
        Seed of the content hash.
    strict
        Refuse files with bad rows instead of skipping them.
    tokenizer
        Tokenizer or model to count tokens with. By default minilm if it is installed, or words.
    max_len
        Number of tokens above which a text would be truncated.
    batches
        Also find how much padding each way of making batches needs.
    batch_size
        Number of examples per batch.

    Examples
    --------
    >>> heedful.data.show("world/reviews").baselines

    """
    from heedful.data import load_task, stats
    from heedful.evaluation.baselines import score_task_baselines
    from heedful.problems import find_problem

    loaded = load_task(
        store_data(task, labels),
        data_dir=None if data_dir is None else Path(data_dir),
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        kind=None if kind is None else find_problem(kind).load_as,
        group=group,
        time=time,
        split=split,
        seed=seed,
        strict=strict,
    )
    counter, counted_in = choose_tokenizer(tokenizer)
    counted = {name: stats.count_tokens(part, counter) for name, part in loaded.splits.items()}
    facts: dict[str, Any] = {"tokenizer": counted_in}
    facts |= stats.describe_task(loaded, counted, max_len, batch_size if batches else None)
    facts["baselines"] = score_task_baselines(loaded)
    return DataSummary(facts, {name: counts.lengths for name, counts in counted.items()})


def choose_tokenizer(name: str | os.PathLike[str] | None) -> tuple[Tokenizer | None, str]:
    """Load the tokenizer to count with, and say which it is."""
    from heedful.text import load

    if name is not None:
        return load(os.fspath(name)), os.fspath(name)
    try:
        return load("minilm"), "minilm"
    except UserError:
        return None, "words between white space (minilm is not installed)"
