"""The cache of features: computed once, noticed when damaged, bounded, and without effect on any result."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data import cache, features
from heedful.data.features import Features, load_or_compute
from heedful.errors import UserError
from heedful.objectives import features as computing
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


class Counter:
    """Fills an array with its numbers, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, states: Any) -> None:
        self.calls += 1
        states[:] = np.arange(states.size).reshape(states.shape)

    def load(self, key: str = "k", rows: int = 6, **options: Any) -> Features:
        return load_or_compute(key, (rows, 4), "float32", self, **options)


def test_features_are_computed_once_and_mapped(folder: Path) -> None:
    fill = Counter()
    cold, warm = fill.load(), fill.load()
    assert fill.calls == 1
    assert np.array_equal(cold.states, np.arange(24, dtype=np.float32).reshape(6, 4))
    assert np.array_equal(warm.states, cold.states)
    assert isinstance(warm.states.base, np.memmap)
    assert warm.seconds == cold.seconds
    assert not warm.states.flags.writeable
    assert fill.load("none", 0).states.shape == (0, 4)
    assert {path.name for path in folder.iterdir()} == {"k", "none"}


@pytest.mark.parametrize("damage", ["truncated", "flipped", "absent"])
def test_a_damaged_entry_is_computed_again(
    damage: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = Counter()
    expected = np.array(fill.load().states)
    path = folder / "k" / "states.bin"
    content = path.read_bytes()
    path.unlink()
    if damage != "absent":
        path.write_bytes(content[:-4] if damage == "truncated" else content[:40] + b"\1" + content[41:])
    monkeypatch.setattr(cache, "_intact", set())  # as in a new process
    assert np.array_equal(fill.load().states, expected)
    assert fill.calls == 2
    assert path.read_bytes() == content


def test_what_was_not_used_for_longest_makes_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Counter()
    monkeypatch.setattr(features, "last_use", lambda path: times[path.name])
    times = {"a": 1.0, "b": 2.0, "c": 3.0}
    for key in "ab":
        fill.load(key, rows=1000)
    each = features.folder_size(folder / "a")
    monkeypatch.setenv("HEEDFUL_FEATURES_GB", str(2.6 * each / 1e9))
    times["a"] = 4.0
    fill.load("c", rows=1000)
    assert {path.name for path in folder.iterdir()} == {"a", "c"}
    with pytest.raises(UserError, match=r"take 0\.0 GB, and the cache of features has 0\.0 GB; .* allows"):
        fill.load("large", rows=10_000)
    assert {path.name for path in folder.iterdir()} == {"a", "c"}
    monkeypatch.setenv("HEEDFUL_FEATURES_GB", "many")
    with pytest.raises(UserError, match='HEEDFUL_FEATURES_GB="many": is not a number'):
        fill.load("d")


def test_a_disk_without_room_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill = Counter()
    usage = shutil.disk_usage(folder.anchor)
    monkeypatch.setattr(features.shutil, "disk_usage", lambda path: usage._replace(free=2**30))
    with pytest.raises(UserError, match=r"has 1\.1 GB left, of which 1 stays free; set HEEDFUL_CACHE"):
        fill.load()
    with caplog.at_level(logging.WARNING, "heedful"):
        assert fill.load(in_memory=True).states.sum() == sum(range(24))
    assert "the features are not cached" in caplog.text
    assert not folder.exists()


def test_a_run_has_the_same_bits_with_a_cold_and_a_warm_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = AdaptOptions(
        model=str(make_model(tmp_path / "model")), task=str(make_task(tmp_path / "task")), epochs=1,
        batch_size=8, max_len=32, precision="float32", threads=1, method="head", head_start="fitted",
        train_rows=40,
    )  # fmt: skip
    monkeypatch.setenv("HEEDFUL_FEATURES_GB", "0")
    train_run(replace(options, out=tmp_path / "none"))
    monkeypatch.delenv("HEEDFUL_FEATURES_GB")
    train_run(replace(options, out=tmp_path / "cold"))
    with monkeypatch.context() as patch:
        patch.setattr(computing, "iterate_by_length", lambda *_: pytest.fail("the body ran again"))
        train_run(replace(options, out=tmp_path / "warm"))
    names = [p.relative_to(tmp_path / "cold") for p in (tmp_path / "cold" / "best").rglob("*") if p.is_file()]
    for name in ("metrics.jsonl", "predictions_dev.jsonl", "predictions_test.jsonl", *names):
        assert len({file_checksum(tmp_path / run / name) for run in ("none", "cold", "warm")}) == 1, name
