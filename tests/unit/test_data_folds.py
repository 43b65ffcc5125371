"""Folds of the training rows, for cross-validation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.data import load_task
from heedful.data.folds import assign_folds, take_fold
from heedful.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"text {i % 90},{'rare' if i % 90 < 9 else 'often'}" for i in range(100)]  # ten texts occur twice
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *rows, ""]))
    (tmp_path / "dev.csv").write_text("text,label\nother,rare\nanother,often\n")
    return tmp_path


def test_folds_partition_train_by_label_and_keep_equal_texts_together(folder: Path) -> None:
    task = load_task(str(folder))
    seen: list[str] = []
    for k in range(1, 6):
        fold = take_fold(task, f"{k}/5", seed=1)
        train, dev = set(fold.splits["train"].texts), list(fold.splits["dev"].texts)
        assert not train & set(dev)
        assert len(fold.splits["train"]) + len(dev) == 100
        assert fold.splits["train"].labels is not None
        rare = fold.splits["dev"].labels == fold.label_names.index("rare")
        assert 1 <= len({text for text, is_rare in zip(dev, rare, strict=True) if is_rare}) <= 2
        seen += dev
    assert sorted(seen) == sorted(task.splits["train"].texts)
    train_split = task.splits["train"]
    assert np.array_equal(assign_folds(train_split, 5, 1), assign_folds(train_split, 5, 1))
    assert not np.array_equal(assign_folds(train_split, 5, 1), assign_folds(train_split, 5, 2))


@pytest.mark.parametrize("fold", ["0/5", "6/5", "1/1", "2", "2/", "a/b", "200/200"])
def test_a_fold_that_is_not_there_is_refused(folder: Path, fold: str) -> None:
    with pytest.raises(UserError, match="--fold"):
        take_fold(load_task(str(folder)), fold, 0)
