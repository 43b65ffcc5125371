"""What the page Attention shows is what the models compute."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tests import tiny
from tests.parity import oracles

from heedful import checkpoints
from heedful.errors import UserError
from heedful.lab.head_maps import find_mechanisms, remove_head
from heedful.models import PRESETS, Classifier, build
from heedful.studio.folder import StudioFolder
from heedful.studio.model_store import ModelStore, Network
from heedful.studio.work import attention
from heedful.studio.work.attention_reading import Reading, roll_out
from heedful.studio.work.attention_view import AttentionView, read_view
from heedful.studio.work.pieces import show_pieces
from heedful.text import train

TEXT = "the film was lovely and the music rather dull"


def quiet(share: float, message: str) -> None:
    assert share <= 1


@pytest.fixture(scope="module")
def network() -> Network:
    tokenizer = train([TEXT, "a plot with a kind actor"] * 9, kind="wordpiece", vocab_size=200)
    config = PRESETS["bert-tiny"].config.replace(
        vocab_size=tokenizer.vocab_size,
        d_model=24,
        n_layers=3,
        n_heads=3,
        d_head=8,
        d_ff=40,
        pad_id=tokenizer.pad_id,
    )
    torch.manual_seed(1)
    model = build(config.replace(init_std=0.3), head="classify", n_classes=3)
    return Network(model.eval(), tokenizer, ("a", "b", "c"), 64)


def look(network: Network, text: str = TEXT, **params: Any) -> tuple[Reading, Any]:
    reading = Reading(network, text, None)
    return reading, reading.look(read_view(params, reading.body), quiet)


@pytest.mark.needs("minilm")
def test_weights_of_minilm_are_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    models = ModelStore(StudioFolder.open(tmp_path))
    content = attention.look({"model": "minilm", "text": TEXT, "layer": 4, "head": "7"}, models, quiet)
    header, small, full = unpack(content)
    theirs = transformers.BertModel.from_pretrained(
        models.find("minilm"), attn_implementation="eager", add_pooling_layer=False
    ).eval()
    ids = torch.tensor([models.network("minilm").tokenizer.encode(TEXT).ids])
    with torch.no_grad():
        weights = theirs(ids, output_attentions=True).attentions
    assert header["rows"] == ["[CLS]", *TEXT.split(), "[SEP]"]
    np.testing.assert_allclose(full, weights[3][0, 6].numpy(), atol=1e-5)
    for layer in range(6):
        np.testing.assert_allclose((small[layer, :12] / 255) ** 2, weights[layer][0].numpy(), atol=0.005)
    assert header["answer"]["values"] == pytest.approx([1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("oracle", "head"), [(oracles.GPT2, "causal"), (oracles.T5, "text2text")], ids=["gpt2", "t5"]
)
def test_every_part_of_other_families_is_that_of_transformers(oracle: Any, head: str, tmp_path: Path) -> None:
    theirs = oracle.make(head)
    theirs.set_attn_implementation("eager")
    theirs.save_pretrained(tmp_path / "model")
    model = checkpoints.load(tmp_path / "model", head=head)
    tokenizer = train([TEXT] * 9, kind="char", vocab_size=40)
    reading, seen = look(Network(model.eval(), tokenizer, (), 32))  # type: ignore[arg-type]
    ids = reading.encoded.ids
    more = {}
    if head == "text2text":
        more["decoder_input_ids"] = torch.tensor([[0, *reading.encoded.answer]])
    with torch.no_grad():
        out = theirs(input_ids=ids, output_attentions=True, **more)
    parts = {"self": "attentions"} if head == "causal" else {
        "encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions",
    }  # fmt: skip
    assert list(seen.parts) == list(parts)
    for part, name in parts.items():
        for ours, expected in zip(seen.parts[part].layers, out[name], strict=True):
            torch.testing.assert_close(ours, expected[0], atol=1e-5, rtol=0)
            assert ours.shape[1:] == (len(seen.parts[part].rows), len(seen.parts[part].columns))
    place = -1 if head == "causal" else 0
    torch.testing.assert_close(seen.raw, out.logits[0, place], atol=1e-4, rtol=1e-4)


def test_answers_without_a_head_are_those_of_a_model_that_is_run_without_it(network: Network) -> None:
    reading = Reading(network, TEXT, None)
    found = reading.without_heads(AttentionView(), quiet)
    model = network.model
    assert isinstance(model, Classifier)
    for layer, mechanism in enumerate(find_mechanisms(model, "it")):
        for head in range(3):
            with torch.inference_mode(), remove_head(mechanism, head):
                direct = model(reading.encoded.ids, None, reading.encoded.types)[0]
            torch.testing.assert_close(found["self", layer][head], direct, atol=1e-5, rtol=1e-4)
            _, seen = look(network, off=f"{layer + 1}.{head + 1}")
            torch.testing.assert_close(seen.raw, direct, atol=1e-5, rtol=1e-4)
    assert len({tuple(row.tolist()) for outputs in found.values() for row in outputs}) == 9


def test_the_last_layer_is_read_whole_and_the_answer_stays_that_of_the_model(network: Network) -> None:
    reading, seen = look(network)
    with torch.inference_mode():
        direct = network.model(reading.encoded.ids, None, reading.encoded.types)[0]
    torch.testing.assert_close(seen.raw, direct, atol=1e-5, rtol=1e-4)
    assert seen.parts["self"].layers[-1].shape == (
        3,
        reading.encoded.ids.shape[1],
        reading.encoded.ids.shape[1],
    )


def test_roll_out_by_hand() -> None:
    first = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])  # two heads
    second = torch.tensor([[[0.2, 0.8], [1.0, 0.0]], [[0.2, 0.8], [1.0, 0.0]]])
    rolled = roll_out([first, second])
    # Means: [[.5, .5], [.5, .5]] and [[.2, .8], [1, 0]]; half of each and half of the identity:
    one = np.array([[0.75, 0.25], [0.25, 0.75]])
    two = np.array([[0.6, 0.4], [0.5, 0.5]])
    np.testing.assert_allclose(rolled[0], one, atol=1e-6)
    np.testing.assert_allclose(rolled[1], two @ one, atol=1e-6)
    alone = roll_out([first, second], [[1], []])[0]  # the second head is off
    np.testing.assert_allclose(alone, [[1.0, 0.0], [0.25, 0.75]], atol=1e-6)


def test_masks_and_temperature_do_what_they_say(network: Network) -> None:
    maps = {name: torch.stack(look(network, masking=name)[1].parts["self"].layers) for name in
            ("own", "causal", "zero_after", "zero_scores")}  # fmt: skip
    future = torch.ones(maps["own"].shape[-2:]).triu(1).bool()
    assert maps["own"][..., future].min() > 0
    assert maps["causal"][..., future].max() == 0
    assert maps["zero_after"][..., future].max() == 0
    assert maps["zero_after"].sum(-1)[..., :-1].max() < 1 - 1e-4, "what is hidden stays in the denominator"
    assert maps["zero_scores"][..., future].min() > 0
    torch.testing.assert_close(maps["zero_scores"].sum(-1), torch.ones(3, 3, future.shape[0]))
    cold = torch.stack(look(network, temperature=0.01)[1].parts["self"].layers[:1])
    hard = torch.stack(look(network, mechanism="argmax")[1].parts["self"].layers[:1])
    assert torch.equal(cold.argmax(-1), hard.argmax(-1))
    assert (cold - hard).abs().mean() < 0.01 < (maps["own"][:1] - hard).abs().mean()
    hot = look(network, temperature=100)[1].parts["self"].layers[0]
    assert (hot - 1 / hot.shape[-1]).abs().max() < 0.02


def test_every_mechanism_that_is_offered_works_and_the_model_stays_as_it_was(network: Network) -> None:
    before = network.model.state_dict()
    mechanisms = find_mechanisms(network.model, "it")
    seen = look(network)[1]
    for name in ("argmax", "additive", "bigbird", "performer", "synthesizer"):
        changed = look(network, mechanism=name)[1]
        assert changed.parts["self"].layers[0].shape == seen.parts["self"].layers[0].shape
        torch.testing.assert_close(changed.raw, look(network, mechanism=name)[1].raw, msg="drawn anew")
    close = look(network, mechanism="performer", options={"features": "4096"})[1]
    assert (close.raw - seen.raw).abs().max() < (
        look(network, mechanism="argmax")[1].raw - seen.raw
    ).abs().max()
    assert find_mechanisms(network.model, "it") == mechanisms
    assert all(torch.equal(value, before[name]) for name, value in network.model.state_dict().items())
    assert torch.equal(look(network)[1].raw, seen.raw)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"mechanism": "linformer"}, "mechanism"),
        ({"temperature": "0"}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"masking": "<b>"}, "masking"),
        ({"off": "1.9"}, "not a head"),
        ({"off": "x"}, "not a head"),
        ({"off": "9.1"}, "not a head"),
        ({"mechanism": "performer", "options": {"features": "-3"}}, "features"),
        ({"mechanism": "performer", "options": {"speed": "3"}}, "speed"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(network: Network, params: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        look(network, **params)


def test_a_mechanism_without_weights_has_an_answer_and_no_map(network: Network) -> None:
    config = network.model.config.replace(attention="linformer")
    own = Network(build(config, head="classify").eval(), network.tokenizer, ("a", "b"), 64)
    _, seen = look(own)
    assert seen.parts["self"].layers == [None, None, None]
    assert look(own, mechanism="softmax")[1].parts["self"].layers[0] is not None
    with pytest.raises(UserError, match="no causal form"):
        look(own, masking="causal")


def test_work_that_is_canceled_leaves_the_model_as_it_was(network: Network) -> None:
    mechanisms = find_mechanisms(network.model, "it")

    def cancel(share: float, message: str) -> None:
        if share > 0.5:
            raise InterruptedError

    reading = Reading(network, TEXT, None)
    with pytest.raises(InterruptedError):
        reading.look(AttentionView("performer", temperature=2.0), cancel)
    with pytest.raises(InterruptedError):
        reading.without_heads(AttentionView("argmax"), cancel)
    assert find_mechanisms(network.model, "it") == mechanisms
    assert reading.looks == {}


def test_texts_of_models_with_many_heads_are_cut(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.studio.work.attention_reading.MOST_WEIGHTS", 9 * 8**2)
    reading, seen = look(network, "the film " * 20)
    assert seen.parts["self"].layers[0].shape == (3, 8, 8)
    assert reading.encoded.truncated == 2 * 20 + 2 - 8


def test_small_maps_keep_the_largest_weight_of_a_block() -> None:
    weights = torch.zeros(2, 100, 100)
    weights[1, 57, 99] = 0.25
    small = attention.shrink(weights)
    assert small.shape == (2, 34, 34)
    assert small[1, 57 // 3, 33] == 0.25
    assert small.sum() == 0.25


def test_a_run_answers_with_its_probabilities(tmp_path: Path) -> None:
    from heedful.inference.loading import load_run

    tiny.make_model(tmp_path / "tiny")
    model = checkpoints.load(tmp_path / "tiny", head="classify", n_classes=2)
    checkpoints.save(model, tmp_path / "two", tokenizer=tmp_path / "tiny-tokenizer")
    models = ModelStore(StudioFolder.open(tmp_path))
    header, _, full = unpack(
        attention.look({"model": "two", "text": TEXT, "head": "rollout", "layer": 2}, models, quiet)
    )
    direct = load_run(tmp_path / "two").predict_proba([TEXT])[0]
    assert header["answer"]["values"] == pytest.approx(list(direct), abs=1e-6)
    np.testing.assert_allclose(full.sum(1), 1, atol=1e-5)
    effects = attention.find_effects({"model": "two", "text": TEXT, "off": "1.2"}, models, quiet)
    assert [len(layer["values"]) for layer in effects["layers"]] == [2, 2]
    assert effects["layers"][0]["off"] == [2]


def test_pieces_are_shown_with_visible_spaces() -> None:
    tokenizer = train(["a fine\tday", "größe"] * 20, kind="bpe", vocab_size=400)
    shown = show_pieces(tokenizer, tokenizer.encode("a fine größe", special=False).ids)
    assert "".join(shown).replace("\N{OPEN BOX}", " ").strip() == "a fine größe"


def unpack(content: bytes) -> tuple[dict[str, Any], npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """Read what the page reads."""
    length = struct.unpack("<I", content[:4])[0]
    header = json.loads(content[4 : 4 + length])
    at = 4 + -(-length // 4) * 4
    count = int(np.prod(header["small"]))
    small = np.frombuffer(content, np.uint8, count, at).reshape(header["small"])
    full = np.frombuffer(content, "<f4", offset=at + -(-count // 4) * 4)
    return header, small, full.reshape(len(header["rows"]), len(header["columns"]))
