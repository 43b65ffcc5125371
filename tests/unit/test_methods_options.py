"""Methods by name: options, targets, errors, counts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from heedful.errors import UserError
from heedful.methods import head_names, make, read_adapter, write_adapter
from heedful.methods.counts import polynomial
from heedful.methods.lora import Lora, LoRALinear
from heedful.models import Classifier, build, load
from heedful.models.presets import PRESETS


def tiny(name: str = "bert-tiny", **changes: Any) -> Classifier:
    """A preset, smaller."""
    sizes = {"vocab_size": 30, "d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2, "max_len": 24}
    config = PRESETS[name].config.replace(d_head=0, **sizes, **changes)
    model = build(config, "classify")
    assert isinstance(model, Classifier)
    return model.eval()


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("lara", {}, 'unknown method "lara"; did you mean "lora"?'),
        ("lora", {"rnak": 4}, 'method lora has no option "rnak"; it has alpha, dropout, layers, rank, rank_stabilized, targets'),
        ("full", {"rank": 4}, 'method full has no option "rank"; it has none'),
        ("lora", {"rank": "4"}, 'lora: rank "4": must be a whole number'),
        ("lora", {"rank": True}, "lora: rank true: must be a whole number"),
        ("lora", {"rank": 0}, "lora: rank 0: must be at least 1"),
        ("lora", {"alpha": -1}, "lora: alpha -1: must be above 0"),
        ("lora", {"alpha": math.nan}, "lora: alpha nan: must be a finite number"),
        ("lora", {"dropout": 1.0}, "lora: dropout 1: must be at least 0 and below 1"),
        ("lora", {"targets": "q,w"}, 'unknown lora target "w"; there are ff, k, o, q, v'),
        ("lora", {"targets": ""}, 'unknown lora target ""'),
        ("prompt", {"length": 0}, "prompt: length 0: must be at least 1"),
        ("prompt", {"pool": "mean"}, 'prompt: pool "mean": must be text or first'),
        ("prefix", {"length": -3}, "prefix: length -3: must be at least 1"),
        ("prefix", {"hidden": 0}, "prefix: hidden 0: must be at least 1"),
        ("prefix", {"shift": 1}, "prefix: shift 1: must be true or false"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_one_line_that_says_what_would_be_right(
    name: str, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError) as caught:
        make(name, **given)
    assert says in str(caught.value)


def test_targets_are_roles_on_any_model() -> None:
    model = tiny("t5-mini", n_decoder_layers=2)
    method = make("lora", targets=" ff , q,q", rank=2)
    assert isinstance(method, Lora)
    assert method.roles == ["q", "ff"]
    method.attach(model)
    found = {name for name, part in model.named_modules() if isinstance(part, LoRALinear)}
    ends = {name.rsplit(".", 1)[1] for name in found}
    assert ends == {"q_proj", "in_proj", "gate_proj", "out_proj"}
    assert "body.decoder.layers.1.cross.q_proj" in found
    assert len(found) == 2 * (1 + 3) + 2 * (2 + 3)


def test_a_role_that_a_model_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="no layer in the role k"):
        make("lora", targets="k").attach(tiny(projections="shared_qk"))


def test_the_scale_of_lora_is_alpha_over_the_rank_or_its_root() -> None:
    for stabilized, scale in ((False, 16 / 4), (True, 16 / 2)):
        model = tiny()
        method = make("lora", rank=4, alpha=16, rank_stabilized=stabilized)
        method.attach(model)
        layer = model.body.stack.layers[0].attn.q_proj
        nn.init.normal_(layer.lora_b)
        x = torch.randn(3, 16)
        expected = x @ layer.weight.T + layer.bias + scale * (x @ layer.lora_a.T @ layer.lora_b.T)
        assert torch.allclose(layer(x), expected, atol=1e-5)


def test_loras_dropout_acts_in_training_only() -> None:
    model = tiny()
    make("lora", dropout=0.5).attach(model)
    layer = model.body.stack.layers[0].attn.q_proj
    nn.init.normal_(layer.lora_b)
    x = torch.randn(3, 16)
    assert torch.equal(layer(x), layer(x))
    model.train()
    assert not torch.equal(layer(x), layer(x))


def test_a_second_method_is_refused() -> None:
    model = tiny()
    make("head").attach(model)
    with pytest.raises(UserError, match="head is attached to this model already"):
        make("lora").attach(model)


def test_a_method_of_another_model_is_refused() -> None:
    method = make("head")
    method.attach(tiny())
    for use in (method.trainable, method.state, method.merge):
        with pytest.raises(UserError, match="is not attached to this model"):
            use(tiny())


def test_a_merged_model_takes_another_method() -> None:
    model = tiny()
    method = make("lora")
    method.attach(model)
    method.merge(model)
    assert all(p.requires_grad for p in model.parameters())
    make("bitfit").attach(model)


def test_a_wrong_state_is_refused_before_anything_is_set() -> None:
    model = tiny()
    method = make("head")
    method.attach(model)
    good = {name: tensor + 1 for name, tensor in method.state(model).items()}
    before = method.state(model)
    for bad, says in (
        ({k: v for k, v in good.items() if k != "head.out.bias"}, 'lacks "head.out.bias"'),
        ({**good, "more": torch.zeros(1)}, 'has "more", which this model lacks'),
        ({**good, "head.out.bias": torch.zeros(3)}, r"with shape \(3,\); this model's is \(2,\)"),
    ):
        with pytest.raises(UserError, match=says):
            method.load_state(model, bad)
        assert all(torch.equal(t, before[n]) for n, t in method.state(model).items())


def test_a_state_is_a_copy() -> None:
    model = tiny()
    method = make("head")
    method.attach(model)
    kept = method.state(model)
    with torch.no_grad():
        model.head.out.bias += 1
    assert not torch.equal(kept["head.out.bias"], model.head.out.bias)


def test_the_head_of_a_model_from_nothing_stands_on_the_body() -> None:
    assert head_names(load("bert-tiny", head="classify")) == ["head.out.weight", "head.out.bias"]


def test_a_language_model_without_a_new_head_has_nothing_for_head_to_train() -> None:
    with pytest.raises(UserError, match="head has nothing to train in a causal model"):
        make("head").attach(load("gpt-nano", head="causal"))


def test_a_formula_counts_sides_that_are_multiples_of_d() -> None:
    assert polynomial([(128, 384), (2, 384), (2,)], 384) == "130 d + 2"
    assert polynomial([(384, 1536), (1536,), (384, 384)], 384) == "5 d^2 + 4 d"
    assert polynomial([(7,)], 384) == "7"
    assert polynomial([(384, 384)], 384) == "d^2"
    assert polynomial([(2, 384), (2,)], 384, [(384, 384), (768, 384)]) == "1,154 d + 2"
    assert polynomial([(30522, 384)], 384) == "30,522 d"
    assert polynomial([(6, 2, 12, 16, 32)], 384) == "192 d"


@pytest.mark.needs("minilm")
@pytest.mark.parametrize(("name", "formula"), [("head", "2 d + 2 = 770"), ("prompt", "130 d + 2 = 49,922")])
def test_minilm_has_the_counts_of_the_course(name: str, formula: str) -> None:
    method = make(name)
    model = load("minilm", head="classify", head_form=method.default_head_form)
    method.attach(model)
    assert method.formula(model) == formula


def test_a_family_without_a_table_is_written_in_our_form(tmp_path: Path) -> None:
    model = tiny("modern-gpt")
    method = make("lora")
    method.attach(model)
    reason = write_adapter(model, method, tmp_path / "adapter", "modern-gpt")
    assert reason == "peft's format is written for bert, distilbert, roberta, gpt2, t5, not for heedful"


def test_reading_what_is_no_adapter_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no adapter"):
        read_adapter(tmp_path, tiny())


def test_an_adapter_is_never_written_over_other_files(tmp_path: Path) -> None:
    model = tiny()
    method = make("head")
    method.attach(model)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not an empty folder"):
        write_adapter(model, method, tmp_path, "base")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
