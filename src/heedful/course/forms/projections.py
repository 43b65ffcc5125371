"""Self-attention modules as students write them: projections, heads and a mask inside one class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.course.forms.roles import PACKINGS, Roles, find_roles
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, pick_parameter

NAMES = [
    "CausalSelfAttention",
    "MultiHeadAttention",
    "MultiHeadSelfAttention",
    "SelfAttention",
    "MultiheadAttention",
    "CausalAttention",
    "BertSelfAttention",
    "Attention",
]
LENGTH = 16
SAMPLE = {"width": 8, "heads": 2, "length": LENGTH, "dropout": 0.1}
KEY_MASKS = ("attention_mask", "key_padding_mask", "padding_mask", "pad_mask", "mask", "attn_mask")


class SelfAttentionForm:
    """How to build and call one student's self-attention class."""

    def __init__(self, kind: type[nn.Module]) -> None:
        self.kind = kind
        self.names = parameters_of(kind)
        self.mask_name = pick_parameter(self.names[1:], *KEY_MASKS)
        self.build_module = cache(self.build_module_once)

    def build_module_once(self, width: int, heads: int) -> tuple[nn.Module, Roles]:
        """Build a module in evaluation mode, and find the roles of its parameters."""
        torch.manual_seed(0)
        module = build(self.kind, {**SAMPLE, "width": width, "heads": heads})
        if not isinstance(module, nn.Module):
            raise NotApplicable(f"{self.kind.__name__} is not an nn.Module")
        module.eval()
        return module, find_roles(module, width, heads)

    def takes_three(self) -> bool:
        """Whether `forward` takes query, key and value one by one."""
        return len(self.names) > 2 and pick_parameter(self.names[1:3], "key", "k") is not None

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
        arguments: dict[str, Any] = {}
        if self.mask_name and self.is_required(self.mask_name):
            t = x.shape[1]
            arguments[self.mask_name] = torch.ones(t, t, dtype=torch.bool).tril()
        returned = module(x, x, x, **arguments) if self.takes_three() else module(x, **arguments)
        module.eval()
        return {"out": returned[0] if isinstance(returned, tuple | list) else returned}

    def is_required(self, name: str) -> bool:
        return inspect.signature(self.kind.forward).parameters[name].default is inspect.Parameter.empty

    def facts(self) -> dict[str, Any]:
        """Return what was understood: the roles that can be filled, whether they are packed."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "roles": [], "packed": False}
        try:
            _, roles = self.build_module(SAMPLE["width"], SAMPLE["heads"])
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"}
        names = roles.names()
        if {"q_weight", "k_weight", "v_weight"} <= set(names) and not roles.unknown:
            facts |= {"roles": names, "packed": roles.packed}
        return facts


def find_self_attention(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `self_attend` if the file has a class for it."""
    kind = file.find(NAMES, kind="class")
    if kind is None or not issubclass(kind, nn.Module) or len(parameters_of(kind)) == 0:
        return {}
    first = parameters_of(kind)
    form = SelfAttentionForm(kind)
    if len(first) > 2 and not is_projecting(kind):
        return {}
    return {"self_attend": Operation(form.self_attend, form.facts())}


def is_projecting(kind: type[nn.Module]) -> bool:
    """Whether the module has parameters of its own; one without is a function of q, k and v."""
    try:
        return any(True for _ in build(kind, SAMPLE).parameters())
    except Exception:
        return True
