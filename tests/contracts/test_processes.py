"""Two processes train what one trains with the same batches, to rounding."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pair
import pytest
import torch

from heedful.runs.directory import Run
from heedful.training import checkpoint
from tiny import make_model, make_task

TEXT = "the cat sat on the mat and saw the old dog run past a red house while it rained all day long"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("places")
    make_model(root / "model", dropout=0.0, words=30)
    make_task(root / "task", rows=61)
    words = TEXT.split()
    lines = [" ".join(words[i % 9 :: 1 + i % 3]) for i in range(45)]
    (root / "text.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(scope="module")
def one(places: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("one")
    pair.train([*pair.ADAPT, *pair.PRETRAIN], places, out)
    return out


@pytest.fixture(scope="module")
def two(one: Path, places: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, Path(pair.__file__)]
    children = [
        subprocess.Popen([*words, str(rank), str(port), places, out], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [child.communicate(timeout=240)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], "\n".join(said)
    return out


@pytest.mark.parametrize("name", [*pair.ADAPT, *pair.PRETRAIN])
def test_two_processes_end_with_the_weights_and_scores_of_one(name: str, one: Path, two: Path) -> None:
    alone, together = Run(one / name), Run(two / name)
    assert checkpoint.steps(together) == checkpoint.steps(alone)
    last = checkpoint.steps(alone)[-1]
    before, weights, moments = checkpoint.read_checkpoint(checkpoint.checkpoint_folder(alone, last))
    after, weights2, moments2 = checkpoint.read_checkpoint(checkpoint.checkpoint_folder(together, last))
    assert (after.processes, before.processes) == (2, 1)
    assert (after.examples, after.tokens, after.best_step) == (
        before.examples,
        before.tokens,
        before.best_step,
    )
    for key, own in weights.items():
        torch.testing.assert_close(weights2[key], own, rtol=1e-7, atol=1e-9)
    assert str(moments2).count("tensor") == str(moments).count("tensor")
    rows, rows2 = alone.read_metrics(), together.read_metrics()
    assert [(r.step, r.split, r.n, r.lr) for r in rows2] == [(r.step, r.split, r.n, r.lr) for r in rows]
    for row, row2 in zip(rows, rows2, strict=True):
        assert row2.loss == pytest.approx(row.loss, rel=1e-7)
        assert row2.value == (None if row.value is None else pytest.approx(row.value, rel=1e-7))
        for part, loss in (row.losses or {}).items():
            assert (row2.losses or {})[part] == pytest.approx(loss, rel=1e-7)
