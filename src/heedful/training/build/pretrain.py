"""Pretraining a language model: everything from names to a finished run directory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from heedful import methods
from heedful.data import load_task
from heedful.errors import UserError
from heedful.evaluation.sentences import (
    predictions,
    read_sentences,
    refuse_sentences,
    score_sentences,
    split_result,
)
from heedful.inference.generation import generate
from heedful.objectives import AnswerObjective, Mixed, Objective
from heedful.objectives.questions import QuestionFormat
from heedful.options.training import BLOCK, PRETRAIN_LR, PretrainOptions, named_after
from heedful.runs.directory import CONFIG, Run, new_run_path
from heedful.runs.leases import Lease
from heedful.runs.schemas import Results, SentenceResult
from heedful.training import resume
from heedful.training.budget import branch_options, copy_branch_point, measure_steps_in_budget
from heedful.training.build.corpus import find_tokenizer, open_texts
from heedful.training.build.model import (
    family_of,
    from_nothing,
    make_model,
    model_changes,
    refuse_more_tokens,
)
from heedful.training.build.objective import make_text
from heedful.training.examining import examine
from heedful.training.loop import Loop
from heedful.training.precision import autocast
from heedful.training.ranks import current_ranks
from heedful.training.running import (
    Finished,
    Machine,
    check_loop_options,
    conduct,
    describe,
    followed,
    keep_memory,
    measures,
    refuse_unread,
    resolved,
    save_whole,
    settle_machine,
)
from heedful.training.signals import StopSignals
from heedful.training.trackers import Hook, TensorBoard


def pretrain(options: PretrainOptions, hooks: Sequence[Hook] = ()) -> Finished:
    """Train a language model and leave a run directory. Resuming a finished run gives its results again."""
    refuse_impossible(options)
    options = resume.resolve_resumed_folder(options)

    def work(settled: PretrainOptions, stopping: StopSignals) -> Finished:
        with current_ranks().first_process_first():
            job = prepare(settled)
        return job.work(stopping, hooks)

    return conduct(remembered(options), lambda o: resolved(o, learning_rate(o)), work, "pretrain")


def prepare(options: PretrainOptions) -> Job:
    """Load model and text, ready to train; nothing is written yet."""
    refuse_impossible(options)
    keep_memory()
    return Job(options, settle_machine(options))


def refuse_impossible(options: PretrainOptions) -> None:
    """Find mistakes before anything is loaded."""
    o = options
    check_loop_options(o)
    if o.questions is not None and o.objective == "masked":
        raise UserError("--questions are answered by writing; --objective masked does not learn to write")
    owners = {
        "--objective masked": (o.objective == "masked", ("mask_rate", "whole_words")),
        "--objective span": (o.objective == "span", ("span_form", "span_loss", "salient")),
        "--span-form window": (o.span_form == "window", ("window_left", "window_right")),
        "--questions": (o.questions is not None, ("questions_share",)),
    }
    refuse_unread(o, owners)
    model_changes(o)


def learning_rate(options: PretrainOptions) -> float:
    """The rate that was asked for, or what suits the beginning."""
    if options.lr is not None:
        return options.lr
    return PRETRAIN_LR["nothing" if from_nothing(options.model) else "checkpoint"]


def remembered(options: PretrainOptions) -> PretrainOptions:
    """For a run that goes on: what a measurement or a branch settled when it began."""
    o = options
    if not (o.resume and o.out is not None and (o.out / CONFIG).is_file()):
        return o
    stored = resume.stored_options(o.out, "pretrain")
    if o.budget_min is not None and o.steps is None:
        o = replace(o, steps=stored.get("steps"))
    return o if o.branch is None else replace(o, warmup=stored.get("warmup", o.warmup))


class Job:
    """The parts of one run, put together."""

    def __init__(self, options: PretrainOptions, machine: Machine) -> None:
        self.options, self.machine = options, machine
        self.device, self.precision = machine.device, machine.precision
        self.from_nothing = from_nothing(options.model)
        self.sentences = read_sentences(options.sentences)
        self.texts = open_texts(options)
        self.tokenizer = find_tokenizer(options, self.texts.splits["train"], family_of(options.model))
        torch.manual_seed(options.seed)
        self.model = make_model(options, self.tokenizer)
        refuse_more_tokens(self.tokenizer, self.model)
        self.method = methods.make("full")
        self.method.attach(self.model)
        self.model.to(self.device)
        if self.sentences:
            refuse_sentences(self.model)
        self.room = methods.room(self.model)
        self.block = min(options.block or BLOCK, self.room)
        if options.block is not None and self.block < options.block:
            print(f"heedful: rows have {self.block} tokens, what the model has room for", file=sys.stderr)
        self.text = make_text(options, self.model, self.tokenizer, self.texts, self.block)
        self.objective = self.make_objective()

    def make_objective(self) -> Objective:
        """What is minimised: the text, and questions beside it where they are asked for."""
        o = self.options
        text: Objective = self.text
        if o.questions is None:
            return text
        task = load_task(o.questions, data_dir=o.data_dir)
        if task.kind != "text2text":
            raise UserError(f"--questions {o.questions}: has labels; a task with free answers is wanted")
        form = QuestionFormat(self.tokenizer, self.block, self.model.kind == "text2text")
        only = replace(task, splits={"train": task.splits["train"]})  # dev and test are never looked at
        answer = AnswerObjective(only, form, generate, seed=o.seed)
        return Mixed(text, answer, batch_size=self.questions_a_step(answer), seed=o.seed)

    def questions_a_step(self, answer: AnswerObjective) -> int:
        """How many questions make up their share of a batch."""
        o = self.options
        if o.token_budget is not None:
            mean = float(answer.train_lengths().mean())
            return max(1, round(o.questions_share * o.token_budget / mean))
        return max(1, round(o.questions_share * o.batch_size))

    def loop_options(self, options: PretrainOptions) -> PretrainOptions:
        """What the loop is told: of a batch with questions only the rest is drawn from the text."""
        if options.questions is None:
            return options
        if options.token_budget is not None:
            rest = round((1 - options.questions_share) * options.token_budget)
            return replace(options, token_budget=max(1, rest))
        asked = max(1, round(options.questions_share * options.batch_size))
        return replace(options, batch_size=max(1, options.batch_size - asked))

    def make_loop(self, run: Run, options: PretrainOptions, **parts: Any) -> Loop:
        """The loop of this run."""
        return Loop(
            self.model,
            self.method.trainable(self.model),
            self.objective,
            self.loop_options(options),
            learning_rate(options),
            run,
            self.precision,
            **parts,
        )

    def work(self, stopping: StopSignals | None = None, hooks: Sequence[Hook] = ()) -> Finished:
        """Train, score, examine and write, as the only process at this run."""
        o = self.options
        out = current_ranks().broadcast(o.out or new_run_path("runs", *named_after(o)))
        with resume.open_run(out, o) as (run, lease):
            if current_ranks().broadcast(not (o.resume and (run.path / CONFIG).is_file())):
                self.settle_length(run)
            settled: dict[str, Any] = {"block": self.block}
            if self.options.steps is not None:
                settled["steps"] = self.options.steps
            stored = resolved(self.options, learning_rate(o))
            describe(run, self.machine, "pretrain", stored, settled)
            return self.train(run, lease, stopping or StopSignals(), hooks)

    def settle_length(self, run: Run) -> None:
        """Fix the number of steps, and copy what a branch goes on from, when the run begins."""
        o, spent, progress = self.options, 0.0, None
        if o.branch is not None:
            o, progress = branch_options(replace(o, block=self.block), learning_rate(o))
            spent = progress.seconds
        if o.budget_min is not None and o.steps is None:
            steps = measure_steps_in_budget(o, lambda options: self.make_loop(run, options), spent)
            o = replace(o, steps=steps + (0 if progress is None else progress.step))
            print(f"heedful: {o.steps:,} steps take {o.budget_min:g} minutes here", file=sys.stderr)
        self.options = o
        if progress is not None:
            loop = self.make_loop(run, o)
            if current_ranks().first:
                copy_branch_point(run, o, loop, progress)

    def train(self, run: Run, lease: Lease, stopping: StopSignals, more: Sequence[Hook]) -> Finished:
        """Train, score, examine and write."""
        o = self.options
        hooks = [*more, TensorBoard(run.path / "tensorboard")] if o.tensorboard else more
        loop = self.make_loop(run, o, hooks=hooks, stopping=stopping, lost=lease.lost)
        progress = loop.train(resume=o.resume or o.branch is not None)
        if not current_ranks().first:
            return followed(run)
        found = {
            split: loop.score(split)
            for split in ("dev", "test")
            if split in self.objective.splits and (split == "dev" or o.score_test)
        }
        results = Results(
            task=self.texts.name,
            model=o.model,
            method="full",
            head=self.model.kind,
            seed=o.seed,
            splits={
                split: split_result(e, self.texts.splits[split], self.text, split)
                for split, e in found.items()
            },
            objective=o.objective,
            steps=progress.step,
            epochs=loop.epoch(),
            sentences=self.score_sentences(),
            formula=self.method.formula(self.model),
            note=o.note,
            **measures(run, self.model, loop.parameters, progress),
        )
        save_whole(run, self.model, self.tokenizer)
        for split, evaluation in found.items():
            run.write_predictions(split, predictions(split, evaluation, self.texts.splits[split]))
        checks = examine(self, loop, results, run)
        run.write_checks(checks)
        run.write_results(results)
        current_ranks().barrier()
        return Finished(run.path, results, checks)

    def score_sentences(self) -> tuple[SentenceResult, ...] | None:
        """The sentences that were asked for."""
        if not self.sentences:
            return None
        with autocast(self.precision, self.device):
            return score_sentences(self.model, self.tokenizer, self.sentences, self.block)
