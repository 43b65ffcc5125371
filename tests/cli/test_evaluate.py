"""Scoring a run again gives what it recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs.directory import Run


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


def test_new_data_is_scored_beside_the_baselines(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    run = run_of("full")
    rows = Run.open(run).read_predictions("test")
    recorded = json.loads((run / "results.json").read_text())["splits"]["test"]
    new = tmp_path / "new.csv"
    new.write_text("id;text;label\n" + "".join(f"{n};{row.text};{row.label}\n" for n, row in enumerate(rows)))
    done = heedful("evaluate", run, "--data", new, "--json")
    assert done.status == 0, done.err
    scored = json.loads(done.out)
    assert (scored["split"], scored["n"]) == ("data", len(rows))
    assert scored["value"] == recorded["value"]
    assert scored["baselines"]["bag_of_words"] == recorded["baselines"]["bag_of_words"]
    assert scored["recorded"] is None
    other = tmp_path / "other.csv"
    other.write_text(new.read_text().replace("text;label", "words;verdict"))
    columns = ("--text-column", "words", "--label-column", "verdict")
    assert (
        json.loads(heedful("evaluate", run, "--data", other, *columns, "--json").out)["value"]
        == recorded["value"]
    )


def test_mistakes_with_new_data_get_one_line(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    run, new = run_of("full"), tmp_path / "new.csv"
    new.write_text("text,label\nfine,good\n,bad\npoor,awful\n")
    assert 'label "awful" is not in' in heedful("evaluate", run, "--data", new).err
    assert "empty text" in heedful("evaluate", run, "--data", new, "--strict").err
    assert "no such file or folder" in heedful("evaluate", run, "--data", tmp_path / "none.csv").err
    assert "give one of them" in heedful("evaluate", run, "--data", new, "--split", "dev").err
    assert "belong to --data FILE" in heedful("evaluate", run, "--strict").err
