"""Train and dev as one split."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data import load_task
from heedful.data.joining import join_dev
from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.training.run_task import load_run_task


def write_rows(path: Path, first: int, count: int) -> None:
    lines = [f"text {i},{'odd' if i % 2 else 'even'}" for i in range(first, first + count)]
    path.write_text("\n".join(["text,label", *lines, ""]), encoding="utf-8")


@pytest.mark.parametrize("files", [
    {"train": 100},  # all splits are from one file
    {"train": 60, "dev": 20, "test": 20},
    {"train": 80, "test": 20},
])  # fmt: skip
@pytest.mark.parametrize("cached", [False, True])
def test_train_has_the_rows_and_labels_of_both(
    files: dict[str, int], cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cached:
        monkeypatch.setattr("heedful.data.store.IN_MEMORY_BYTES", 0)
    first = 0
    for name, count in files.items():
        write_rows(tmp_path / f"{name}.csv", first, count)
        first += count
    path = tmp_path / "train.csv" if len(files) == 1 else tmp_path
    task = load_task(str(path))
    joined = join_dev(task)
    assert "dev" not in joined.splits
    train = joined.splits["train"]
    assert sorted(train.texts) == sorted([*task.splits["train"].texts, *task.splits["dev"].texts])
    for example in train:
        number = int(example.text.split()[1])
        assert joined.label_names[example.label or 0] == ("odd" if number % 2 else "even")
    assert list(joined.splits["test"].texts) == list(task.splits["test"].texts)
    assert joined.fingerprint == join_dev(load_task(str(path))).fingerprint != task.fingerprint


def test_what_needs_dev_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.csv", 0, 40)
    options = {"task": str(tmp_path / "train.csv"), "with_dev": True}
    with pytest.raises(UserError, match="--with-dev: train has no dev split"):
        load_run_task(AdaptOptions(**options, split="none"))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="--with-dev and --fold exclude each other"):
        load_run_task(AdaptOptions(**options, fold="1/5"))  # type: ignore[arg-type]
