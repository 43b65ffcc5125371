"""Fixtures of the contracts."""

from __future__ import annotations

import pytest

from heedful.attention import additive, blocks, chunked, favor, mechanism, softmax


@pytest.fixture(params=["whole", "pieces"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim twice: with the sizes of real use, which a short sequence never fills, and cut very small."""
    if request.param == "pieces":
        for module in (additive, blocks, chunked, favor):
            monkeypatch.setattr(module, "CHUNK", 64)
        monkeypatch.setattr(favor, "LENGTH", 4)
        monkeypatch.setattr(softmax, "SHORT", 0)
        monkeypatch.setattr(mechanism, "WEIGHTS", 300)
