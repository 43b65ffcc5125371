"""An exported graph answers as its run does, without torch, and an int8 model that loses is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful as hf
from heedful.inference.loading import load_run
from heedful.inference.onnx import speed

TEXTS = ["lovely warm staff and fresh food", "the room was dirty", "again"]
WITHOUT_TORCH = """
import json, sys, heedful
found = heedful.load(sys.argv[1]).predict(json.loads(sys.argv[2]))
assert not {"torch", "sklearn", "transformers"} & set(sys.modules)
print(json.dumps([[one.label, one.confidence] for one in found]))
"""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.01)


def in_a_process(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def exported(run_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from heedful.cli import main

    folder = tmp_path_factory.mktemp("onnx") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "SECONDS", 0.01)
        assert main(["export", str(run_of("full")), str(folder), "--onnx"]) == 0
    return folder


def test_a_folder_answers_as_its_run_and_needs_no_torch(
    run_of: Callable[[str], Path], exported: Path
) -> None:
    run = load_run(run_of("full"))
    found = json.loads(in_a_process(WITHOUT_TORCH, str(exported), json.dumps(TEXTS)))
    wanted = run.predict(TEXTS)
    assert [label for label, _ in found] == [one.label for one in wanted]
    assert np.allclose([sure for _, sure in found], [one.confidence for one in wanted], atol=1e-4)


def test_the_readme_labels_texts_with_onnxruntime_alone(
    run_of: Callable[[str], Path], exported: Path
) -> None:
    code = (exported / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) <= 22
    assert "heedful" not in code
    texts = code.replace('["a text", "another text"]', json.dumps(TEXTS)).replace("# pairs are", "#")
    lines = in_a_process(f"FOLDER = {str(exported)!r}\n{texts}").splitlines()
    for line, one in zip(lines, load_run(run_of("full")).predict(TEXTS), strict=True):
        assert line.split()[-2] == one.label
        assert float(line.split()[-1]) == pytest.approx(one.confidence, abs=1e-4)


def test_files_are_labeled_as_by_the_run(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], exported: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text,note\n" + "".join(f"{text},{i}\n" for i, text in enumerate(TEXTS)))
    labels = []
    for name, place in (("run", run_of("full")), ("onnx", exported)):
        done = heedful("predict", place, "--in", source, "--out", tmp_path / f"{name}.csv")
        assert done.status == 0, done.err
        labels.append([line.split(",")[2] for line in (tmp_path / f"{name}.csv").read_text().splitlines()])
    assert labels[0] == labels[1]


def test_what_was_measured_is_in_the_folder_and_in_the_sentence(exported: Path) -> None:
    facts = json.loads((exported / "onnx.json").read_text())
    measured = facts["measured"]
    assert measured["largest_logit_difference"] <= 1e-4
    assert measured["same_label"] == 1.0
    assert {"onnx", "torch", "pipeline"} == set(measured["speeds"])
    assert measured["speeds"]["onnx"]["memory_mb"] > 0
    assert measured["difference"]["value"] == 0
    assert "times as fast as torch" in (exported / "README.md").read_text()


@pytest.mark.parametrize("method", ["lora", "head"])
def test_int8_and_adapters(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path, method: str
) -> None:
    done = heedful("export", run_of(method), tmp_path / "out", "--onnx", "--int8", "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert facts["precision"] == "int8"
    assert 0 < facts["largest_logit_difference"] < 1
    assert facts["same_label"] > 0.9
    assert (
        hf.load(tmp_path / "out").predict(TEXTS)[0].label == hf.load(run_of(method)).predict(TEXTS)[0].label
    )


def test_a_convex_head_with_words_keeps_its_words(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    options = {"method": "head", "method_options": {"solver": "convex", "words": True}, "max_len": 32}
    run = hf.adapt(tiny_bert, tiny_task, out=tmp_path / "run", threads=1, precision="float32", **options)
    done = heedful("export", run.folder, tmp_path / "out", "--onnx")
    assert done.status == 0, done.err
    ours, theirs = (load_run(place).predict_proba(TEXTS) for place in (run.folder, tmp_path / "out"))
    assert np.allclose(ours, theirs, atol=1e-4)
    assert "also reads words" in (tmp_path / "out/README.md").read_text()


def spoil_for_int8(run: Path, target: Path) -> Path:
    """Copy a run and change its weights, not its function, so that one activation dwarfs the others."""
    shutil.copytree(run, target)
    weights = load_file(target / "best/model.safetensors")
    layer = "bert.encoder.layer.0"
    for name in ("weight", "bias"):
        weights[f"{layer}.attention.self.value.{name}"][0] *= 1e5
    output = weights[f"{layer}.attention.output.dense.weight"]
    output[:, 0] /= 1e5
    save_file(
        {k: v.contiguous() for k, v in weights.items()},
        target / "best/model.safetensors",
        metadata={"format": "pt"},
    )
    return target


def test_an_int8_that_loses_keeps_its_sensitive_part_in_float32(
    heedful: Callable[..., Any],
    run_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = spoil_for_int8(run_of("full"), tmp_path / "run")
    torch.testing.assert_close(
        torch.tensor(load_run(run).predict_proba(TEXTS)), torch.tensor(load_run(run_of("full")).predict_proba(TEXTS)),
        atol=1e-3, rtol=0,
    )  # fmt: skip
    done = heedful("export", run, tmp_path / "out", "--onnx", "--int8", "--json")
    assert done.status == 0, done.err
    assert "looking for the parts" in done.err
    facts = json.loads(done.out)
    assert "layer 1 attention" in facts["float32_parts"]
    assert not facts["difference"]["loses"]

    monkeypatch.setattr("heedful.evaluation.onnx_export.MOST_FLOAT32", 0.0)
    done = heedful("export", run, tmp_path / "refused", "--onnx", "--int8")
    assert done.status == 2
    assert "--accept-loss" in done.err
    assert not (tmp_path / "refused").exists()
    done = heedful("export", run, tmp_path / "accepted", "--onnx", "--int8", "--accept-loss", "--json")
    assert done.status == 0, done.err
    assert json.loads((tmp_path / "accepted/onnx.json").read_text())["float32_parts"] == []


def test_mistakes_get_one_line(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_task: Path, tmp_path: Path
) -> None:
    assert "--int8 belongs to --onnx" in heedful("export", run_of("full"), tmp_path / "out", "--int8").err
    assert "is not a run" in heedful("export", tmp_path, tmp_path / "out", "--onnx").err
    run = hf.adapt("tfidf", tiny_task, out=tmp_path / "linear")
    assert "linear model" in heedful("export", run.folder, tmp_path / "out", "--onnx").err
