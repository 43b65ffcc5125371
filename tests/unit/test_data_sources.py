"""Data from Python: whatever holds it, the same rows are read as from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from heedful.data import Task, load_task, materialize
from heedful.errors import UserError

TEXTS = [f"the meal number {n} was late" for n in range(60)]
PAIRS = [f"was meal {n} late" for n in range(60)]
LABELS = ["ham" if n % 3 else "spam" for n in range(60)]
COLUMNS = {"text": TEXTS, "label": LABELS}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(task: Task) -> set[tuple[str, str | None, str]]:
    return {
        (example.text, example.pair, task.label_names[example.label or 0])
        for split in task.splits.values()
        for example in split
    }


def pandas_frame() -> Any:
    frame = pytest.importorskip("pandas").DataFrame({"id": range(60), **COLUMNS})
    return frame[frame["id"] >= 0].set_index("id").iloc[::-1]  # an index of its own, in another order


def pandas_categories() -> Any:
    frame = pytest.importorskip("pandas").DataFrame(COLUMNS)
    return frame.astype({"label": "category"})


def pandas_series() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.Series(TEXTS, index=range(100, 160)), pandas.Series(LABELS)


def polars_frame() -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(COLUMNS).with_columns(polars.col("label").cast(polars.Categorical))


def polars_series() -> Any:
    polars = pytest.importorskip("polars")
    return polars.Series(TEXTS), polars.Series(LABELS)


def hub_dataset() -> Any:
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=["spam", "ham"])
    numbers = [label.str2int(name) for name in LABELS]
    features = datasets.Features({"text": datasets.Value("string"), "label": label})
    data = datasets.Dataset.from_dict({"text": TEXTS, "label": numbers}, features=features)
    return data.select(range(59, -1, -1))  # rows in another order than they are stored


HOLDERS: dict[str, Callable[[], Any]] = {
    "texts and labels": lambda: (TEXTS, LABELS),
    "arrays": lambda: (np.array(TEXTS), np.array(LABELS)),
    "arrays of objects": lambda: (np.array(TEXTS, object), np.array(LABELS, object)),
    "columns": lambda: COLUMNS,
    "rows as dicts": lambda: [
        {"label": label, "text": text} for text, label in zip(TEXTS, LABELS, strict=True)
    ],
    "rows as tuples": lambda: list(zip(TEXTS, LABELS, strict=True)),
    "a generator": lambda: zip(TEXTS, LABELS, strict=True),
    "an Arrow table": lambda: pa.table(COLUMNS),
    "an Arrow table with a dictionary": lambda: pa.table(
        {"text": pa.chunked_array([TEXTS[:9], TEXTS[9:]]), "label": pa.array(LABELS).dictionary_encode()}
    ),
    "a pandas frame": pandas_frame,
    "a pandas frame with categories": pandas_categories,
    "pandas series": pandas_series,
    "a polars frame": polars_frame,
    "polars series": polars_series,
    "a Hub data set": hub_dataset,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_rows_they_are_the_same(holder: str) -> None:
    task = load_task(materialize(HOLDERS[holder]()))
    assert rows(task) == {(text, None, label) for text, label in zip(TEXTS, LABELS, strict=True)}
    assert task.label_names == ["ham", "spam"]
    assert list(task.splits) == ["train", "dev", "test"]


def test_paths_and_names_pass_unchanged(tmp_path: Path) -> None:
    assert materialize("world/sentiment") == "world/sentiment"
    assert materialize(tmp_path / "a.csv") == str(tmp_path / "a.csv")


def test_pairs_and_splits_are_kept(tmp_path: Path) -> None:
    pairs = list(zip(TEXTS, PAIRS, strict=True))
    task = load_task(materialize(pairs, LABELS))
    assert rows(task) == set(zip(TEXTS, PAIRS, LABELS, strict=True))
    path = materialize(
        {"train": (TEXTS, LABELS), "validation": COLUMNS, "extra": COLUMNS}, folder=tmp_path / "own"
    )
    assert Path(path).is_relative_to(tmp_path / "own")
    task = load_task(path)
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 60, "dev": 60}


def test_the_same_content_is_one_path_and_other_content_another() -> None:
    path = materialize((TEXTS, LABELS))
    assert materialize(pa.table(COLUMNS)) == path
    assert materialize((TEXTS, LABELS[::-1])) != path


@pytest.mark.parametrize(
    ("data", "labels", "what"),
    [
        (TEXTS, LABELS[:-1], "60 texts and 59 labels"),
        (COLUMNS, LABELS, 'a column "label" already'),
        ("sst2", LABELS, "has its labels in its files"),
        ({"train": TEXTS}, LABELS, "give each split its own"),
        ([], None, "the data has no rows"),
        (7, None, "data of type int is not understood"),
        ({"dev": COLUMNS, "test": COLUMNS}, None, 'the splits "dev", "test" have no train'),
        (TEXTS, pa.table({"a": LABELS, "b": LABELS}).to_pandas(), "labels= has 2 columns"),
        ([3, 4], None, "texts are strings; 3 is int"),
        ({"text": TEXTS, "label": ["a"]}, None, "the columns have different lengths"),
        ({"text": "one", "label": ["a"]}, None, "is not a list of values"),
    ],
)
def test_mistakes_are_one_line(data: Any, labels: Any, what: str) -> None:
    with pytest.raises(UserError, match=what):
        materialize(data, labels)


def test_data_that_left_the_cache_says_so(own_cache: Path) -> None:
    path = Path(materialize((TEXTS, LABELS)))
    path.unlink()
    with pytest.raises(UserError, match="it was made from data in Python: give that again"):
        load_task(str(path))


def test_a_row_without_a_label_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    load_task(materialize(TEXTS, [None, *LABELS[1:]]))
    (record,) = [record for record in caplog.records if "skipped 1 of 60 rows" in record.getMessage()]
    assert record.levelname == "WARNING"
