"""Builds a run of `adapt`: a model, a method and the labels or answers of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from heedful import checkpoints, methods
from heedful.data import Task
from heedful.errors import UserError
from heedful.inference.generation import generate
from heedful.linear.folders import is_linear
from heedful.logs import notice
from heedful.methods.subsets import Head
from heedful.models import Classifier, LanguageModel
from heedful.models.heads import HeadForm, LinearHead, OrdinalHead
from heedful.objectives import Classify, Objective
from heedful.objectives.registry import find_objective
from heedful.objectives.setup import TaskSetup
from heedful.options.model_names import ENSEMBLE
from heedful.options.training import AdaptOptions, LoopOptions
from heedful.options.values import parse_assignments
from heedful.problems import Problem, find_problem, find_problem_of_task
from heedful.training.build.head_start import fit_head
from heedful.training.build.job import Job
from heedful.training.build.model import adaptation_changes, check_vocabulary, starts_from_scratch
from heedful.training.build.objective import (
    resolve_objective,
    scored_part,
    use_cached_features,
    use_contrastive_loss,
)
from heedful.training.build.settings import (
    Choice,
    TaskFacts,
    choose_pool,
    choose_prompt_length,
    choose_settings,
    describe_choices,
    read_facts,
)
from heedful.training.build.tokenizer import task_tokenizer
from heedful.training.machine import begin_to_resolve, resolve_machine
from heedful.training.ranks import current_ranks
from heedful.training.run_task import load_run_task


def build_adapt(options: AdaptOptions, change_task: Callable[[Task], Task] | None = None) -> Job:
    """Build the parts of a run; `change_task` may add a split to its task."""
    begin_to_resolve(options)
    task = load_run_task(options)
    options = resolve_objective(options, task)
    task = change_task(task) if change_task else task
    method = build_method(options)
    torch.manual_seed(options.seed)  # before the tokenizer and the new head, which may draw random numbers
    tokenizer = task_tokenizer(options, task)
    options, sized = choose_prompt_length(options, task, tokenizer)
    method = build_method(options) if sized else method
    objective_class = find_objective(options.objective, "adapt")
    problem = find_problem(options.kind or objective_class.problem)
    head = objective_class.find_head(options.model)
    options, chosen = choose_pool(options)
    if options.pool == "apart" and task.splits["train"].pairs is None:
        raise UserError(f"--pool apart compares the two texts of a pair; {task.name} has one text per row")
    head_form = choose_head_form(options, method, problem)
    changes = adaptation_changes(options, tokenizer)
    outputs, attention = problem.count_outputs(task), options.attention
    model = checkpoints.load(
        options.model, head=head, n_classes=outputs, attention=attention, head_form=head_form, **changes
    )
    assert isinstance(model, Classifier | LanguageModel)
    check_vocabulary(tokenizer, model)
    if task.label_names:
        model.labels = list(task.label_names)
    method.attach(model)
    machine = resolve_machine(options)
    model.to(machine.device)
    formula, room = method.formula(model), methods.measure_room(model)
    facts = None
    if isinstance(model, Classifier) and not starts_from_scratch(options.model):
        facts = read_facts(options, task, tokenizer, model, room)
        fits_head = facts.new_linear_head and objective_class.fits_head
        facts = replace(facts, new_linear_head=fits_head)
    options, settings = choose_settings(options, facts, takes_steps=method.takes_steps)
    chosen |= settings
    tell_choices(options, chosen, facts)
    if sized:
        notice(f"the prompt has {options.method_options[-1]}: {sized['method_options'].reason}")
    chosen |= sized
    assert options.max_len is not None
    max_len = min(options.max_len, room)
    if max_len < options.max_len:
        notice(f"texts are cut to {max_len} tokens, what the model has room for")

    setup = TaskSetup(options, scored_part(options, task), tokenizer, model, max_len, changes, generate)
    objective, seconds = objective_class.build(setup), 0.0
    scorer = problem.make_scorer(task, objective.scored_objective)
    objective, seconds = use_cached_features(options, machine, model, method, objective)
    refuse_kind_of_method(method, task)
    if isinstance(method, methods.Contrastive):
        objective = use_contrastive_loss(options, method, objective)
    elif options.head_start == "fitted":
        words = isinstance(method, Head) and method.words
        seconds += fit_new_head(model, objective, final=not method.takes_steps, words=words)
    return Job(
        command="adapt",
        options=options,
        machine=machine,
        data_name=task.name,
        tokenizer=tokenizer,
        model=model,
        method=method,
        objective=objective,
        scorer=scorer,
        head=head_form if head == "classify" else head,
        length=max_len,
        room=room,
        formula=formula,
        seconds_before=seconds,
        chosen={name: choice.reason for name, choice in chosen.items()},
    )


def choose_head_form(options: AdaptOptions, method: methods.Method, problem: Problem) -> HeadForm:
    """Return the form of the head: that of the problem, the method or the user."""
    form = problem.head_form if options.objective != Classify.name else None
    if form == "ordinal" and options.head != "auto":
        own = "ordered classes have a head of their own"
        raise UserError(f"--head {options.head}: {own}; --objective classify has others")
    if options.head != "auto":
        return options.head
    return form or method.default_head_form


def tell_choices(options: AdaptOptions, chosen: Mapping[str, Choice], facts: TaskFacts | None) -> None:
    """Print what was chosen for the run; env.json has the reasons."""
    if not current_ranks().first:
        return
    if "pool" in chosen and options.pool == "mean":
        notice(f"the head reads the mean of the token states: {chosen['pool'].reason}")
    rest = {name: choice for name, choice in chosen.items() if name != "pool"}
    if facts is not None and rest:
        notice(describe_choices(rest, facts))


def refuse_kind_of_method(method: methods.Method, task: Task) -> None:
    """Refuse a method that needs one label per text where there is none."""
    title = find_problem_of_task(task.kind).title
    if isinstance(method, methods.Contrastive) and task.kind != "classify":
        raise UserError(f"--method contrastive compares texts by one label each; {task.name} has {title}")
    if isinstance(method, Head) and method.words and task.kind != "classify":
        raise UserError(
            f"--method-options words=true adds words to one label per text; {task.name} has {title}"
        )


def fit_new_head(
    model: Classifier | LanguageModel, objective: Objective, *, final: bool, words: bool = False
) -> float:
    """Fit the head, and return the seconds that this took; refuse what has no head to fit."""
    classify = objective if isinstance(objective, Classify) else objective.scored_objective
    linear = isinstance(model, Classifier) and isinstance(model.head, LinearHead | OrdinalHead)
    if not (linear and isinstance(classify, Classify)):
        raise UserError("--head-start fitted: needs a classifier whose head is one linear layer")
    assert isinstance(model, Classifier)
    return fit_head(model, classify, final=final, words=words)


def build_method(options: AdaptOptions) -> methods.Method:
    hints = methods.options(options.method)
    values = parse_assignments(options.method_options, hints, "--method-options", options.method)
    method = methods.make(options.method, **values)
    if starts_from_scratch(options.model) and not method.mergeable:
        needs = f"--method {options.method} needs a pretrained model"
        raise UserError(f"{needs}; {options.model} starts from nothing")
    return method


def is_trained_by_steps(options: LoopOptions) -> bool:
    """Whether a run with these options takes gradient steps."""
    if not isinstance(options, AdaptOptions):
        return True
    if is_linear(options.model) or options.model == ENSEMBLE:
        return False
    return build_method(options).takes_steps
