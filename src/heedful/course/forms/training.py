"""Schedules, losses, loops and selection as students write them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, simplify

SCHEDULES = ["get_lr", "learning_rate", "lr_schedule", "lr_lambda", "get_learning_rate", "cosine_schedule", "lr_at", "schedule",
             "cosine_lr", "warmup_cosine", "compute_lr", "linear_schedule", "lr_multiplier"]  # fmt: skip
LOSSES = ["lm_loss", "next_token_loss", "language_model_loss", "language_modeling_loss", "causal_lm_loss", "compute_lm_loss", "shifted_loss",
          "compute_loss"]  # fmt: skip
EVALUATIONS = [
    "evaluate",
    "eval_model",
    "evaluate_model",
    "test_model",
    "validate",
    "evaluation",
    "eval_epoch",
    "compute_accuracy",
    "test",
]
EPOCHS = ["train_epoch", "train_one_epoch", "train_loop", "train", "train_model", "fit", "training_epoch"]
SELECTIONS = ["select_best", "select_model", "choose_best", "select_epoch", "pick_best", "best_epoch", "select_checkpoint", "model_selection",
              "choose_model", "select", "report_best", "early_stopping"]  # fmt: skip
PLACES = {
    "steps": "step it t i iteration current_step cur_step global_step iter n step_num",
    "warmup": "warmup warmup_steps warmup_iters num_warmup_steps n_warmup warmup_iterations",
    "total": "total max_steps max_iters num_training_steps total_steps lr_decay_iters n_steps num_steps t_max final_step decay_steps",
    "peak": "peak max_lr lr learning_rate base_lr peak_lr lr_max initial_lr",
}
NAMES = {simplify(word): place for place, words in PLACES.items() for word in words.split()}
LOADERS = ("loader", "dataloader", "data", "batches", "trainloader", "testloader", "devloader", "valloader", "iterator", "dl", "evalloader",
           "validloader", "traindataloader", "evaldataloader", "testdataloader", "dataset", "iterable")  # fmt: skip
STYLES = ("pair", "dictionary", "loss first")


def missing(name: str) -> NotApplicable:
    return NotApplicable(f"the meaning of its parameter {name} is unknown")


def is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (
        parameter.POSITIONAL_OR_KEYWORD,
        parameter.KEYWORD_ONLY,
    )


class ScheduleForm:
    """How to ask one student's function for learning rates."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.parameters = inspect.signature(function).parameters
        self.places = {place: name for name in self.parameters if (place := NAMES.get(simplify(name)))}

    def learning_rate(
        self, steps: Sequence[int], total: int, warmup: int, peak: float, **_: Any
    ) -> dict[str, Any]:
        """Carry out the operation `learning_rate`."""
        values = {"total": total, "warmup": warmup, "peak": peak}
        arguments = {self.places[name]: value for name, value in values.items() if name in self.places}
        first = self.places.get("steps") or next(iter(self.parameters))
        for name, parameter in self.parameters.items():
            if simplify(name) in ("minlr", "lrmin", "eta", "etamin", "finallr"):
                arguments[name] = 0.0
            elif name not in arguments and name != first and is_required(parameter):
                raise missing(name)
        return {
            "out": torch.tensor([float(self.function(**{first: int(step)}, **arguments)) for step in steps])
        }

    def facts(self) -> dict[str, Any]:
        return {
            "found": self.function.__name__,
            "warmup": "warmup" in self.places,
            "peak": "peak" in self.places,
        }


class LossForm:
    """How to call one student's loss of next tokens."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.parameters = inspect.signature(function).parameters
        self.pad = next(
            (n for n in self.parameters if "pad" in simplify(n) or simplify(n) == "ignoreindex"), None
        )
        self.mask = next((n for n in self.parameters if "mask" in simplify(n)), None)

    def next_token_loss(self, logits: Tensor, tokens: Tensor, pad_id: int, **_: Any) -> dict[str, Any]:
        """Carry out the operation `next_token_loss`."""
        names = list(self.parameters)
        arguments: dict[str, Any] = {names[0]: logits, names[1]: tokens}
        if self.pad is not None:
            arguments[self.pad] = pad_id
        if self.mask is not None:
            arguments[self.mask] = (tokens != pad_id).long()
        for name, parameter in self.parameters.items():
            if name not in arguments and is_required(parameter):
                raise missing(name)
        returned = self.function(**arguments)
        return {"out": torch.as_tensor(returned[0] if isinstance(returned, tuple) else returned)}

    def facts(self) -> dict[str, Any]:
        return {"found": self.function.__name__, "padding": bool(self.pad or self.mask)}


class SpyModel(nn.Module):
    """A linear classifier with dropout that notes in which mode it is called."""

    def __init__(self, weight: Tensor, style: str, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(weight.shape[1], len(weight), bias=False)
        self.linear.weight.data.copy_(weight)
        self.dropout = nn.Dropout(dropout)
        self.style = style
        self.modes: list[bool] = []
        self.gradients: list[bool] = []

    def forward(self, input_ids: Any = None, labels: Any = None, **others: Any) -> Any:
        """Return logits, or the loss and logits for labels."""
        x = input_ids if input_ids is not None else next(iter(others.values()))
        self.modes.append(self.training)
        self.gradients.append(torch.is_grad_enabled())
        logits = self.linear(self.dropout(x))
        if self.style == "loss first" and labels is not None:
            return F.cross_entropy(logits, labels), logits
        return logits


class LoopForm:
    """How to call one student's function of a model and batches."""

    def __init__(self, function: Callable[..., Any], needs_optimizer: bool) -> None:
        self.function, self.needs_optimizer = function, needs_optimizer
        self.parameters = inspect.signature(function).parameters

    def call(self, model: SpyModel, x: Sequence[Tensor], y: Sequence[Tensor], lr: float, style: str) -> Any:
        """Call with the model, the batches and what else it takes."""
        batches: list[Any] = list(zip(x, y, strict=True))
        if style != "pair":
            batches = [{"input_ids": a, "labels": b} for a, b in batches]
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        arguments: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            simple = simplify(name)
            if simple in ("model", "net", "classifier", "network"):
                arguments[name] = model
            elif simple in LOADERS:
                arguments[name] = batches
            elif simple in ("optimizer", "opt", "optim"):
                arguments[name] = optimizer
            elif simple in ("criterion", "lossfn", "lossfunction", "loss"):
                arguments[name] = F.cross_entropy
            elif simple in ("device",):
                arguments[name] = torch.device("cpu")
            elif simple in ("epochs", "numepochs", "nepochs"):
                arguments[name] = 1
            elif simple in ("lr", "learningrate"):
                arguments[name] = lr
            elif simple in ("scheduler", "lrscheduler", "sched"):
                arguments[name] = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
            elif is_required(parameter):
                raise missing(name)
        return self.function(**arguments)

    def try_styles(
        self, weight: Tensor, x: Sequence[Tensor], y: Sequence[Tensor], lr: float, training: bool
    ) -> tuple[SpyModel, Any]:
        """Call with batches of the first style that the function can read."""
        problem: Exception | None = None
        for style in STYLES:
            model = SpyModel(weight, style, 0.0 if self.needs_optimizer else 0.5).train(training)
            try:
                return model, self.call(model, x, y, lr, style)
            except NotApplicable:
                raise
            except Exception as error:  # another style may fit
                problem = problem or error
        assert problem is not None
        raise problem

    def evaluate(self, weight: Tensor, x: list[Tensor], y: list[Tensor], **_: Any) -> dict[str, Any]:
        """Carry out the operation `evaluate`; the model is in training mode before."""
        model, returned = self.try_styles(weight, x, y, 0.1, training=True)
        changed = not torch.equal(model.linear.weight.detach(), weight)
        return {
            "values": list_numbers(returned),
            "training": any(model.modes),
            "gradients": any(model.gradients),
            "changed": changed,
        }

    def train_epoch(
        self, weight: Tensor, x: list[Tensor], y: list[Tensor], lr: float, **_: Any
    ) -> dict[str, Any]:
        """Carry out the operation `train_epoch`; the model is in evaluation mode before."""
        model, _returned = self.try_styles(weight, x, y, lr, training=False)
        return {
            "weight": model.linear.weight.detach(),
            "calls": len(model.modes),
            "training": all(model.modes) and bool(model.modes),
        }


def list_numbers(value: Any) -> list[float]:
    """Return the numbers among what a function returned."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [n for part in value for n in list_numbers(part)][:20]
    if isinstance(value, Tensor):
        return [float(value)] if value.numel() == 1 else []
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


class SelectionForm:
    """How to call one student's choice of an epoch: with two lists, or with one list of dictionaries."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.names = list(inspect.signature(function).parameters)

    def select(self, dev: list[float], test: list[float], **_: Any) -> dict[str, Any]:
        """Carry out the operation `select`."""
        dev_name = next((n for n in self.names if any(w in simplify(n) for w in ("dev", "val"))), None)
        test_name = next((n for n in self.names if "test" in simplify(n)), None)
        if dev_name is not None:
            arguments: dict[str, Any] = {dev_name: list(dev)} | ({test_name: list(test)} if test_name else {})
            return read_choice(self.function(**arguments), dev, test)
        history = [
            {"epoch": i, **dict.fromkeys(("dev", "dev_accuracy", "val_accuracy", "dev_acc", "val_acc", "valid_acc", "val"), d),
             **dict.fromkeys(("test", "test_accuracy", "test_acc"), t)}
            for i, (d, t) in enumerate(zip(dev, test, strict=True))
        ]  # fmt: skip
        return read_choice(self.function(history), dev, test)


def read_choice(value: Any, dev: Sequence[float], test: Sequence[float]) -> dict[str, Any]:
    """Return the epoch and the score among what a function returned."""
    parts: list[Any] = list(value) if isinstance(value, tuple | list) else [value]
    if isinstance(value, Mapping):
        if "epoch" in value:
            return {"epoch": int(value["epoch"])}
        parts = list(value.values())
    found: dict[str, Any] = {}
    for part in parts:
        number = part.item() if hasattr(part, "item") else part
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(dev):
            found.setdefault("epoch", number)
        elif isinstance(number, float) and number in (*dev, *test):
            found["score"] = number
    return found


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has."""
    operations: dict[str, Operation] = {}
    if (function := file.find(SCHEDULES, kind="function")) is not None:
        schedule = ScheduleForm(function)
        operations["learning_rate"] = Operation(schedule.learning_rate, schedule.facts())
    function = file.find(LOSSES, kind="function")
    if function is not None and len(inspect.signature(function).parameters) >= len(("logits", "tokens")):
        loss = LossForm(function)
        operations["next_token_loss"] = Operation(loss.next_token_loss, loss.facts())
    for name, names in (("evaluate", EVALUATIONS), ("train_epoch", EPOCHS)):
        if (function := file.find(names, kind="function")) is not None:
            loop = LoopForm(function, name == "train_epoch")
            operations[name] = Operation(getattr(loop, name), {"found": function.__name__})
    if (function := file.find(SELECTIONS, kind="function")) is not None:
        operations["select"] = Operation(SelectionForm(function).select, {"found": function.__name__})
    return operations
