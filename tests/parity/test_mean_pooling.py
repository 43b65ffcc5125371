"""A classifier on the mean of a text's states: transformers' states averaged, and kept wherever a model goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from oracles import BERT, DISTILBERT, GPT2, ROBERTA, Oracle, batch, theirs

from heedful import checkpoints, methods
from heedful.errors import UserError
from heedful.models import Classifier

ENCODERS = (BERT, ROBERTA, DISTILBERT)
FAST = ("--threads", "1", "--precision", "float32")


def saved(oracle: Oracle, folder: Path) -> Any:
    model = oracle.make(None)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("oracle", ENCODERS, ids=lambda o: o.name)
def test_the_pooled_state_is_the_mean_of_transformers_states(oracle: Oracle, tmp_path: Path) -> None:
    inputs, reference = batch(oracle), saved(oracle, tmp_path)
    states = theirs(reference, inputs, None)
    ours = checkpoints.load(tmp_path, head="classify", n_classes=3, pool="mean")
    assert isinstance(ours, Classifier)
    with torch.no_grad():
        pooled = ours.body.pooled(**inputs)
        for row, mask, found in zip(states, inputs["attention_mask"], pooled, strict=True):
            assert torch.allclose(found, row[mask.bool()].mean(0), atol=1e-5)
        assert torch.equal(ours.head(pooled), ours(**inputs))
    assert not [name for name in ours.report.new if not name.startswith("head.")]


def test_without_a_mask_every_token_counts(tmp_path: Path) -> None:
    saved(BERT, tmp_path)
    model = checkpoints.load(tmp_path, head="classify", n_classes=3, pool="mean")
    ids = batch(BERT)["input_ids"][:1]
    assert torch.allclose(model(ids), model(ids, torch.ones_like(ids)), atol=1e-6)


@pytest.mark.parametrize("length", [0, 3])
def test_a_prompt_is_not_part_of_the_mean(length: int, tmp_path: Path) -> None:
    saved(BERT, tmp_path)
    model = checkpoints.load(tmp_path, head="classify", n_classes=3, pool="mean")
    if length:
        methods.make("prompt", length=length).attach(model)
    inputs = batch(BERT)
    with torch.no_grad():
        states = model.body(**inputs)
        mask = inputs["attention_mask"][..., None]
        assert torch.allclose(model.body.pooled(**inputs), (states * mask).sum(1) / mask.sum(1), atol=1e-5)


def test_a_saved_model_pools_as_it_did_and_transformers_is_not_given_another(tmp_path: Path) -> None:
    saved(BERT, tmp_path / "base")
    model = checkpoints.load(tmp_path / "base", head="classify", n_classes=3, pool="mean")
    checkpoints.save(model, tmp_path / "kept")
    again = checkpoints.load(tmp_path / "kept", head="classify")
    inputs = batch(BERT)
    with torch.no_grad():
        assert torch.equal(again(**inputs), model(**inputs))
    assert str(checkpoints.find_export_obstacle(model)) == "transformers' bert has no pool = 'mean'"
    assert checkpoints.find_form(model).loads_with == "sentence-transformers"
    checkpoints.export(model, tmp_path / "theirs")
    written = json.loads((tmp_path / "theirs/config.json").read_text())
    assert written["architectures"] == ["BertModel"]
    assert "id2label" not in written


def test_an_adapter_goes_only_onto_a_base_that_pools_alike(tmp_path: Path) -> None:
    saved(BERT, tmp_path / "base")
    model = checkpoints.load(tmp_path / "base", head="classify", n_classes=3, pool="mean")
    method = methods.make("lora")
    method.attach(model)
    methods.write_adapter(model, method, tmp_path / "adapter", base_name="base")
    assert json.loads((tmp_path / "adapter" / "heedful.json").read_text())["pool"] == "mean"
    other = checkpoints.load(tmp_path / "base", head="classify", n_classes=3)
    with pytest.raises(UserError, match='was trained with pool "mean"'):
        methods.read_adapter(tmp_path / "adapter", other)


def test_a_decoder_has_no_mean(tmp_path: Path) -> None:
    saved(GPT2, tmp_path)
    with pytest.raises(UserError, match="pool mean is for encoders"):
        checkpoints.load(tmp_path, head="classify", pool="mean")


@pytest.mark.parametrize("method", ["full", "head", "lora", "prompt"])
def test_a_run_is_evaluated_with_the_pool_it_was_trained_with(
    method: str, heedful: Callable[..., Any], tmp_path: Path
) -> None:
    from tiny import make_model, make_task

    task, model = make_task(tmp_path / "task"), make_model(tmp_path / "model")
    more = ("--method-options", "length=4") if method == "prompt" else ()
    scores = {}
    for pool in ("first", "mean"):
        out = tmp_path / pool
        words = ("--method", method, "--pool", pool, "--epochs", "3", "--lr", "5e-3", "--out", out, *more)
        done = heedful("adapt", model, task, *words, *FAST)
        assert done.status == 0, done.err
        scores[pool] = json.loads((out / "results.json").read_text())["splits"]["dev"]["loss"]
        again = heedful("evaluate", out, "--split", "dev", "--json")
        assert again.status == 0, again.err
        assert json.loads(again.out)["loss"] == pytest.approx(scores[pool], abs=1e-6)
    assert scores["first"] != scores["mean"]


@pytest.mark.parametrize("words", [(), ("--pool", "mean"), ("--pool", "first")])
def test_a_folder_that_declares_the_mean_is_pooled_that_way(
    words: tuple[str, ...], heedful: Callable[..., Any], tmp_path: Path
) -> None:
    from tiny import make_model, make_task

    task, model = make_task(tmp_path / "task"), make_model(tmp_path / "model")
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    run = ("adapt", model, task, "--method", "head", "--epochs", "1", "--out", tmp_path / "run", *words)
    done = heedful(*run, *FAST)
    assert done.status == 0, done.err
    assert ("the head reads the mean of the token states" in done.err) == (not words)
    pool = words[1] if words else "mean"
    assert f'pool = "{pool}"' in (tmp_path / "run" / "config.toml").read_text()
    reasons = json.loads((tmp_path / "run" / "env.json").read_text())["chosen"]
    assert ("1_Pooling" in reasons.get("pool", "")) == (not words)


def test_what_cannot_be_is_said(heedful: Callable[..., Any], tmp_path: Path) -> None:
    from tiny import make_model, make_task

    task, model = make_task(tmp_path / "task"), make_model(tmp_path / "model")
    words = ("--method", "prompt", "--pool", "mean", "--method-options", "pool=first", "length=4")
    done = heedful("adapt", model, task, *words, "--out", tmp_path / "r", *FAST)
    assert done.status == 2
    assert "exclude each other" in done.err
    for pool in ("first", "mean"):
        done = heedful(
            "adapt", "gpt-nano", task, "--tokenizer", "word", "--pool", pool, *FAST, "--out", tmp_path / "r"
        )
        assert done.status == 2
        assert "--pool is for encoders; gpt-nano is a decoder" in done.err
