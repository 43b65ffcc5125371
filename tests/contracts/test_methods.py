"""What every method promises, on every family."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful import checkpoints
from heedful.attention import Mechanism
from heedful.checkpoints import FAMILIES
from heedful.contracts.methods import (
    CLASSES,
    CONFIGS,
    IMPOSSIBLE,
    D,
    check_steps,
    compute_logits,
    make_batch,
    make_small,
    take_steps,
    tiny_config,
)
from heedful.errors import UserError
from heedful.methods import METHODS, head_names, make, measure_room, options, read_adapter, write_adapter
from heedful.models import Classifier, build, load

EXTRA: list[tuple[str, dict[str, Any]]] = [
    ("prefix", {"length": 3, "reparametrize": True, "hidden": 7, "shift": False}),
    ("lora", {"rank": 3, "targets": "q,k,v,o,ff", "dropout": 0.1, "rank_stabilized": True}),
]
CASES = [
    pytest.param(family, name, given, id=f"{family}-{name}{'-more' if given else ''}")
    for family in FAMILIES
    for name, given in [*((name, {}) for name in METHODS), *EXTRA]
    if (family, name) not in IMPOSSIBLE
]
every_method = pytest.mark.parametrize(("family", "name", "given"), CASES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A pretrained body of each family: random weights, biases and norms included."""
    made = {}
    for family in CONFIGS:
        torch.manual_seed(len(family))
        body = build(tiny_config(family))
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


@every_method
def test_attaching_changes_no_output_where_that_is_promised(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    inputs = make_batch(model)
    before = compute_logits(model, inputs)
    method = make_small(name, **given)
    method.attach(model)
    assert torch.equal(compute_logits(model, inputs), before) == method.keeps_output


@every_method
def test_only_declared_parameters_move_and_all_of_them_do(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    method = make_small(name, **given)
    method.attach(model)
    check_steps(model, method)


@every_method
def test_steps_in_half_precision_move_the_same_parameters(
    folders, family, name, given, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fresh(folders, family, name)
    method = make_small(name, **given)
    method.attach(model)
    half = torch.autocast("cpu", dtype=torch.bfloat16)  # of the forward pass alone, as in training
    monkeypatch.setattr(model, "forward", half(model.forward))
    for module in model.modules():
        if isinstance(module, Mechanism):
            module.dropout = 0.1  # attention has its own backward pass then
    check_steps(model, method)


@every_method
def test_save_and_load_give_the_same_bits(folders, family, name, given, tmp_path) -> None:
    model = fresh(folders, family, name)
    method = make_small(name, **given)
    method.attach(model)
    take_steps(model, method)
    inputs = make_batch(model)
    trained = compute_logits(model, inputs)

    other = make_small(name, **given)
    copied = fresh(folders, family, name)
    other.attach(copied)
    assert not torch.equal(compute_logits(copied, inputs), trained)
    other.load_state(copied, method.state(model))
    assert torch.equal(compute_logits(copied, inputs), trained)

    write_adapter(model, method, tmp_path / "adapter", str(folders[family]))
    again = fresh(folders, family, name)
    read_adapter(tmp_path / "adapter", again)
    assert torch.equal(compute_logits(again, inputs), trained)


@every_method
def test_the_head_is_always_trained_and_always_saved(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    method = make_small(name, **given)
    method.attach(model)
    head = {n for n, _ in model.named_parameters() if n.startswith("head.")}
    assert head
    assert head <= set(head_names(model)) <= method.trainable(model).keys()
    assert head <= method.state(model).keys()


@every_method
def test_merging_gives_the_same_logits_in_a_plain_model(folders, family, name, given, tmp_path) -> None:
    model = fresh(folders, family, name).double()
    plain = {n for n, _ in model.named_parameters()}
    method = make_small(name, **given)
    method.attach(model)
    take_steps(model, method)
    inputs = make_batch(model)
    trained = compute_logits(model, inputs)
    if not method.mergeable:
        with pytest.raises(UserError, match="cannot be merged"):
            method.merge(model)
        assert torch.equal(compute_logits(model, inputs), trained)
        return
    method.merge(model)
    assert (compute_logits(model, inputs) - trained).abs().max() <= 1e-10
    assert {n for n, _ in model.named_parameters()} == plain
    assert all(type(part).__name__ != "LoRALinear" for part in model.modules())
    checkpoints.save(model.float(), tmp_path / "merged")
    assert torch.equal(
        compute_logits(load(tmp_path / "merged", head="classify"), inputs), compute_logits(model, inputs)
    )


@every_method
def test_switching_off_restores_the_base(folders, family, name, given) -> None:
    model = fresh(folders, family, name)
    inputs = make_batch(model)
    before = compute_logits(model, inputs)
    method = make_small(name, **given)
    method.attach(model)
    take_steps(model, method)
    trained = compute_logits(model, inputs)
    if not method.switchable:
        with pytest.raises(UserError, match="load the base again"), method.disabled(model):
            pass
        assert torch.equal(compute_logits(model, inputs), trained)
        return
    with method.disabled(model):
        assert torch.equal(compute_logits(model, inputs), before)
        assert measure_room(model) == model.config.max_len
    assert torch.equal(compute_logits(model, inputs), trained)
    assert not torch.equal(trained, before)


@every_method
def test_padding_and_neighbors_change_nothing(folders, family, name, given) -> None:
    model = fresh(folders, family, name).double()
    method = make_small(name, **given)
    method.attach(model)
    take_steps(model, method)
    tight = compute_logits(model, make_batch(model))
    wide = make_batch(model)
    pad = torch.full((4, 6), model.config.pad_id or 0)
    wide = {
        "input_ids": torch.cat([wide["input_ids"], pad], 1),
        "attention_mask": torch.cat([wide["attention_mask"], torch.zeros_like(pad)], 1),
    }
    assert (compute_logits(model, wide) - tight).abs().max() <= 1e-10
    alone = {key: value[1:2, :4] for key, value in make_batch(model).items()}
    assert (compute_logits(model, alone) - tight[1:2]).abs().max() <= 1e-10


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
    method = make_small(name, **given)
    method.attach(model)
    formula, count = method.formula(model).replace(",", "").split(" = ")
    terms = [re.fullmatch(r"(\d*) ?(d?)\^?(\d?)", term) for term in formula.split(" + ")]
    value = sum(int(t[1] or 1) * (D ** int(t[3] or 1) if t[2] else 1) for t in terms if t)
    assert None not in terms
    assert value == int(count) == method.count(model)
    assert method.count(model) == sum(p.numel() for p in method.trainable(model).values())


@pytest.mark.parametrize("name", METHODS)
def test_options_make_the_same_method_again(name) -> None:
    method = make_small(name)
    assert make(name, **method.options()) == method
    assert options(name).keys() == method.options().keys()


@pytest.mark.parametrize("name", METHODS)
def test_a_copied_model_keeps_its_method(folders, name) -> None:
    model = fresh(folders, "bert", name)
    method = make_small(name)
    method.attach(model)
    take_steps(model, method)
    trained = compute_logits(model, make_batch(model))
    copied = copy.deepcopy(model)
    take_steps(model, method)
    assert torch.equal(compute_logits(copied, make_batch(model)), trained)
    assert copied.method.state(copied).keys() == method.state(model).keys()
