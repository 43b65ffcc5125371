"""The parts of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from heedful import methods
from heedful.evaluation.scorer import Scorer
from heedful.methods import Method
from heedful.models import Classifier, LanguageModel
from heedful.objectives import Objective
from heedful.options.training import PRETRAIN_LR, AdaptOptions, LoopOptions, PretrainOptions
from heedful.runs.directory import Run
from heedful.text import Tokenizer
from heedful.training.build.model import starts_from_scratch
from heedful.training.build.objective import options_of_loop
from heedful.training.fitted_loop import FittedLoop
from heedful.training.loop import Loop
from heedful.training.machine import Machine


@dataclass
class Job:
    """The parts of one run, ready to train. `adapt` and `pretrain` differ in nothing else."""

    command: Literal["adapt", "pretrain"]
    options: AdaptOptions | PretrainOptions
    machine: Machine
    data_name: str
    """Name of the task or the corpus."""
    tokenizer: Tokenizer
    model: Classifier | LanguageModel
    method: Method
    objective: Objective
    scorer: Scorer
    head: str
    """The form of the head, as results.json has it."""
    length: int
    """Number of tokens per text (`--max-len`) or row (`--block`), as far as the model has room."""
    room: int
    """Number of tokens that the model has room for."""
    formula: str
    """How the number of trained parameters is computed."""
    seconds_before: float = 0.0
    """Seconds of training that were spent before the first step."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The settings that the user did not give, each with the reason for its value."""

    @property
    def device(self) -> torch.device:
        return self.machine.device

    @property
    def precision(self) -> str:
        return self.machine.precision

    @property
    def from_scratch(self) -> bool:
        """Whether the model started with random weights, so that there is no base model to refer to."""
        return starts_from_scratch(self.options.model)

    def fixed_options(self) -> dict[str, Any]:
        """Return options that the model or a measurement decided; a resumed run must find the same."""
        name = "max_len" if self.command == "adapt" else "block"
        steps = {} if self.options.steps is None else {"steps": self.options.steps}
        return {name: self.length, **steps}

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that a step changes: the method's, and a second head where there is one."""
        second = {n: p for n, p in self.model.named_parameters() if n.startswith("masked_head.")}
        return self.method.trainable(self.model) | second

    def make_loop(self, run: Run, options: LoopOptions | None = None, **parts: Any) -> Loop:
        """Return the loop that trains the model, with other options than the job's if they are given."""
        options = self.options if options is None else options
        kind = Loop if self.method.takes_steps else FittedLoop
        return kind(
            self.model,
            self.trainable_parameters(),
            self.objective,
            options_of_loop(options),
            learning_rate(options),
            run,
            self.precision,
            **parts,
        )


def learning_rate(options: LoopOptions) -> float:
    if options.lr is not None:
        return options.lr
    if isinstance(options, AdaptOptions):
        return methods.METHODS[options.method].learning_rate
    assert isinstance(options, PretrainOptions)
    return PRETRAIN_LR["nothing" if starts_from_scratch(options.model) else "checkpoint"]
