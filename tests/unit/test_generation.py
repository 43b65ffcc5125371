"""Generation: a cache, a batch and a neighbor change nothing; what is drawn has the right distribution."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from heedful import methods
from heedful.attention import MECHANISMS
from heedful.errors import UserError
from heedful.inference.generation import GREEDY, Sampling, generate, pick_tokens
from heedful.models import PRESETS, LanguageModel, build

VOCABULARY = 23
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": 32, "n_layers": 2, "n_heads": 2, "d_head": 16, "d_ff": 64,
    "max_len": 40, "init_std": 0.3,
}  # fmt: skip
PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], [3, 1, 2, 4, 4], [7, 7, 7], [2] * 20]
CACHED = [name for name, cls in MECHANISMS.items() if cls.causal and cls.cache]
UNCACHED = [name for name, cls in MECHANISMS.items() if cls.causal and not cls.cache]
DRAWN = Sampling(temperature=0.8, top_k=9, top_p=0.95, seed=3)


def decoder(**changes: Any) -> LanguageModel:
    torch.manual_seed(0)
    model = build(PRESETS["char-gpt"].config.replace(**SIZES, **changes), "causal")
    assert isinstance(model, LanguageModel)
    return model.eval()


def encoder_decoder() -> LanguageModel:
    torch.manual_seed(0)
    model = build(PRESETS["t5-mini"].config.replace(**SIZES), "text2text")
    assert isinstance(model, LanguageModel)
    return model.eval()


def plainly(model: LanguageModel, prompt: list[int], n: int) -> list[int]:
    """The most probable continuation by the book: the whole text again for each token."""
    ids = list(prompt)
    with torch.inference_mode():
        for _ in range(n):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("attention", CACHED)
def test_a_cache_changes_nothing(attention: str) -> None:
    model = decoder(attention=attention)
    found = generate(model, PROMPTS, max_tokens=12)
    for prompt, one in zip(PROMPTS, found, strict=True):
        assert one.ids == plainly(model, prompt, 12)
    again = generate(model, PROMPTS, max_tokens=12, sampling=DRAWN)
    assert [g.ids for g in again] == [
        g.ids for g in generate(model, PROMPTS, max_tokens=12, sampling=DRAWN, cached=False)
    ]


@pytest.mark.parametrize("attention", UNCACHED)
def test_a_mechanism_without_a_cache_computes_the_whole_anew(attention: str) -> None:
    model = decoder(attention=attention, attention_options={"unsafe": True})
    found = generate(model, PROMPTS[:3], max_tokens=6)
    assert [g.ids for g in found] == [plainly(model, prompt, 6) for prompt in PROMPTS[:3]]


@pytest.mark.parametrize(
    "changes",
    [
        {"position": "rotary"},
        {"position": "relative"},
        {"position": "sinusoidal"},
        {"projections": "shared_qkv"},
    ],
    ids=str,
)
def test_positions_and_projections_decode_from_a_cache(changes: dict[str, Any]) -> None:
    model = decoder(**changes)
    found = generate(model, PROMPTS, max_tokens=8)
    assert [g.ids for g in found] == [plainly(model, prompt, 8) for prompt in PROMPTS]


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(seed=5), DRAWN], ids=["greedy", "plain", "truncated"])
@pytest.mark.parametrize("make", [decoder, encoder_decoder])
def test_a_row_does_not_depend_on_its_neighbors(make: Any, sampling: Sampling) -> None:
    model = make()
    together = generate(model, PROMPTS, max_tokens=10, stop_ids=[5, 9], sampling=sampling)
    if sampling.greedy:
        alone = [generate(model, [p], max_tokens=10, stop_ids=[5, 9], sampling=sampling)[0] for p in PROMPTS]
    else:  # a row's random numbers follow its place, so its neighbors are changed instead of taken away
        alone = []
        for at, prompt in enumerate(PROMPTS):
            others = [[(t + at + 1) % VOCABULARY for t in p[::-1]] for p in PROMPTS]
            others[at] = prompt
            found = generate(model, others, max_tokens=10, stop_ids=[5, 9], sampling=sampling)
            alone.append(found[at])
    for one, other in zip(together, alone, strict=True):
        assert (one.ids, one.stopped) == (other.ids, other.stopped)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@pytest.mark.parametrize("name", ["prompt", "prefix", "lora"])
def test_an_adapter_takes_part(name: str) -> None:
    model = decoder()
    method = methods.make(name, **({} if name == "lora" else {"length": 3}))
    method.attach(model)
    for parameter in method.trainable(model).values():
        torch.nn.init.normal_(parameter, std=0.5)
    found = generate(model.eval(), PROMPTS, max_tokens=8)
    assert [g.ids for g in found] == [plainly(model, prompt, 8) for prompt in PROMPTS]
    assert [g.ids for g in found] != [g.ids for g in generate(decoder(), PROMPTS, max_tokens=8)]


def test_an_encoder_decoder_writes_what_its_whole_pass_says() -> None:
    model = encoder_decoder()
    for prompt in PROMPTS[:3]:
        (found,) = generate(model, [prompt], max_tokens=6)
        written = [int(model.config.start_id or 0)]
        for _ in range(6):
            logits = model(torch.tensor([prompt]), decoder_input_ids=torch.tensor([written]))
            written.append(int(logits[0, -1].argmax()))
        assert found.ids == written[1:]
        assert generate(model, [prompt], max_tokens=6, cached=False)[0].ids == found.ids


def test_a_stop_token_ends_a_row_and_is_counted_in_its_probability() -> None:
    model, prompt = decoder(), PROMPTS[1]
    plain = plainly(model, prompt, 12)
    stop = plain[4]
    (found,) = generate(model, [prompt], max_tokens=12, stop_ids=[stop])
    assert found.stopped == "stop"
    assert found.ids == plain[: plain.index(stop)]
    whole = torch.tensor([prompt + found.ids + [stop]])
    with torch.inference_mode():
        logs = model(whole[:, :-1]).log_softmax(-1).gather(2, whole[:, 1:, None])[0, len(prompt) - 1 :, 0]
    assert found.log_probability == pytest.approx(float(logs.sum()), abs=1e-4)


def test_the_room_ends_a_row() -> None:
    model = decoder()
    found = generate(model, [[1] * 38, [2] * 5], max_tokens=30)
    assert [(len(g.ids), g.stopped) for g in found] == [(3, "room"), (30, "max_tokens")]
    assert len(generate(model, [[1] * 40], max_tokens=9)[0].ids) == 1


def test_a_full_room_slides_to_its_second_half_and_goes_on() -> None:
    model = decoder()  # with room for 40
    ids = [5, 6, 7]
    wanted = ids + plainly(model, ids, 38)
    for _ in range(2):
        wanted += plainly(model, wanted[-20:], 21)
    told: list[int] = []
    asked = [ids, [2] * 5]
    found = generate(model, asked, max_tokens=80, slide=True, seen=lambda row, i: row or told.append(i))
    assert [*ids, *found[0].ids] == wanted
    assert found[0].ids == told
    assert {g.stopped for g in found} == {"max_tokens"}
    drawn = generate(model, asked, max_tokens=80, sampling=DRAWN, slide=True)
    anew = generate(model, asked, max_tokens=80, sampling=DRAWN, slide=True, cached=False)
    assert [g.ids for g in drawn] == [g.ids for g in anew]
    assert drawn[0].ids[38:59] != drawn[0].ids[17:38]  # the luck goes on, it does not begin anew


def test_generation_never_leaves_the_length_that_the_model_was_trained_on() -> None:
    model = decoder()  # with room for 40
    model.trained_length = 12
    ids = [5, 6, 7]
    wanted = ids + plainly(model, ids, 10)
    while len(wanted) < 40:
        wanted += plainly(model, wanted[-6:], 7)
    (found,) = generate(model, [ids], max_tokens=len(wanted) - 3, slide=True)
    assert [*ids, *found.ids] == wanted
    (ended,) = generate(model, [ids], max_tokens=30)
    assert (len(ended.ids), ended.stopped) == (10, "room")
    (tail,) = generate(model, [[1, 2, 3] * 8], max_tokens=3, slide=True)
    assert tail.ids == plainly(model, [1, 2, 3] * 2, 3)
    with pytest.raises(UserError, match="13 tokens; this model was trained on texts of at most 12"):
        generate(model, [[1] * 13], max_tokens=1)


def test_tokens_are_told_as_they_come() -> None:
    told: list[tuple[int, int]] = []
    found = generate(decoder(), PROMPTS, max_tokens=5, seen=lambda row, token: told.append((row, token)))
    for row, one in enumerate(found):
        assert [token for r, token in told if r == row] == one.ids


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    model = decoder()
    runs = [
        [g.ids for g in generate(model, [[1, 2]] * 8, max_tokens=8, sampling=Sampling(seed=seed))]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert len({tuple(ids) for ids in runs[0]}) > 1, "samples of one prompt differ"


def test_draws_follow_the_truncated_distribution() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0]])
    luck = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    shares = (logits[0].double() / 0.5).softmax(0)
    for options, kept in (
        ({}, 5),
        ({"top_k": 3}, 3),
        ({"top_p": 0.9}, 2),
        ({"top_k": 1}, 1),
        ({"top_p": 1e-9}, 1),
    ):
        sampling = Sampling(temperature=0.5, **options)  # type: ignore[arg-type]
        drawn = Counter(pick_tokens(logits.expand(2000, -1), luck, sampling).tolist())
        expected = shares[:kept] / shares[:kept].sum()
        assert len(drawn) == kept
        for token, share in enumerate(expected.tolist()):
            assert drawn[token] / 2000 == pytest.approx(share, abs=1e-3)


def test_cooling_becomes_greedy() -> None:
    logits = torch.randn(50, 11, generator=torch.Generator().manual_seed(0))
    luck = torch.rand(50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for cool in (1e-30, 1e-5):
        assert torch.equal(pick_tokens(logits, luck, Sampling(temperature=cool)), logits.argmax(1))
    assert not torch.equal(pick_tokens(logits, luck, Sampling(temperature=1.0)), logits.argmax(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": -1.0}, "--temperature -1"),
        ({"top_k": 0}, "--top-k 0"),
        ({"top_p": 1.5}, "--top-p 1.5"),
    ],
)
def test_no_way_to_choose_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Sampling(**options)


def test_what_cannot_be_continued_is_refused() -> None:
    torch.manual_seed(0)
    encoder = build(PRESETS["bert-tiny"].config.replace(vocab_size=30), "masked")
    assert isinstance(encoder, LanguageModel)
    with pytest.raises(UserError, match="needs a decoder"):
        generate(encoder, [[1]], max_tokens=1)
    with pytest.raises(UserError, match="41 tokens; this model has room for 40"):
        generate(decoder(), [[1] * 41], max_tokens=1)
    with pytest.raises(UserError, match="empty"):
        generate(decoder(), [[]], max_tokens=1)
