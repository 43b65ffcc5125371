"""Models for several labels, numbers and ordered classes leave as folders that answer, score and check as their runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful as package
from heedful.errors import UserError
from heedful.evaluation import onnx_export
from heedful.inference.onnx import speed
from tiny import make_kind, make_model

TEXTS = ["a lovely film was fine", "the music was dull and rather cold and silly", "the end"]
OPTIONS = {"max_len": 32, "batch_size": 8, "lr": 5e-3, "epochs": 2, "threads": 1, "precision": "float32"}
KINDS = ("labels", "number", "ordered")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.01)
    monkeypatch.setattr(onnx_export, "measure_memory", lambda *_: None)
    monkeypatch.setattr(onnx_export, "make_pipeline", lambda *_: None)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("exported")
    model = make_model(root / "model")
    made = {}
    for kind in KINDS:
        task = make_kind(root / kind, kind)
        made[kind] = package.adapt(
            model, task, kind=kind, method="lora", out=root / f"run-{kind}", **OPTIONS
        ).folder
    return made


def exported(heedful: Callable[..., Any], run: Path, folder: Path, *options: str) -> Path:
    done = heedful("export", run, folder, *options)
    assert done.status == 0, done.err
    return folder


def score(heedful: Callable[..., Any], model: Path, *options: object) -> dict[str, Any]:
    done = heedful("evaluate", model, "--json", *options)
    assert done.status == 0, done.err
    scores: dict[str, Any] = json.loads(done.out)
    return scores


def check_lines_without_heedful(folder: Path, kind: str) -> None:
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 22
    code = code.replace('["a text", "another text"]', json.dumps(TEXTS))
    command = [sys.executable, "-c", f"FOLDER = {str(folder)!r}\n{code}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line, one, text in zip(lines, package.load(folder).predict(TEXTS), TEXTS, strict=True):
        answer = line.removeprefix(text).strip()
        if kind == "number":
            assert float(answer) == pytest.approx(float(one.label), abs=1e-3)
        elif kind == "labels":
            assert answer.startswith(str([name for name in one.label.split("|") if name]))
        else:
            assert answer.split()[0] == one.label


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["--merge", "--onnx", None])
def test_an_export_answers_scores_and_checks_as_its_run(
    heedful: Callable[..., Any], runs: dict[str, Path], kind: str, form: str | None, tmp_path: Path
) -> None:
    run = runs[kind]
    if (kind, form) == ("ordered", "--merge"):
        refused = heedful("export", run, tmp_path / "out", form)
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        return
    folder = exported(heedful, run, tmp_path / "out", *([form] if form else []))
    ours, theirs = package.load(run), package.load(folder)
    assert np.allclose(ours.predict_proba(TEXTS), theirs.predict_proba(TEXTS), atol=1e-3)
    if kind != "number":
        assert [one.label for one in ours.predict(TEXTS)] == [one.label for one in theirs.predict(TEXTS)]
    test = run.parent / kind / "test.csv"
    metric = {"labels": "macro_f1", "number": "mae", "ordered": "quadratic_kappa"}[kind]
    for options in ((), ("--metric", metric)):
        wanted = score(heedful, run, "--split", "test", *options)
        found = score(heedful, folder, "--data", test, *options)
        assert found["value"] == pytest.approx(wanted["value"], abs=1e-3)
        assert (found["metric"], found["n"]) == (wanted["metric"], wanted["n"])
    assert heedful("check", folder).status == 0
    if form == "--onnx":
        check_lines_without_heedful(folder, kind)
    with pytest.raises(UserError, match="is not for"):
        package.evaluate(folder, data=test, metric="exact_match")


def test_an_int8_model_of_numbers_is_compared_in_their_unit(
    heedful: Callable[..., Any], runs: dict[str, Path], tmp_path: Path
) -> None:
    folder = exported(heedful, runs["number"], tmp_path / "out", "--onnx", "--int8", "--accept-loss")
    measured = json.loads((folder / "onnx.json").read_text())["measured"]
    assert "same_label" not in measured
    assert measured["difference"]["metric"] == "Pearson correlation"
