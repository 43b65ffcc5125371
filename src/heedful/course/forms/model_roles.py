"""Which parameter of a student's whole model is which: embeddings, blocks, the last norm and heads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from heedful.contracts.suites.transformer import draw_model
from heedful.course.forms.roles import PACKINGS, Roles, Slot, find_roles, is_norm

OWN_POSITIONS = re.compile(r"rot|rope|alibi|freqs|relative", re.IGNORECASE)
"""Names of parts that bring positions into attention itself."""


@dataclass
class ModelRoles:
    """The parameters of a model by their roles: those of blocks, and the slots of all others."""

    blocks: list[Roles] = field(default_factory=list)
    slots: dict[str, Slot] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    @property
    def packed(self) -> bool:
        return any(block.packed for block in self.blocks)

    def names(self) -> list[str]:
        """Return the names of the roles, `layer0.q_weight` for those of a block."""
        names = [f"layer{i}.{name}" for i, block in enumerate(self.blocks) for name in block.names()]
        return names + list(self.slots)

    def fill(self, values: Mapping[str, Tensor], n_heads: int, packing: str = PACKINGS[0]) -> None:
        """Copy values into the model."""
        for i, block in enumerate(self.blocks):
            prefix = f"layer{i}."
            part = {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}
            block.fill(part, n_heads, packing)
        for name, slot in self.slots.items():
            slot.fill(values[name])


def find_blocks(module: nn.Module, sizes: Mapping[str, int]) -> list[nn.Module]:
    """Return the blocks of a model, each once: children of one container that all have attention."""
    for container in module.modules():
        children = list(container.children())
        if isinstance(container, nn.ModuleList | nn.Sequential) and children:
            found = [find_roles(child, sizes["width"], sizes["heads"], sizes["inner"]) for child in children]
            if all({"q_weight", "ff_in_weight"} <= set(roles.names()) for roles in found):
                return children
    return []


def has_own_positions(module: nn.Module) -> bool:
    """Whether positions are brought in by something that is no table: rotary, relative, ALiBi."""
    names = [type(m).__name__ for m in module.modules()] + [name for name, _ in module.named_buffers()]
    return any(OWN_POSITIONS.search(name) for name in names)


def list_tensors(module: nn.Module, blocks: list[nn.Module]) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield the parameters outside the blocks, and buffers; and whether the blocks were before it."""
    inside = {id(p) for block in blocks for p in block.parameters()}
    passed = False
    for name, parameter in module.named_parameters():
        if id(parameter) in inside:
            passed = True
        else:
            yield name, parameter, passed
    inside_buffers = {id(b) for block in blocks for b in block.buffers()}
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point() and id(buffer) not in inside_buffers:
            yield name, buffer, False


def find_model_roles(module: nn.Module, sizes: Mapping[str, int]) -> ModelRoles:
    """Find the roles of a model's parameters by their shapes, places and kinds."""
    roles = ModelRoles()
    blocks = find_blocks(module, sizes)
    for block in blocks:
        roles.blocks.append(find_roles(block, sizes["width"], sizes["heads"], sizes["inner"]))
        roles.unknown += roles.blocks[-1].unknown
    last = ""
    for name, tensor, passed in list_tensors(module, blocks):
        role = name_outer_role(module, name, tensor, passed, sizes, last)
        if role is None or role in roles.slots:
            if isinstance(tensor, nn.Parameter):
                roles.unknown.append(name)
            continue
        parent = module.get_submodule(name.rpartition(".")[0])
        transposed = role.endswith("_weight") and tensor.dim() == 2 and not isinstance(parent, nn.Linear)
        square = tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]
        roles.slots[role] = Slot(cast(nn.Parameter, tensor), transposed and square)  # a buffer has data too
        last = role
    return roles


def name_outer_role(
    module: nn.Module, name: str, tensor: Tensor, passed: bool, sizes: Mapping[str, int], last: str
) -> str | None:
    """Return the role of a parameter outside the blocks; None if it is unknown."""
    width, vocabulary = sizes["width"], sizes["vocabulary"]
    path = name.split(".")
    parent = module.get_submodule(".".join(path[:-1]))
    shape = tuple(tensor.shape)
    kind = "bias" if path[-1].endswith("bias") else "weight"
    if is_norm(path[:-1], parent) and shape == (width,):
        where = "embed_norm" if not passed else "final_norm"
        where = "final_norm" if re.search(r"ln_?f|final|last", name) else where
        where = "head_norm" if last.startswith("transform") or last.startswith("head_norm") else where
        return f"{where}_{kind}"
    if shape == (vocabulary, width):
        return "head_weight" if isinstance(parent, nn.Linear) else "tokens"
    simple: dict[tuple[int, ...], str] = {
        (sizes["length"], width): "positions",
        (1, sizes["length"], width): "positions",
        (2, width): "types",
        (vocabulary,): "head_bias",
        (sizes["labels"], width): "class_weight",
        (sizes["labels"],): "class_bias",
    }
    if shape in simple:
        return simple[shape]
    if shape == (width, width):
        return "pool_weight" if "pooler" in name and "bert" in name else "transform_weight"
    if shape == (width,) and last in ("pool_weight", "transform_weight"):
        return last.replace("weight", "bias")
    return None


def is_complete(roles: ModelRoles, needed: tuple[str, ...] = ("tokens", "positions")) -> bool:
    """Whether outputs can be compared: nothing is unknown, and what is needed has parameters."""
    names = set(roles.names())
    return bool(roles.blocks) and not roles.unknown and set(needed) <= names <= set(draw_model())


def to_ids(ids: Tensor) -> Tensor:
    return torch.as_tensor(ids).long()
