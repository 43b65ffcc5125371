"""A classifier on the mean is a folder of sentence-transformers: the same embeddings, the head beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from oracles import BERT, DISTILBERT, ROBERTA, Oracle, batch

from heedful import checkpoints, methods
from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.models import Classifier

sentence_transformers = pytest.importorskip("sentence_transformers", reason="part of the extra `test`")
TEXTS = ["lovely warm staff and fresh food", "the room was dirty", "again", "good " * 60]
FAST = ("--threads", "1", "--precision", "float32")


def mean_pooled(oracle: Oracle, folder: Path, **changes: Any) -> Classifier:
    oracle.make(None).save_pretrained(folder)
    model = checkpoints.load(folder, head="classify", n_classes=3, pool="mean", **changes)
    assert isinstance(model, Classifier)
    model.labels = ["bad", "fair", "gut ö"]
    return model


@pytest.mark.parametrize("form", ["family", "linear"])
@pytest.mark.parametrize("oracle", [BERT, ROBERTA, DISTILBERT], ids=lambda o: o.name)
def test_body_and_head_are_those_of_sentence_transformers(oracle: Oracle, form: Any, tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import Dense
    from transformers import AutoModel

    model = mean_pooled(oracle, tmp_path / "base", head_form=form)
    checkpoints.save(model, tmp_path / "saved")
    inputs = batch(oracle)
    with torch.no_grad():
        body = AutoModel.from_pretrained(tmp_path / "saved").eval()
        assert torch.allclose(body(**inputs).last_hidden_state, model.body(**inputs), atol=1e-5)
        features = {"sentence_embedding": model.body.pooled(**inputs)}
        for part in ("head_dense", "head"):
            if (tmp_path / "saved" / part).is_dir():
                features = Dense.load(str(tmp_path / "saved" / part))(features)
        assert torch.allclose(features["sentence_embedding"], model(**inputs), atol=1e-5)
    assert (tmp_path / "saved/head_dense").is_dir() == (form == "family" and oracle is not BERT)

    again = checkpoints.load(tmp_path / "saved", head="classify")
    assert isinstance(again, Classifier)
    assert (again.config, again.form, again.labels) == (model.config, form, model.labels)
    assert again.report.new == []
    with torch.no_grad():
        assert torch.equal(again(**inputs), model(**inputs))


def test_another_number_of_classes_or_no_head_takes_the_body_alone(tmp_path: Path) -> None:
    model = mean_pooled(BERT, tmp_path / "base")
    checkpoints.save(model, tmp_path / "saved")
    inputs = batch(BERT)
    other = checkpoints.load(tmp_path / "saved", head="classify", n_classes=5)
    assert other.report.new == ["head.out.weight", "head.out.bias"]
    bare = checkpoints.load(tmp_path / "saved")
    with torch.no_grad():
        assert torch.equal(bare.pooled(**inputs), model.body.pooled(**inputs))
        assert torch.equal(other.body.pooled(**inputs), model.body.pooled(**inputs))
    assert checkpoints.load(tmp_path / "saved", head="classify", pool="first").config.pool == "first"
    assert checkpoints.declared_pooling(tmp_path / "saved") == "mean"


def test_a_damaged_head_is_refused_with_its_file(tmp_path: Path) -> None:
    checkpoints.save(mean_pooled(BERT, tmp_path / "base"), tmp_path / "saved")
    (tmp_path / "saved/head/model.safetensors").unlink()
    with pytest.raises(UserError, match="the head does not fit"):
        checkpoints.load(tmp_path / "saved", head="classify")
    (tmp_path / "saved/head/labels.json").write_text("{}")
    with pytest.raises(UserError, match=r"labels\.json: is missing or not a list"):
        checkpoints.load(tmp_path / "saved", head="classify")


def test_what_neither_has_a_class_for_is_in_our_form_and_names_the_obstacle(tmp_path: Path) -> None:
    model = mean_pooled(BERT, tmp_path / "base", attention="performer")
    form = checkpoints.find_form(model)
    assert form.loads_with == "heedful"
    assert "attention = 'performer'" in str(form.why)
    with pytest.raises(UserError, match="attention = 'performer'"):
        checkpoints.export(model, tmp_path / "out")


def test_lora_names_the_way_to_a_whole_model(tmp_path: Path) -> None:
    model = mean_pooled(BERT, tmp_path / "base")
    method = methods.make("lora")
    method.attach(model)
    reason = str(methods.why_not_peft(model, method))
    assert reason.endswith("the whole model can be exported for sentence-transformers (--merge)")


def run_readme(folder: Path, text: str) -> dict[str, Any]:
    """Run the code in a folder's README.md on one text, and return its variables."""
    [code] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    values: dict[str, Any] = {"FOLDER": str(folder)}
    exec(code.replace('"a text"', repr(text)), values)
    return values


@pytest.mark.parametrize("method", ["full", "head"])
def test_a_run_and_its_export_give_the_same_embeddings_and_probabilities(
    method: str, heedful: Callable[..., Any], tmp_path: Path
) -> None:
    from tiny import make_model, make_task

    task, model, run = make_task(tmp_path / "task"), make_model(tmp_path / "model"), tmp_path / "run"
    words = ("--method", method, "--pool", "mean", "--epochs", "2", "--lr", "5e-3", "--max-len", "24")
    done = heedful("adapt", model, task, *words, "--out", run, *FAST)
    assert done.status == 0, done.err
    form = "sentence-transformers" if method == "full" else "heedful"
    assert json.loads((run / "results.json").read_text())["loads_with"] == form
    assert ("best/ loads with sentence-transformers, its head is in best/head" in done.out) == (
        method == "full"
    )

    done = heedful("export", run, tmp_path / "out", *(["--merge"] if method == "head" else []))
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1].startswith("loads with sentence-transformers, its head is in head/")
    ours = load_run(run)
    assert len(list((tmp_path / "out").rglob("*.safetensors"))) == 2
    for folder in [tmp_path / "out", *([run / "best"] if method == "full" else [])]:
        theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
        encoded = [ours.tokenizer.encode(text, max_len=24) for text in TEXTS]
        with torch.no_grad():
            states = [ours.model.body.pooled(torch.tensor([e.ids]))[0].numpy() for e in encoded]
        np.testing.assert_allclose(theirs.encode(TEXTS), np.stack(states), rtol=0, atol=1e-5)
        two = ("the room", "again")
        pair = ours.tokenizer.encode(*two, max_len=24)
        with torch.no_grad():
            state = ours.model.body.pooled(torch.tensor([pair.ids]), None, torch.tensor([pair.types]))
        np.testing.assert_allclose(theirs.encode([two]), state.numpy(), rtol=0, atol=1e-5)
        expected = ours.predict_proba(TEXTS)
        for text, row in zip(TEXTS, expected, strict=True):
            values = run_readme(folder, text)
            np.testing.assert_allclose(values["probabilities"][0], row, rtol=0, atol=1e-5)
            assert values["labels"] == list(ours.classes)


def test_the_first_token_keeps_the_form_of_transformers(heedful: Callable[..., Any], tmp_path: Path) -> None:
    from tiny import make_model, make_task

    task, model, run = make_task(tmp_path / "task"), make_model(tmp_path / "model"), tmp_path / "run"
    done = heedful("adapt", model, task, "--pool", "first", "--epochs", "1", "--out", run, *FAST)
    assert done.status == 0, done.err
    assert "best model: best/ loads with transformers" in done.out
    assert json.loads((run / "best/config.json").read_text())["architectures"] == [
        "BertForSequenceClassification"
    ]
    assert not (run / "best/modules.json").exists()
