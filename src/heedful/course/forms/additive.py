"""Additive attention as students write it: functions with their weights as arguments, and modules."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.course.forms.conventions import CONVENTIONS, choose
from heedful.course.student_file import Operation, build, parameters_of, pick_parameter, required_parameters

MASK_NAMES = ("mask", "attn_mask", "attention_mask", "allowed", "causal_mask")
VECTORS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda vector: vector,
    lambda vector: vector[:, None],
    lambda vector: vector[None],
)
"""The vector as [d], [d, 1] or [1, d]."""
LINEAR_PARAMETERS = 2


class AdditiveForm:
    """How to call one student's additive attention, with the same matrix for queries and keys."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.names = parameters_of(thing)
        self.mask_name = pick_parameter(self.names[3:], *MASK_NAMES)
        self.build_module = cache(self.build_module_once)
        self.weight_names = []
        if not inspect.isclass(thing):
            signature = inspect.signature(thing).parameters
            self.weight_names = [
                name for name in self.names[3:] if name != self.mask_name
                and signature[name].default in (inspect.Parameter.empty, None) and "drop" not in name
            ]  # fmt: skip
        self.shape, self.rank, self.convention = 0, 3, next(iter(CONVENTIONS))
        candidates = list(product(range(len(VECTORS) if self.weight_names else 1), (3, 2), CONVENTIONS))
        if self.mask_name is None:
            candidates = [c for c in candidates if c[1:] == (self.rank, self.convention)]
        best = choose(candidates, self.score, None)
        if best is not None:
            self.shape, self.rank, self.convention = best

    def build_module_once(self, width: int) -> nn.Module:
        torch.manual_seed(0)
        sizes = {"width": width, "heads": 1, "length": 64, "dropout": 0.0, "inner": width}
        names = (
            "hidden_dim hidden hidden_size attn_dim d_attn attention_dim query_dim key_dim value_dim d_k d_q"
        )
        module: nn.Module = build(self.thing, sizes | dict.fromkeys(names.split(), width)).eval()
        return module

    def score(self, candidate: tuple[int, int, str]) -> float:
        """Return the weight on masked keys under a guess."""
        self.shape, self.rank, self.convention = candidate
        allowed = torch.tensor([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1]]).bool()[None]
        x = torch.ones(1, 4, 4) + torch.arange(4.0)[None, :, None] / 10
        mask = allowed if self.mask_name else None
        out = self.attend(x, x, torch.eye(4)[None], mask, matrix=torch.eye(4), vector=torch.ones(4))["out"]
        if not out.isfinite().all() or out.shape != (1, 4, 4):
            return math.inf
        return float(out.detach()[~allowed].abs().sum()) if self.mask_name else 0.0

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        matrix: Tensor | None = None,
        vector: Tensor | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation `attend_additive`."""
        width = q.shape[-1]
        matrix = torch.eye(width) if matrix is None else matrix
        vector = torch.ones(width) if vector is None else vector
        arguments: dict[str, Any] = {}
        if mask is None and self.mask_name and self.is_required(self.mask_name):
            mask = torch.ones(len(q), q.shape[1], k.shape[1], dtype=torch.bool)
        if mask is not None:
            if self.mask_name is None:
                raise NotApplicable("it takes no mask")
            pattern = CONVENTIONS[self.convention](mask)
            if self.rank == LINEAR_PARAMETERS and not bool((mask == mask[:1]).all()):
                raise NotApplicable("it takes one mask for the whole batch")
            arguments[self.mask_name] = pattern[0] if self.rank == LINEAR_PARAMETERS else pattern
        if inspect.isclass(self.thing):
            module = self.build_module(width)
            fill_additive(module, matrix, vector)
            returned = module(q, k, v, **arguments)
        else:
            *matrices, last = self.weight_names
            arguments |= dict.fromkeys(matrices, matrix) | {last: VECTORS[self.shape](vector)}
            returned = self.thing(q, k, v, **arguments)
        if isinstance(returned, tuple | list):
            returned = next(
                (r for r in returned if isinstance(r, Tensor) and r.shape[-1] == v.shape[-1]), None
            )
        if not isinstance(returned, Tensor):
            raise TypeError("it returns no tensor")
        return {"out": returned}

    def is_required(self, name: str) -> bool:
        return name in required_parameters(self.thing)


def fill_additive(module: nn.Module, matrix: Tensor, vector: Tensor) -> None:
    """Put the matrix into every square parameter, and the vector into the one with as many numbers."""
    width = len(vector)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            value = torch.zeros_like(parameter)
        elif parameter.shape == (width, width):
            value = matrix
        elif parameter.numel() == width:
            value = vector.reshape(parameter.shape)
        elif parameter.shape == (width, 2 * width):
            value = torch.cat([matrix, matrix], 1)
        elif parameter.shape == (2 * width, width):
            value = torch.cat([matrix, matrix], 0)
        else:
            raise NotApplicable(f"what its parameter {name} is for is unknown")
        parameter.data.copy_(value)


def find_additive(thing: Any) -> Operation:
    """Return the operation `attend_additive` of a function or class."""
    form = AdditiveForm(thing)
    if not inspect.isclass(thing) and len(form.weight_names) < LINEAR_PARAMETERS:
        reason = "an additive attention function needs its weights as arguments: q, k, v, W_q, W_k, w, mask"
        return Operation(partial(refuse, reason), {"found": thing.__name__})
    facts = {"found": thing.__name__, "masks": form.mask_name is not None, "convention": form.convention}
    return Operation(form.attend, facts)


def refuse(reason: str, **_: Any) -> dict[str, Any]:
    raise NotApplicable(reason)
