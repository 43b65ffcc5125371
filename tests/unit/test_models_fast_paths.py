"""Only the needed position in the last layer: the same mathematics, in float64, within 1e-10."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.attention import MECHANISMS
from heedful.errors import UserError
from heedful.models import Classifier, TransformerConfig, build
from heedful.models.embeddings import PromptVectors

TOLERANCE = 1e-10
SIZES = {"vocab_size": 40, "d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 40, "max_len": 32}
BODIES = {
    "encoder": {"kind": "encoder", "family": "bert", "n_types": 2, "embed_norm": True, "pooler": True,
                "norm_place": "post"},
    "roberta": {"kind": "encoder", "family": "roberta", "embed_norm": True, "norm_place": "post",
                "position_offset": 2, "pad_id": 1},
    "decoder": {"kind": "decoder", "family": "gpt2"},
    "rotary decoder": {"kind": "decoder", "position": "rotary", "norm": "rms", "qk_norm": True},
    "rotary encoder": {"kind": "encoder", "position": "rotary"},
    "encoder-decoder": {"kind": "encoder_decoder", "family": "t5", "position": "relative", "norm": "rms",
                        "bias": False, "scale": 1.0, "eos_id": 2, "start_id": 0},
    "shared q and k": {"kind": "decoder", "projections": "shared_qk"},
    "shared q, k and v": {"kind": "encoder", "projections": "shared_qkv"},
}  # fmt: skip


def make(name: str, **changes: object) -> Classifier:
    """A classifier in float64 with random weights everywhere, nothing dropped."""
    torch.manual_seed(len(name))
    config = TransformerConfig(**{**SIZES, **BODIES[name], **changes})
    model = build(config, "classify", 3)
    assert isinstance(model, Classifier)
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def batch(pad: int, lengths: tuple[int, ...] = (9, 4, 1, 7), left: bool = False) -> dict[str, Tensor]:
    """Texts that end with the end-of-text id 2."""
    ids = torch.randint(3, 40, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(3))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length - 1], mask[row, :length] = 2, 1
        ids[row, length:] = pad
        if left:
            ids[row], mask[row] = ids[row].roll(-length), mask[row].roll(-length)
    return {"input_ids": ids, "attention_mask": mask}


def plain(model: Classifier, inputs: dict[str, Tensor]) -> Tensor:
    """Every position of every layer, then the pooled one."""
    states = model.body(**inputs)
    logits: Tensor = model.head(model.body.pool(states, inputs["input_ids"], inputs.get("attention_mask")))
    return logits


def with_gradients(model: Classifier, compute: Callable[[], Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Logits, and the gradient of a function of them with respect to every parameter."""
    logits = compute()
    weights = torch.linspace(-1, 2, logits.numel(), dtype=logits.dtype).view_as(logits)
    return logits.detach(), list(
        torch.autograd.grad((weights * logits).sum(), list(model.parameters()), materialize_grads=True)
    )


def assert_same(model: Classifier, inputs: dict[str, Tensor]) -> None:
    """The quick way and the plain way agree, in values and in every gradient."""
    quick, quick_gradients = with_gradients(model, lambda: model(**inputs))
    slow, slow_gradients = with_gradients(model, lambda: plain(model, inputs))
    assert (quick - slow).abs().max() <= TOLERANCE
    assert slow.abs().max() > 0.01
    for (name, _), a, b in zip(model.named_parameters(), quick_gradients, slow_gradients, strict=True):
        assert (a - b).abs().max() <= TOLERANCE, name


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("name", BODIES)
def test_the_needed_position_alone_is_the_same_mathematics(name: str, padding: str) -> None:
    model = make(name)
    lengths = (6, 6, 6) if padding == "none" else (9, 4, 1, 7)
    inputs = batch(model.config.pad_id or 0, lengths, left=padding == "left")
    if padding == "none":
        del inputs["attention_mask"]
    if model.config.n_types:
        inputs["token_type_ids"] = inputs["input_ids"] % 2
    assert_same(model, inputs)


@pytest.mark.parametrize("name", ["encoder", "decoder"])
@pytest.mark.parametrize("attention", MECHANISMS)
def test_every_mechanism_gives_the_needed_position_exactly(attention: str, name: str) -> None:
    mechanism = MECHANISMS[attention]
    options = {"unsafe": True} if mechanism.unsafe else {}
    if name == "decoder" and not mechanism.causal:
        with pytest.raises(UserError, match="does not work in a causal model"):
            make(name, attention=attention)
        return
    assert_same(make(name, attention=attention, attention_options=options), batch(0))


@pytest.mark.parametrize("name", ["encoder", "roberta", "decoder", "encoder-decoder"])
def test_the_needed_position_is_found_after_a_prompt(name: str) -> None:
    model = make(name)
    model.body.prompt = PromptVectors(torch.randn(5, 24, dtype=torch.float64))
    assert_same(model, batch(model.config.pad_id or 0))


def test_the_last_layer_computes_one_position_only() -> None:
    model = make("encoder")
    lengths: dict[str, int] = {}
    layers = model.body.stack.layers
    for part, module in {
        "first": layers[0].ff, "query": layers[1].attn.q_proj, "key": layers[1].attn.k_proj,
        "output": layers[1].attn.o_proj, "feed-forward": layers[1].ff,
    }.items():  # fmt: skip
        module.register_forward_hook(
            lambda m, args, out, part=part: lengths.__setitem__(part, args[0].shape[1])
        )
    model(**batch(0))
    assert lengths == {"first": 9, "query": 1, "key": 9, "output": 1, "feed-forward": 1}
