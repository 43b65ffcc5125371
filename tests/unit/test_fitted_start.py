"""A head that is fitted before the first step: it tells no more than the states do, and may be the best model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from heedful import models
from heedful.evaluation.metrics import ACCURACY, PERPLEXITY, Metric
from heedful.linear.logistic import fit_logistic
from heedful.objectives import Evaluation
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.training.build.head_start import REGULARIZATION, fit_head
from heedful.training.checkpoint import TrainingState
from heedful.training.loop import Loop
from heedful.training.selection import Selection
from heedful.training.train import train_run
from tiny import make_model, make_task


def test_training_that_makes_a_fitted_head_worse_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = AdaptOptions(
        model=str(make_model(tmp_path / "model")), task=str(make_task(tmp_path / "task")), epochs=3, lr=3.0,
        batch_size=8, max_len=32, precision="float32", threads=1, head_start="fitted", out=tmp_path / "run",
    )  # fmt: skip
    train_run(options)
    run = Run(tmp_path / "run")
    results, dev = run.read_results(), [row for row in run.read_metrics() if row.split == "dev"]
    assert [row.step for row in dev] == [0, 8, 16, 24]
    assert (results.best_step, results.best_epoch) == (0, 0.0)
    assert results.splits["dev"].value == dev[0].value
    assert max(row.value or 0 for row in dev[1:]) < (dev[0].value or 0)

    step, died = Loop.step, []

    def die_once(self: Loop, number: int) -> None:
        if number == 9 and not died:
            died.append(number)
            raise RuntimeError("died")
        step(self, number)

    monkeypatch.setattr(Loop, "step", die_once)
    with pytest.raises(RuntimeError, match="died"):
        train_run(replace(options, out=tmp_path / "stopped"))
    train_run(replace(options, out=tmp_path / "stopped", resume=True))
    for name in ("metrics.jsonl", "predictions_test.jsonl", "best/model.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (run.path / name).read_bytes(), name


@pytest.mark.parametrize(("metric", "start", "later", "better"), [
    (ACCURACY, 0.8, 0.81, True),
    (ACCURACY, 0.8, 0.77, True),  # of 100 rows, the standard error is 0.04
    (ACCURACY, 0.8, 0.73, True),
    (ACCURACY, 0.8, 0.60, False),
    (PERPLEXITY, 10.0, 10.1, True),
    (PERPLEXITY, 10.0, 11.0, False),
])  # fmt: skip
def test_the_start_is_kept_only_where_it_is_better_beyond_chance(
    metric: Metric, start: float, later: float, better: bool
) -> None:
    selection = SimpleNamespace(metric=metric)
    rows = 20 if later == 0.73 else 100
    state = TrainingState(step=5, best_step=0, best_value=start, best_loss=0.5)
    evaluation = Evaluation(metric.name, later, 0.7, rows)
    assert Selection.is_better(selection, state, evaluation) == better  # type: ignore[arg-type]
    # once a trained model is the best, its own score is what the next one must beat
    state = TrainingState(step=9, best_step=5, best_value=later, best_loss=0.7)
    assert not Selection.is_better(selection, state, evaluation)  # type: ignore[arg-type]


def test_a_head_on_states_that_tell_nothing_knows_the_shares_of_the_labels_alone() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(300) < 0.35).astype(np.int64)
    noise = rng.normal(size=(300, 128)).astype(np.float32)
    telling = noise.copy()
    telling[:, :8] += 2 * labels[:, None]
    for states, tells in ((noise, False), (telling, True)):
        model = models.build(models.PRESETS["bert-tiny"].config, "classify", 2)
        assert model.config.d_model == states.shape[1]
        objective = SimpleNamespace(
            rows=np.arange(300), labels={"train": labels}, class_weights=None,
            reading=None, task=SimpleNamespace(kind="classify"),
            pooled_states=lambda *_, states=states: torch.from_numpy(states),
        )  # fmt: skip
        fit_head(model, objective)  # type: ignore[arg-type]
        logits = model.head.out(torch.from_numpy(states)).detach().numpy()
        if tells:
            same = fit_logistic(states, labels, 2, strengths=[REGULARIZATION])
            np.testing.assert_allclose(model.head.out.weight.detach().numpy(), same.weight, atol=1e-6)
        else:
            assert (logits.argmax(1) == 0).all()
            shares = torch.from_numpy(logits).softmax(1).numpy()[:, 1]
            np.testing.assert_allclose(shares, labels.mean(), atol=0.02)
