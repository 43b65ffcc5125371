"""`--method head --method-options solver=convex`: a head that is fitted, in a run like any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from heedful.errors import UserError
from heedful.inference.export import export_run
from heedful.inference.loading import load_run
from heedful.linear.joint import fit_words_and_states
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


def test_words_are_fitted_together_with_the_states(options: AdaptOptions, tmp_path: Path) -> None:
    both = replace(options, method_options=("solver=convex", "words=true"), out=tmp_path / "run")
    done = train_run(both)
    assert {"head", "heedful"} == {done.results.method, done.results.loads_with}
    predictor, run = load_run(done.folder), Run(done.folder)
    rows = run.read_predictions("dev")
    texts = [str(row.text) for row in rows]
    recorded = [[row.probabilities[name] for name in predictor.classes] for row in rows]
    probabilities = predictor.predict_proba(texts)
    assert np.abs(probabilities - recorded).max() < 1e-5
    assert evaluate_split(run.path, "dev").value == done.results.splits["dev"].value
    words, predictor.model.words = predictor.model.words, None
    assert words.linear.bias.max() == words.linear.bias.min() == 0
    network = np.log(predictor.predict_proba(texts)) + words.logits(texts)
    assert np.abs(softmax(network, axis=1) - recorded).max() < 1e-5
    assert np.abs(predictor.predict_proba(texts) - recorded).max() > 1e-3
    export_run(run.path, tmp_path / "exported", merge=False)
    assert np.abs(load_run(tmp_path / "exported").predict_proba(texts) - recorded).max() < 1e-5
    with pytest.raises(UserError, match="--merge: a plain model has no place for words"):
        export_run(run.path, tmp_path / "merged", merge=True)
    with pytest.raises(UserError, match="words=true needs solver=convex"):
        validate(replace(options, method_options=("words=true",)))


def test_the_two_parts_are_one_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    states = rng.normal(size=(200, 8)) + np.eye(3, 8)[labels]
    texts = [
        f"word{label if rng.random() < 0.6 else rng.integers(3)} noise{rng.integers(50)}" for label in labels
    ]
    linear, words = fit_words_and_states(states, texts, None, labels, ["x", "y", "z"])
    logits = linear.apply(states) + words.logits(texts)
    accuracy = (logits.argmax(1) == labels).mean()
    for part in (linear.apply(states), words.logits(texts)):
        assert (part.argmax(1) == labels).mean() < accuracy
