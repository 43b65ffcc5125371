"""`--method head --method-options solver=convex`: a head that is fitted, in a run like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.linear.logistic import fit_logistic
from heedful.options.training import AdaptOptions
from heedful.runs.config import load_adapt_config
from heedful.runs.directory import Run
from heedful.training.loop import Loop
from heedful.training.rescore import evaluate_split
from heedful.training.train import build_job, train_run
from heedful.training.validation import validate
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("fitted")
    return AdaptOptions(
        model=str(make_model(root / "model")), task=str(make_task(root / "task")), precision="float32",
        threads=1, max_len=32, method="head", method_options=("solver=convex",), out=root / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(options: AdaptOptions) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "step", lambda *_: pytest.fail("a step was made"))
        return Run(train_run(options).folder)


def test_the_head_is_the_logistic_regression(options: AdaptOptions, run: Run) -> None:
    job = build_job(replace(options, head_start="random", out=None))
    rows, labels = job.objective.rows, job.objective.labels["train"]  # type: ignore[attr-defined]
    states = job.objective.pooled_states(job.model, "train", rows)  # type: ignore[attr-defined]
    fit = fit_logistic(states.numpy(), labels, 2)
    head = load_run(run.path).model.head.out
    assert np.allclose(head.weight.detach().numpy(), fit.weight, atol=1e-6)
    assert np.allclose(head.bias.detach().numpy(), fit.bias, atol=1e-6)


def test_it_is_a_run_like_any_other(options: AdaptOptions, run: Run) -> None:
    assert [(row.step, row.split) for row in run.read_metrics()] == [(0, "train_eval"), (0, "dev")]
    results = run.read_results()
    assert (results.method, results.best_step, results.best_epoch) == ("head", 0, 0.0)
    assert results.splits["test"].n == 20
    assert evaluate_split(run.path, "test").value == results.splits["test"].value
    states = {check.name: check.status for check in run.read_checks().checks}
    assert states["reload"] == "passed"
    assert states["warmup"] == "skipped"


def test_its_configuration_makes_it_again(options: AdaptOptions, run: Run, tmp_path: Path) -> None:
    stored = load_adapt_config(run.path)
    assert (stored.lr, stored.epochs, stored.batch_size, stored.head_start) == (None, None, None, "fitted")
    train_run(replace(stored, out=tmp_path / "again"))
    (tmp_path / "again" / "results.json").unlink()
    train_run(replace(options, out=tmp_path / "again", resume=True))
    for name in ("config.toml", "metrics.jsonl", "predictions_test.jsonl", "best/adapter.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (run.path / name).read_bytes(), name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lr": 1e-3}, "fits the head without steps; leave --lr away"),
        ({"epochs": 3}, "fits the head without steps; leave --epochs away"),
        ({"label_smoothing": 0.1}, "fits the head without steps; leave --label-smoothing away"),
        ({"head_start": "random"}, "fits the head; leave --head-start random away"),
        ({"head": "family"}, "fits a head of one linear layer; leave --head family away"),
        ({"method_options": ("solver=newton",)}, 'solver "newton": must be gradient or convex'),
    ],
)
def test_options_of_steps_are_refused(options: AdaptOptions, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        validate(replace(options, **given))
