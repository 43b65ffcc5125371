"""What every run writes about itself: its configuration, its results and its best model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from heedful import checkpoints, methods
from heedful.checkpoints import Form
from heedful.data.run_options import absolute_value
from heedful.evaluation.decision_threshold import make_decision
from heedful.inference.decisions import Decision
from heedful.linear.folders import WORDS
from heedful.models import Classifier
from heedful.objectives import Evaluation
from heedful.options.training import NOT_IN_CONFIG, LoopOptions
from heedful.progress import write_progress_to
from heedful.runs.directory import CONFIG, ENVIRONMENT, PROGRESS, Run
from heedful.runs.environment import environment, peak_memory_gb
from heedful.runs.schemas import Checks, Results
from heedful.training import resume
from heedful.training.build import Job, is_trained_by_steps, learning_rate
from heedful.training.loop import Loop
from heedful.training.machine import Machine
from heedful.training.ranks import current_ranks


@dataclass(frozen=True)
class Finished:
    folder: Path
    results: Results
    checks: Checks


def read_finished(run: Run) -> Finished:
    return Finished(run.path, run.read_results(), run.read_checks())


@contextmanager
def report_progress(run: Run) -> Iterator[None]:
    """Write the progress of the first process to progress.json; a finished run has none."""
    if not current_ranks().first:
        yield
        return
    with write_progress_to(run.path / PROGRESS):
        yield
    (run.path / PROGRESS).unlink(missing_ok=True)


def config_values(options: LoopOptions) -> dict[str, Any]:
    """Return the options as config.toml has them: with the learning rate in use and absolute paths."""
    excluded = (*NOT_IN_CONFIG, "processes")
    values = {k: v for k, v in asdict(options).items() if k not in excluded and v is not None}
    rate = {"lr": learning_rate(options)} if is_trained_by_steps(options) else {}
    return {k: absolute_value(k, v) for k, v in values.items()} | rate


class DescribedJob(Protocol):
    """What config.toml and env.json are written from."""

    @property
    def command(self) -> str: ...
    @property
    def options(self) -> LoopOptions: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def chosen(self) -> Mapping[str, str]: ...
    def fixed_options(self) -> dict[str, Any]: ...


def write_description(run: Run, job: DescribedJob) -> None:
    """Write config.toml and env.json; a resumed run keeps those of its beginning, which must agree."""
    if not current_ranks().first:
        return
    machine, fixed = job.machine, job.fixed_options()
    now = environment(threads=machine.threads, device=str(machine.device), precision=machine.precision)
    if (run.path / CONFIG).is_file() and (run.path / ENVIRONMENT).is_file():
        stored = resume.stored_options(run.path, job.command)
        for name, value in fixed.items():
            if stored.get(name) != value:
                raise resume.option_mismatch(run.path, name, stored.get(name), value)
        resume.warn_of_other_environment(run, now)
        return
    machine_values = {
        "threads": machine.threads,
        "processes": current_ranks().size,
        "precision": machine.precision,
    }
    run.write_environment(replace(now, chosen=dict(job.chosen)))
    values = {**config_values(job.options), **machine_values, **fixed}
    run.write_config({"command": job.command, job.command: values})


def score_splits(job: Job, loop: Loop) -> tuple[dict[str, Evaluation], Decision | None]:
    """Score dev and test with the selected model, and tune the threshold of two labels on dev."""
    splits = [split for split in ("dev", "test") if split in job.objective.splits]
    evaluations = {s: loop.score_selected(s) for s in splits if s == "dev" or job.options.score_test}
    labels = job.objective.scored_objective.label_names
    return make_decision(evaluations, loop.metric, labels, getattr(job.options, "threshold", None))


def collect_results(run: Run, job: Job, loop: Loop, evaluations: Mapping[str, Evaluation]) -> Results:
    """Return the content of results.json: what was trained, how well it does and what it cost."""
    options, state = job.options, loop.state
    seconds = max(state.seconds + job.seconds_before, 1e-9)
    return Results(
        task=job.data_name,
        model=options.model,
        method=job.method.name,
        head=job.head,
        seed=options.seed,
        splits=job.scorer.results(evaluations),
        objective=options.objective,
        formula=job.formula,
        note=options.note,
        trainable_parameters=sum(p.numel() for p in job.trainable_parameters().values()),
        total_parameters=sum(p.numel() for p in job.model.parameters()),
        seconds=seconds,
        examples_per_second=state.examples / seconds,
        tokens_per_second=state.tokens / seconds,
        memory_gb=peak_memory_gb(),
        loads_with=form_of_best(job).loads_with,
        best_step=state.best_step,
        best_epoch=next((row.epoch for row in run.read_metrics() if row.step == state.best_step), None),
        **job.scorer.result_fields(job.model, state.step, loop.epoch()),
    )


def saves_whole_model(job: Job) -> bool:
    return job.method.saves_whole_model or job.from_scratch


def form_of_best(job: Job) -> Form:
    """Return the form that best/ has: of a whole model, or of an adapter."""
    if getattr(job.model, "words", None) is not None:
        return Form("heedful", "other formats have no head that reads words")
    if saves_whole_model(job):
        return checkpoints.find_form(job.model)
    reason = methods.why_not_peft(job.model, job.method)
    return Form("heedful" if reason else "peft", reason)


def save_best(run: Run, job: Job, decision: Decision | None) -> None:
    """Write best/: a whole model, or the adapter and head of a base model that is named."""
    if hasattr(job.model, "masked_head"):
        del job.model.masked_head  # it helped to train, and predicts nothing
    correction = getattr(job.objective.scored_objective, "correction", None)
    if correction is not None and isinstance(job.model, Classifier):
        job.model.add_to_bias(torch.from_numpy(correction))  # so that every format has it
    if job.from_scratch:
        job.method.merge(job.model)  # there is no base model to name, so the weights are saved as a whole
    shutil.rmtree(run.best, ignore_errors=True)
    if saves_whole_model(job):
        with tempfile.TemporaryDirectory() as folder:
            job.tokenizer.save(Path(folder))
            checkpoints.save(job.model, run.best, tokenizer=folder, max_len=job.length)
    else:
        methods.write_adapter(job.model, job.method, run.best, job.options.model)
        job.tokenizer.save(run.best)
    if isinstance(job.model, Classifier) and job.model.words is not None:
        job.model.words.save(run.best / WORDS)
    if decision is not None:
        decision.save(run.best)
