"""Explanations: exact for linear models, complete for networks, and tested by deletion."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful import models
from heedful.errors import UserError
from heedful.inference.explanations import explain
from heedful.inference.explanations.deletion import run_deletion_test
from heedful.inference.explanations.gradients import Path as EmbeddingPath
from heedful.inference.explanations.target import Target
from heedful.inference.explanations.words import TextWords, group_neighbors
from heedful.inference.network_predictors import ClassifierPredictor
from heedful.inference.predictor import EnsemblePredictor, LinearPredictor
from heedful.linear.model import TfidfModel
from heedful.text import train
from tiny import BAD, GOOD, PLAIN

TEXTS = ["A lovely film, isn't it?", "The plot was dull; the end was dull, too.", "İstanbul: a BRIGHT scene",
         "映画は良い film", "rude actor   and\na poor plot", "warm and kind music", "quite silly"]  # fmt: skip
PAIRS = [text[::-1] for text in TEXTS]


def make_linear(kind: str, *, pairs: bool = False) -> LinearPredictor:
    rng = np.random.default_rng(0)
    targets: dict[str, Any] = {
        "classify": np.arange(7) % 3,
        "ordered": np.arange(7) % 3,
        "labels": rng.integers(0, 2, (7, 3)),
        "number": rng.normal(size=7),
    }
    names = [] if kind == "number" else ["a", "b", "c"]
    strengths: dict[str, Any] = {"strengths": [10.0]}
    model = TfidfModel.fit(TEXTS, PAIRS if pairs else None, targets[kind], names, kind=kind, **strengths)  # type: ignore[arg-type]
    return LinearPredictor(model)


def make_network(kind: str = "encoder", problem: str | None = None, **options: Any) -> ClassifierPredictor:
    """A network with random weights, large enough that what it computes is far from linear."""
    tokenizer = train([" ".join([*GOOD, *BAD, *PLAIN])] * 5, kind="wordpiece" if kind == "encoder" else "unigram",
                      vocab_size=120, sentinels=0)  # fmt: skip
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "init_std": 0.3}
    ids = {"pad_id": tokenizer.pad_id, "eos_id": tokenizer.eos_id}
    config = models.TransformerConfig(
        kind=kind, vocab_size=tokenizer.vocab_size, max_len=40, **{**sizes, **ids, **options}
    )
    model = models.build(config, "classify", n_classes=1 if problem == "regression" else 3)
    assert isinstance(model, models.Classifier)
    model.problem_type = problem
    return ClassifierPredictor(model.double().eval(), tokenizer, 40, ["a", "b", "c"])


def total(contributions: Sequence[Any]) -> float:
    return float(sum(word.contribution for word in contributions))


@pytest.mark.parametrize("text", [*TEXTS, "lovely lovely LOVELY unknownword", "don’t—never", "x"])
@pytest.mark.parametrize("kind", ["classify", "ordered", "labels", "number"])
def test_the_contributions_to_a_linear_model_add_up_to_its_score(kind: str, text: str) -> None:
    for pairs in (False, True):
        predictor = make_linear(kind, pairs=pairs)
        found = explain(predictor, text, text[::-1] if pairs else None, orders=0)
        empty = predictor.predict_proba([""], [""] if pairs else None)
        probabilities = predictor.predict_proba([text], [text[::-1]] if pairs else None)
        labels = predictor.labels
        target = Target(
            kind,  # type: ignore[arg-type]
            labels.index(found.label) if found.label else 0,
            labels.index(found.against) if found.against else None,
        )
        assert found.baseline == pytest.approx(float(target.score(empty)[0]))
        assert found.score == pytest.approx(float(target.score(probabilities)[0]))
        assert total(found.words) == pytest.approx(found.score - found.baseline, abs=1e-9)
        assert found.error == pytest.approx(0, abs=1e-9)
        assert found.method == "exact"


def test_a_term_contributes_its_weight_times_its_feature() -> None:
    predictor = make_linear("number")
    model = predictor.model
    words, characters = model.features.blocks
    row = model.features.transform(["dull film"]).toarray()[0]
    (first, second) = explain(predictor, "dull film", orders=0).words
    effects = model.linear.weight[0] * row
    both = effects[words.index["dull film"]] if "dull film" in words.index else 0.0
    runs = {term: effects[len(words.terms) + column] for term, column in characters.index.items()}
    own = sum(effect for term, effect in runs.items() if term in " dull ")
    assert first.contribution == pytest.approx(effects[words.index["dull"]] + both / 2 + own)
    assert second.contribution == pytest.approx(effects.sum() - first.contribution)


@pytest.mark.parametrize(("kind", "problem", "options"), [
    ("encoder", None, {"n_types": 2}),
    ("encoder", "multi_label_classification", {"pool": "mean"}),
    ("encoder", "regression", {}),
    ("decoder", None, {"norm_place": "pre"}),
    ("encoder_decoder", None, {"position": "relative", "norm_place": "pre", "start_id": 0}),
])  # fmt: skip
def test_the_gradients_of_a_network_add_up_to_its_score(
    kind: str, problem: str | None, options: dict[str, Any]
) -> None:
    predictor = make_network(kind, problem, **options)
    found = explain(predictor, "a lovely film with a dull end", orders=0)
    assert found.method == "gradients"
    assert found.relative_error is not None
    assert found.relative_error < 0.01
    assert abs(found.score - found.baseline) > 0.05  # type: ignore[operator]
    assert total(found.words) == pytest.approx(found.score - found.baseline + found.error)  # type: ignore[operator]
    assert found.score == pytest.approx(score_of(predictor, found), rel=1e-5)
    if found.against is not None:
        other = explain(
            predictor, "a lovely film with a dull end", orders=0, label=found.against, against=found.label
        )
        assert [w.contribution for w in other.words] == pytest.approx([-w.contribution for w in found.words])


def score_of(predictor: ClassifierPredictor, found: Any) -> float:
    row = predictor.predict_proba([found.text])
    label = predictor.labels.index(found.label) if found.label else 0
    against = None if found.against is None else predictor.labels.index(found.against)
    return float(Target(predictor.kind, label, against).score(row)[0])


def test_the_gradient_along_the_path_is_that_of_finite_differences() -> None:
    predictor = make_network(n_types=2)
    words = TextWords("a lovely film with a dull end")
    path = EmbeddingPath(predictor, words, Target("classify", 0, 2))
    exact = path.integrate(64)
    token = next(i for i, span in enumerate(path.tokens.spans) if span is not None)
    shares, step, parts = (np.arange(400) + 0.5) / 400, 1e-5, []
    for share in shares:
        at = (path.whole - (1 - share) * path.change)[None]
        up, down = at.clone(), at.clone()
        up[0, token] += step * path.change[token]
        down[0, token] -= step * path.change[token]
        with torch.no_grad():
            parts.append(float(path.score(up) - path.score(down)) / (2 * step))
    assert np.mean(parts) == pytest.approx(exact[token], rel=1e-3)


def test_words_that_were_cut_off_contribute_nothing_and_are_counted() -> None:
    predictor = make_network()
    predictor.max_len = 8
    text = "a lovely film with a dull end and rude music"
    found = explain(predictor, text, orders=0)
    read = len(found.words) - found.unread
    assert 0 < read < len(found.words)
    assert all(word.contribution for word in found.words[:read])
    assert not any(word.contribution for word in found.words[read:])
    assert "has not read" in " ".join(found.sentences)
    predictor.long_texts = "head-tail"
    assert explain(predictor, text, orders=0).words[-1].contribution


@pytest.mark.parametrize("long_texts", ["cut", "head-tail"])
@pytest.mark.parametrize("pair", [None, "the music was quite short and warm"])
@pytest.mark.parametrize("max_len", [6, 9, 12, 40])
def test_located_tokens_are_the_encoded_ones(long_texts: Any, pair: str | None, max_len: int) -> None:
    tokenizer = make_network().tokenizer
    text = "A lovely, warm film: very kind"
    located = tokenizer.locate(text, pair, max_len=max_len, long_texts=long_texts)
    encoded = tokenizer.encode(text, pair, max_len=max_len, long_texts=long_texts)
    assert (located.ids, located.types) == (encoded.ids, encoded.types)
    for token, span in zip(located.ids, located.spans, strict=True):
        assert (span is None) == (token in (tokenizer.cls_id, tokenizer.sep_id))
        piece = tokenizer.pieces([token])[0].removeprefix("##")
        if span is not None and token != tokenizer.unk_id:
            assert (text, pair)[span[0]][span[1] : span[2]].lower() == piece  # type: ignore[index]


def test_occlusion_is_the_fall_without_the_word_for_every_model() -> None:
    linear, network = make_linear("classify"), make_network()
    network.labels = linear.labels
    for predictor in (linear, network, EnsemblePredictor([linear, network], [1, 3])):
        text = "a lovely film with a dull end"
        found = explain(predictor, text, method="occlusion", orders=0)
        rows = predictor.predict_proba([text, "a lovely film with a end"])
        label, against = (predictor.labels.index(str(name)) for name in (found.label, found.against))
        full, without = np.log(rows[:, label]) - np.log(rows[:, against])
        assert found.words[5].text == "dull"
        assert found.words[5].contribution == pytest.approx(full - without)
        assert found.error is None
    assert explain(EnsemblePredictor([linear, network], [1, 3]), text, orders=0).method == "occlusion"


def test_neighbors_are_removed_together_in_a_long_text() -> None:
    words = TextWords(" ".join(f"w{i}" for i in range(300)), "x y")
    groups = group_neighbors(words.words, 128)
    assert [number for group in groups for number in group] == list(range(302))
    assert max(map(len, groups)) == 3
    assert groups[-1] == [300, 301]


def test_a_text_without_words_keeps_its_other_spaces() -> None:
    words = TextWords("  Good,  very\tgood film. ", "A second one")
    assert [word.text for word in words.words[:6]] == ["Good", ",", "very", "good", "film", "."]
    assert words.without([]) == ("  Good,  very\tgood film. ", "A second one")
    assert words.without([2, 3]) == ("Good, film. ", "A second one")
    assert words.without(range(6)) == ("", "A second one")
    assert words.without([6, 8]) == ("  Good,  very\tgood film. ", "second")


def weighted(weights: Sequence[float]) -> Callable[[Sequence[Collection[int]]], Any]:
    """A value that each word adds its weight to."""
    return lambda sets: np.array([sum(w for i, w in enumerate(weights) if i not in one) for one in sets])


def test_the_deletion_test_tells_a_right_explanation_from_a_wrong_one() -> None:
    weights = np.array([0.3, 0.0, 0.01, 0.2, 0.0, 0.02, 0.15, 0.0, 0.1, 0.01])
    right = run_deletion_test(weights, weighted(weights), name="the probability")
    assert right.trusted
    assert right.area > 0.1
    assert right.explained[0] == pytest.approx(weights.sum())
    assert "can be trusted" in right.sentence
    wrong = run_deletion_test(-weights, weighted(weights), name="the probability")
    assert wrong.trusted is False
    assert wrong.area < 0
    assert wrong.as_good == wrong.orders
    assert "do not trust" in wrong.sentence
    nothing = run_deletion_test(weights, lambda sets: np.full(len(sets), 0.5), name="the probability")
    assert nothing.trusted is False
    chance = [
        run_deletion_test(
            np.random.default_rng(seed).normal(size=10), weighted(weights), name="p", seed=seed
        ).trusted
        for seed in range(200)
    ]
    assert np.mean(chance) < 0.1


def test_a_text_of_three_words_is_too_short_to_tell() -> None:
    weights = np.array([0.5, 0.3, 0.1])
    test = run_deletion_test(weights, weighted(weights), name="the probability")
    assert test.trusted is None
    assert "6 orders" in test.sentence
    assert run_deletion_test(weights[:1], weighted([1.0]), name="p").trusted is None


def test_what_cannot_be_explained_is_refused_in_one_line() -> None:
    linear, number = make_linear("classify"), make_linear("number")
    for predictor, options, message in (
        (linear, {"label": "d"}, "d"),
        (linear, {"label": "a", "against": "a"}, "cannot be compared with itself"),
        (number, {"label": "a"}, "gives a number"),
        (linear, {"method": "gradients"}, "exact"),
        (linear, {"method": "magic"}, "magic"),
        (make_linear("labels"), {"against": "a"}, "probability of its own"),
        (make_network(), {"method": "exact"}, "only linear models"),
        (EnsemblePredictor([linear], [1]), {"method": "gradients"}, "occlusion works"),
    ):
        with pytest.raises(UserError, match=message):
            explain(predictor, "a film", **options)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="empty"):
        explain(linear, "  ")


def test_an_explanation_is_inert_in_a_notebook() -> None:
    hostile = "<script>alert(1)</script> lovely"
    page = explain(make_linear("classify"), hostile)._repr_html_()
    assert "<script" not in page
    assert "lovely" in page


def test_the_command_and_the_python_function_agree(heedful: Callable[..., Any], tmp_path: Path) -> None:
    from heedful import adapt
    from heedful import explain as explain_run

    rows = [f"{'warm sun' if i % 2 else 'cold rain'} today {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    run = adapt("tfidf", tmp_path / "rows.csv", out=tmp_path / "run")
    text = "the warm sun today was not cold"
    facts = json.loads(heedful("explain", tmp_path / "run", text, "--json").out)
    found = explain_run(run, text)
    assert facts["words"] == found.facts()["words"]
    assert {facts["label"], facts["against"]} == {"yes", "no"}
    assert found.top[0].text in ("warm", "sun")
    printed = heedful("explain", tmp_path / "run", text).out
    assert found.deletion is not None
    assert found.deletion.sentence.split(":")[0][:40] in " ".join(printed.split())
    assert heedful("explain", tmp_path / "run", text, "--label", "maybe").status == 2
