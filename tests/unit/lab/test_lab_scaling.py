"""Measurements in child processes: what they keep, when they stop, and what fails the topic."""

from __future__ import annotations

import sys

import pytest

from heedful import lab
from heedful.errors import UserError
from heedful.lab.cost import CostCurve, CostQuery, LengthCost, measure
from heedful.lab.topics import scaling

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")


def grown(power: float, **more: object) -> CostCurve:
    return CostCurve(tuple(LengthCost(n, n, n, (n / 256) ** power, True) for n in (256, 512, 1024)), **more)  # type: ignore[arg-type]


@linux
@pytest.mark.long
def test_a_linear_mechanism_that_makes_its_weights_fails_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lab.scaling(max_length=2048, mechanisms=("linformer",))
    assert found.passed, found.failed
    assert [m.length for m in found.results.not_causal["linformer"].measured] == [256, 512, 1024, 2048]
    assert list(found.results.causal) == [scaling.EXPLICIT]
    real = scaling.measure_mechanism
    monkeypatch.setattr(scaling, "measure_mechanism", lambda name, *rest: real(scaling.EXPLICIT, *rest))
    failed = [n.name for n in lab.scaling(max_length=2048, mechanisms=("linformer",)).failed]
    assert failed == ["linformer: exponent of memory"]


def test_memory_decides_and_times_never_do() -> None:
    assert all(n.holds is not False for n in scaling.verify("performer, causal", grown(1.0)))
    assert any(n.holds is False for n in scaling.verify("performer, causal", grown(2.0)))
    assert any(n.holds is False for n in scaling.verify(scaling.EXPLICIT, grown(1.0)))
    assert all(n.holds is not False for n in scaling.verify("additive", grown(3.0)))
    slow = CostCurve(tuple(LengthCost(n, n**3, n**3, n, True) for n in (256, 512, 1024)))
    assert all(n.holds is not False for n in scaling.verify("performer", slow))


def test_what_is_not_finite_or_crashed_fails() -> None:
    nan = CostCurve((LengthCost(256, 1, 1, 1, False),))
    assert scaling.verify("softmax", nan)[0].holds is False
    crashed = measure(CostQuery("softmax", (64,), False, {"features": 3}), 60)
    assert crashed.failed
    assert "features" in crashed.limit
    assert scaling.verify("softmax", crashed)[0].holds is False


def test_a_time_limit_is_kept_and_told() -> None:
    stopped = measure(CostQuery("softmax", (64,), False), 0.05)
    assert (stopped.measured, stopped.limit, stopped.failed) == ((), "time limit of 0.05 s", False)
    assert scaling.values(stopped, (256, 512), "memory, MB") == [None, None]
    assert scaling.slope(stopped, "time") is None


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match='unknown attention "performr"'):
        lab.scaling(mechanisms=("performr",))
    with pytest.raises(UserError, match="max-length is at least 1024"):
        lab.scaling(max_length=512)
