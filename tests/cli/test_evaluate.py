"""Scoring a run again gives what it recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("method", ["full", "head", "lora", "prompt"])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_split_scored_again_gives_the_recorded_numbers(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], method: str, split: str
) -> None:
    run = run_of(method)
    done = heedful("evaluate", run, "--split", split, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    recorded = json.loads((run / "results.json").read_text())["splits"][split]
    assert found.pop("run") == str(run)
    assert found.pop("split") == split
    assert found.pop("recorded") == recorded["value"]
    assert found.pop("loss") == pytest.approx(recorded.pop("loss"), rel=1e-12)
    assert found == recorded


def test_train_is_scored_whole_and_beside_baselines(
    heedful: Callable[..., Any], run_of: Callable[[str], Path]
) -> None:
    done = heedful("evaluate", run_of("full"), "--split", "train")
    assert done.status == 0, done.err
    assert "bag of words" in done.out
    assert "95 % interval" in done.out
    rows = json.loads(heedful("evaluate", run_of("full"), "--split", "train", "--json").out)["n"]
    assert 170 < rows < 215  # about 80 % of 240, by content hash


def test_evaluating_writes_nothing(heedful: Callable[..., Any], run_of: Callable[[str], Path]) -> None:
    run = run_of("lora")
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    assert heedful("evaluate", run).status == 0
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before


def test_what_is_no_finished_run_is_told(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    assert "there is no such folder" in heedful("evaluate", tmp_path / "none").err
    assert "is not a run (config.toml is missing)" in heedful("evaluate", tmp_path).err
    (tmp_path / "config.toml").write_text((run_of("full") / "config.toml").read_text())
    done = heedful("evaluate", tmp_path)
    assert done.status == 2
    assert "has not finished" in done.err
