"""The main contracts of methods, on a tiny random model of each family. `tests/contracts` has more."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.claims import CPU, Place, require
from heedful.families import FAMILIES
from heedful.methods import METHODS, Method, make
from heedful.models import Classifier, TransformerConfig
from heedful.models import build as build_model

VOCAB, D, CLASSES = 70, 24, 2
BERT = {"hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {**BERT, "max_position_embeddings": 140},
    "roberta": {**BERT, "max_position_embeddings": 142, "type_vocab_size": 1, "eos_token_id": 2},
    "distilbert": {"dim": D, "n_layers": 2, "n_heads": 3, "hidden_dim": 48, "max_position_embeddings": 140,
                   "dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0},
    "gpt2": {"n_embd": D, "n_layer": 2, "n_head": 3, "n_positions": 140, "pad_token_id": 0,
             "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "t5": {"d_model": D, "d_kv": 10, "d_ff": 48, "num_layers": 2, "num_heads": 3, "dropout_rate": 0.0},
}  # fmt: skip
"""A tiny model of each family, without dropout, as its config.json would describe it."""
SMALL: dict[str, dict[str, Any]] = {"prompt": {"length": 5}, "prefix": {"length": 4}, "lora": {"rank": 2},
                                    "top-layers": {"layers": 1}}  # fmt: skip
"""Options that make a method small."""
IMPOSSIBLE = {("t5", "bitfit"), ("t5", "top-layers")}
"""T5 has no biases to train, and two stacks of layers."""


def tiny_config(family: str) -> TransformerConfig:
    return FAMILIES[family].read_config({"vocab_size": VOCAB, **CONFIGS[family]}, family)


def make_small(name: str, **values: Any) -> Method:
    return make(name, **{**SMALL.get(name, {}), **values})


def build_classifier(family: str, name: str, place: Place = CPU) -> Classifier:
    """Build a model with a head for a method; biases and norms are random too."""
    torch.manual_seed(len(family))
    model = build_model(tiny_config(family), "classify", CLASSES, METHODS[name].default_head_form)
    assert isinstance(model, Classifier)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.to(place.device)


def make_batch(model: Classifier, lengths: tuple[int, ...] = (9, 4, 1, 7)) -> dict[str, Tensor]:
    """Return texts that end with the end-of-text token, padded on the right."""
    config = model.config
    ids = torch.randint(3, VOCAB, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(3))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = 2 if config.eos_id is None else config.eos_id
        ids[row, length:], mask[row, :length] = config.pad_id or 0, 1
    device = next(model.parameters()).device
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def compute_logits(model: Classifier, inputs: dict[str, Tensor]) -> Tensor:
    """Return the logits without dropout."""
    model.eval()
    with torch.no_grad():
        logits: Tensor = model(**inputs)
    return logits


def take_steps(model: Classifier, method: Method, steps: int = 3) -> None:
    """Take a few steps that are large enough to see."""
    optimizer = torch.optim.AdamW(method.trainable(model).values(), lr=0.02)
    inputs = make_batch(model)
    labels = torch.tensor([0, 1, 1, 0], device=inputs["input_ids"].device)
    model.train()
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(**inputs), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        require(loss.isfinite(), f"the loss of step {step} is {loss.item()}")
    model.eval()


def check_steps(model: Classifier, method: Method, steps: int = 3) -> None:
    """Only declared parameters move, and all of them do."""
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    declared = set(method.trainable(model))
    taking = {name for name, p in model.named_parameters() if p.requires_grad}
    require(taking == declared, f"gradients reach {sorted(taking ^ declared)[:3]}, against what is declared")
    take_steps(model, method, steps)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    require(moved <= declared, f"{sorted(moved - declared)[:3]} moved, but should not have")
    # Softmax ignores what is added to all keys alike; T5's decoder sees its first token under one bias only.
    still = {name for name in declared - moved if not name.endswith("k_proj.bias")}
    require(not still, f"{sorted(still)[:3]} should have moved, but did not")


def check_one_step(family: str, name: str, place: Place = CPU) -> None:
    """Attach a method, train, and load what it saved into another model."""
    method, model = make_small(name), build_classifier(family, name, place)
    inputs = make_batch(model)
    before = compute_logits(model, inputs)
    method.attach(model)
    same = torch.equal(compute_logits(model, inputs), before)
    require(same == method.keeps_output, "attaching changes the output, against what is declared")
    # With one step, what is behind a matrix of zeros (LoRA's) gets no gradient yet.
    check_steps(model, method, steps=2)
    trained = compute_logits(model, inputs)
    require(not torch.equal(trained, before), "training changes no output")
    other, copy = make_small(name), build_classifier(family, name, place)
    other.attach(copy)
    other.load_state(copy, method.state(model))
    require(torch.equal(compute_logits(copy, inputs), trained), "what was saved gives other outputs")


def list_contracts(name: str, place: Place) -> dict[str, Callable[[], None]]:
    """Return the training steps of a method on each family that it fits, by family."""
    return {
        family: partial(check_one_step, family, name, place)
        for family in CONFIGS
        if (family, name) not in IMPOSSIBLE
    }
