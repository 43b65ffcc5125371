"""Pretraining a language model: everything from names to a finished run directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import torch

from heedful import checkpoints, methods
from heedful.attention import MECHANISMS
from heedful.errors import UserError, unknown
from heedful.models import PRESETS, LanguageModel, TransformerConfig
from heedful.objectives import Causal, Objective
from heedful.runs.directory import Run, new_run_path
from heedful.runs.leases import Lease
from heedful.runs.schemas import Checks, Results, SplitResult
from heedful.training import resuming
from heedful.training.corpora import find_tokenizer, open_texts
from heedful.training.hooks import Hook, TensorBoard
from heedful.training.loop import Loop
from heedful.training.options import BLOCK, PRETRAIN_LR, PretrainOptions
from heedful.training.running import (
    Finished,
    Machine,
    conduct,
    describe,
    measures,
    refuse_small,
    resolved,
    save_whole,
    settle_machine,
)
from heedful.training.stopping import Stopping

HEADS = {
    "causal": {"decoder": "causal"},
    "masked": {"encoder": "masked"},
    "span": {"decoder": "causal", "encoder_decoder": "text2text"},
}
"""The head that an objective needs on each kind of model."""


def pretrain(options: PretrainOptions) -> Finished:
    """Train a language model and leave a run directory."""
    refuse_impossible(options)

    def work(settled: PretrainOptions, stopping: Stopping) -> Finished:
        return Job(settled, settle_machine(settled)).work(stopping)

    return conduct(options, lambda o: resolved(o, learning_rate(o)), work, "pretrain")


def refuse_impossible(options: PretrainOptions) -> None:
    """Find mistakes before anything is loaded."""
    refuse_small(options, {"block": 4, "vocab_size": 1, "min_count": 1})
    if options.objective not in HEADS:
        raise unknown("objective", options.objective, HEADS)


def from_nothing(options: PretrainOptions) -> bool:
    """Whether the model is a preset."""
    return options.model in PRESETS and not Path(options.model).is_dir()


def learning_rate(options: PretrainOptions) -> float:
    """The rate that was asked for, or what suits the beginning."""
    if options.lr is not None:
        return options.lr
    return PRETRAIN_LR["nothing" if from_nothing(options) else "checkpoint"]


def model_changes(options: PretrainOptions) -> dict[str, Any]:
    """What `--model-options`, `--projections` and `--dropout` say, by the declared types."""
    hints = get_type_hints(TransformerConfig)
    found: dict[str, Any] = {}
    for text in options.model_options:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f'--model-options "{text}": is not option=value')
        if name not in hints:
            raise unknown("model option", name, hints)
        found[name] = typed(hints[name], name, value)
    if options.projections is not None:
        found["projections"] = options.projections
    if options.dropout is not None:
        found["dropout"] = options.dropout
    return found


def typed(hint: Any, name: str, value: str) -> Any:
    """A model option's value from the command line."""
    kinds = {hint, *get_args(hint)}
    if bool in kinds:
        if value.lower() not in ("true", "false"):
            raise UserError(f"--model-options {name}={value}: takes true or false")
        return value.lower() == "true"
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(value)
            except ValueError:
                raise UserError(f"--model-options {name}={value}: takes {kind.__name__}") from None
    return value


class Job:
    """The parts of one run, put together."""

    def __init__(self, options: PretrainOptions, machine: Machine) -> None:
        self.options, self.machine = options, machine
        self.from_nothing = from_nothing(options)
        changes = model_changes(options)
        self.texts = open_texts(options)
        family = PRESETS[options.model].config.family if self.from_nothing else None
        self.tokenizer = find_tokenizer(options, self.texts.splits["train"], family)
        torch.manual_seed(options.seed)
        self.model = self.make_model(changes)
        self.method = methods.make("full")
        self.method.attach(self.model)
        self.model.to(machine.device)
        room = methods.room(self.model)
        self.block = min(options.block or min(BLOCK, room), room)
        if options.block is not None and self.block < options.block:
            print(f"heedful: rows have {self.block} tokens, what the model has room for", file=sys.stderr)
        self.objective = self.make_objective()

    def make_model(self, changes: dict[str, Any]) -> LanguageModel:
        """Build a preset with the tokenizer's vocabulary, or load what is gone on with."""
        o = self.options
        if self.from_nothing:
            preset = PRESETS[o.model].config
            if "d_model" in changes or "n_heads" in changes:
                changes.setdefault("d_head", 0)
            if "d_model" in changes:
                changes.setdefault("d_ff", preset.d_ff * changes["d_model"] // preset.d_model)
            if o.block is not None:
                changes.setdefault("max_len", max(preset.max_len, o.block))
            changes |= {n: getattr(self.tokenizer, n) for n in ("vocab_size", "pad_id", "bos_id", "eos_id")}
        elif o.model_options:
            raise UserError(f"--model-options are for models from nothing; {o.model} is as its weights are")
        model = checkpoints.load(o.model, head=self.head(), attention=o.attention, **changes)
        assert isinstance(model, LanguageModel)
        return model

    def head(self) -> str:
        """The head that the objective needs on this kind of model."""
        o = self.options
        kind = PRESETS[o.model].config.kind if self.from_nothing else checkpoints.load(o.model).config.kind
        if kind not in HEADS[o.objective]:
            able = " or ".join(k.replace("_", "-") for k in HEADS[o.objective])
            raise UserError(
                f"--objective {o.objective} trains {able}s; {o.model} is {kind.replace('_', '-')}"
            )
        return HEADS[o.objective][kind]

    def make_objective(self) -> Objective:
        """What is minimised."""
        o = self.options
        unsafe = MECHANISMS[self.model.config.attention].unsafe
        tokens = self.texts.tokens(self.tokenizer)
        return Causal(tokens, self.tokenizer, block=self.block, together=o.pack, unsafe=unsafe)

    def work(self, stopping: Stopping) -> Finished:
        """Train, score, examine and write, as the only process at this run."""
        o = self.options
        out = o.out or new_run_path("runs", self.texts.name, o.model, o.objective, o.seed)
        with resuming.opened(out, o) as (run, lease):
            stored = resolved(o, learning_rate(o))
            describe(run, self.machine, "pretrain", stored, {"block": self.block})
            return self.train(run, lease, stopping)

    def train(self, run: Run, lease: Lease, stopping: Stopping) -> Finished:
        """Train, score, examine and write."""
        o = self.options
        hooks: list[Hook] = [TensorBoard(run.path / "tensorboard")] if o.tensorboard else []
        parameters = self.method.trainable(self.model)
        loop = Loop(
            self.model, parameters, self.objective, o, learning_rate(o), run, self.machine.precision, hooks,
            stopping, lease.lost,
        )  # fmt: skip
        progress = loop.train(resume=o.resume)
        found = {
            split: loop.score(split)
            for split in ("dev", "test")
            if split in self.objective.splits and (split == "dev" or o.score_test)
        }
        results = Results(
            task=self.texts.name, model=o.model, method="full", head=self.model.kind, seed=o.seed,
            splits={
                split: SplitResult(metric=e.metric, value=e.value, n=e.n, loss=e.loss)
                for split, e in found.items()
            },
            objective=o.objective, **measures(run, self.model, parameters, progress),
        )  # fmt: skip
        save_whole(run, self.model, self.tokenizer)
        checks = Checks(())
        run.write_checks(checks)
        run.write_results(results)
        return Finished(run.path, results, checks, self.method.formula(self.model))
