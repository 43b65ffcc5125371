"""Several labels per text, numbers and ordered classes: found in the data, read, and split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.data import load_task, materialize
from heedful.data.folds import take_fold
from heedful.data.joining import join_dev
from heedful.data.splits import sample
from heedful.data.tasks import add_split
from heedful.errors import UserError

SETS = [["joy"], ["joy", "love"], [], ["anger"], ["love", "joy"], ["anger", "love"]] * 4
NAMES = ["anger", "joy", "love"]
MATRIX = np.array([[int(name in row) for name in NAMES] for row in SETS], np.uint8)
TEXTS = [f"text number {n}" for n in range(len(SETS))]


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def as_columns(tmp_path: Path) -> str:
    rows = [f"{text},{r[0]},{r[1]},{r[2]}" for text, r in zip(TEXTS, MATRIX, strict=True)]
    return write(tmp_path / "t.csv", "text,anger,joy,love\n" + "\n".join(rows) + "\n")


def as_booleans(tmp_path: Path) -> str:
    frame = pd.DataFrame({"text": TEXTS} | {n: MATRIX[:, k] == 1 for k, n in enumerate(NAMES)})
    return materialize(frame, folder=tmp_path)


def as_cells(tmp_path: Path, separator: str = "|") -> str:
    rows = [f'{text},"{separator.join(labels)}"' for text, labels in zip(TEXTS, SETS, strict=True)]
    return write(tmp_path / "t.csv", "text,feelings\n" + "\n".join(rows) + "\n")


def as_commas(tmp_path: Path) -> str:
    return as_cells(tmp_path, ", ")


def as_semicolons(tmp_path: Path) -> str:
    return as_cells(tmp_path, ";")


def as_json_lines(tmp_path: Path) -> str:
    lines = pd.DataFrame({"text": TEXTS, "label": SETS}).to_json(orient="records", lines=True)
    return write(tmp_path / "t.jsonl", lines)


def as_printed_lists(tmp_path: Path) -> str:
    rows = [f'{text},"{labels}"' for text, labels in zip(TEXTS, SETS, strict=True)]
    return write(tmp_path / "t.csv", "text,label\n" + "\n".join(rows) + "\n")


def as_lists(tmp_path: Path) -> str:
    return materialize(TEXTS, SETS, folder=tmp_path)


def as_table_of_labels(tmp_path: Path) -> str:
    return materialize(TEXTS, pd.DataFrame(MATRIX, columns=NAMES), folder=tmp_path)


@pytest.mark.parametrize(
    "form",
    [
        as_columns,
        as_booleans,
        as_cells,
        as_commas,
        as_semicolons,
        as_json_lines,
        as_printed_lists,
        as_lists,
        as_table_of_labels,
    ],
)
def test_all_forms_of_several_labels_give_the_same_matrix(form: Any, tmp_path: Path) -> None:
    task = load_task(form(tmp_path), split="none")
    train = task.splits["train"]
    assert (task.kind, task.label_names) == ("labels", NAMES)
    assert train.labels is None
    assert train.targets is not None
    assert train.targets.dtype == np.uint8
    np.testing.assert_array_equal(train.targets, MATRIX)
    assert list(train.texts) == TEXTS  # rows without a label are not bad ones
    assert train[1].target.tolist() == [0, 1, 1]


def test_an_array_of_zeros_and_ones_has_labels_that_are_numbered(tmp_path: Path) -> None:
    task = load_task(materialize(TEXTS, MATRIX, folder=tmp_path), split="none")
    assert (task.kind, task.label_names) == ("labels", ["0", "1", "2"])
    np.testing.assert_array_equal(task.splits["train"].targets, MATRIX)


def test_named_label_columns_are_read_and_other_columns_of_zeros_and_ones_are_not(tmp_path: Path) -> None:
    path = as_columns(tmp_path)
    assert load_task(path, label_column="joy,love").label_names == ["joy", "love"]
    assert load_task(path, label_column="joy").kind == "classify"


def test_a_cell_that_is_no_zero_or_one_is_a_bad_row(tmp_path: Path, caplog: Any) -> None:
    rows = "".join(f"text {n},{n % 2},1\n" for n in range(20))
    path = write(tmp_path / "t.csv", f"text,joy,anger\n{rows}odd,2,1\nempty,,0\n")
    task = load_task(path, label_column="joy,anger", split="none")
    assert len(task.splits["train"]) == 20
    assert 'skipped 2 of 22 rows, first line 22: "2" in column "joy" is not 0 or 1' in caplog.text
    with pytest.raises(UserError, match=r'line 22: "2" in column "joy"'):
        load_task(path, label_column="joy,anger", strict=True)


def test_numbers_are_found_and_a_missing_one_is_a_bad_row(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level("INFO")
    numbers = [n * 0.37 - 2 for n in range(30)]
    rows = "".join(f"text {n},{number}\n" for n, number in enumerate(numbers))
    task = load_task(write(tmp_path / "t.csv", f"text,score\n{rows}missing,\n"), split="none")
    targets = task.splits["train"].targets
    assert (task.kind, task.label_names) == ("number", [])
    assert targets is not None
    assert targets.dtype == np.float64
    np.testing.assert_array_equal(targets, numbers)
    assert "skipped 1 of 31 rows, first line 32" in caplog.text
    assert "a number per text (--kind number), because" in caplog.text


def test_different_numbers_are_no_labels_and_huge_ones_are_not_learned(tmp_path: Path) -> None:
    rows = "".join(f"text {n},{n}.5\n" for n in range(60))
    path = write(tmp_path / "t.csv", f"text,score\n{rows}")
    for kind in ("classify", "ordered"):
        with pytest.raises(UserError, match="--kind number learns"):
            load_task(path, kind=kind)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="line 62: 1e300 is too large"):
        load_task(write(tmp_path / "h.csv", f"text,score\n{rows}again,1e300\n"))


def test_stars_are_labels_unless_they_are_said_to_be_numbers_or_ordered(tmp_path: Path) -> None:
    rows = "".join(f"text {n},{10 - n % 9}\n" for n in range(36))
    path = write(tmp_path / "t.csv", f"text,stars\n{rows}")
    assert load_task(path).kind == "classify"
    assert load_task(path, kind="number", split="none").splits["train"].targets[:2].tolist() == [10.0, 9.0]
    ordered = load_task(path, kind="ordered", split="none")
    assert (ordered.kind, ordered.label_names) == ("ordered", [str(n) for n in range(2, 11)])
    assert ordered.splits["train"].labels[:2].tolist() == [8, 7]


def test_ordered_classes_may_begin_with_their_number(tmp_path: Path) -> None:
    names = ["10 best", "2 fair", "1 bad"]
    path = write(tmp_path / "t.csv", "text,label\n" + "".join(f"t {n},{names[n % 3]}\n" for n in range(30)))
    assert load_task(path, kind="ordered").label_names == ["1 bad", "2 fair", "10 best"]


def test_a_kind_that_is_named_is_not_looked_for(tmp_path: Path) -> None:
    task = load_task(as_cells(tmp_path), kind="classify")
    assert task.label_names == ["anger", "anger|love", "joy", "joy|love", "love|joy"]
    assert load_task(as_columns(tmp_path), kind="labels").kind == "labels"


@pytest.mark.parametrize("form", [as_columns, as_cells])
def test_parts_of_a_task_have_their_own_targets(form: Any, tmp_path: Path) -> None:
    task = load_task(form(tmp_path))
    of_text = dict(zip(TEXTS, MATRIX.tolist(), strict=True))
    part = sample(task.splits["train"], 7, 0)
    folded, joined = take_fold(task, "1/3", 0), join_dev(task)
    extended = add_split(task, form(tmp_path))
    splits = [part, *folded.splits.values(), *joined.splits.values(), *extended.splits.values()]
    assert len(part) == 7
    for split in splits:
        assert [example.target.tolist() for example in split] == [of_text[text] for text in split.texts]


def test_labels_that_train_does_not_have_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    folder.mkdir()
    as_cells(folder).replace("t.csv", "train.csv")
    (folder / "t.csv").rename(folder / "train.csv")
    write(folder / "dev.csv", "text,feelings\none,joy\ntwo,joy|hope\n")
    with pytest.raises(UserError, match=r'dev.csv line 3: label "hope" is not in train.csv'):
        load_task(str(folder))
