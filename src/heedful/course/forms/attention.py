"""Attention as students write it: functions of q, k, v and a mask, and modules with projections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.course.forms.additive import find_additive
from heedful.course.forms.conventions import CONVENTIONS, choose
from heedful.course.forms.projections import find_self_attention, is_projecting
from heedful.course.student_file import (
    Operation,
    StudentFile,
    build,
    forward_of,
    has_parameters,
    parameters_of,
    pick_parameter,
    required_parameters,
)

NAMES = [
    "attention",
    "scaled_dot_product_attention",
    "dot_product_attention",
    "DotProductAttention",
    "ScaledDotProductAttention",
    "self_attention",
    "causal_attention",
    "attend",
    "my_attention",
    "masked_attention",
    "sdpa",
    "Attention",
]
ADDITIVE = ["additive_attention", "AdditiveAttention", "bahdanau_attention", "BahdanauAttention"]

LAYOUTS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "[batch, time, width]": (lambda x: x, lambda x: x),
    "[batch, head, time, width]": (lambda x: x[:, None], lambda x: x[:, 0]),
    "[time, batch, width]": (lambda x: x.transpose(0, 1), lambda x: x.transpose(0, 1)),
    "[time, width]": (lambda x: x[0], lambda x: x[None]),
}
"""How q, k and v are laid out; one row at a time for the last."""
MASK_NAMES = ("mask", "attn_mask", "attention_mask", "allowed", "causal_mask")


class AttentionForm:
    """How to call one student's function: layout, mask convention, and which output is which."""

    def __init__(self, function: Any) -> None:
        self.target = forward_of(function)
        self.function = function if self.target is function else BuiltPerWidth(function)
        self.names = parameters_of(self.target)
        self.mask_name = pick_parameter(self.names[3:], *MASK_NAMES)
        self.causal_name = pick_parameter(self.names[3:], "causal", "is_causal")
        if self.causal_name == self.mask_name:
            self.causal_name = None
        self.layout = choose(list(LAYOUTS), self.score_layout, "[batch, time, width]")
        self.rank, self.convention = 3, next(iter(CONVENTIONS))
        if self.mask_name is not None:
            candidates = [(rank, name) for rank in (3, 2, 4) for name in CONVENTIONS]
            self.rank, self.convention = choose(candidates, self.score_convention, (3, self.convention))

    def score_layout(self, layout: str) -> float:
        """Return how much a row of a batch changes another one under this layout, and refuse wrong shapes."""
        q, k, v = (torch.randn(2, n, 3, generator=torch.Generator().manual_seed(n)) for n in (4, 4, 4))
        into, back = LAYOUTS[layout]
        if layout == "[time, width]":
            q, k, v = q[:1], k[:1], v[:1]
        out = back(self.pick_out(self.function(into(q), into(k), into(v)), 3))
        if out.shape != q.shape:
            return math.inf
        if len(q) == 1:
            return 1e-3
        k2 = k.clone()
        k2[1] += 1.0
        changed = back(self.pick_out(self.function(into(q), into(k2), into(v)), 3))
        return float((changed - out)[0].abs().max())

    def score_convention(self, candidate: tuple[int, str]) -> float:
        """Return the weight on masked keys under a convention, with scores that are large everywhere."""
        rank, convention = candidate
        # An asymmetric pattern of 3 queries and 4 keys; every score is about 3.
        allowed = torch.tensor([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1]]).bool()[None]
        q = torch.full((1, 4, 4), 3**0.5) + torch.arange(4.0)[None, :, None] / 10
        k = torch.full((1, 4, 4), 3**0.5) + torch.arange(4.0)[None, :, None] / 7
        out = self.run(q, k, torch.eye(4)[None], allowed, rank, convention)
        if not out.isfinite().all():
            return math.inf
        return float(out[~allowed].abs().sum())

    def run(
        self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, rank: int, convention: str
    ) -> Tensor:
        """Call the function with three-dimensional q, k, v and a boolean pattern [b, t, s]."""
        if self.layout == "[time, width]":
            rows = [self.run_once(q[i : i + 1], k[i : i + 1], v[i : i + 1],
                                  None if allowed is None else allowed[i : i + 1], 2, convention)
                    for i in range(len(q))]  # fmt: skip
            return torch.cat(rows)
        return self.run_once(q, k, v, allowed, rank, convention)

    def run_once(
        self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, rank: int, convention: str
    ) -> Tensor:
        into, back = LAYOUTS[self.layout]
        arguments: dict[str, Any] = {}
        if allowed is not None:
            arguments = self.mask_arguments(allowed, q.dtype, rank, convention)
        elif self.mask_name is not None and self.needs_mask():
            arguments = self.mask_arguments(
                torch.ones(len(q), q.shape[1], k.shape[1], dtype=torch.bool), q.dtype, rank, convention
            )
        return back(self.pick_out(self.function(into(q), into(k), into(v), **arguments), v.shape[-1]))

    def needs_mask(self) -> bool:
        """Whether the mask has no default."""
        return self.mask_name in required_parameters(self.target)

    def mask_arguments(
        self, allowed: Tensor, dtype: torch.dtype, rank: int, convention: str
    ) -> dict[str, Any]:
        """Return the pattern as the function takes it."""
        t, s = allowed.shape[-2:]
        if self.mask_name is None:
            causal = torch.ones(t, s, dtype=torch.bool).tril()
            if self.causal_name is not None and bool((allowed == causal).all()):
                return {self.causal_name: True}
            raise NotApplicable("it takes no mask")
        pattern = CONVENTIONS[convention](allowed)
        if pattern.is_floating_point():
            pattern = pattern.to(dtype)
        if rank == 2:
            if not bool((allowed == allowed[:1]).all()):
                raise NotApplicable("it takes one mask for the whole batch")
            return {self.mask_name: pattern[0]}
        if rank == 4 or self.layout == "[batch, head, time, width]":
            pattern = pattern[:, None]
        return {self.mask_name: pattern}

    def pick_out(self, returned: Any, width: int) -> Tensor:
        """Return the output among what the function returned: the first of this width, else the first."""
        if isinstance(returned, dict):
            returned = list(returned.values())
        if isinstance(returned, tuple | list):
            tensors = [x for x in returned if isinstance(x, Tensor)]
            return next((x for x in tensors if x.shape[-1] == width), tensors[0])
        if not isinstance(returned, Tensor):
            raise TypeError(f"it returns {type(returned).__name__}, not a tensor")
        return returned

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **_: Any) -> dict[str, Any]:
        """Carry out the operation `attend`."""
        if q.dim() == 4 and self.layout != "[batch, head, time, width]":
            raise NotApplicable("it takes no dimension for heads")
        if q.dim() == 4:
            arguments = {} if mask is None else self.mask_arguments(mask, q.dtype, 3, self.convention)
            return {"out": self.pick_out(self.function(q, k, v, **arguments), v.shape[-1])}
        return {"out": self.run(q, k, v, mask, self.rank, self.convention)}

    def facts(self, name: str) -> dict[str, Any]:
        facts = {
            "found": name,
            "layout": self.layout,
            "masks": self.mask_name is not None or bool(self.causal_name),
        }
        return facts | ({"convention": self.convention} if self.mask_name else {})


class BuiltPerWidth:
    """A class without parameters, built anew for each width; called like the function that it is."""

    def __init__(self, kind: type[nn.Module]) -> None:
        self.kind = kind
        self.build = cache(self.build_once)

    def build_once(self, width: int) -> nn.Module:
        sizes = {"width": width, "head": width, "heads": 1, "length": 64, "temperature": width**0.5}
        module: nn.Module = build(self.kind, sizes).eval()
        return module

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, **arguments: Any) -> Any:
        return self.build(q.shape[-1])(q, k, v, **arguments)


def find_functions(file: StudentFile) -> Iterator[tuple[str, Any]]:
    """Yield the operations' names and the functions or modules that carry them out."""
    additive = file.find(ADDITIVE)
    if additive is not None and has_parameters(additive, ("q", "k", "v")):
        yield "attend_additive", additive
    thing = file.find(NAMES)
    if thing is None:
        thing = file.find((), kind="function", parameters=("q", "k", "v"))
    if thing is None or thing is additive or not has_parameters(thing, ("q", "k", "v")):
        return
    if pick_parameter(required_parameters(thing)[3:], *MASK_NAMES) or len(required_parameters(thing)) == len(
        "qkv"
    ):
        yield "attend", thing


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has."""
    operations: dict[str, Operation] = {}
    for operation, thing in find_functions(file):
        if operation == "attend_additive":
            operations[operation] = find_additive(thing)
        elif forward_of(thing) is thing or not is_projecting(thing):
            form = AttentionForm(thing)
            operations[operation] = Operation(form.attend, form.facts(thing.__name__))
    return operations | find_self_attention(file)
