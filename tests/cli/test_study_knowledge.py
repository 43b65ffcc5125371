"""heedful study knowledge: the whole experiment, small, from its command to its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs.directory import Run
from heedful.runs.studies import StudyFolder

PRETRAIN = """
command = "pretrain"
[pretrain]
model = "modern-gpt"
corpus = "wiki.txt"
model_options = ["n_layers=1", "d_model=32", "n_heads=2"]
objective = "span"
span_form = "window"
tokenizer = "bpe"
vocab_size = 420
block = 96
epochs = 1
dev_share = 0.0
train_eval_rows = 0
precision = "float32"
"""
FINETUNE = """
command = "adapt"
[adapt]
model = "x"
task = "birthplaces"
epochs = 1
lr = 1e-3
max_len = 96
precision = "float32"
"""


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "pretrain.toml").write_text(PRETRAIN)
    (folder / "finetune.toml").write_text(FINETUNE)
    small = ["--people", 40, "--strangers", 12, "--jobs", 0, "--threads", 1]
    return ["--pretrain", folder / "pretrain.toml", "--finetune", folder / "finetune.toml", *small]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, recipes: list[object]) -> Path:
    from heedful.cli import main

    out = tmp_path_factory.mktemp("study") / "knowledge"
    assert main(["study", "knowledge", *map(str, recipes), "--out", str(out)]) == 0
    return out


def test_every_arm_is_there_with_its_interval_and_baseline(study: Path) -> None:
    answer = StudyFolder.open(study).find_answer()
    assert answer is not None
    assert answer.finished
    assert list(answer.facts["arms"]) == ["pretrained", "nothing", "pretrained-signal"]
    for arm in answer.facts["arms"].values():
        low, high = arm["ci95"]
        assert 0 <= low <= arm["exact_match"] <= high <= 1
        assert 0 <= arm["constant_answer"] <= 1
        assert arm["groups"]["strangers"]["right"] is None
        assert arm["groups"]["strangers"]["n"] == 12
    assert {"n", "auroc", "brier", "calibration_error"} <= answer.facts["telling"].keys()
    assert {figure.name for figure in answer.figures} >= {
        "arms",
        "reliability",
        "risk-coverage",
        "confidence",
    }


def test_predictions_stand_one_a_line_for_every_group(study: Path) -> None:
    for arm in ("pretrained", "nothing"):
        for group in ("seen", "dev", "unseen", "strangers", "test"):
            rows = Run.open(study / "runs" / arm).read_predictions(group)
            lines = (study / "runs" / arm / f"predictions_{group}.txt").read_text().splitlines()
            assert lines == [row.predicted for row in rows]
            assert rows


def test_strangers_are_nobody_in_the_data(study: Path) -> None:
    from heedful.data.world import make_task_folder

    folder = make_task_folder("world/birthplaces", people=40)
    known = "".join(path.read_text() for path in folder.glob("*.t*"))
    for row in Run.open(study / "runs" / "pretrained").read_predictions("strangers"):
        name = str(row.text).removeprefix("Where was ").removesuffix(" born?")
        assert name not in known


def test_without_pretraining_the_model_begins_as_pretraining_did(study: Path) -> None:
    nothing = Run.open(study / "runs" / "nothing").read_results()
    pretrained = Run.open(study / "runs" / "pretrained").read_results()
    assert nothing.total_parameters == pretrained.total_parameters
    assert Path(nothing.model).name == "untrained"
    assert Path(pretrained.model).name == "pretrain"


def test_the_same_command_gives_the_answer_again_and_other_options_are_refused(
    heedful: Callable[..., Any], study: Path, recipes: list[object]
) -> None:
    before = (study / "answer.json").read_bytes()
    done = heedful("study", "knowledge", *recipes, "--out", study, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["study"] == "knowledge"
    assert (study / "answer.json").read_bytes() == before
    other = heedful("study", "knowledge", *recipes, "--out", study, "--risk", 0.3)
    assert other.status == 2
    assert "was begun with risk 0.1" in other.err


def test_a_folder_of_ones_own_and_its_mistakes(
    heedful: Callable[..., Any], recipes: list[object], tmp_path: Path
) -> None:
    for path, words in ((tmp_path / "no", "no such folder"), (tmp_path, "no data files")):
        done = heedful("study", "knowledge", path, *recipes, "--out", tmp_path / "study")
        assert (done.status, done.out) == (2, "")
        assert words in done.err
        assert not (tmp_path / "study").exists(), "a mistake leaves nothing behind"
    done = heedful("study", "knowledge", "--risk", 2, "--out", tmp_path / "study")
    assert "--risk 2" in done.err
    done = heedful("study", "knowledge", "--pretrain", recipes[3], "--out", tmp_path / "study")
    assert 'give one with command = "pretrain"' in done.err


def test_a_finished_run_is_gone_on_from_and_another_text_is_refused(
    heedful: Callable[..., Any], study: Path, recipes: list[object], tmp_path: Path
) -> None:
    read, out = study / "runs" / "pretrain", tmp_path / "again"
    before = (read / "results.json").stat().st_mtime_ns
    words = ["study", "knowledge", "--pretrain", read, *recipes[2:], "--name-signal", 0]
    done = heedful(*words, "--from-nothing-epochs", 2, "--out", out)
    assert done.status == 0, done.err
    assert sorted(path.name for path in (out / "runs").iterdir()) == ["nothing", "pretrained"]
    assert f"The biographies were learned before, in {read}" in done.out
    assert (read / "results.json").stat().st_mtime_ns == before
    for group in ("dev", "strangers"):
        name = f"runs/pretrained/predictions_{group}.jsonl"
        assert (out / name).read_bytes() == (study / name).read_bytes()
    configs = {arm: Run.open(out / "runs" / arm).read_config()["adapt"] for arm in ("nothing", "pretrained")}
    assert {arm: config["epochs"] for arm, config in configs.items()} == {"nothing": 2, "pretrained": 1}
    other = heedful(*(60 if word == 40 else word for word in words), "--out", tmp_path / "other")
    assert other.status == 2
    assert f"--pretrain {read}: has learned from " in other.err
    assert not (tmp_path / "other").exists()


def test_a_run_that_has_not_finished_is_not_gone_on_from(
    heedful: Callable[..., Any], study: Path, tmp_path: Path
) -> None:
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.toml").write_bytes((study / "runs/pretrain/config.toml").read_bytes())
    done = heedful("study", "knowledge", "--pretrain", unfinished, "--out", tmp_path / "s")
    assert done.status == 2
    assert "the run has not finished" in done.err
