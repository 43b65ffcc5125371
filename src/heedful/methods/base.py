"""The base of all methods: which parameters a step may change, and what has to be saved of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.errors import UserError, shorten
from heedful.methods.counts import polynomial
from heedful.models.embeddings import PromptVectors
from heedful.models.heads import HeadForm
from heedful.options.values import convert_value, type_hints

Trainee = Any
"""A body with a head: `Classifier`, `LanguageModel`, or a Hub model with the same interface."""


@dataclass(kw_only=True)
class Method:
    """One way to adapt a model. Options are fields; class constants declare what is true of the method.

    `attach` it to a model that was just loaded, train `trainable`, and save `state`. A method object belongs
    to one model.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str] = ""
    learning_rate: ClassVar[float] = 1e-3
    """The learning rate with AdamW when the user names none."""
    usual_width: ClassVar[int | None] = None
    """The model width for which `learning_rate` is meant, if wider models need a lower one."""
    default_head_form: ClassVar[HeadForm] = "family"
    frozen_body: ClassVar[bool] = False
    """Nothing inside the body is changed, so objectives that have to train the body are refused."""
    head_only: ClassVar[bool] = False
    """Only the head is trained on states of the body that never change, so they can be computed once."""
    saves_whole_model: ClassVar[bool] = False
    """A run saves the whole model instead of an adapter that names its base."""
    keeps_output: ClassVar[bool] = True
    """Attaching changes no output."""
    mergeable: ClassVar[bool] = True
    """What was learned can be folded into the model. A method that is not mergeable needs a pretrained model,
    because a run that starts from nothing saves the whole model."""
    switchable: ClassVar[bool] = True
    """The model as it was before `attach` is still there, behind `disabled`."""

    @property
    def takes_steps(self) -> bool:
        """Whether the method is trained by gradient steps; otherwise the head is fitted and nothing else."""
        return True

    def __post_init__(self) -> None:
        for name, kind in options_of(type(self)).items():
            convert_value(kind, getattr(self, name), f"{self.name}: {name}")
        self.check()
        self.before: dict[str, Tensor] = {}
        self.parts: set[str] = set()
        """The names of all parameters that are trained."""
        self.added: set[str] = set()
        """The names of those that the model did not have before `attach`."""

    @classmethod
    def learning_rate_for(cls, width: int) -> float:
        """Return the default learning rate for a model of this width, to two digits."""
        if cls.usual_width is None:
            return cls.learning_rate
        return float(f"{cls.learning_rate * cls.usual_width / width:.1e}")

    def check(self) -> None:
        """Refuse values outside their range."""

    def attach(self, model: Trainee) -> None:
        """Add what the method needs and freeze what it does not train, in place."""
        if model.method is not None:
            raise UserError(f"{model.method.name} is attached to this model already; load the model again")
        existing = {name for name, _ in model.named_parameters()}
        self.parts = {*head_names(model), *self.add(model)}
        self.added = self.parts - existing
        if not self.parts:
            raise UserError(f"{self.name} has nothing to train in a {model.kind} model without a new head")
        model.method = self
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in self.parts)
            if self.switchable and name in self.parts & existing:
                self.before[name] = parameter.detach().clone()

    def add(self, model: Trainee) -> set[str]:
        """Add parameters, and name those outside the head that are trained. Refuses before it changes."""
        raise NotImplementedError

    def count_frozen_layers(self, model: Trainee) -> int | None:
        """Return how many layers above the embeddings never change, so that their states can be kept.

        None if states cannot be kept.
        """
        return None

    def trainable(self, model: Trainee) -> dict[str, nn.Parameter]:
        """Return the parameters that a step may change, by name: all that an exact resume has to restore."""
        self.check_attached(model)
        return {name: p for name, p in model.named_parameters() if name in self.parts}

    def state(self, model: Trainee) -> dict[str, Tensor]:
        """Return copies of what `load_state` needs: the adapter and, always, the head."""
        return {name: p.detach().clone() for name, p in self.trainable(model).items()}

    def load_state(self, model: Trainee, state: Mapping[str, Tensor]) -> None:
        """Set what `state` returned; names and shapes are checked before anything is set."""
        ours = self.trainable(model)
        for name in ours.keys() | state.keys():
            if name not in state:
                raise UserError(f'the saved {self.name} state lacks "{shorten(name)}"')
            if name not in ours:
                raise UserError(f'the saved {self.name} state has "{shorten(name)}", which this model lacks')
            if ours[name].shape != state[name].shape:
                raise UserError(
                    f'the saved {self.name} state has "{shorten(name)}" with shape '
                    f"{tuple(state[name].shape)}; this model's is {tuple(ours[name].shape)}"
                )
        with torch.no_grad():
            for name, parameter in ours.items():
                parameter.copy_(state[name])

    def merge(self, model: Trainee) -> None:
        """Fold what was learned into the model, which then has no method and is wholly trainable."""
        self.check_attached(model)
        self.fold(model)
        model.method = None
        model.requires_grad_(True)

    def fold(self, model: Trainee) -> None:
        """Change the base's weights so that the method's parts are no longer needed."""

    @contextmanager
    def disabled(self, model: Trainee) -> Iterator[None]:
        """Inside this context the model is what it was before `attach`, head included."""
        self.check_attached(model)
        if not self.switchable:
            raise UserError(f"{self.name} changes the base itself; load the base again to compare with it")
        ours = dict(model.named_parameters())
        now = {name: ours[name].data for name in self.before}
        self.switch(model, False)
        try:
            for name, tensor in self.before.items():
                ours[name].data = tensor.to(ours[name])
            yield
        finally:
            for name, tensor in now.items():
                ours[name].data = tensor
            self.switch(model, True)

    def switch(self, model: Trainee, on: bool) -> None:
        """Take what was added out of the computation, or put it back."""

    def count(self, model: Trainee) -> int:
        return sum(p.numel() for p in self.trainable(model).values())

    def formula(self, model: Trainee) -> str:
        """Return the count as a function of d = d_model, from the live parameters: `130 d + 2 = 49,922`."""
        rows = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        rows |= {id(m.vectors) for m in model.modules() if isinstance(m, PromptVectors)}
        trained = self.trainable(model).values()
        tables = [tuple(p.shape) for p in trained if id(p) in rows]
        others = [tuple(p.shape) for p in trained if id(p) not in rows]
        return f"{polynomial(others, model.config.d_model, tables)} = {self.count(model):,}"

    def options(self) -> dict[str, Any]:
        """Return the options as plain values, for `make(name, **options)`."""
        return asdict(self)

    def check_attached(self, model: Trainee) -> None:
        if model.method is not self:
            raise UserError(f"this {self.name} is not attached to this model")


def head_names(model: Trainee) -> list[str]:
    """Return the head's parameters: all that the model has and the pretrained body lacks.

    A model from nothing has no pretrained body; there the head is what is on top of the body.
    """
    report = model.report
    new = set(report.new) if report is not None and report.folder is not None else set()
    names = [name for name, _ in model.named_parameters()]
    return [name for name in names if name in new or (model.kind == "classify" and name.startswith("head."))]


def measure_room(model: Trainee) -> int:
    """Return how many tokens of text fit into the model, beside what a prompt or a prefix takes."""
    tokens: int = model.body.room
    return tokens


def options_of(kind: type[Method]) -> dict[str, Any]:
    hints = type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
