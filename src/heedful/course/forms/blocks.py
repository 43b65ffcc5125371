"""Transformer blocks as students write them, with or without a mask."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.contracts.suites.transformer import draw_block
from heedful.course.forms.conventions import CONVENTIONS, choose
from heedful.course.forms.model_roles import has_own_positions
from heedful.course.forms.roles import PACKINGS, Roles, find_roles
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, pick_parameter

NAMES = [
    "Block",
    "TransformerBlock",
    "DecoderBlock",
    "GPTBlock",
    "BertLayer",
    "BertBlock",
    "EncoderLayer",
    "EncoderBlock",
    "TransformerEncoderLayer",
    "TransformerEncoderBlock",
    "TransformerLayer",
    "DecoderLayer",
    "Layer",
]
MASK_NAMES = ("mask", "attention_mask", "attn_mask", "padding_mask", "key_padding_mask", "src_mask")
SHAPES = ("[b, t]", "[b, 1, 1, t]", "[b, 1, t]", "[b, t, t]", "[b, 1, t, t]", "[t, t]")
Kind = tuple[str, str]


def spread(pattern: Tensor, shape: str) -> Tensor:
    """Return a pattern [b, t, t] in the shape that a function takes; [b, t] has the first row of each."""
    if shape == "[b, t]":
        return pattern[:, -1]
    if shape == "[t, t]":
        return pattern[0]
    rows = pattern[:, -1:] if shape in ("[b, 1, 1, t]", "[b, 1, t]") else pattern
    return rows[:, None] if "b, 1, 1" in shape or "b, 1, t, t" in shape else rows


class BlockForm:
    """How to build and call one student's block."""

    def __init__(self, kind: type[nn.Module], causal: bool) -> None:
        self.kind, self.causal = kind, causal
        self.names = parameters_of(kind)
        self.mask_name = pick_parameter(self.names[1:], *MASK_NAMES)
        self.build_block = cache(self.build_once)
        self.mask_kind: Kind | None = None
        if self.mask_name is not None:
            candidates = [(shape, name) for shape in SHAPES for name in CONVENTIONS]
            self.mask_kind = choose(candidates, self.score_mask, None)

    def build_once(self, width: int, heads: int) -> tuple[nn.Module, Roles]:
        """Build a block in evaluation mode, and find the roles of its parameters."""
        torch.manual_seed(0)
        sizes = {"width": width, "heads": heads, "head": width // heads, "length": 64, "inner": 4 * width,
                 "dropout": 0.1, "vocabulary": 29, "layers": 2}  # fmt: skip
        module = build(self.kind, sizes)
        if not isinstance(module, nn.Module):
            raise NotApplicable(f"{self.kind.__name__} is not an nn.Module")
        return module.eval(), find_roles(module, width, heads, 4 * width)

    def score_mask(self, kind: Kind) -> float:
        """Return how much a hidden token changes an output that must not see it, under a convention."""
        module, _ = self.build_block(12, 3)
        x = torch.randn(2, 4, 12, generator=torch.Generator().manual_seed(0))
        changed = x.clone()
        changed[:, 3, ::2] += 3.0
        pattern = torch.ones(4, 4, dtype=torch.bool).tril().expand(2, 4, 4).clone()
        if not self.causal:
            pattern = torch.tensor([1, 1, 1, 0]).bool().expand(2, 4, 4)
        seen = x.clone()
        seen[:, 1, ::2] += 3.0

        def call(value: Tensor) -> Tensor:
            torch.manual_seed(0)  # dropout that is left on is no reason for another convention
            return self.call_block(module, value, pattern, kind)

        with torch.no_grad():
            before = call(x)
            leak = float((before - call(changed))[:, :3].abs().max())
            moved = float((before - call(seen))[:, 2].abs().max())
        return leak if math.isfinite(leak) and moved > 1e-6 else math.inf

    def call_block(self, module: nn.Module, x: Tensor, pattern: Tensor, kind: Kind | None) -> Tensor:
        arguments: dict[str, Any] = {}
        if kind is not None:
            shape, convention = kind
            arguments[self.mask_name or ""] = CONVENTIONS[convention](spread(pattern, shape))
            if (value := arguments[self.mask_name or ""]).is_floating_point():
                arguments[self.mask_name or ""] = value.to(x.dtype)
        returned = module(x, **arguments)
        if isinstance(returned, tuple | list):
            returned = next(
                (r for r in returned if isinstance(r, Tensor) and r.shape == x.shape), returned[0]
            )
        if not isinstance(returned, Tensor):
            raise TypeError(f"it returns {type(returned).__name__}, not a tensor")
        return returned

    def block(
        self,
        x: Tensor,
        n_heads: int,
        mask: Tensor | None = None,
        parameters: Mapping[str, Tensor] | None = None,
        packing: str = PACKINGS[0],
        training: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation `block`."""
        module, roles = self.build_block(x.shape[-1], n_heads)
        if parameters and set(roles.names()) <= set(parameters):
            roles.fill(parameters, n_heads, packing)
        if mask is not None and self.mask_kind is None and not bool(mask.all()):
            raise NotApplicable("it takes no mask")
        b, t = x.shape[:2]
        pattern = torch.ones(t, t, dtype=torch.bool).expand(b, t, t).clone()
        pattern = pattern.tril() if self.causal else pattern
        pattern = pattern if mask is None else pattern & mask[:, None, :]
        module.train(training)
        module.zero_grad()
        out = self.call_block(module, x, pattern, self.mask_kind)
        module.eval()
        return {"out": out}

    def facts(self) -> dict[str, Any]:
        """Return what was understood: the roles that can be filled, whether they are packed."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "roles": [], "packings": [],
                                 "masks": self.mask_kind is not None}  # fmt: skip
        try:
            module, roles = self.build_block(12, 3)
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"}
        known = set(roles.names()) <= set(draw_block())
        if known and not roles.unknown and not has_own_positions(module):
            facts |= {"roles": roles.names(), "packings": list(PACKINGS) if roles.packed else []}
        return facts


def find_block(file: StudentFile, causal: bool) -> dict[str, Operation]:
    """Return the operation `block` if the file has a class for it."""
    kind = file.find(NAMES, kind="class")
    if kind is None or not issubclass(kind, nn.Module) or not parameters_of(kind):
        return {}
    form = BlockForm(kind, causal)
    return {"block": Operation(form.block, form.facts())}
