"""Self-attention modules as students write them: projections, heads and a mask inside one class."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.course.forms.conventions import CONVENTIONS, choose
from heedful.course.forms.roles import PACKINGS, Roles, find_roles
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, pick_parameter

NAMES = [
    "CausalSelfAttention",
    "MultiHeadAttention",
    "MultiHeadSelfAttention",
    "SelfAttention",
    "MultiheadAttention",
    "CausalAttention",
    "Attention",
]
LENGTH = 128
SAMPLE = {"width": 8, "heads": 2, "head": 4, "temperature": 2.0, "length": LENGTH, "dropout": 0.1}
MASK_NAMES = ("mask", "attn_mask", "causal_mask", "attention_mask")


CONVENTION_RANKS = (2, 4, 3)
"""Dimensions of a causal mask: [t, t], [1, 1, t, t] or [b, t, t]."""


class SelfAttentionForm:
    """How to build and call one student's self-attention class."""

    def __init__(self, kind: type[nn.Module]) -> None:
        self.kind = kind
        self.names = parameters_of(kind)
        self.mask_name = pick_parameter(self.names[1:], *MASK_NAMES)
        self.build_module = cache(self.build_module_once)
        self.mask_kind: tuple[int, str] | None = None
        if self.mask_name and (self.is_required(self.mask_name) or "causal" in kind.__name__.lower()):
            candidates = [(rank, name) for rank in CONVENTION_RANKS for name in CONVENTIONS]
            self.mask_kind = choose(candidates, self.score_mask, None)

    def build_module_once(self, width: int, heads: int) -> tuple[nn.Module, Roles]:
        """Build a module in evaluation mode, and find the roles of its parameters."""
        torch.manual_seed(0)
        module = build(self.kind, {**SAMPLE, "width": width, "heads": heads, "head": width // heads})
        if not isinstance(module, nn.Module):
            raise NotApplicable(f"{self.kind.__name__} is not an nn.Module")
        module.eval()
        return module, find_roles(module, width, heads)

    def score_mask(self, candidate: tuple[int, str]) -> float:
        """Return how much a later token changes an earlier output under a convention of the mask."""
        module, _ = self.build_module(8, 2)
        x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
        changed = torch.cat([x[:, :3], x[:, 3:] + 2], 1)
        with torch.no_grad():
            before, after = (self.call_module(module, value, candidate) for value in (x, changed))
        leak = float((before - after)[:, :3].abs().max())
        return leak if math.isfinite(leak) else math.inf

    def takes_three(self) -> bool:
        """Whether `forward` takes query, key and value one by one."""
        return len(self.names) > 2 and pick_parameter(self.names[1:3], "key", "k") is not None

    def call_module(self, module: nn.Module, x: Tensor, mask_kind: tuple[int, str] | None) -> Tensor:
        arguments: dict[str, Any] = {}
        if mask_kind is not None:
            rank, convention = mask_kind
            t = x.shape[1]
            pattern = CONVENTIONS[convention](torch.ones(t, t, dtype=torch.bool).tril())
            pattern = pattern.to(x.dtype) if pattern.is_floating_point() else pattern
            shape = {2: (t, t), 3: (len(x), t, t), 4: (1, 1, t, t)}[rank]
            arguments[self.mask_name or ""] = pattern.expand(shape)
        returned = module(x, x, x, **arguments) if self.takes_three() else module(x, **arguments)
        if isinstance(returned, tuple | list):
            returned = next(
                (r for r in returned if isinstance(r, Tensor) and r.shape == x.shape), returned[0]
            )
        if not isinstance(returned, Tensor):
            raise TypeError(f"it returns {type(returned).__name__}, not a tensor")
        return returned

    def self_attend(
        self,
        x: Tensor,
        n_heads: int,
        parameters: Mapping[str, Tensor] | None = None,
        packing: str = PACKINGS[0],
        training: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation `self_attend`."""
        module, roles = self.build_module(x.shape[-1], n_heads)
        module = module.to(x.dtype)
        if parameters:
            roles.fill(parameters, n_heads, packing)
        module.train(training)
        module.zero_grad()
        out = self.call_module(module, x, self.mask_kind)
        module.eval()
        return {"out": out}

    def is_required(self, name: str) -> bool:
        return inspect.signature(self.kind.forward).parameters[name].default is inspect.Parameter.empty

    def facts(self) -> dict[str, Any]:
        """Return what was understood: the roles that can be filled, whether they are packed."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "roles": [], "packings": []}
        if "causal" in self.kind.__name__.lower() or self.mask_kind is not None:
            facts["causal"] = True
        try:
            _, roles = self.build_module(SAMPLE["width"], SAMPLE["heads"])
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"}
        names = roles.names()
        if {"q_weight", "k_weight", "v_weight"} <= set(names) and not roles.unknown:
            facts |= {"roles": names, "packings": list(PACKINGS) if roles.packed else []}
        return facts


def find_self_attention(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `self_attend` if the file has a class for it."""
    kind = file.find(NAMES, kind="class")
    if kind is None or not issubclass(kind, nn.Module) or len(parameters_of(kind)) == 0:
        return {}
    first = parameters_of(kind)
    if len(first) > 2 and not is_projecting(kind):
        return {}
    form = SelfAttentionForm(kind)
    return {"self_attend": Operation(form.self_attend, form.facts())}


def is_projecting(kind: type[nn.Module]) -> bool:
    """Whether the module has parameters of its own; one without is a function of q, k and v."""
    try:
        return any(True for _ in build(kind, SAMPLE).parameters())
    except Exception:
        return True
