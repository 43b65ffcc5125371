"""A run that averages finished runs: nothing is trained, and it leaves the same files as every other run.

build -> open the run -> score -> link the members -> check -> write
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from heedful.evaluation import checks
from heedful.evaluation.bag_scores import choose_thresholds, needs_thresholds
from heedful.evaluation.baselines import read_targets
from heedful.evaluation.scorer import split_checks
from heedful.inference.ensemble import write_ensemble
from heedful.inference.loading import load_run
from heedful.inference.predictor import EnsemblePredictor
from heedful.objectives import Evaluation
from heedful.options.training import AdaptOptions
from heedful.problems import find_problem_of_task
from heedful.runs.directory import Run
from heedful.runs.environment import peak_memory_gb
from heedful.runs.schemas import Check, Checks, Results, Timing
from heedful.training import record, resume
from heedful.training.linear import PROBE_ROWS, LinearJob, build_linear, write_metrics
from heedful.training.record import Finished

Floats = npt.NDArray[np.float64]


def average_runs(
    options: AdaptOptions, weights: Mapping[Path, float], dev: Floats | None, *, keep_members: bool = True
) -> Finished:
    """Make a run of the weighted mean of finished runs.

    Parameters
    ----------
    options
        Those of the run to make, with the model `ensemble`.
    weights
        The folder of each member, and its weight.
    dev
        Probabilities of the labels of the dev rows `[n, classes]`, or numbers `[n]`: not those of the
        average itself, if its weights were chosen on these rows. None if the members were trained on them.
    keep_members
        Whether the run has a model. The runs of folds have none, and no baselines.
        The baselines of the others have no bag of words, like those of the members.

    """
    job = build_linear(options)
    options = job.options
    assert options.out is not None
    members = [Run.open(folder) for folder in weights]
    with resume.open_run(options.out, options) as (run, _), record.report_progress(run):
        record.write_description(run, job)
        thresholds = None
        if dev is not None and needs_thresholds(job.task):
            thresholds = choose_thresholds(job.task, dev, job.metric.name)
        evaluations = {}
        if dev is not None:
            evaluations["dev"] = job.evaluate("dev", read_targets(job.task.splits["dev"]), dev)
        seconds = sum(member.read_results().seconds for member in members)
        write_metrics(run, evaluations, (), None, Timing(0, seconds, len(job.rows) / seconds))
        evaluations, decision = job.decide(evaluations)
        problem = find_problem_of_task(job.task.kind)
        scorer = problem.make_results(job.task, job.rows, with_baselines=keep_members, with_bag=False)
        results = describe_members(job, members, scorer, evaluations, seconds, thresholds)
        scorer.write_scored(run, evaluations)
        findings: list[Check] = []
        if keep_members:
            write_ensemble(run.best, weights, thresholds)
            if decision is not None:
                decision.save(run.best)
            findings += [*split_checks(job.task), check_copy(run, job, weights)]
            if "dev" in evaluations:
                findings += scorer.dev_checks(evaluations["dev"], results)
        found = Checks(tuple(findings))
        run.write_checks(found)
        run.write_results(results)
        return Finished(run.path, results, found)


def describe_members(
    job: LinearJob,
    members: list[Run],
    scorer: Any,
    evaluations: dict[str, Evaluation],
    seconds: float,
    thresholds: Sequence[float] | None,
) -> Results:
    parts = [member.read_results() for member in members]
    return Results(
        task=job.task.name,
        model=job.options.model,
        method="average",
        head=None,
        seed=job.options.seed,
        splits=scorer.results(evaluations),
        objective=job.options.objective,
        formula=" + ".join(
            f"{member.path.name} {one.trainable_parameters:,}"
            for member, one in zip(members, parts, strict=True)
        ),
        note=job.options.note,
        trainable_parameters=sum(one.trainable_parameters for one in parts),
        total_parameters=sum(one.total_parameters for one in parts),
        seconds=seconds,
        memory_gb=peak_memory_gb(),
        loads_with="heedful",
        best_step=0,
        best_epoch=0.0,
        **scorer.result_fields(SimpleNamespace(thresholds=thresholds), 0, 0.0),
    )


def check_copy(run: Run, job: LinearJob, weights: Mapping[Path, float]) -> Check:
    """Check that the saved average computes what its members do."""
    train = job.task.splits["train"]
    texts = list(islice(train.texts, PROBE_ROWS))
    pairs = None if train.pairs is None else list(islice(train.pairs, PROBE_ROWS))
    members = EnsemblePredictor(
        [load_run(folder, device="cpu") for folder in weights], list(weights.values())
    )
    outputs = [one.predict_proba(texts, pairs) for one in (members, load_run(run.path, device="cpu"))]
    return checks.reload(*(torch.from_numpy(np.log(np.maximum(one, 1e-300))) for one in outputs))
