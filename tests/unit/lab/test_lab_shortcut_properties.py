"""Approximations, heads and scaling, for all sizes and seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.lab import approximations, head_maps
from heedful.lab.arrays import compute_output
from heedful.lab.cost import CostCurve, LengthCost
from heedful.lab.topics import scaling

quick = settings(deadline=None, max_examples=20, derandomize=True)


@quick
@given(n=st.integers(2, 40), features=st.integers(1, 32), width=st.integers(1, 9), seed=st.integers(0, 99))
def test_both_orders_of_performers_product_are_one_output(
    n: int, features: int, width: int, seed: int
) -> None:
    assert approximations.orders(n, features, width, seed).apart < 1e-8


@quick
@given(n=st.integers(1, 24), width=st.integers(1, 8), seed=st.integers(0, 99))
def test_linformer_with_a_slot_for_every_position_is_softmax(n: int, width: int, seed: int) -> None:
    q, k, v = np.random.default_rng(seed).standard_normal((3, n, width))
    made = approximations.linformer(q, k, v, 1.0, approximations.pooling(n, n))
    np.testing.assert_allclose(made, compute_output(q, k, v, scale=1.0), atol=1e-10)


@quick
@given(n=st.integers(2, 16), seed=st.integers(0, 99))
def test_no_rank_does_better_than_the_best_of_a_higher_one(n: int, seed: int) -> None:
    q, k = np.random.default_rng(seed).standard_normal((2, n, 4))
    errors = approximations.rank_errors(q, k, np.eye(n), 1.0, 1, seed)
    assert (np.diff(errors["best"]) <= 1e-12).all()
    assert (errors["best"] <= errors["pooled"] + 1e-12).all()
    assert errors["best"][-1] < 1e-10


@quick
@given(
    blocks=st.integers(2, 12),
    window=st.sampled_from([1, 3]),
    n_random=st.integers(0, 2),
    seed=st.integers(0, 20),
)
def test_a_global_block_joins_all_tokens_within_two_layers(
    blocks: int, window: int, n_random: int, seed: int
) -> None:
    layers = approximations.layers_to_reach(
        blocks, False, window=window, n_global=1, n_random=n_random, seed=seed
    )
    assert 1 <= layers <= 2


@quick
@given(t=st.integers(1, 12), seed=st.integers(0, 99), sharpness=st.floats(0, 30))
def test_entropy_and_distance_stay_within_what_a_map_allows(t: int, seed: int, sharpness: float) -> None:
    scores = sharpness * np.random.default_rng(seed).standard_normal((t, t))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    assert -1e-12 <= head_maps.entropy(weights) <= np.log(t) + 1e-9
    assert 0 <= head_maps.distance(weights) <= t - 1 + 1e-9
    assert head_maps.entropy(np.eye(t)) == head_maps.distance(np.eye(t)) == 0


@quick
@given(power=st.floats(0.2, 3.0), factor=st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_law_is_found_whatever_its_factor(power: float, factor: float) -> None:
    lengths = (256, 512, 1024, 2048)
    grown = CostCurve(tuple(LengthCost(n, n, n, factor * float(n) ** power, True) for n in lengths))
    assert scaling.slope(grown, "memory, MB") == pytest.approx(power, abs=1e-6)
    x = np.array(lengths, float)
    assert approximations.exponent(x, factor * x**power) == pytest.approx(power, abs=1e-9)
