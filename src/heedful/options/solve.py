"""The options of `heedful solve`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from heedful.options.launch import WORKERS, Workers
from heedful.options.types import Argument, Bounds, Flag, LongTexts, Seed, Several, Threads

Prefer = Literal["accuracy", "speed", "small"]


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """The options of `heedful solve`."""

    task: Argument = ""
    """A file, a folder of splits or classes, a named task, or a Hub data set."""
    minutes: Annotated[float, Bounds(least=0.5, cap=100_000)] = 10.0
    """Time for everything, from the first measurement to the report."""
    metric: str | None = None
    """Metric to select by (heedful list metrics). By default that of the task: accuracy."""
    prefer: Prefer | None = None
    """What decides among the candidates: accuracy takes the best score; speed and small take the fastest or
    the smallest model that is not shown to be worse by more than 0.02. By default the fastest model that is
    not shown to be worse at all, and at most one standard error and 0.02 below the best."""
    model: str = "minilm"
    """The pretrained encoder: a folder in Hub form, minilm, or a Hub id."""
    candidates: Several = ()
    """Try only these candidates. By default all that suit the data and fit in the time."""
    out: Path | None = None
    """Folder of the result. By default runs/solve-NAME. The same command continues there."""
    overwrite: Flag = False
    """Replace the result in --out."""
    seed: Seed = 0
    """Seed of everything random except the split."""
    threads: Threads | None = None
    """CPU threads. By default the available cores."""
    data_dir: Path | None = None
    """Folder with the files of a named task. By default $HEEDFUL_DATA/NAME."""
    split: Literal["hash", "first"] = "hash"
    """How to split rows if the files are not split: by a hash of their content, or in order."""
    split_seed: Seed = 0
    """Seed of the split."""
    text_column: str | None = None
    """Name of the column with the text."""
    pair_column: str | None = None
    """Name of the column with the second text of a pair."""
    label_column: str | None = None
    """Name of the column with the label; several columns of 0 and 1 have commas between their names."""
    kind: str | None = None
    """Kind of problem: label (one per text), labels (any number of them), number, or ordered (classes with an
    order, such as stars). By default it is found from the data; only ordered must be named."""
    group: str | None = None
    """Name of a column, such as the author: rows with the same value are on the same side of the split and in
    the same fold. Files that are split already stay as they are, with a warning if they share groups."""
    time: str | None = None
    """Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest train;
    folds train on earlier rows than they hold out. Rows of the same time stay together."""
    launch: Workers = WORKERS
    strict: Flag = False
    """Refuse files with bad rows, such as one with an empty text, instead of skipping them."""
    long_texts: LongTexts = "cut"
    """What the encoder reads of texts that are too long for it: their beginning (cut), or a quarter from the
    beginning and the rest from the end (head-tail). The answer says whether that would help."""
    unlabeled: Path | None = None
    """A file of texts without labels: the answer lists those that are the most useful to label next. Rows of
    the task's own file that have no label are listed in any case."""
