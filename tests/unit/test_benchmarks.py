"""The benchmarks keep up with what they measure: each side does its steps, at a size that takes no time."""

from __future__ import annotations

import pytest
import torch
from benchmarks import pretrain

SMALL = {"ROWS": 4, "LENGTH": 8, "D_MODEL": 32, "LAYERS": 1, "HEADS": 2, "WARM": 1, "STEPS": 1}


@pytest.mark.parametrize("side", ["heedful", "transformers", "nanogpt", "roof"])
def test_each_side_of_the_pretraining_benchmark_does_its_steps(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(pretrain, name, value)
    threads = torch.get_num_threads()
    try:
        found = pretrain.run_side(side, *pretrain.CASES["gpt2-dropout"][:2])
    finally:
        torch.set_num_threads(threads)
    assert found["seconds"] > 0
