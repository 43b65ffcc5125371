"""Checks of runs and models, made again; a failed one is told by the status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from heedful import checkpoints, models
from heedful.models import PRESETS


def checks(text: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(text)["checks"]}


@pytest.mark.parametrize("method", ["full", "head", "lora"])
def test_a_runs_findings_are_shown_and_the_saved_weights_examined_again(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], method: str
) -> None:
    done = heedful("check", run_of(method), "--json")
    found = checks(done.out)
    stored = json.loads((run_of(method) / "checks.json").read_text())["checks"]
    assert {check["name"] for check in stored} == set(found)
    assert found["reload"]["again"]
    assert found["reload"]["status"] == "passed"
    assert found["tokenizer_fits"]["again"]
    assert found["tokenizer_fits"]["status"] == "passed"
    assert not found["collapse"]["again"]
    assert done.status == any(check["status"] == "failed" for check in found.values())
    shown = heedful("check", run_of(method))
    assert shown.status == done.status
    assert "by the run" in shown.out
    assert "\nchecks: " in shown.out


def test_weights_that_changed_since_the_run_fail(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(run_of("full"), tmp_path / "run")
    weights = tmp_path / "run/best/model.safetensors"
    tensors = load_file(weights)
    tensors["classifier.bias"][0] += 0.01
    save_file(tensors, weights, {"format": "pt"})
    done = heedful("check", tmp_path / "run", "--json")
    assert done.status == 1
    assert checks(done.out)["reload"]["status"] == "failed"


def test_a_sound_model_passes(heedful: Callable[..., Any], tiny_bert: Path) -> None:
    done = heedful("check", tiny_bert, "--json")
    assert done.status == 0, done.err
    found = checks(done.out)
    assert found["reload"]["status"] == found["tokenizer_fits"]["status"] == "passed"
    assert found["causality"]["status"] == "skipped"


def test_a_decoder_that_sees_the_future_fails(heedful: Callable[..., Any], tmp_path: Path) -> None:
    config = PRESETS["gpt-nano"].config.replace(vocab_size=64, max_len=32)
    checkpoints.save(
        models.build(config.replace(attention="zero_after", attention_options={"unsafe": True})),
        tmp_path / "leaks",
    )
    checkpoints.save(models.build(config), tmp_path / "sound")
    done = heedful("check", tmp_path / "leaks", "--json")
    assert done.status == 1
    assert checks(done.out)["causality"]["status"] == "failed"
    done = heedful("check", tmp_path / "sound", "--json")
    assert done.status == 0
    assert checks(done.out)["causality"]["status"] == "passed"
    assert checks(done.out)["tokenizer_fits"]["status"] == "skipped"


def test_another_models_tokenizer_fails(heedful: Callable[..., Any], tiny_bert: Path, tmp_path: Path) -> None:
    from heedful import text

    shutil.copytree(tiny_bert, tmp_path / "model")
    text.train(["the room was warm"] * 9, kind="bpe", vocab_size=280, sentinels=0).save(tmp_path / "model")
    done = heedful("check", tmp_path / "model", "--json")
    assert done.status == 1
    assert checks(done.out)["tokenizer_fits"]["status"] == "failed"


def test_an_unknown_model_is_a_mistake_not_a_failed_check(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    assert heedful("check", tmp_path / "none").status == 2
