"""What every model promises, whatever its attention, positions and form."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
from torch import Tensor

from heedful import models
from heedful.attention import MECHANISMS
from heedful.errors import UserError
from heedful.models import Cache, TransformerConfig, build

SMALL = {"vocab_size": 40, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 24, "max_len": 16}


def config(kind: str = "decoder", **changes: object) -> TransformerConfig:
    return TransformerConfig(kind=kind, **{**SMALL, "init_std": 0.3, **changes})


def ids(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(2, 40, shape, generator=torch.Generator().manual_seed(seed))


def mechanisms(*capabilities: str) -> list[str]:
    return [n for n, c in MECHANISMS.items() if not c.unsafe and all(getattr(c, x) for x in capabilities)]


POSITIONS = ("learned", "sinusoidal", "rotary", "relative")
PROJECTIONS = ("separate", "shared_qk", "shared_qkv")


@pytest.mark.parametrize("projections", PROJECTIONS)
@pytest.mark.parametrize("attention", mechanisms("causal"))
def test_a_decoder_never_sees_the_future(attention: str, projections: str) -> None:
    model = build(config(attention=attention, projections=projections), "causal").eval()
    text = ids(2, 9)
    other = text.clone()
    other[:, 6:] = ids(2, 3, seed=1)
    with torch.no_grad():
        a, b = model(text), model(other)
    assert torch.allclose(a[:, :6], b[:, :6], atol=1e-6, rtol=0)
    assert not torch.allclose(a[:, 6:], b[:, 6:], atol=1e-3)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_padding_never_changes_real_tokens(kind: str, position: str) -> None:
    model = build(config(kind, position=position)).eval()
    text = ids(2, 7)
    padded = torch.cat([text, torch.zeros(2, 5, dtype=torch.long)], 1)
    mask = (torch.arange(12) < 7).long().expand(2, 12)
    assert torch.allclose(model(padded, mask)[:, :7], model(text), atol=1e-5, rtol=0)


@pytest.mark.parametrize("attention", mechanisms())
def test_every_mechanism_fits_into_an_encoder_and_trains(attention: str) -> None:
    model = build(config("encoder", attention=attention), "classify", 3)
    logits = model(ids(4, 11), torch.ones(4, 11))
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0])).backward()
    missing = [
        n for n, p in model.named_parameters() if p.grad is None and "q_proj" not in n and "k_proj" not in n
    ]
    assert missing == []


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("attention", mechanisms("causal", "segments"))
def test_packed_documents_equal_separate_ones(attention: str, position: str) -> None:
    if position == "relative" and not MECHANISMS[attention].bias:
        with pytest.raises(UserError, match="relative positions"):
            build(config(attention=attention, position=position))
        return
    model = build(config(attention=attention, position=position)).eval()
    first, second = ids(1, 5), ids(1, 6, seed=1)
    segments = torch.tensor([[0] * 5 + [1] * 6])
    with torch.no_grad():
        packed = model(torch.cat([first, second], 1), segments=segments)
        assert torch.allclose(packed[:, :5], model(first), atol=1e-5, rtol=0)
        assert torch.allclose(packed[:, 5:], model(second), atol=1e-5, rtol=0)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("attention", mechanisms("causal", "cache"))
def test_decoding_with_a_cache_equals_the_whole(attention: str, position: str) -> None:
    if position == "relative" and not MECHANISMS[attention].bias:
        return
    model = build(config(attention=attention, position=position, qk_norm=True), "causal").eval()
    text = ids(2, 9)
    cache = Cache()
    with torch.no_grad():
        steps = torch.cat(
            [model.step(text[:, :4], cache), *(model.step(text[:, i : i + 1], cache) for i in range(4, 9))], 1
        )
        assert torch.allclose(steps, model(text), atol=1e-5, rtol=0)


def test_relative_positions_are_relative_and_rotary_too() -> None:
    for position in ("rotary", "relative"):
        model = build(config(position=position)).eval()
        text = ids(1, 6)
        with torch.no_grad():
            alone = model(text)
            shifted = model(torch.cat([ids(1, 4, seed=3), text], 1), torch.tensor([[0] * 4 + [1] * 6]))
        assert torch.allclose(shifted[:, 4:], alone, atol=1e-5, rtol=0), position


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("qk_norm", [False, True])
def test_every_position_trains_in_half_precision(position: str, qk_norm: bool) -> None:
    model = build(config(position=position, qk_norm=qk_norm, attention_dropout=0.1), "causal").train()
    with torch.autocast("cpu", dtype=torch.bfloat16):  # of the forward pass alone, as in training
        out = model(ids(2, 9))
    out.float().square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_learned_positions_tell_places_apart() -> None:
    model = build(config("encoder", position="learned")).eval()
    states = model(torch.full((1, 6), 7))
    assert (states[0, 0] - states[0, 1]).abs().max() > 1e-3


@pytest.mark.parametrize(("norm", "place", "activation"), [
    *itertools.product(("layer", "rms"), ("pre", "post"), ("gelu", "squared_relu", "gated_gelu", "relu", "gelu_tanh")),
])  # fmt: skip
def test_every_form_learns_a_tiny_task(norm: str, place: str, activation: str) -> None:
    torch.manual_seed(0)
    model = build(config(norm=norm, norm_place=place, activation=activation, init_std=0.1, dropout=0.0,
                         attention_dropout=0.0, embed_dropout=0.0), "causal")  # fmt: skip
    text = torch.arange(2, 10).repeat(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 < 2 < losses[0]


@pytest.mark.parametrize(("attention", "kind", "changes", "reason"), [
    ("linformer", "decoder", {}, "linformer attention does not work in a causal model; these do: softmax"),
    ("linformer", "encoder_decoder", {"position": "learned"}, "does not work in"),
    ("performer", "encoder", {"position": "relative"}, "performer attention does not work in relative positions"),
    ("sofmax", "encoder", {}, 'unknown attention "sofmax"; did you mean "softmax"'),
    ("zero_scores", "decoder", {}, "unsafe=True"),
])  # fmt: skip
def test_a_mechanism_that_cannot_is_refused_when_built(
    attention: str, kind: str, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(UserError, match=reason.replace("?", r"\?")):
        build(config(kind, attention=attention, **changes))


def test_an_unsafe_mechanism_is_built_when_asked_and_leaks() -> None:
    model = build(config(attention="zero_scores", attention_options={"unsafe": True}), "causal").eval()
    text = ids(1, 8)
    other = text.clone()
    other[:, 7] = 3 if int(text[0, 7]) != 3 else 4
    assert not torch.allclose(model(text)[:, :7], model(other)[:, :7], atol=1e-4)


@pytest.mark.parametrize(("name", "head", "count"), [
    ("char-gpt", "causal", 3_323_392),
    ("minilm", None, 22_713_216),
    ("tinybert", None, 14_350_248),
])  # fmt: skip
def test_presets_have_the_published_number_of_parameters(name: str, head: str | None, count: int) -> None:
    assert sum(p.numel() for p in models.load(name, head=head).parameters()) == count


@pytest.mark.parametrize("name", models.PRESETS)
def test_every_preset_runs_with_each_head_its_kind_allows(name: str) -> None:
    kind = models.PRESETS[name].config.kind
    for head, kinds in models.HEADS.items():
        if kind in kinds:
            model = models.load(name, head=head, vocab_size=50)
            text = ids(2, 6)
            text[:, -1] = 1
            assert model(text).shape == ((2, 2) if head == "classify" else (2, 6, 50))


def test_the_modern_preset_is_modern() -> None:
    c = models.PRESETS["modern-gpt"].config
    assert (c.position, c.norm, c.activation, c.qk_norm, c.bias) == (
        "rotary",
        "rms",
        "squared_relu",
        True,
        False,
    )


def test_dropout_acts_in_training_alone() -> None:
    model = models.load("bert-tiny", vocab_size=50)
    text = ids(2, 6)
    assert torch.equal(model(text), model(text))
    model.train()
    torch.manual_seed(0)
    first = model(text)
    torch.manual_seed(0)
    assert torch.equal(model(text), first)
    assert not torch.equal(model(text), first)


@pytest.mark.parametrize(
    ("kind", "head"), [("encoder", "causal"), ("decoder", "masked"), ("encoder", "text2text")]
)
def test_a_head_that_does_not_fit_is_refused(kind: str, head: str) -> None:
    with pytest.raises(UserError, match=f'head "{head}" needs'):
        build(config(kind), head)


def test_a_text_longer_than_the_table_is_one_line() -> None:
    with pytest.raises(UserError, match="17 tokens; this model has 16 positions"):
        build(config("encoder"))(ids(1, 17))


def test_a_pretrained_models_sizes_cannot_be_changed() -> None:
    with pytest.raises(UserError, match="n_layers is fixed by the weights of minilm"):
        models.load("minilm", n_layers=3)
    with pytest.raises(UserError, match='unknown model option "n_layer"'):
        models.load("bert-tiny", n_layer=3)


@pytest.mark.parametrize("attention", ["performer", "bigbird", "linformer", "performer:features=32"])
def test_a_pretrained_model_takes_another_attention(attention: str) -> None:
    model = models.load("minilm", attention=attention)
    assert model.config.attention == attention.split(":")[0]
    assert all(".mechanism." in name for name in model.report.new)
    assert model(ids(2, 10)).shape == (2, 10, 384)


def test_a_model_of_our_own_form_survives_saving(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from heedful import checkpoints

    model = models.load(
        "modern-gpt", head="classify", n_classes=3, vocab_size=50, attention="performer:features=16"
    )
    model.labels = ["a", "b", "c"]
    with pytest.raises(UserError, match="cannot be exported for transformers"):
        checkpoints.export(model, tmp_path / "no")
    checkpoints.save(model, tmp_path / "own")
    again = models.load(tmp_path / "own", head="classify")
    assert again.labels == ["a", "b", "c"]
    text = ids(2, 6)
    assert torch.equal(model(text), again(text))
    body = models.load(tmp_path / "own")
    assert body.report.new == []
    assert torch.equal(body(text), model.body(text))


def test_dropout_is_changed_wherever_a_checkpoint_has_some() -> None:
    bert = models.load("minilm", dropout=0.3).config
    assert (bert.dropout, bert.attention_dropout, bert.embed_dropout) == (0.3, 0.3, 0.3)
    assert (bert.ff_dropout, bert.final_dropout) == (0.0, 0.0)
    t5 = models.load("t5-mini", vocab_size=50, dropout=0.0).config
    assert (t5.dropout, t5.ff_dropout, t5.final_dropout) == (0.0, 0.0, 0.0)
    assert models.load("modern-gpt", vocab_size=50, dropout=0.2).config.attention_dropout == 0.2


@pytest.mark.parametrize("shape", [(2, 5), (3, 6), (6,), (2, 7)])
@pytest.mark.parametrize("name", ["bert-tiny", "gpt-nano", "t5-mini"])
def test_a_mask_of_another_shape_is_refused_even_if_all_ones(name: str, shape: tuple[int, ...]) -> None:
    model = models.load(name, vocab_size=50)
    with pytest.raises(UserError, match="attention_mask is"):
        model(ids(2, 6), torch.ones(shape))


def test_an_additive_mask_is_refused() -> None:
    with pytest.raises(UserError, match="negative numbers"):
        models.load("bert-tiny", vocab_size=50)(ids(2, 6), torch.tensor([[0.0] * 5 + [-10000.0]] * 2))


def test_a_decoder_finds_the_last_real_token_by_its_padding_id() -> None:
    model = models.load("gpt-nano", head="classify", vocab_size=50, pad_id=0)
    text = ids(2, 6)
    padded = torch.cat([text, torch.zeros(2, 3, dtype=torch.long)], 1)
    assert torch.allclose(model(padded), model(text), atol=1e-6)


@pytest.mark.parametrize("family", ["distilbert", "roberta", "gpt2", "t5"])
def test_a_saved_model_that_does_not_name_its_head_has_the_familys(family: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Older versions stored the family alone in config.json of our own form."""
    from heedful import checkpoints

    classifier = checkpoints.FAMILIES[family].fixed["classifier"]
    kind = checkpoints.FAMILIES[family].fixed["kind"]
    config = TransformerConfig(
        kind=kind, family=family, vocab_size=20, d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=8,
        position="rotary", eos_id=1, start_id=0, classifier=classifier,
    )  # fmt: skip
    model = build(config, "classify", 3)
    checkpoints.save(model, tmp_path / "saved")
    path = tmp_path / "saved" / "config.json"
    stored = json.loads(path.read_text())
    assert stored["heedful"].pop("classifier") == classifier
    path.write_text(json.dumps(stored))
    again = checkpoints.load(tmp_path / "saved", head="classify")
    assert again.config == config
    assert {n: p.shape for n, p in again.head.named_parameters()} == {
        n: p.shape for n, p in model.head.named_parameters()
    }
