"""Peak memory at length 4,096, forward and backward, of the mechanisms that promise not to make t x s (x d)."""

from __future__ import annotations

import sys

import pytest

from heedful.lab.cost import CostQuery, measure

LENGTH = 4096


def growth_mb(name: str, heads: int, width: int, causal: bool, **options: object) -> float:
    """How much a child process's peak resident memory rises by one pass at length 4,096."""
    done = measure(CostQuery(name, (256, LENGTH), causal, options, heads=heads, width=width), seconds=600)
    assert not done.limit, done.limit
    growth = done.measured[-1].mb
    assert growth is not None
    return growth


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize(
    ("name", "heads", "width", "bound", "options"),
    [
        # One tensor of t x s x d would be 537 MB, one of t x s 67 MB; q, k, v and their gradients are 3 MB.
        ("additive", 1, 8, 40, {}),
        # One tensor of t x s for 8 heads would be 537 MB; q, k, v, the output and their gradients are 67 MB.
        pytest.param("linformer", 8, 64, 130, {"rank": 256}, marks=pytest.mark.long),
        pytest.param("bigbird", 8, 64, 130, {}, marks=pytest.mark.long),
        pytest.param("performer", 8, 64, 180, {"features": 256}, marks=pytest.mark.long),
    ],
)
def test_peak_memory_stays_under_its_bound(
    name: str, heads: int, width: int, bound: float, options: dict[str, int]
) -> None:
    for causal in (False, True):
        if causal and name == "linformer":
            continue
        assert growth_mb(name, heads, width, causal, **options) < bound


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_the_measure_sees_a_mechanism_that_keeps_its_weights() -> None:
    """The same measure on explicit weights of 8 heads finds at least one t x s; otherwise the bounds say nothing."""
    assert growth_mb("zero_scores", 2, 64, True, unsafe=True) > 130
