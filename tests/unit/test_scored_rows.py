"""Scoring while training takes a quarter of the time at most, or says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.training import run_log
from heedful.training.plan import FEWEST_SCORED, StepPlan
from heedful.training.train import train_run
from tiny import make_model, make_task


def plan(rows: int, **options: Any) -> StepPlan:
    objective = SimpleNamespace(first_steps=0, train_lengths=lambda: np.full(rows, 10))
    return StepPlan(AdaptOptions(batch_size=10, epochs=3, **options), cast(Any, objective))


@pytest.mark.parametrize(("rows", "dev", "options", "scored"), [
    (100_000, 1_000, {}, 2_000),  # an epoch is long
    (2_000, 500, {}, 1_500),  # as many rows are scored as are trained on
    (2_000, 5_000, {}, FEWEST_SCORED),
    (100_000, 0, {"eval_every": 90}, 900),
    (100_000, 0, {"eval_every": 10}, FEWEST_SCORED),
    (100_000, 0, {"eval_every": 10, "train_eval_rows": 20}, 20),
    (2_000, 500, {"train_eval_rows": 0}, 0),
])  # fmt: skip
def test_as_many_rows_are_scored_as_are_trained_on_in_between(
    rows: int, dev: int, options: dict[str, Any], scored: int
) -> None:
    assert plan(rows, **options).count_scored_rows(dev) == scored


@pytest.mark.usefixtures("printed_messages")
def test_a_run_says_once_that_scoring_takes_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = AdaptOptions(
        model=str(make_model(tmp_path / "model")), task=str(make_task(tmp_path / "task")), batch_size=16,
        max_len=16, eval_every=1, steps=4, precision="float32", threads=1, head_start="random",
        out=tmp_path / "run",
    )  # fmt: skip
    train_run(options)
    assert "scoring takes" not in capsys.readouterr().err
    monkeypatch.setattr(run_log, "SCORING_SECONDS", 0.0)
    train_run(replace(options, out=tmp_path / "other"))
    said = capsys.readouterr().err
    assert said.count("scoring takes") == 1
    assert "--eval-every 2 or fewer --train-eval-rows" in said
    first, second = (Run(tmp_path / name).path / "metrics.jsonl" for name in ("run", "other"))
    assert first.read_bytes() == second.read_bytes()
