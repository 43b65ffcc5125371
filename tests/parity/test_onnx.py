"""Exported graphs against transformers on random tiny models, with padding: at most 1e-4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from oracles import BERT, DISTILBERT, GPT2, ORACLES, ROBERTA, T5, Oracle, batch, theirs

from heedful import checkpoints, methods, models
from heedful.errors import UserError
from heedful.inference.onnx.graph import write_graph
from heedful.inference.onnx.predictor import open_session
from heedful.models import PRESETS, Classifier

TOLERANCE = 1e-4
SHAPES = ((9, 4, 1, 7), (3,), (20, 20, 2))


def load_classifier(oracle: Oracle, folder: Path, **options: Any) -> tuple[Any, Classifier]:
    reference = oracle.make("classify")
    reference.save_pretrained(folder)
    model = checkpoints.load(folder, head="classify", **options)
    assert isinstance(model, Classifier)
    return reference, model.eval()


def run_graph(model: Classifier, folder: Path, inputs: dict[str, Any]) -> npt.NDArray[np.float32]:
    path = folder / "model.onnx"
    if not path.is_file():
        write_graph(model, model.config.pad_id or 0, path)
    session = open_session(path, 1)
    kept = [one.name for one in session.get_inputs()]
    logits: npt.NDArray[np.float32] = session.run(None, {name: inputs[name].numpy() for name in kept})[0]
    return logits


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: o.name)
def test_the_graph_computes_what_transformers_computes(oracle: Oracle, tmp_path: Path) -> None:
    reference, model = load_classifier(oracle, tmp_path)
    for lengths in SHAPES:
        inputs = batch(oracle, lengths)
        logits = run_graph(model, tmp_path, inputs)
        assert np.abs(logits - theirs(reference, inputs, "classify").numpy()).max() <= TOLERANCE


@pytest.mark.parametrize("oracle", [BERT, ROBERTA, DISTILBERT], ids=lambda o: o.name)
def test_the_graph_of_a_mean_pools_real_tokens_alone(oracle: Oracle, tmp_path: Path) -> None:
    _, model = load_classifier(oracle, tmp_path, pool="mean")
    for lengths in SHAPES:
        inputs = batch(oracle, lengths)
        assert (
            np.abs(run_graph(model, tmp_path, inputs) - model(**inputs).detach().numpy()).max() <= TOLERANCE
        )


@pytest.mark.parametrize(("oracle", "method"), [
    (BERT, "lora"), (BERT, "prompt"), (GPT2, "prefix"), (T5, "prefix"), (ROBERTA, "prompt"),
])  # fmt: skip
def test_adapters_are_part_of_the_graph(oracle: Oracle, method: str, tmp_path: Path) -> None:
    _, model = load_classifier(oracle, tmp_path)
    options = {"rank": 2} if method == "lora" else {"length": 3}
    attached = methods.make(method, **options)
    attached.attach(model)
    for parameter in attached.trainable(model).values():
        parameter.data.normal_(std=0.3)
    before = [
        (inputs := batch(oracle, lengths), model.eval()(**inputs).detach().numpy()) for lengths in SHAPES
    ]
    for inputs, logits in before:
        assert np.abs(run_graph(model, tmp_path, inputs) - logits).max() <= TOLERANCE


def test_a_mechanism_without_an_onnx_form_is_refused(tmp_path: Path) -> None:
    config = PRESETS["bert-tiny"].config.replace(
        vocab_size=50, d_model=16, n_heads=2, d_head=8, d_ff=32, n_layers=1, max_len=64, attention="bigbird"
    )
    model = models.build(config, "classify")
    assert isinstance(model, Classifier)
    with pytest.raises(UserError, match="bigbird attention"):
        write_graph(model, 0, tmp_path / "model.onnx")


def test_ordered_thresholds_are_part_of_the_graph(tmp_path: Path) -> None:
    """Also where a class is so improbable that its probability is 0 in float32."""
    _, model = load_classifier(BERT, tmp_path)
    ordinal = models.build(model.config, "classify", 4, "ordinal")
    assert isinstance(ordinal, Classifier)
    ordinal.head.set_thresholds(torch.tensor([-200.0, 0.0, 1e-3]))
    for lengths in SHAPES:
        inputs = batch(BERT, lengths)
        found = run_graph(ordinal.eval(), tmp_path, inputs)
        assert np.abs(found - ordinal(**inputs).detach().numpy()).max() <= TOLERANCE


def test_the_texts_of_a_pair_are_read_apart_in_the_graph(tmp_path: Path) -> None:
    _, plain = load_classifier(BERT, tmp_path)
    model = models.build(plain.config.replace(pool="apart"), "classify").eval()
    assert isinstance(model, Classifier)
    for lengths in ((9, 4, 3, 7), (20, 20, 2)):
        inputs = batch(BERT, lengths)
        inputs["token_type_ids"] = inputs["attention_mask"] * (torch.arange(max(lengths)) > 0)
        inputs["token_type_ids"][0, :5] = 0
        found = run_graph(model, tmp_path, inputs)
        assert np.abs(found - model(**inputs).detach().numpy()).max() <= TOLERANCE
