"""A run of `adapt` without a network: a linear model of words, or the shares of the labels, fitted at once.

    build -> open the run -> fit -> score -> save -> check -> write

It leaves the same files as every other run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from heedful.data import Task
from heedful.errors import UserError, unknown
from heedful.evaluation import checks
from heedful.evaluation.bag_scores import choose_thresholds, needs_thresholds
from heedful.evaluation.baselines import find_strata, pick_texts, read_targets
from heedful.evaluation.decision_threshold import decide, make_decision
from heedful.evaluation.metrics import Metric, find_metric
from heedful.evaluation.scorer import split_checks
from heedful.inference.decisions import Decision
from heedful.inference.loading import load_run
from heedful.inference.predictor import LinearPredictor, Predictor
from heedful.linear.logistic import sample_stratified
from heedful.linear.model import TfidfModel
from heedful.logs import notice
from heedful.objectives import Evaluation
from heedful.objectives.base import Ints
from heedful.objectives.classify import choose_task_rows, correct_shares
from heedful.objectives.readings import make_reading
from heedful.objectives.registry import OBJECTIVES
from heedful.options.model_names import ENSEMBLE, MAJORITY
from heedful.options.training import AdaptOptions, named_after
from heedful.problems import find_metric_name, find_problem_of_task
from heedful.runs.directory import Run, new_run_path
from heedful.runs.environment import peak_memory_gb
from heedful.runs.schemas import Checks, Metrics, Results, Timing
from heedful.training import record, resume
from heedful.training.build.objective import resolve_objective, scored_part
from heedful.training.build.settings import choose_class_weights
from heedful.training.machine import Machine, notice_once
from heedful.training.ranks import current_ranks
from heedful.training.record import Finished
from heedful.training.run_task import load_run_task
from heedful.training.trackers import SafeTracker, Tracker, begin_trackers

MOST_ROWS = 100_000
"""Rows that are fitted; more take memory and hardly change a linear model."""
PROBE_ROWS = 16


@dataclass(frozen=True)
class LinearJob:
    """The parts of one run, ready to fit."""

    options: AdaptOptions
    machine: Machine
    task: Task
    rows: Ints
    """The rows of train that are fitted."""
    chosen: dict[str, str]
    command: Literal["adapt"] = "adapt"

    @property
    def is_baseline(self) -> bool:
        """Whether it is the most frequent label, which is compared with no other baseline."""
        return self.options.model == MAJORITY

    @property
    def scorer(self) -> Any:
        # A linear model is a bag of words itself; an average of runs is not.
        with_bag, problem = self.options.model == ENSEMBLE, find_problem_of_task(self.task.kind)
        options = {"with_baselines": not self.is_baseline, "with_bag": with_bag}
        return problem.make_results(self.task, self.rows, **options)

    @property
    def metric(self) -> Metric:
        objective = OBJECTIVES.find(self.options.objective)
        return find_metric(find_metric_name(self.options, objective), self.task.label_names)

    def fixed_options(self) -> dict[str, Any]:
        return {}

    def fit(self) -> TfidfModel:
        """Fit the model; with several labels per text, tune its thresholds on dev."""
        train, rows, kind = self.task.splits["train"], self.rows, self.task.kind
        targets = read_targets(train)
        if self.is_baseline:
            return self.tune(TfidfModel.from_shares(targets[rows], self.task.label_names, kind))
        if len(rows) > MOST_ROWS:
            notice(f"the model is fitted to {MOST_ROWS:,} of {len(rows):,} rows")
            rows = rows[sample_stratified(find_strata(targets)[rows], MOST_ROWS, self.options.seed)]
        rows, balanced = np.sort(rows), self.options.class_weights == "balanced"
        weighing: dict[str, Any] = {} if kind == "number" else {"balanced": balanced}
        model = TfidfModel.fit(
            *pick_texts(train, rows),
            targets[rows],
            self.task.label_names,
            kind=kind,
            seed=self.options.seed,
            **weighing,
        )
        if (expected := self.options.expect_shares) is not None:
            correction = correct_shares(expected, self.task, targets[rows], balanced=balanced)
            model = replace(model, linear=replace(model.linear, bias=model.linear.bias + correction))
        return self.tune(model)

    def tune(self, model: TfidfModel) -> TfidfModel:
        """Return the model with thresholds that dev chooses, where there are several labels per text."""
        if not needs_thresholds(self.task):
            return model
        dev = self.task.splits["dev"]
        of_dev = model.probabilities(*pick_texts(dev, np.arange(len(dev))))
        return replace(model, thresholds=choose_thresholds(self.task, of_dev, self.metric.name))

    def score(self, model: Predictor, split: str, rows: Ints | None = None) -> Evaluation:
        """Score a model on a split, or on some of its rows."""
        part = self.task.splits[split]
        rows = np.arange(len(part)) if rows is None else np.sort(rows)
        outputs = model.predict_proba(*pick_texts(part, rows))
        return self.evaluate(split, read_targets(part)[rows], outputs, getattr(model, "thresholds", None))

    def evaluate(
        self,
        split: str,
        targets: npt.NDArray[Any],
        outputs: npt.NDArray[np.float64],
        thresholds: Sequence[float] | None = None,
    ) -> Evaluation:
        """Score the probabilities or numbers that a model gave."""
        model = SimpleNamespace(thresholds=thresholds, in_own_unit=True)
        reading = make_reading(self.task, self.metric.name)
        return self.metric.score(reading.score_outputs(model, split, targets, outputs))

    def decide(self, evaluations: Mapping[str, Evaluation]) -> tuple[dict[str, Evaluation], Decision | None]:
        """Tune the threshold of two labels on dev; a baseline, which reads no text, has none."""
        if self.is_baseline or self.task.kind not in ("classify", "ordered"):
            return dict(evaluations), None
        return make_decision(evaluations, self.metric, self.task.label_names, self.options.threshold)


def build_linear(options: AdaptOptions, change_task: Callable[[Task], Task] | None = None) -> LinearJob:
    """Load the task and choose the rows; `change_task` may add a split to the task."""
    task = load_run_task(options)
    options = resolve_objective(options, task)
    if task.kind == "text2text":
        raise UserError(f"{options.model} gives labels or numbers; {options.task} asks for free answers")
    task = scored_part(options, task)
    task = change_task(task) if change_task else task
    targets, chosen = read_targets(task.splits["train"]), dict[str, str]()
    rows = np.arange(len(targets))
    if options.train_rows is not None:
        rows = choose_task_rows(task, options.train_rows, options.seed, balanced=options.balanced)
    if options.model in (MAJORITY, ENSEMBLE):
        options = replace(options, class_weights="none")
    elif options.class_weights == "balanced" and task.kind == "number":
        raise UserError("--class-weights belongs to labels, and the answers are numbers; leave it out")
    elif options.class_weights == "auto" and task.kind in ("labels", "number"):
        options = replace(options, class_weights="none")
    elif options.class_weights == "auto":
        counts = [
            np.bincount(part, minlength=len(task.label_names))
            for part in (targets[rows], *(read_targets(s) for n, s in task.splits.items() if n == "dev"))
        ]
        choice = choose_class_weights(counts[0], counts[1] if len(counts) > 1 else None)
        options, chosen = replace(options, class_weights=choice.value), {"class_weights": choice.reason}
    threads = options.threads or current_ranks().threads
    return LinearJob(options, Machine(torch.device("cpu"), "float32", threads), task, rows, chosen)


def train_linear(
    options: AdaptOptions,
    trackers: Sequence[Tracker] = (),
    on_row: Callable[[Metrics], None] | None = None,
) -> Finished:
    """Fit a linear model and leave a run directory; the options are valid."""
    if current_ranks().size > 1:
        raise UserError(f"{options.model} is fitted by one process; leave --processes away")
    if Path(options.model).is_dir():
        name = options.model
        notice_once(f"{name}: is the linear model of this name; for the folder, write ./{name}")
    job = build_linear(options)
    options = job.options
    out = options.out or new_run_path("runs", *named_after(options))
    with resume.open_run(out, options) as (run, _), record.report_progress(run):
        record.write_description(run, job)
        followers = begin_trackers(run, options, trackers)
        began = time.monotonic()
        model = job.fit()
        seconds = max(time.monotonic() - began, 1e-9)
        predictor = LinearPredictor(model)
        splits = [name for name in ("dev", "test") if name in job.task.splits]
        evaluations: dict[str, Evaluation] = {
            name: job.score(predictor, name) for name in splits if job.task.splits[name].targets is not None
        }
        strata = find_strata(read_targets(job.task.splits["train"]))[job.rows]
        rows = sample_stratified(strata, options.train_eval_rows, 0)
        scored = {"train_eval": job.score(predictor, "train", job.rows[rows])} if len(rows) else {}
        scored |= {name: e for name, e in evaluations.items() if name == "dev"}
        write_metrics(run, scored, followers, on_row, Timing(0, seconds, len(job.rows) / seconds))
        evaluations, decision = job.decide(evaluations)
        scorer = job.scorer
        results = collect_results(job, model, scorer, evaluations, seconds)
        model.save(run.best)
        if decision is not None:
            decision.save(run.best)
        scorer.write_scored(run, evaluations)
        found = check_linear(run, job, model, scorer, evaluations, results)
        run.write_checks(found)
        run.write_results(results)  # last: a run that has them is finished
        for tracker in followers:
            tracker.end(results)
        return Finished(run.path, results, found)


def write_metrics(
    run: Run,
    scored: dict[str, Evaluation],
    trackers: Sequence[SafeTracker],
    on_row: Callable[[Metrics], None] | None,
    timing: Timing,
) -> None:
    with run.metrics_log() as log, run.timing_log() as times:
        for split, e in scored.items():
            row = Metrics(0, 0.0, split, e.loss, e.value, e.n)
            log.append(row)
            for tracker in trackers:
                tracker.log(row)
            if on_row is not None:
                on_row(row)
        times.append(timing)


def collect_results(
    job: LinearJob,
    model: TfidfModel,
    scorer: Any,
    evaluations: dict[str, Evaluation],
    seconds: float,
) -> Results:
    n_parameters = model.linear.weight.size + model.linear.bias.size
    return Results(
        task=job.task.name,
        model=job.options.model,
        method=name_method(job),
        head="linear",
        seed=job.options.seed,
        splits=scorer.results(evaluations),
        objective=job.options.objective,
        formula=write_formula(model),
        note=job.options.note,
        trainable_parameters=n_parameters,
        total_parameters=n_parameters,
        seconds=seconds,
        examples_per_second=len(job.rows) / seconds,
        memory_gb=peak_memory_gb(),
        loads_with="heedful",
        best_step=0,
        best_epoch=0.0,
        **scorer.result_fields(model, 0, 0.0),
    )


def name_method(job: LinearJob) -> str:
    """Return what was fitted, in words."""
    if job.task.kind == "number":
        return "mean" if job.is_baseline else "ridge"
    return "label shares" if job.is_baseline else "logistic"


def write_formula(model: TfidfModel) -> str:
    terms = f"{model.linear.weight.shape[1]:,} terms + 1"
    return terms if model.kind == "number" else f"{len(model.labels)} labels x ({terms})"


def check_linear(
    run: Run,
    job: LinearJob,
    model: TfidfModel,
    scorer: Any,
    evaluations: dict[str, Evaluation],
    results: Results,
) -> Checks:
    """Check the data and the predictions, and that the saved model computes the same."""
    train = job.task.splits["train"]
    texts = pick_texts(train, np.arange(min(PROBE_ROWS, len(train))))
    logits = [torch.from_numpy(one.logits(*texts)) for one in (model, TfidfModel.load(run.best))]
    run_checks = [*split_checks(job.task), checks.reload(*logits)]
    if "dev" in evaluations and not job.is_baseline:
        run_checks += scorer.dev_checks(evaluations["dev"], results)
    return Checks(tuple(run_checks))


def score_linear(
    run: Run, options: AdaptOptions, split: str, change_task: Callable[[Task], Task] | None = None
) -> tuple[Any, Evaluation]:
    """Score a split with the best model of a finished run, which is linear or an average of models."""
    job = build_linear(options, change_task)
    labeled = [name for name, part in job.task.splits.items() if part.targets is not None]
    if split not in labeled:
        raise UserError(f"{job.task.name}: {unknown('split with labels', split, labeled)}")
    predictor = load_run(run.path)
    return job.scorer, decide(job.score(predictor, split), predictor.decision, job.metric, split)
