"""The objective that a run minimizes: chosen by the options, and combined with others if they say so."""

from __future__ import annotations

from dataclasses import replace

from heedful.data import Task, load_task
from heedful.data.tasks import find_task
from heedful.errors import UserError
from heedful.evaluation.metrics import check_metric, find_metric
from heedful.inference.devices import autocast
from heedful.inference.generation import generate
from heedful.logs import notice
from heedful.methods import METHODS, Contrastive, Method
from heedful.models import Classifier, LanguageModel
from heedful.objectives import (
    AnswerObjective,
    Classify,
    ClassifyFeatures,
    ClassifyTopLayers,
    ContrastiveClassify,
    Mixed,
    Objective,
)
from heedful.objectives.questions import QuestionFormat
from heedful.objectives.registry import OBJECTIVES, find_objective, refuse_options_of_others
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.problems import find_problem, find_problem_of_task
from heedful.text import Tokenizer
from heedful.training.build.head_start import fit_head
from heedful.training.machine import Machine
from heedful.training.run_task import load_run_task

IMPLIED_KINDS = ("label", "text")
"""Kinds that a run's configuration need not name: its objective does."""


def resolve_objective(options: AdaptOptions, task: Task | None = None) -> AdaptOptions:
    """Replace `--objective auto` by the problem's objective, and refuse options that it does not have.

    The kind of the problem is that of the task, which is loaded if it is not given and has to tell. A kind
    that is found becomes an option, except for those that every task had once.
    """
    if options.kind is not None:
        problem = find_problem(options.kind)
    elif task is None and options.objective != "auto":
        check_objective(options)
        return options
    else:
        problem = find_problem_of_task(find_kind(options) if task is None else task.kind)
        if problem.name not in IMPLIED_KINDS:
            options = replace(options, kind=problem.name)
    if options.objective == "auto":
        options = replace(options, objective=problem.objective)
    check_objective(options)
    if options.metric is not None:
        check_metric(options.metric, options.kind or OBJECTIVES.find(options.objective).problem)
        if task is not None:
            find_metric(options.metric, task.label_names)  # refuses a label that the task does not have
    if (
        options.threshold is not None
        and task is not None
        and (task.kind, len(task.label_names)) != ("classify", 2)
    ):
        what = f"{len(task.label_names)} labels" if task.kind == "classify" else "other answers"
        raise UserError(
            f"--threshold {options.threshold:g}: is for one of two labels; {task.name} has {what}"
        )
    return options


def find_kind(options: AdaptOptions) -> str:
    """Return the kind of the task: that of its rules, or what its data shows."""
    return find_task(options.task, options.data_dir)[1].kind or load_run_task(options).kind


def check_objective(options: AdaptOptions) -> None:
    objective, method = find_objective(options.objective, "adapt"), METHODS.find(options.method)
    refuse_options_of_others(options, [options.objective])
    if options.balanced and options.train_rows is None:
        raise UserError("--balanced chooses the rows of --train-rows; give both")
    objective.check_options(options)
    if options.expect_shares is not None and not (
        objective.problem == "label" and "classify" in objective.heads.values()
    ):
        raise UserError(
            "--expect-shares corrects the probabilities of one label per text; "
            f"--objective {options.objective} gives no such probabilities"
        )
    chosen = f"--method {options.method}"
    if objective.trains_body and method.frozen_body:
        raise UserError(f"--objective {options.objective} trains the body; {chosen} keeps it frozen")
    if find_problem(objective.problem).generates_text and method.head_only:
        raise UserError(f"{chosen} trains a classifier's head; answers are written by the whole model")
    if issubclass(method, Contrastive):
        check_contrastive(options)


def check_contrastive(options: AdaptOptions) -> None:
    """Refuse options that have no meaning for a method that compares texts by their labels."""
    if options.objective != Classify.name:
        problem = find_problem(find_objective(options.objective, "adapt").problem)
        what = f"--objective {options.objective}" if problem.name == "label" else problem.title
        raise UserError(f"--method contrastive compares texts by their labels, one each; not for {what}")
    if options.head == "family":
        raise UserError("--method contrastive fits a linear head; --head family may have more layers")
    for name in ("token_budget", "label_smoothing"):
        if getattr(options, name):
            raise UserError(
                f"--{name.replace('_', '-')} has no meaning with --method contrastive; leave it out"
            )


def scored_part(options: AdaptOptions, task: Task) -> Task:
    """Return the task without the splits that the options do not score."""
    scored = {"dev": options.score_dev, "test": options.score_test}
    splits = {name: split for name, split in task.splits.items() if scored.get(name, True)}
    return replace(task, splits=splits)


def use_cached_features(
    options: AdaptOptions,
    machine: Machine,
    model: Classifier | LanguageModel,
    method: Method,
    objective: Objective,
) -> tuple[Objective, float]:
    """Run what the method keeps frozen once, the whole body or its lower layers, and keep the states.

    Returns the objective and the seconds that this took.
    """
    layers = method.count_frozen_layers(model)
    if not (options.cache_features and objective.caches_features) or not (
        method.head_only or layers is not None
    ):
        return objective, 0.0
    if layers is not None and model.config.pool == "apart":  # their states are those of single texts
        return objective, 0.0
    assert isinstance(objective, Classify)
    features: ClassifyFeatures | ClassifyTopLayers
    if layers is None:
        notice("the frozen body runs once; its dropout is off")
        features = ClassifyFeatures(objective, model)
    else:
        notice(f"what is below layer {layers + 1} runs once; its dropout is off")
        with autocast(machine.precision, machine.device):  # as the layers above them will run
            features = ClassifyTopLayers(objective, model, layers)
    return features, features.seconds


def use_contrastive_loss(
    options: AdaptOptions, method: Contrastive, objective: Objective
) -> ContrastiveClassify:
    """Return the objective of contrastive tuning, whose head is fitted before each score."""
    assert isinstance(objective, Classify)
    assert options.batch_size is not None
    return ContrastiveClassify(
        objective, batch_size=options.batch_size, temperature=method.temperature, fit_head=fit_head
    )


def add_questions(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, objective: Objective, block: int
) -> Objective:
    """Mix the training questions of `--questions` into each batch of text, if there are any."""
    if options.questions is None:
        return objective
    task = load_task(options.questions, data_dir=options.data_dir)
    if not find_problem_of_task(task.kind).generates_text:
        raise UserError(f"--questions {options.questions}: has labels; a task with free answers is wanted")
    form = QuestionFormat(tokenizer, block, model.config.kind == "encoder_decoder")
    train = replace(task, splits={"train": task.splits["train"]})  # dev and test are never looked at
    answer = AnswerObjective(train, form, generate, seed=options.seed)
    return Mixed(objective, answer, batch_size=questions_per_step(options, answer), seed=options.seed)


def questions_per_step(options: PretrainOptions, answer: AnswerObjective) -> int:
    if options.token_budget is not None:
        mean = float(answer.train_lengths().mean())
        return max(1, round(options.questions_share * options.token_budget / mean))
    return max(1, round(options.questions_share * options.batch_size))


def options_of_loop(options: LoopOptions) -> LoopOptions:
    """Return the options that the loop draws batches by: questions take up their share of each batch."""
    if not isinstance(options, PretrainOptions) or options.questions is None:
        return options
    if options.token_budget is not None:
        rest = round((1 - options.questions_share) * options.token_budget)
        return replace(options, token_budget=max(1, rest))
    questions = max(1, round(options.questions_share * options.batch_size))
    return replace(options, batch_size=max(1, options.batch_size - questions))
