"""Carries out an operation of a subject in this process: seeds, gradients and the cost of torch's work."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.contracts.subject import NotApplicable

OPTIONS = ("seed", "gradients", "of", "output_gradient", "measure")
"""Inputs that are meant for this module and that no operation sees."""


@dataclass(frozen=True)
class FunctionSubject:
    """A subject whose operations are Python functions of this process.

    Each function takes the inputs as keyword arguments and returns a dictionary of outputs; a single tensor
    is taken for the output called `out`.
    """

    functions: Mapping[str, Callable[..., Any]]
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        """The operations by name, each with facts about it."""
        return {name: self.facts.get(name, {}) for name in self.functions}

    def call(self, operation: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation."""
        if operation not in self.functions:
            raise NotApplicable(f"there is no {operation}")
        return carry_out(self.functions[operation], inputs)


def carry_out(function: Callable[..., Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function with the inputs, and add gradients and cost if they are asked for."""
    options = {name: inputs.get(name) for name in OPTIONS}
    arguments = {
        name: value.clone() if isinstance(value, Tensor) else value
        for name, value in inputs.items()
        if name not in OPTIONS
    }
    set_seeds(int(options["seed"] or 0))
    wanted = list(options["gradients"] or ())
    for name in wanted:
        arguments[name].requires_grad_(True)
    if not options["measure"]:
        outputs = as_outputs(function(**arguments))
        return detach_all(outputs | find_gradients(outputs, arguments, wanted, options))
    with CountElements() as count:
        begin = time.perf_counter()
        outputs = as_outputs(function(**arguments))
        seconds = time.perf_counter() - begin
    cost = {"seconds": seconds, "elements": count.elements, "largest": count.largest}
    return detach_all({**outputs, "cost": cost})


def set_seeds(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def as_outputs(returned: Any) -> dict[str, Any]:
    return dict(returned) if isinstance(returned, Mapping) else {"out": returned}


def find_gradients(
    outputs: Mapping[str, Any], arguments: Mapping[str, Any], wanted: list[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the gradient of each wanted input; None where none arrives."""
    if not wanted:
        return {}
    out = outputs[options["of"] or "out"]
    if not out.requires_grad:
        return {f"grad_{name}": None for name in wanted}
    weights = options["output_gradient"]
    total = out.sum() if weights is None else (out * weights).sum()
    leaves = [arguments[name] for name in wanted]
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return {f"grad_{name}": gradient for name, gradient in zip(wanted, found, strict=True)}


def detach_all(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: detach(value) for name, value in outputs.items()}


def detach(value: Any) -> Any:
    """Return the value with all tensors detached and on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {name: detach(item) for name, item in value.items()}
    return [detach(item) for item in value] if isinstance(value, list | tuple) else value


def as_tensors(value: Any) -> Any:
    """Return the value with tensors instead of arrays."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, Mapping):
        return {name: as_tensors(item) for name, item in value.items()}
    return [as_tensors(item) for item in value] if isinstance(value, list) else value


class CountElements(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the numbers that torch's operations write, which tells how work grows without a clock."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.elements, self.largest = 0, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the output of one operation; a product of matrices counts each multiplication."""
        out = func(*args, **(kwargs or {}))
        if is_view(out, args) and not func.overloadpacket.__name__.endswith("_"):
            return out
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, Tensor):
                inner = args[0].shape[-1] if func.overloadpacket._qualified_op_name in PRODUCTS else 1
                self.elements += tensor.numel() * max(int(inner), 1)
                self.largest = max(self.largest, tensor.numel())
        return out


def is_view(out: Any, inputs: tuple[Any, ...]) -> bool:
    """Whether a result is another look at the numbers of the first input, which costs nothing."""
    if not (isinstance(out, Tensor) and inputs and isinstance(inputs[0], Tensor)):
        return False
    return out.untyped_storage().data_ptr() == inputs[0].untyped_storage().data_ptr()


PRODUCTS = {"aten::mm", "aten::bmm", "aten::matmul"}
"""Operations whose work is the size of the output times the width of the first input."""
