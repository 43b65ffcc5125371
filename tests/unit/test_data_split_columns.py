"""Rows that are split by a column: groups, such as authors, stay on one side; times come in order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heedful
from heedful.data import Split, Task, load_task, materialize
from heedful.data.folds import take_fold
from heedful.data.split_columns import assign_groups
from heedful.errors import UserError

Rows = list[dict[str, object]]


def make_rows(authors: int = 40, each: int = 5) -> Rows:
    return [
        {"text": f"text {a} {i}", "label": "yes" if i % 2 else "no", "author": a}
        for a in range(authors)
        for i in range(each)
    ]


def authors_of(split: Split) -> set[str]:
    return {text.split()[1] for text in split.texts}


def write_csv(rows: Rows, path: Path) -> str:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    path.write_text("\n".join([",".join(rows[0]), *lines, ""]), encoding="utf-8")
    return str(path)


def write_jsonl(rows: Rows, path: Path) -> str:
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_parquet(rows: Rows, path: Path) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"))
    return str(path.with_suffix(".parquet"))


def in_memory(rows: Rows, path: Path) -> str:
    return materialize(rows)


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet, in_memory])
def test_a_group_is_on_one_side_of_the_split_whatever_the_format(
    write: Callable[[Rows, Path], str], tmp_path: Path
) -> None:
    task = load_task(write(make_rows(), tmp_path / "rows.csv"), group="author")
    sides = {name: authors_of(split) for name, split in task.splits.items()}
    assert all(len(split) == 5 * len(sides[name]) for name, split in task.splits.items())
    assert sum(map(len, sides.values())) == 40
    assert sides == {  # for ever
        name: authors_of(split)
        for name, split in load_task(write_csv(make_rows(), tmp_path / "same.csv"), group="author").splits.items()
    }  # fmt: skip
    assert task.split_notes == ("split by author: 40 groups",)
    assert task.columns["group"] == "author"


def test_a_group_stays_on_its_side_as_rows_are_added(tmp_path: Path) -> None:
    few, many = (
        load_task(write_csv(make_rows(n, each), tmp_path / f"{n}.csv"), group="author")
        for n, each in ((30, 4), (60, 6))
    )
    for name in few.splits:
        assert authors_of(few.splits[name]) == authors_of(many.splits[name]) & {str(a) for a in range(30)}
    other = load_task(str(tmp_path / "60.csv"), group="author", seed=1)
    assert authors_of(other.splits["test"]) != authors_of(many.splits["test"])


def test_a_row_without_a_group_is_split_by_its_content(tmp_path: Path) -> None:
    rows = make_rows()
    alone = load_task(
        write_csv([{**row, "author": None} for row in rows], tmp_path / "a.csv"), group="author"
    )
    by_content = load_task(write_csv(rows, tmp_path / "b.csv"))
    for name in alone.splits:
        assert list(alone.splits[name].texts) == list(by_content.splits[name].texts)


def test_folds_keep_groups_together_and_have_the_shares_of_the_labels(tmp_path: Path) -> None:
    rows = make_rows()
    for row in rows:
        row["label"] = "rare" if int(str(row["author"])) % 4 == 0 else "often"
    task = load_task(write_csv(rows, tmp_path / "rows.csv"), group="author")
    train = task.splits["train"]
    seen = list[str]()
    for k in range(1, 6):
        fold = take_fold(task, f"{k}/5", seed=0).splits
        assert not authors_of(fold["train"]) & authors_of(fold["dev"])
        counts = Counter(fold["dev"].labels.tolist())  # type: ignore[union-attr]
        expected = Counter(train.labels.tolist())  # type: ignore[union-attr]
        assert all(abs(counts[label] - expected[label] / 5) <= 5 for label in expected)  # one author
        seen += fold["dev"].texts
    assert sorted(seen) == sorted(train.texts)
    with pytest.raises(UserError, match=r"--fold 500/500: \d+ groups of training rows are too few"):
        take_fold(task, "500/500", 0)


def test_large_groups_are_spread_evenly() -> None:
    sizes = [50, 30, 30, 20, 20, 10, 10, 10, 10, 10]
    groups = np.repeat(np.arange(10, dtype=np.uint64), sizes)
    folds = np.bincount(assign_groups(groups, None, 4))
    assert folds.tolist() == [50, 50, 50, 50]


@pytest.mark.parametrize(("sizes", "labels", "expected"), [
    ([10] * 24, [group // 4 for group in range(24)], [50, 50, 50, 50, 40]),  # 6 labels with 4 groups each
    ([10] * 24, [group % 6 for group in range(24)], [50, 50, 50, 50, 40]),
    ([10] * 10, range(10), [20] * 5),  # each label has one group
    ([200] + [10] * 20, [0] + [1 + group % 4 for group in range(20)], [240, 40, 40, 40, 40]),
    ([1] * 500, [group % 7 for group in range(500)], [100] * 5),
], ids=["pure", "pure in turns", "single", "huge", "small"])  # fmt: skip
def test_no_fold_is_left_empty_by_groups_of_one_label(
    sizes: list[int], labels: Iterable[int], expected: list[int]
) -> None:
    groups = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    folds = assign_groups(groups, np.repeat(np.array(list(labels), np.int32), sizes), 5)
    assert sorted(np.bincount(folds, minlength=5).tolist(), reverse=True) == expected


def split_in_files(folder: Path, rows: dict[str, Rows]) -> str:
    folder.mkdir()
    for name, part in rows.items():
        write_csv(part, folder / f"{name}.csv")
    return str(folder)


def test_files_that_share_groups_are_left_as_they_are_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = make_rows(10)
    parts = {"train": rows[:38], "dev": rows[38:44], "test": rows[44:]}
    task = load_task(split_in_files(tmp_path / "files", parts), group="author")
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 38, "dev": 6, "test": 6}
    described, first, second = task.split_notes
    assert described == "split as the files are; folds are split by author: 8 groups"
    assert '2 of 6 rows of dev are of a group ("author") that train has too' in first
    assert '1 of 6 rows of test are of a group ("author") that dev has too' in second
    assert first in caplog.text


def test_only_the_missing_split_is_made_by_group(tmp_path: Path) -> None:
    rows = make_rows()
    test = [{key: value for key, value in row.items() if key != "author"} for row in rows[190:]]
    task = load_task(split_in_files(tmp_path / "files", {"train": rows[:190], "test": test}), group="author")
    assert not authors_of(task.splits["train"]) & authors_of(task.splits["dev"])
    assert len(task.splits["test"]) == 10
    assert len(task.split_notes) == 1  # test has no such column, and is not compared


@pytest.mark.parametrize(("choice", "message"), [
    ({"group": "writer"}, 'unknown column "writer"; there are author, label, text'),
    ({"group": "autor"}, 'unknown column "autor"; did you mean "author"'),
    ({"group": "label", "label_column": "label"}, 'column "label" cannot be both group and label'),
    ({"group": "author", "split": "first"}, "--split first and --group exclude each other"),
])  # fmt: skip
def test_mistakes_are_one_line(choice: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        load_task(write_csv(make_rows(), tmp_path / "rows.csv"), **choice)  # type: ignore[arg-type]


def test_too_few_groups_and_values_that_are_no_group_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"2 groups are too few to split, \w+ gets none; give more groups"):
        load_task(write_csv(make_rows(2, 50), tmp_path / "rows.csv"), group="author")
    lists = write_jsonl([{**row, "author": ["a", "b"]} for row in make_rows()], tmp_path / "lists")
    with pytest.raises(UserError, match='line 1: "author" is a list; a group is one text or number per row'):
        load_task(lists, group="author")


def test_the_second_text_of_a_pair_may_be_the_group(tmp_path: Path) -> None:
    rows: Rows = [
        {"question": f"question {i}", "passage": f"passage {i % 40}", "label": i % 2} for i in range(200)
    ]
    task = load_task(write_csv(rows, tmp_path / "pairs.csv"), group="passage")
    passages = [set(split.pairs or ()) for split in task.splits.values()]
    assert sum(map(len, passages)) == 40


def test_the_group_is_never_taken_for_the_text_or_the_label(tmp_path: Path) -> None:
    rows: Rows = [
        {
            "class": f"pupil {i % 40}",
            "essay": f"an essay of many words {i}",
            "mark": "good" if i % 2 else "bad",
        }
        for i in range(200)
    ]
    task: Task = load_task(write_csv(rows, tmp_path / "essays.csv"), group="class")
    assert (task.columns["text"], task.columns["label"]) == ("essay", "mark")


def test_show_says_how_rows_are_split() -> None:
    assert heedful.data.show(make_rows(), group="author").facts["split_notes"] == [
        "split by author: 40 groups"
    ]


def make_dated(times: Iterable[object]) -> Rows:
    return [
        {"text": f"text {i}", "label": "yes" if i % 2 else "no", "when": time} for i, time in enumerate(times)
    ]


def days(count: int) -> list[date]:
    return [date(2021, 1, 1) + timedelta(days=(37 * i) % count) for i in range(count)]  # not in order


FORMS: dict[str, Callable[[date], object]] = {
    "date": str,
    "moment": lambda day: f"{day}T12:30:00+02:00",
    "year": lambda day: 2000 + (day - date(2021, 1, 1)).days,
    "seconds": lambda day: 1.6e9 + 86400.5 * (day - date(2021, 1, 1)).days,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet, in_memory])
def test_the_latest_rows_are_test_and_the_earliest_train(
    write: Callable[[Rows, Path], str], form: str, tmp_path: Path
) -> None:
    rows = make_dated(map(FORMS[form], days(100)))
    task = load_task(write(rows, tmp_path / "rows.csv"), time="when")
    order = sorted(range(100), key=lambda i: days(100)[i])
    for name, part in (("train", order[:80]), ("dev", order[80:90]), ("test", order[90:])):
        assert list(task.splits[name].texts) == [f"text {i}" for i in sorted(part)]
    first, last, late = (rows[order[place]]["when"] for place in (79, 89, 90))
    assert task.split_notes[0].startswith("split by when: train until ")
    if form in ("date", "year"):
        assert task.split_notes == (
            f"split by when: train until {first}, dev until {last}, test from {late}",
        )


def test_a_column_of_dates_in_a_frame_is_a_time() -> None:
    column = pa.array(days(100))
    table = pa.table({"text": [f"text {i}" for i in range(100)], "label": ["a", "b"] * 50, "when": column})
    moments = table.set_column(2, "when", column.cast(pa.timestamp("ns", tz="Europe/Berlin")))
    parts = [
        {name: list(split.texts) for name, split in load_task(materialize(data), time="when").splits.items()}
        for data in (table, moments)
    ]
    assert parts[0] == parts[1]
    assert len(parts[0]["test"]) == 10


@pytest.mark.parametrize(("years", "sizes"), [
    ([2019] * 50 + [2020] * 30 + [2021] * 20, (50, 30, 20)),  # no year is on two sides
    ([2019] * 70 + [2020] * 15 + [2021] * 8 + [2022] * 7, (85, 8, 7)),
    ([2022] + [2021] * 98 + [2020], (1, 98, 1)),
])  # fmt: skip
def test_rows_of_the_same_time_stay_together(
    years: list[int], sizes: tuple[int, ...], tmp_path: Path
) -> None:
    task = load_task(write_csv(make_dated(years), tmp_path / "rows.csv"), time="when")
    assert tuple(map(len, task.splits.values())) == sizes


def test_folds_by_time_train_on_earlier_rows_alone(tmp_path: Path) -> None:
    task = load_task(write_csv(make_dated(days(100)), tmp_path / "rows.csv"), time="when")
    day = {f"text {i}": time for i, time in enumerate(days(100))}
    sizes = []
    for k in range(1, 4):
        fold = take_fold(task, f"{k}/3", seed=0).splits
        learned, held_out = ([day[text] for text in fold[name].texts] for name in ("train", "dev"))
        assert max(learned) < min(held_out)
        sizes.append((len(learned), len(held_out)))
    assert sizes == [(60, 20), (40, 20), (20, 20)]
    years = load_task(
        write_csv(make_dated([2019, 2020, 2021, 2022] * 9), tmp_path / "years.csv"), time="when"
    )
    with pytest.raises(UserError, match="--fold 1/5: 2 different times of training rows are too few"):
        take_fold(years, "1/5", 0)


@pytest.mark.parametrize(("bad", "message"), [
    ("3/1/2021", r'line 12: "when" is "3/1/2021", which is no time; write 2021-03-31'),
    ("2021", r'line 12: "when" is "2021", a number, but others, such as "2021-01-01", are dates'),
])  # fmt: skip
def test_what_is_no_time_is_refused_with_its_line(bad: str, message: str, tmp_path: Path) -> None:
    rows = make_dated(days(30))
    rows[10]["when"] = bad
    with pytest.raises(UserError, match=message):
        load_task(write_csv(rows, tmp_path / "rows.csv"), time="when")


def test_a_row_without_a_time_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = make_dated(days(30))
    rows[10]["when"] = None
    task = load_task(write_csv(rows, tmp_path / "rows.csv"), time="when")
    assert sum(map(len, task.splits.values())) == 29
    assert 'skipped 1 of 30 rows, first line 12: "when" has no time' in caplog.text


def test_two_times_are_too_few_and_groups_have_no_time(tmp_path: Path) -> None:
    path = write_csv(make_dated([2020, 2021] * 20), tmp_path / "rows.csv")
    with pytest.raises(UserError, match=r"rows\.csv: 2 different times are too few to split, test gets none"):
        load_task(path, time="when")
    with pytest.raises(UserError, match="--group and --time exclude each other"):
        load_task(path, time="when", group="when")


def test_files_whose_held_out_rows_are_not_later_are_kept_with_a_warning(tmp_path: Path) -> None:
    rows = make_dated([date(2021, 1, 1) + timedelta(days=i) for i in range(40)])
    parts = {"train": rows[:20] + rows[30:32], "dev": rows[20:30], "test": rows[32:]}
    described, warning = load_task(split_in_files(tmp_path / "files", parts), time="when").split_notes
    assert described == "split as the files are; folds are split by when"
    assert '10 of 10 rows of dev are earlier than the last of train ("when")' in warning
