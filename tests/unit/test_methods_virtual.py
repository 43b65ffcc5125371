"""Prompts and prefixes are what their names say: texts and activations that nobody wrote."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.methods import make, measure_room
from heedful.methods.prefix import initial_keys_values
from heedful.models import Cache, Classifier, LanguageModel, TransformerConfig, build

SIZES = {"vocab_size": 40, "d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 40, "max_len": 32}
FORMS: dict[str, dict[str, Any]] = {
    "bert": {"kind": "encoder", "family": "bert", "n_types": 2, "embed_norm": True, "pooler": True,
             "norm_place": "post"},
    "roberta": {"kind": "encoder", "family": "roberta", "n_types": 1, "embed_norm": True,
                "norm_place": "post", "position_offset": 2, "pad_id": 1},
    "sinusoidal": {"kind": "encoder", "position": "sinusoidal"},
    "gpt2": {"kind": "decoder", "family": "gpt2"},
    "rotary": {"kind": "decoder", "position": "rotary", "norm": "rms", "qk_norm": True},
    "t5": {"kind": "encoder_decoder", "family": "t5", "position": "relative", "norm": "rms", "bias": False,
           "scale": 1.0, "eos_id": 2, "start_id": 0},
}  # fmt: skip
P = 5


def model(form: str, head: str = "classify", **changes: Any) -> Any:
    """A model in float64 with random weights everywhere."""
    torch.manual_seed(len(form))
    made = build(TransformerConfig(**{**SIZES, **FORMS[form], **changes}), head, 3, "linear").double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def texts(pad: int) -> tuple[Tensor, Tensor]:
    """Ids and mask of three texts that end with id 2."""
    ids = torch.randint(3, 40, (3, 9), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    ids[:, 8] = ids[1, 3] = 2
    ids[1, 4:], mask[1, 4:] = pad, 0
    return ids, mask


def close(a: Tensor, b: Tensor) -> bool:
    """Equal to rounding."""
    return bool((a - b).abs().max() <= 1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_a_prompt_of_embedded_words_is_those_words_before_the_text(form: str) -> None:
    made = model(form)
    ids, mask = texts(made.config.pad_id or 0)
    words = torch.randint(3, 40, (P,), generator=torch.Generator().manual_seed(7))
    whole, whole_mask = (
        torch.cat([words.expand(3, -1), ids], 1),
        torch.cat([torch.ones(3, P).long(), mask], 1),
    )
    body = made.body
    t5 = form == "t5"
    expected = body.encode(whole, whole_mask) if t5 else body(whole, whole_mask)
    make("prompt", length=P).attach(made)
    with torch.no_grad():
        body.prompt.vectors.copy_(body.embed.tokens.weight[words])
    real = whole_mask.bool() if t5 else mask.bool()
    found = body.encode(ids, mask) if t5 else body(ids, mask)
    expected = expected if t5 else expected[:, P:]
    assert found.shape == expected.shape
    assert close(found[real], expected[real])


@pytest.mark.parametrize("form", ["bert", "roberta", "sinusoidal"])
def test_pooling_first_gives_the_first_vector_and_text_the_first_token(form: str) -> None:
    ids, mask = texts(FORMS[form].get("pad_id", 0))
    words = torch.randint(3, 40, (P,), generator=torch.Generator().manual_seed(7))
    for pool, place in (("first", 0), ("text", P)):
        made = model(form)
        states = made.body(
            torch.cat([words.expand(3, -1), ids], 1), torch.cat([torch.ones(3, P).long(), mask], 1)
        )
        expected = made.head(made.body.pool(states[:, place:], ids, mask))
        make("prompt", length=P, pool=pool).attach(made)
        with torch.no_grad():
            made.body.prompt.vectors.copy_(made.body.embed.tokens.weight[words])
        assert close(made(ids, mask), expected)


@pytest.mark.parametrize("form", ["gpt2", "rotary"])
def test_a_prefix_that_starts_as_words_is_those_words_before_the_text(form: str) -> None:
    made = model(form)
    ids, mask = texts(0)
    torch.manual_seed(4)
    words = torch.randint(40, (1, P))
    torch.manual_seed(4)
    whole = made.body(torch.cat([words.expand(3, -1), ids], 1), torch.cat([torch.ones(3, P).long(), mask], 1))
    make("prefix", length=P).attach(made)
    assert close(made.body(ids, mask)[mask.bool()], whole[:, P:][mask.bool()])


@pytest.mark.parametrize("form", FORMS)
def test_every_layer_reads_its_prefix(form: str) -> None:
    made = model(form)
    method = make("prefix", length=P)
    method.attach(made)
    made(*texts(made.config.pad_id or 0)).sum().backward()
    values = {n: p for n, p in method.trainable(made).items() if n.endswith(".prefix.values")}
    assert len(values) == (2 if form == "t5" else 1)
    for parameter in values.values():
        assert parameter.shape == (2, 2, 3, P, 8)
        assert (parameter.grad.abs().amax((2, 4)) > 0).all()


def test_without_shift_the_text_keeps_its_positions() -> None:
    made = model("gpt2")
    ids, mask = texts(0)
    make("prefix", length=P, shift=False).attach(made)
    places: list[Tensor] = []
    made.body.embed.positions.register_forward_hook(lambda m, args, out: places.append(args[0]))
    made(ids, mask)
    assert places[0].flatten().tolist() == list(range(9))
    assert measure_room(made) == 32


@pytest.mark.parametrize("form", ["gpt2", "rotary"])
@pytest.mark.parametrize("name", ["prompt", "prefix"])
def test_decoding_with_a_cache_equals_the_whole(form: str, name: str) -> None:
    made = model(form, "causal")
    assert isinstance(made, LanguageModel)
    make(name, length=P).attach(made)
    ids, _ = texts(0)
    cache = Cache()
    steps = [made.step(ids[:, :4], cache), made.step(ids[:, 4:5], cache), made.step(ids[:, 5:], cache)]
    assert close(torch.cat(steps, 1), made(ids))


def test_t5_generates_with_a_prompt_before_its_encoder() -> None:
    made = model("t5", "text2text")
    make("prompt", length=P).attach(made)
    ids, mask = texts(0)
    target = torch.randint(3, 40, (3, 4))
    context = made.body.encode(ids, mask)
    assert context.shape[1] == 9 + P
    cache = Cache()
    steps = [made.step(target[:, i : i + 1], cache, mask, context) for i in range(4)]
    assert close(torch.cat(steps, 1), made(ids, mask, decoder_input_ids=target))


@pytest.mark.parametrize("form", FORMS)
def test_text_fits_to_the_last_position_and_not_beyond(form: str) -> None:
    for name, taken in (("prompt", P), ("prefix", P)):
        made = model(form)
        make(name, length=P).attach(made)
        relative = form == "t5"
        assert measure_room(made) == 32 - (0 if relative else taken)
        ids = torch.full((1, measure_room(made)), 2)
        made(ids)
        if not relative:
            with pytest.raises(
                UserError, match=f"{measure_room(made) + 1} tokens after {P} virtual ones; this model has 32"
            ):
                made(torch.full((1, measure_room(made) + 1), 2))


def test_a_prompt_starts_as_rows_of_the_vocabulary_from_torchs_generator() -> None:
    vectors = []
    for seed in (1, 1, 2):
        made = model("bert")
        torch.manual_seed(seed)
        make("prompt", length=P).attach(made)
        vectors.append(made.body.prompt.vectors.detach())
        rows = made.body.embed.tokens.weight
        assert all(any(torch.equal(v, row) for row in rows) for v in vectors[-1])
    assert torch.equal(vectors[0], vectors[1])
    assert not torch.equal(vectors[0], vectors[2])


def test_starting_a_prefix_leaves_no_trace() -> None:
    made = model("bert").train()
    initial_keys_values(made, P)
    assert made.body.training
    assert not any(part._forward_pre_hooks for part in made.modules())


@pytest.mark.parametrize(
    ("form", "name", "given", "says"),
    [
        ("bert", "prompt", {"length": 32}, "prompt: length 32 leaves no room for text in 32 positions"),
        ("bert", "prefix", {"length": 40}, "prefix: length 40 leaves no room in 32 positions"),
        ("gpt2", "prompt", {"pool": "first", "length": 4}, "the first vector of this decoder never sees"),
        ("t5", "prompt", {"pool": "first"}, 'pool "first" is for encoders'),
        ("t5", "bitfit", {}, "bitfit trains biases, and this t5 model has none"),
    ],
)
def test_what_cannot_be_attached_is_refused_and_changes_nothing(
    form: str, name: str, given: dict[str, Any], says: str
) -> None:
    made = model(form)
    before = [n for n, _ in made.named_parameters()]
    with pytest.raises(UserError, match=says):
        make(name, **given).attach(made)
    assert [n for n, p in made.named_parameters() if p.requires_grad] == before
    assert made.method is None
    make("head").attach(made)


def test_packed_documents_have_no_place_for_a_prompt() -> None:
    made = model("gpt2", "causal")
    make("prompt", length=P).attach(made)
    with pytest.raises(UserError, match="packed documents"):
        made(torch.ones(1, 6).long(), segments=torch.tensor([[0, 0, 0, 1, 1, 1]]))


def test_a_prefix_names_the_mechanisms_that_take_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model("bert")
    assert isinstance(made, Classifier)
    monkeypatch.setattr(type(made.body.stack.layers[0].attn.mechanism), "prefix", False)
    with pytest.raises(UserError, match="prefix does not work with softmax attention; these take one"):
        make("prefix", length=2).attach(made)
