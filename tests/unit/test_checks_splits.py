"""The checks of a task's splits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from heedful.data import Task, load_task
from heedful.evaluation.checks import labels_everywhere, shared_parts, shared_texts
from heedful.evaluation.checks.splits import normalize_text

Row = tuple[str, int] | tuple[str, str, int]
Make = Callable[..., Task]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))

    def written(**splits: Iterable[Row]) -> Task:
        folder = tmp_path / "task"
        folder.mkdir()
        for split, rows in splits.items():
            lines = [
                json.dumps(
                    dict(
                        zip(
                            ("text", "pair", "label") if len(row) == 3 else ("text", "label"),
                            row,
                            strict=True,
                        )
                    )
                )
                for row in rows
            ]
            (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
        return load_task(str(folder))

    return written


def texts(word: str, n: int) -> list[Row]:
    return [(f"{word} number {i}", i % 2) for i in range(n)]


def test_splits_that_share_nothing_pass(make: Make) -> None:
    task = make(train=texts("a", 50), dev=texts("b", 20), test=texts("c", 20))
    check = shared_texts(task)
    assert (check.status, check.value) == ("passed", 0.0)
    assert shared_parts(task).status == "skipped"


def test_copies_are_counted_by_letter_and_by_content_with_an_example(make: Make) -> None:
    dev = [*texts("b", 37), ("a number 3", 1), ("  A Number, 4!", 0), ("A-number 5", 1)]
    check = shared_texts(make(train=texts("a", 50), dev=dev))
    assert check.status == "warning"
    assert check.value == pytest.approx(3 / 40)
    assert "3 of dev's 40 rows" in check.message
    assert "1 of them letter for letter" in check.message
    assert '"a number 3"' in check.message


def test_a_test_set_that_was_trained_on_fails(make: Make) -> None:
    assert shared_texts(make(train=texts("a", 50), dev=texts("b", 9), test=texts("a", 10))).status == "failed"


def test_one_copy_in_many_rows_is_said_and_passes(make: Make) -> None:
    check = shared_texts(make(train=texts("a", 50), dev=[*texts("b", 300), ("a number 3", 1)]))
    assert check.status == "passed"
    assert "1 of dev's 301 rows" in check.message


def test_shared_passages_are_apart_from_shared_rows(make: Make) -> None:
    train = [(f"question {i}", f"passage {i // 2}", i % 2) for i in range(60)]
    dev = [(f"other {i}", f"passage {i}" if i < 4 else f"new {i}", i % 2) for i in range(20)]
    task = make(train=train, dev=dev)
    assert shared_texts(task).status == "passed"
    check = shared_parts(task)
    assert check.status == "warning"
    assert check.value == pytest.approx(0.2)
    assert "of dev's second texts 4 also in train (in 4 of 20 rows, 20 %)" in check.message


def test_a_question_that_every_row_has_is_no_shared_passage(make: Make) -> None:
    train = [("is it good ?", f"meal {i}", i % 2) for i in range(60)]
    dev = [("is it good ?", f"dish {i}", i % 2) for i in range(20)]
    assert shared_parts(make(train=train, dev=dev)).status == "passed"


def test_marks_alone_are_not_all_the_same_text() -> None:
    assert normalize_text("?!") != normalize_text("...")
    assert normalize_text("Ｆｕｌｌ width,  STRASSE") == normalize_text("full width strasse")
    assert normalize_text("straße") == normalize_text("STRASSE")


def test_data_is_quoted_safely(make: Make) -> None:
    evil = "\x1b[2J" + "x" * 200
    check = shared_texts(make(train=[*texts("a", 9), (evil, 1)], dev=[*texts("b", 4), (evil, 1)]))
    assert check.status == "failed"
    assert check.message.isprintable()
    assert len(check.message) < 400


def test_every_label_everywhere_passes(make: Make) -> None:
    assert labels_everywhere(make(train=texts("a", 50), dev=texts("b", 20))).status == "passed"


def test_a_label_that_a_split_lacks_is_named(make: Make) -> None:
    check = labels_everywhere(
        make(train=[(f"a {i}", i % 6) for i in range(60)], dev=texts("b", 9), test=[("c", 1), ("d", 5)])
    )
    assert check.status == "warning"
    assert 'dev lacks "2", "3", "4" and 1 more' in check.message
    assert check.value == 4 + 4


def test_a_label_that_train_lost_to_dev_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    rows = [f"text {i},{'early' if i < 85 else 'late'}" for i in range(100)]
    (tmp_path / "all.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    check = labels_everywhere(load_task(str(tmp_path / "all.csv"), split="first"))
    assert check.status == "failed"
    assert 'train lacks "late"' in check.message


def test_boolq_shares_passages_but_no_rows(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path))
    task = load_task("boolq", data_dir=real_data / "boolq")
    assert shared_texts(task).status == "passed"
    check = shared_parts(task)
    assert check.status == "warning"
    assert "second texts" in check.message
