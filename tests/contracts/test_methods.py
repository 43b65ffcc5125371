"""What every method promises, on every family."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful import checkpoints
from heedful.checkpoints import FAMILIES
from heedful.errors import UserError
from heedful.methods import METHODS, Method, head_names, make, options, read_adapter, room, write_adapter
from heedful.models import Classifier, build, load

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
SMALL: dict[str, dict[str, Any]] = {"prompt": {"length": 5}, "prefix": {"length": 4}, "lora": {"rank": 2}}
EXTRA: list[tuple[str, dict[str, Any]]] = [
    ("prefix", {"length": 3, "reparametrize": True, "hidden": 7, "shift": False}),
    ("lora", {"rank": 3, "targets": "q,k,v,o,ff", "dropout": 0.1, "rank_stabilized": True}),
]
CASES = [
    pytest.param(family, name, given, id=f"{family}-{name}{'-more' if given else ''}")
    for family in FAMILIES
    for name, given in [*((name, {}) for name in METHODS), *EXTRA]
    if (family, name) != ("t5", "bitfit")
]
every_method = pytest.mark.parametrize(("family", "name", "given"), CASES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A pretrained body of each family: random weights, biases and norms included."""
    made = {}
    for family, values in CONFIGS.items():
        torch.manual_seed(len(family))
        body = build(FAMILIES[family].read_config({"vocab_size": VOCAB, **values}, family))
        with torch.no_grad():
            for parameter in body.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        made[family] = checkpoints.save(body, tmp_path_factory.mktemp("bodies") / family)
    return made


def fresh(folders: dict[str, Path], family: str, name: str) -> Classifier:
    """The model as `adapt` would load it for a method; the new head is seeded."""
    torch.manual_seed(1)
    model = load(
        folders[family], head="classify", n_classes=CLASSES, head_form=METHODS[name].default_head_form
    )
    assert isinstance(model, Classifier)
    return model


def new(name: str, given: dict[str, Any]) -> Method:
    """A small method."""
    return make(name, **{**SMALL.get(name, {}), **given})


def batch(model: Classifier, lengths: tuple[int, ...] = (9, 4, 1, 7)) -> dict[str, Tensor]:
    """Texts that end with the end-of-text token, padded at the right."""
    config = model.config
    ids = torch.randint(3, VOCAB, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(3))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = 2 if config.eos_id is None else config.eos_id
        ids[row, length:], mask[row, :length] = config.pad_id or 0, 1
    return {"input_ids": ids, "attention_mask": mask}


def logits(model: Classifier, inputs: dict[str, Tensor]) -> Tensor:
    """Logits without dropout."""
    model.eval()
    with torch.no_grad():
        result: Tensor = model(**inputs)
    return result


def train(model: Classifier, method: Method, steps: int = 3) -> None:
    """A few steps that are large enough to see."""
    optimizer = torch.optim.AdamW(method.trainable(model).values(), lr=0.02)
    inputs = batch(model)
    model.train()
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(**inputs), torch.tensor([0, 1, 1, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.isfinite(), step
    model.eval()


@every_method
def test_attaching_changes_no_output_where_that_is_promised(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    inputs = batch(model)
    before = logits(model, inputs)
    method = new(name, given)
    method.attach(model)
    assert torch.equal(logits(model, inputs), before) == method.keeps_output


@every_method
def test_only_declared_parameters_move_and_all_of_them_do(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    method = new(name, given)
    method.attach(model)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    declared = method.trainable(model)
    assert {n for n, p in model.named_parameters() if p.requires_grad} == declared.keys()
    train(model, method)
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert moved <= declared.keys()
    # Softmax ignores what is added to all keys alike; T5's decoder sees its first token under one bias only.
    still = {n for n in declared.keys() - moved if not n.endswith("k_proj.bias")}
    assert not still


@every_method
def test_save_and_load_give_the_same_bits(folders, family, name, given, tmp_path) -> None:
    model = fresh(folders, family, name)
    method = new(name, given)
    method.attach(model)
    train(model, method)
    inputs = batch(model)
    trained = logits(model, inputs)

    other = new(name, given)
    copied = fresh(folders, family, name)
    other.attach(copied)
    assert not torch.equal(logits(copied, inputs), trained)
    other.load_state(copied, method.state(model))
    assert torch.equal(logits(copied, inputs), trained)

    write_adapter(model, method, tmp_path / "adapter", str(folders[family]))
    again = fresh(folders, family, name)
    read_adapter(tmp_path / "adapter", again)
    assert torch.equal(logits(again, inputs), trained)


@every_method
def test_the_head_is_always_trained_and_always_saved(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    method = new(name, given)
    method.attach(model)
    head = {n for n, _ in model.named_parameters() if n.startswith("head.")}
    assert head
    assert head <= set(head_names(model)) <= method.trainable(model).keys()
    assert head <= method.state(model).keys()


@every_method
def test_merging_gives_the_same_logits_in_a_plain_model(folders, family, name, given, tmp_path) -> None:
    model = fresh(folders, family, name).double()
    plain = {n for n, _ in model.named_parameters()}
    method = new(name, given)
    method.attach(model)
    train(model, method)
    inputs = batch(model)
    trained = logits(model, inputs)
    if not method.mergeable:
        with pytest.raises(UserError, match="cannot be merged"):
            method.merge(model)
        assert torch.equal(logits(model, inputs), trained)
        return
    method.merge(model)
    assert (logits(model, inputs) - trained).abs().max() <= 1e-10
    assert {n for n, _ in model.named_parameters()} == plain
    assert all(type(part).__name__ != "LoRALinear" for part in model.modules())
    checkpoints.save(model.float(), tmp_path / "merged")
    assert torch.equal(logits(load(tmp_path / "merged", head="classify"), inputs), logits(model, inputs))


@every_method
def test_switching_off_restores_the_base(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    inputs = batch(model)
    before = logits(model, inputs)
    method = new(name, given)
    method.attach(model)
    train(model, method)
    trained = logits(model, inputs)
    if not method.switchable:
        with pytest.raises(UserError, match="load the base again"), method.disabled(model):
            pass
        assert torch.equal(logits(model, inputs), trained)
        return
    with method.disabled(model):
        assert torch.equal(logits(model, inputs), before)
        assert room(model) == model.config.max_len
    assert torch.equal(logits(model, inputs), trained)
    assert not torch.equal(trained, before)


@every_method
def test_padding_and_neighbors_change_nothing(folders, family, name, given) -> None:
    model = fresh(folders, family, name).double()
    method = new(name, given)
    method.attach(model)
    train(model, method)
    tight = logits(model, batch(model))
    wide = batch(model)
    pad = torch.full((4, 6), model.config.pad_id or 0)
    wide = {
        "input_ids": torch.cat([wide["input_ids"], pad], 1),
        "attention_mask": torch.cat([wide["attention_mask"], torch.zeros_like(pad)], 1),
    }
    assert (logits(model, wide) - tight).abs().max() <= 1e-10
    alone = {key: value[1:2, :4] for key, value in batch(model).items()}
    assert (logits(model, alone) - tight[1:2]).abs().max() <= 1e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_counts_are_the_same_on_every_family(folders, family) -> None:
    for name, expected in {"head": "2 d + 2", "prompt": "130 d + 2"}.items():
        model = fresh(folders, family, name)
        method = make(name)
        method.attach(model)
        count = sum(p.numel() for p in method.trainable(model).values())
        assert count == eval(expected.replace(" d", " * D"))
        assert method.count(model) == count
        assert method.formula(model) == f"{expected} = {count:,}"


@every_method
def test_the_formula_is_the_count(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    method = new(name, given)
    method.attach(model)
    formula, count = method.formula(model).replace(",", "").split(" = ")
    terms = [re.fullmatch(r"(\d*) ?(d?)\^?(\d?)", term) for term in formula.split(" + ")]
    value = sum(int(t[1] or 1) * (D ** int(t[3] or 1) if t[2] else 1) for t in terms if t)
    assert None not in terms
    assert value == int(count) == method.count(model)
    assert method.count(model) == sum(p.numel() for p in method.trainable(model).values())


@pytest.mark.parametrize("name", METHODS)
def test_options_make_the_same_method_again(name) -> None:
    method = new(name, {})
    assert make(name, **method.options()) == method
    assert options(name).keys() == method.options().keys()


@pytest.mark.parametrize("name", METHODS)
def test_a_copied_model_keeps_its_method(folders, name) -> None:
    model = fresh(folders, "bert", name)
    method = new(name, {})
    method.attach(model)
    train(model, method)
    trained = logits(model, batch(model))
    copied = copy.deepcopy(model)
    train(model, method)
    assert torch.equal(logits(copied, batch(model)), trained)
    assert copied.method.state(copied).keys() == method.state(model).keys()
