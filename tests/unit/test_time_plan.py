"""--minutes: the size, the batches, the steps and the evaluations of a pretraining run follow from a time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.options.training import PretrainOptions
from heedful.runs.directory import Run
from heedful.training import time_plan
from heedful.training.build import build_pretrain
from heedful.training.time_plan import Candidate, choose_batch, list_sizes, plan_steps
from heedful.training.train import train_run


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> PretrainOptions:
    path = tmp_path_factory.mktemp("text") / "notes.txt"
    path.write_text("".join(f"the sun sees {n % 7} hills and {n} lamps\n" for n in range(120)))
    return PretrainOptions(
        model="gpt-nano", corpus=str(path), tokenizer="char", block=32, threads=1, precision="float32",
        train_eval_rows=4,
    )  # fmt: skip


def test_sizes_rise_to_beyond_the_preset_and_a_given_size_stays(options: PretrainOptions) -> None:
    job = build_pretrain(options)
    sizes = [one.model_options for one in list_sizes(options, job)]
    assert sizes[0] == ("n_layers=2", "n_heads=1", "d_model=16")
    assert sizes[-1] == ("n_layers=6", "n_heads=6", "d_model=96")
    assert ("n_layers=3", "n_heads=3", "d_model=48") in sizes  # the preset itself
    given = replace(options, model_options=("n_layers=1",))
    assert list(list_sizes(given, job)) == [given]
    further = replace(options, model_options=("position=rotary",))
    assert all(one.model_options[0] == "position=rotary" for one in list_sizes(further, job))


@pytest.mark.parametrize(("seconds", "layers"), [(1.0, 2), (200.0, 3), (1e6, 6)])
def test_the_largest_size_with_enough_tokens_per_parameter_is_chosen(
    options: PretrainOptions, seconds: float, layers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measure(trial: PretrainOptions, job: object, run: object) -> Candidate:
        sizes = dict(text.split("=") for text in trial.model_options)
        parameters = 12 * int(sizes["n_layers"]) * int(sizes["d_model"]) ** 2
        return Candidate(trial, parameters, parameters * 3e-8)

    monkeypatch.setattr(time_plan, "measure", measure)
    job = time_plan.choose_size(build_pretrain(options), Run(tmp_path), seconds)
    assert job.model.config.n_layers == layers


def test_batches_are_smaller_where_there_would_be_few_steps() -> None:
    assert choose_batch(3600, 0.01) == 32
    assert choose_batch(60, 0.01) == 8
    assert choose_batch(1, 0.01) == 4


def test_steps_and_evaluations_fill_the_time(options: PretrainOptions) -> None:
    timed = replace(options, minutes=10)
    plan = plan_steps(timed, 600, 0.1, 1.0)
    assert plan.steps is not None
    assert plan.eval_every is not None
    assert 19 <= plan.steps / plan.eval_every <= 20
    assert 590 < 0.1 * plan.steps + 20 * 1.0 + 1.0 + time_plan.END_SECONDS <= 600
    # Scoring that takes long is done less often.
    slow = plan_steps(timed, 600, 0.1, 30.0)
    assert slow.steps is not None
    assert round(slow.steps / (slow.eval_every or 1)) == 2
    assert plan_steps(replace(timed, eval_every=7), 600, 0.1, 1.0).eval_every == 7
    with pytest.raises(UserError, match="--minutes 10: is over before the first step"):
        plan_steps(timed, 2, 0.1, 1.0)


def test_a_run_keeps_to_its_minutes_and_is_repeated_by_its_configuration(
    options: PretrainOptions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "heedful")
    begun = time.monotonic()
    done = train_run(replace(options, minutes=0.1, out=tmp_path / "run"))
    assert time.monotonic() - begun < 6 + 10
    assert "--minutes 0.1: " in caplog.text
    stored = Run.open(done.folder).read_config()["pretrain"]
    assert {"steps", "batch_size", "eval_every", "model_options", "minutes"} <= stored.keys()
    assert done.results.steps == stored["steps"]
    # A resumed run makes no new plan.
    (done.folder / "results.json").unlink()
    again = train_run(replace(options, minutes=0.1, out=tmp_path / "run", resume=True))
    assert again.results.splits == done.results.splits


@pytest.mark.parametrize("other", [{"budget_min": 3.0}, {"branch": Path("run")}])
def test_two_lengths_exclude_each_other(options: PretrainOptions, other: dict[str, object]) -> None:
    with pytest.raises(UserError, match="--minutes and --b"):
        train_run(replace(options, minutes=1, **other))  # type: ignore[arg-type]
