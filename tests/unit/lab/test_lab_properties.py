"""What holds for all vectors, not only for the examples."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful import lab
from heedful.errors import UserError
from heedful.lab.arrays import compute_weights
from heedful.lab.directions import Direction, Obstacle, direction, leak, smallest

few = settings(max_examples=15, deadline=None, derandomize=True)


def whole(n: st.SearchStrategy[int], d: st.SearchStrategy[int]) -> st.SearchStrategy[np.ndarray]:
    """Vectors of small whole numbers: many ties, many points inside the hull of others."""
    return st.tuples(n, d).flatmap(lambda shape: arrays(float, shape, elements=st.integers(-3, 3)))


@few
@given(whole(st.integers(1, 6), st.integers(1, 3)), st.floats(1e-6, 0.4))
def test_copy_passes_for_all_keys(keys: np.ndarray, eps: float) -> None:
    found = lab.copy(keys, eps=eps)
    assert found.passed, found.failed


@settings(max_examples=40, deadline=None, derandomize=True)
@given(whole(st.integers(2, 7), st.just(2)))
def test_a_direction_is_found_exactly_where_one_exists(keys: np.ndarray) -> None:
    # Differences of these keys are at most 6 long in each component, so directions in which the best key changes
    # lie more than 1/72 apart: so many angles meet every cone.
    angles = np.linspace(0, 2 * math.pi, 4000, endpoint=False) + 1e-4
    scores = np.stack([np.cos(angles), np.sin(angles)], 1) @ keys.T
    for j in range(len(keys)):
        best = scores[:, j] > np.delete(scores, j, axis=1).max(1) + 1e-9
        found = direction(keys, [j])
        assert isinstance(found, Direction) == bool(best.any())
        if isinstance(found, Obstacle):
            assert found.others.min() >= -1e-9
            others = np.delete(keys, j, axis=0)
            assert np.abs(found.others @ others - keys[j]).max() < 1e-6


@few
@given(whole(st.integers(3, 6), st.just(2)))
def test_two_keys_are_averaged_exactly_where_a_perpendicular_query_separates_them(keys: np.ndarray) -> None:
    assume((keys[0] != keys[1]).any())
    turned = np.array([keys[0, 1] - keys[1, 1], keys[1, 0] - keys[0, 0]])
    exists = any((keys[2:] @ u < keys[0] @ u).all() for u in (turned, -turned))
    found = lab.average(keys)
    assert found.passed, found.failed
    assert (found.results.query is not None) == exists
    if exists:
        w = found.results.weights
        assert w[0] == pytest.approx(w[1], rel=1e-9)
        assert w[0] >= 0.495 - 1e-9


@few
@given(whole(st.integers(3, 6), st.integers(2, 4)), st.data())
def test_average_passes_for_all_keys_and_choices(keys: np.ndarray, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(1, len(keys)), min_size=1, max_size=len(keys), unique=True))
    found = lab.average(keys, chosen=tuple(chosen))
    assert found.passed, found.failed
    if len(chosen) == len(keys):
        assert np.abs(found.results.weights - 1 / len(keys)).max() < 1e-12


@few
@given(st.integers(3, 40), st.floats(1e-6, 0.3), st.floats(0.1, 10))
def test_the_smallest_scale_is_the_smallest(n: int, eps: float, scale: float) -> None:
    keys = np.eye(n)
    s, low, high = smallest(keys[0], keys, [0], eps, scale)
    assert low <= s <= high * (1 + 1e-12)
    assert leak(s * keys[0], keys, [0], scale) == pytest.approx(eps, rel=1e-6)
    assert s == pytest.approx(math.log((n - 1) * (1 - eps) / eps) / scale, rel=1e-9)


@few
@given(whole(st.integers(1, 6), st.integers(1, 4)), st.data())
def test_argmax_returns_the_first_best_value(keys: np.ndarray, data: st.DataObject) -> None:
    query = data.draw(arrays(float, keys.shape[1], elements=st.integers(-3, 3)))
    values = np.arange(2.0 * len(keys)).reshape(-1, 2)
    found = lab.argmax(keys, values, query, steps=0)
    assert found.passed, found.failed
    assert (found.results.output == values[np.argmax(keys @ query)]).all()
    assert found.results.gradient == 0


@settings(max_examples=25, deadline=None, derandomize=True)
@given(whole(st.integers(1, 3), st.just(5)), whole(st.integers(1, 4), st.just(5)))
def test_an_average_is_taken_apart_exactly_if_the_subspaces_share_nothing(
    a: np.ndarray, b: np.ndarray
) -> None:
    assume(np.linalg.matrix_rank(a) == len(a) and np.linalg.matrix_rank(b) == len(b))
    found = lab.subspace(a, b)
    assert found.passed, found.failed
    case = found.results.cases["given"]
    assert (case.matrix is not None) == (np.linalg.matrix_rank(np.r_[a, b]) == len(a) + len(b))
    if case.matrix is not None:
        assert np.abs(case.matrix @ (a[0] + b[0]) / 2 - a[0]).max() < 1e-6
        assert case.amplification >= 1 - 1e-9


@settings(max_examples=4, deadline=None, derandomize=True)
@given(st.integers(3, 12), st.sampled_from([1e-8, 1e-6, 1e-4, 1e-2]), st.integers(0, 5), st.floats(0.3, 3))
def test_noise_passes_for_all_sizes(size: int, alpha: float, seed: int, scale: float) -> None:
    found = lab.noise(alpha=alpha, size=size, seed=seed, scale=scale, samples=4000)
    assert found.passed, found.failed


@few
@given(whole(st.just(4), st.integers(4, 6)), st.floats(0.5, 4), st.floats(0.3, 2))
def test_projections_exist_for_all_independent_vectors(u: np.ndarray, beta: float, scale: float) -> None:
    assume(np.linalg.matrix_rank(u) == 4)
    found = lab.kqv(u, beta=beta, scale=scale)
    assert found.passed, found.failed


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.floats(0.2, 5), st.floats(0.3, 2), st.integers(0, 5))
def test_projections_pass_for_all_norms(beta: float, scale: float, seed: int) -> None:
    found = lab.kqv(beta=beta, scale=scale, seed=seed, width=5)
    assert found.passed, found.failed


@few
@given(whole(st.integers(1, 6), st.integers(1, 4)), st.floats(0.1, 3))
def test_a_safe_mask_hides_the_future_of_all_vectors(keys: np.ndarray, scale: float) -> None:
    found = lab.masking(keys, queries=keys, scale=scale, steps=0)
    assert found.passed, found.failed


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(2, 8), st.integers(0, 20))
def test_generated_vectors_pass_everywhere(size: int, seed: int) -> None:
    for found in (
        lab.copy(size=size, width=2, seed=seed),
        lab.average(size=size, width=3, seed=seed, chosen=(1, 2)),
        lab.argmax(size=size, seed=seed, steps=0),
        lab.masking(size=size, seed=seed, steps=0),
    ):
        assert found.passed, (found.topic, found.failed)


def test_all_rows_at_once_never_overflow() -> None:
    keys = 100 * np.random.default_rng(0).normal(size=(5, 3))
    assert np.isfinite(compute_weights(1e5 * keys, keys)).all()


def test_the_published_numbers() -> None:
    found = lab.copy()
    first, second = found.results.sets.values()
    assert first.own_margin.tolist() == [0, 1, 3, 2]
    assert first.own_weight[0, -1] == pytest.approx(0.5)
    assert (second.own_margin > 0.7).all()
    assert np.isfinite(first.scale).all()
    assert np.isfinite(second.scale).all()
    averaged = lab.average().results
    assert [round(e, 4) for e in averaged.mean_errors.values()] == [0.2880, 0.0054, 0.0535, 0.3957]
    assert averaged.gap == pytest.approx(0.00215)
    picked = lab.argmax(steps=0).results
    assert (picked.scores.tolist(), picked.output.tolist()) == ([3, 1, 1, -3], [3, 2, -4])
    assert lab.noise(samples=4000).results.missed == pytest.approx(0.0786, abs=0.02)


@pytest.mark.parametrize(("keys", "words"), [
    ([[1, 0], [0, 1], [-1, -1]], "it is an exact query"),
    ([[1, 0], [0, 1], [1, 1]], "another key scores at least as high"),
    ([[2, 0], [0, 1], [-1, -1]], "one of them wins from about S = 0.6667 on"),
])  # fmt: skip
def test_the_mean_of_the_chosen_is_explained(keys: list[list[float]], words: str) -> None:
    assert words in lab.average(keys).construction[-1]


def test_the_weight_grows_with_the_length_of_the_query() -> None:
    curve = lab.copy().figure["data"]["values"]
    found = [row["y"] for row in curve if row["series"].startswith("direction (-2")]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))


@pytest.mark.parametrize(("topic", "options", "line"), [
    ("copy", {"key": 5}, "keys are counted from 1 to 4; there is no 5"),
    ("copy", {"eps": 0}, "eps is above 0 and below 1, not 0"),
    ("copy", {"scale": -1}, "scale is above 0, not -1"),
    ("average", {"chosen": (1, 1)}, "each once"),
    ("average", {"chosen": (0,)}, "there is no 0"),
    ("subspace", {"a": [[1, 0]]}, "give both --a and --b"),
    ("subspace", {"a": [[1, 0], [2, 0]], "b": [[0, 1]]}, "not independent"),
    ("subspace", {"size": 5}, "need a width of at least 10"),
    ("subspace", {"angle": 0}, "angle is above 0"),
    ("noise", {"keys": [[1, 0], [1, 1]]}, "must be orthonormal"),
    ("noise", {"size": 2}, "size is at least 3"),
    ("kqv", {"vectors": [[1, 0, 0, 0]] * 4}, "not independent"),
    ("kqv", {"width": 3}, "need a width of at least 4"),
    ("masking", {"keys": [[1, 0]], "values": [[1], [2]]}, "2 vectors; 1 are needed"),
])  # fmt: skip
def test_a_mistake_is_told_in_one_line(topic: str, options: dict[str, object], line: str) -> None:
    with pytest.raises(UserError) as told:
        getattr(lab, topic)(**options)
    assert line in str(told.value)
