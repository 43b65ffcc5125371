"""predict, evaluate and load take a study, an export and any classifier of transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

import heedful as package
from heedful.errors import UserError

TEXTS = ["lovely warm staff and fresh food", "the room was dirty", "again"]
OLD_RUNS = Path(__file__).parents[1] / "old_runs"


def test_a_classifier_of_transformers_labels_as_there(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_task: Path, tmp_path: Path
) -> None:
    assert heedful("export", run_of("full"), tmp_path / "plain").status == 0
    model = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "plain").eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "plain")
    with torch.no_grad():
        theirs = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.softmax(-1)
    ours = package.load(tmp_path / "plain").predict_proba(TEXTS)
    torch.testing.assert_close(torch.from_numpy(ours).float(), theirs, rtol=0, atol=1e-5)
    one = json.loads(heedful("predict", tmp_path / "plain", TEXTS[0], "--json").out)
    assert one["label"] == model.config.id2label[int(theirs[0].argmax())]
    wanted = json.loads(heedful("evaluate", run_of("full"), "--data", tiny_task, "--json").out)
    found = json.loads(heedful("evaluate", tmp_path / "plain", "--data", tiny_task, "--json").out)
    assert (found["value"], found["n"]) == (wanted["value"], wanted["n"])
    assert "--data FILE" in heedful("evaluate", tmp_path / "plain").err


def test_a_study_stands_for_its_best_run(heedful: Callable[..., Any], tmp_path: Path) -> None:
    from heedful.runs.directory import follow_choice

    chosen = follow_choice(OLD_RUNS / "search")
    assert chosen.parent == OLD_RUNS / "search/runs"
    results = {
        run.name: json.loads((run / "results.json").read_text())["splits"]["dev"]["value"]
        for run in chosen.parent.iterdir()
        if (run / "best").is_dir()
    }
    assert results[chosen.name] == max(results.values())


def test_a_model_without_a_head_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no classification head"):
        package.load(tiny_bert)
    with pytest.raises(UserError, match="there is no such folder"):
        package.load(tmp_path / "absent")
