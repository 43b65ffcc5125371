"""Every construction of the lab fails when it is broken: by a sign, a scale or another mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heedful import lab
from heedful.attention import Mechanism
from heedful.attention.performer import Performer
from heedful.lab import approximations, arrays, lookup, random_texts
from heedful.lab.base import Finding
from heedful.lab.topics import approximation, argmax, average, copy, kqv, masking, noise, subspace

Break = Callable[[pytest.MonkeyPatch], None]
QUICK: dict[str, dict[str, Any]] = {
    "argmax": {"steps": 0},
    "masking": {"steps": 0},
    "noise": {"samples": 4000},
}


def run(topic: str, **more: Any) -> Finding[Any]:
    return getattr(lab, topic)(**{**QUICK.get(topic, {}), **more})


def mechanism(change: Callable[..., tuple[str, float, dict[str, Any]]]) -> Break:
    """Attention that is built otherwise than asked for, wherever a topic builds it."""
    real = arrays.mechanism

    def build(name: str, width: int, size: int, scale: float = 1.0, **options: Any) -> Mechanism:
        name, scale, options = change(name, scale, options)
        return real(name, width, size, scale, **options)

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(arrays, "mechanism", build)
        monkeypatch.setattr(argmax, "mechanism", build)

    return patch


HALF = mechanism(lambda name, scale, options: (name, scale / 2, options))
OTHER = mechanism(lambda name, scale, options: ("softmax" if name == "argmax" else "argmax", scale, {}))
NEVER_RENORMALIZED = mechanism(lambda name, scale, options: (name, scale, {**options, "renormalize": False})
                               if name == "zero_after" else (name, scale, options))  # fmt: skip
SCORES_ZEROED = mechanism(lambda name, scale, options: ("zero_scores", scale, {"unsafe": True}))


def changed(module: Any, name: str, change: Callable[[Any], Any]) -> Break:
    """The same function with its result changed."""
    real = getattr(module, name)
    return lambda monkeypatch: monkeypatch.setattr(module, name, lambda *a, **k: change(real(*a, **k)))


def minus(array: Any) -> Any:
    return -array


def layer_with_half_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    real = kqv.layer
    monkeypatch.setattr(kqv, "layer", lambda x, made, scale: real(x, made, scale / 2))


def keys_negated(made: kqv.Projections) -> kqv.Projections:
    return kqv.Projections(made.q, -made.k, made.v)


def first_key_flipped(found: np.ndarray) -> np.ndarray:
    return found * np.r_[-1.0, np.ones(len(found) - 1)]


BREAKS: dict[str, tuple[str, Break]] = {
    "copy, half the scale": ("copy", HALF),
    "copy, argmax": ("copy", OTHER),
    "copy, sign of the queries": ("copy", changed(copy, "own_queries", minus)),
    "argmax, softmax": ("argmax", OTHER),
    "argmax, straight-through": ("argmax", mechanism(
        lambda name, scale, options: (name, scale, {"straight_through": True} if name == "argmax" else {})
    )),
    "argmax, sign of the scores": ("argmax", mechanism(
        lambda name, scale, options: (name, -scale, options)
    )),
    "average, half the scale": ("average", HALF),
    "average, argmax": ("average", OTHER),
    "average, sign of the query": ("average", changed(average, "exact_query", minus)),
    "average, one sign in the query": ("average", changed(average, "exact_query", first_key_flipped)),
    "subspace, argmax": ("subspace", OTHER),
    "subspace, half the projection": ("subspace", changed(subspace, "projection", lambda p: p / 2)),
    "subspace, sign of the projection": ("subspace", changed(subspace, "projection", minus)),
    "subspace, other way round": ("subspace", lambda monkeypatch: monkeypatch.setattr(
        subspace, "projection", lambda a, b: b @ np.linalg.pinv(subspace.away_from(a) @ b)
    )),
    "noise, half the scale": ("noise", HALF),
    "noise, argmax": ("noise", OTHER),
    "noise, sign of one query": ("noise", lambda monkeypatch: monkeypatch.setattr(
        noise, "pair_query", lambda means, beta: beta * (means[0] - means[1])
    )),
    "kqv, half the scale": ("kqv", layer_with_half_the_scale),
    "kqv, sign of K": ("kqv", changed(kqv, "projections", keys_negated)),
    "kqv, argmax": ("kqv", OTHER),
    "masking, never renormalized": ("masking", NEVER_RENORMALIZED),
    "masking, scores zeroed": ("masking", SCORES_ZEROED),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_construction_fails(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    topic, broken = BREAKS[name]
    broken(monkeypatch)
    found = run(topic)
    assert not found.passed, [n for n in found.numbers if n.holds]


@pytest.mark.parametrize("topic", sorted({topic for topic, _ in BREAKS.values()}))
def test_an_intact_construction_passes(topic: str) -> None:
    found = run(topic)
    assert found.passed, found.failed


def test_weight_decay_moves_what_no_gradient_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.training import optimizers

    assert lookup.learn("argmax", 2, 0).changed == 0
    real = optimizers.group_parameters
    monkeypatch.setattr(optimizers, "group_parameters", lambda model, p, weight_decay: real(model, p, 0.1))
    assert lookup.learn("argmax", 2, 0).changed > 1000
    monkeypatch.setattr(
        argmax, "learn_all", lambda steps, seed: {"argmax": lookup.learn("argmax", steps, seed)}
    )
    assert [n.name for n in lab.argmax(steps=2).failed if "changed" in n.name]


def test_argmax_that_learns_fails_the_topic() -> None:
    solved = lookup.Lookup([2.0, 0.1], loss=0.1, accuracy=1.0, changed=2000, entries=2112)
    assert all(not n.holds for n in argmax.verify("argmax", solved))
    assert all(n.holds for n in argmax.verify("softmax", solved))
    stuck = lookup.Lookup([2.1, 2.1], loss=lookup.BLIND, accuracy=0.1, changed=0, entries=2112)
    assert all(n.holds for n in argmax.verify("argmax", stuck))
    assert all(not n.holds for n in argmax.verify("softmax", stuck))


def test_masks_that_trained_models_see_through_fail_the_topic() -> None:
    honest, cheat = (
        random_texts.Guesses(random_texts.HONEST, random_texts.HONEST),
        random_texts.Guesses(0.01, 5.0),
    )
    good = {name: cheat if name in (masking.AFTER, masking.SCORES) else honest for name in masking.MASKS}
    assert all(n.holds for n in masking.verify(good))
    for name in masking.MASKS:
        swapped = {**good, name: honest if good[name] is cheat else cheat}
        assert not all(n.holds for n in masking.verify(swapped)), name


def test_a_model_that_can_see_the_future_reads_it_and_an_honest_one_cannot() -> None:
    leaky = random_texts.learn("zero_after", 150, 0, unsafe=True)
    assert leaky.whole < 0.5 * random_texts.HONEST < random_texts.HONEST < leaky.in_use
    honest = random_texts.learn("softmax", 60, 0)
    assert honest.whole == pytest.approx(honest.in_use, abs=1e-5)
    assert honest.whole > random_texts.HONEST - 0.02


def test_softmax_learns_to_look_up_and_argmax_keeps_its_bits() -> None:
    assert lookup.learn("softmax", 250, 0).loss < 0.2 * lookup.BLIND
    stuck = lookup.learn("argmax", 20, 0)
    assert (stuck.changed, stuck.entries) == (0, 2 * (32 * 32 + 32))


def performer_with_another_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Performer.attend

    def attend(self: Performer, q: Any, *rest: Any) -> Any:
        return real(self, q * 1.5, *rest)

    monkeypatch.setattr(Performer, "attend", attend)


def features_of_either_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    real = approximations.compute_weights
    monkeypatch.setattr(
        approximations,
        "compute_weights",
        lambda *a, **o: real(*a, **{**o, "kind": "trigonometric"} if "kind" in o else o),
    )


def mixtures_with_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    real = approximations.pooling
    monkeypatch.setattr(approximations, "pooling", lambda n, rank: -real(n, rank))


def window_twice_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    real = arrays.mechanism

    def build(name: str, *given: Any, **options: Any) -> Mechanism:
        return real(name, *given, **{**options, "window": 5} if name == "bigbird" else options)

    monkeypatch.setattr(approximations, "mechanism", build)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (performer_with_another_scale, ("exponent of m", "both orders")),
        (features_of_either_sign, ("positive features: negative",)),
        (mixtures_with_a_sign, ("linformer with a slot for every key",)),
        (window_twice_as_wide, ("bigbird, window: layers",)),
    ],
)
def test_a_broken_approximation_fails(
    monkeypatch: pytest.MonkeyPatch, broken: Break, named: tuple[str, ...]
) -> None:
    monkeypatch.setattr(approximation, "LENGTHS", (64,))
    broken(monkeypatch)
    failed = [n.name for n in run("approximation", draws=8).failed]
    assert all(any(name in each for each in failed) for name in named), failed


@pytest.mark.parametrize("seed", [1, 2])
def test_an_intact_approximation_passes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(approximation, "LENGTHS", (64,))
    found = run("approximation", seed=seed)
    assert found.passed, found.failed


def test_a_pattern_that_never_reaches_says_so() -> None:
    assert approximations.layers_to_reach(4, False, window=1, n_global=0, n_random=0, seed=0) == 0
    assert approximations.layers_to_reach(1, True, window=1, n_global=0, n_random=0, seed=0) == 1
