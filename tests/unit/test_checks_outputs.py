"""The checks of what a model computes: leaks of the future, and logits after loading."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.attention import MECHANISMS, Mask
from heedful.evaluation.checks import causality, reload
from heedful.models import Model, TransformerConfig, build

SMALL = {"vocab_size": 40, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 24}
SAFE = [name for name, cls in MECHANISMS.items() if cls.causal and not cls.unsafe]
UNSAFE = [name for name, cls in MECHANISMS.items() if cls.unsafe]


def made(kind: str = "decoder", head: str | None = None, **changes: object) -> Model:
    torch.manual_seed(0)
    return build(TransformerConfig(kind=kind, **{**SMALL, "init_std": 0.2, **changes}), head)


@pytest.mark.parametrize("attention", SAFE)
def test_every_safe_mechanism_is_found_causal(attention: str) -> None:
    check = causality(made(attention=attention))
    assert check.status == "passed", check.message
    assert check.value is not None
    assert check.limit is not None
    assert check.value <= check.limit / 10


@pytest.mark.parametrize("init_std", [0.02, 0.2])
@pytest.mark.parametrize("kind", ["decoder", "encoder_decoder"])
@pytest.mark.parametrize("attention", UNSAFE)
def test_every_unsafe_mechanism_is_found_to_leak_even_in_a_new_model(
    attention: str, kind: str, init_std: float
) -> None:
    check = causality(
        made(kind, attention=attention, attention_options={"unsafe": True}, init_std=init_std, start_id=0)
    )
    assert check.status == "failed"
    assert attention in check.message
    assert check.value is not None
    assert check.limit is not None
    assert check.value > 2 * check.limit


def test_taking_the_future_out_again_by_a_division_is_rounding_and_no_leak() -> None:
    options = {"unsafe": True, "renormalize": True}
    check = causality(made(attention="zero_after", attention_options=options))
    assert check.status == "passed"


class OnlyPadded(nn.Module):
    """Forgets causality where a mask has padding: a leak on one of two paths."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        out: Tensor = self.inner(q, k, v, mask if mask.keys is None else replace(mask, causal=False), bias)
        return out


def test_a_leak_that_only_padded_batches_have_is_found() -> None:
    model = made(head="causal")
    attention = model.body.stack.layers[1].attn
    attention.mechanism = OnlyPadded(attention.mechanism)
    assert causality(model).status == "failed"


class Peeks(nn.Module):
    """Adds the state of the next token."""

    def forward(self, x: Tensor) -> Tensor:
        return x + nn.functional.pad(x[:, 1:], (0, 0, 0, 1))


def test_a_leak_from_the_next_token_alone_is_found() -> None:
    model = made()
    model.stack.norm = nn.Sequential(model.stack.norm, Peeks())
    assert causality(model).status == "failed"


@pytest.mark.parametrize(
    ("kind", "head"),
    [("decoder", None), ("decoder", "classify"), ("decoder", "causal"), ("encoder_decoder", "text2text")],
)
def test_heads_and_frozen_weights_do_not_matter_and_the_model_is_left_as_it_was(
    kind: str, head: str | None
) -> None:
    position = "learned" if kind == "decoder" else "relative"
    model = made(kind, head, position=position, start_id=0).train()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.inference_mode():
        check = causality(model)
    assert (check.status, check.value) == ("passed", 0.0)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_an_encoder_is_skipped_and_broken_weights_are_not_passed() -> None:
    assert causality(made("encoder")).status == "skipped"
    model = made()
    with torch.no_grad():
        model.stack.layers[0].ff.in_proj.weight.fill_(float("nan"))
    check = causality(model)
    assert check.status == "failed"
    assert "finite" in check.message


def test_a_text_of_one_token_has_no_past() -> None:
    assert causality(made(max_len=1)).status == "skipped"
    assert causality(made(max_len=2)).status == "passed"


def test_reload_tells_equal_bits_rounding_and_another_model_apart() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    same = reload(logits, logits.clone())
    assert (same.status, same.value) == ("passed", 0.0)
    rounded = reload(logits, logits + 1e-6)
    assert rounded.status == "passed"
    assert rounded.value == pytest.approx(1e-6, rel=0.2)
    other = reload(logits, logits.roll(1, 0))
    assert other.status == "failed"
    assert other.value == pytest.approx(float((logits - logits.roll(1, 0)).abs().max()))


def test_reload_never_passes_what_cannot_be_compared() -> None:
    logits = torch.zeros(4, 2)
    assert reload(logits, torch.zeros(4, 3)).status == "failed"
    assert reload(logits * float("nan"), logits * float("nan")).status == "failed"
    assert reload(logits, logits * float("nan")).status == "failed"
    assert reload(logits[:0], logits[:0]).status == "skipped"
