"""Which parameter of a student's module is which: query, key, value, output, feed-forward and norms.

Names decide between query, key and value; everything else is told by shapes. So the same numbers can be put
into modules with other names, packed or not, and their outputs can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from heedful.course.student_file import simplify

QKV = {
    "q": re.compile(r"(w|to|c|lin|linear|proj|fc)?(q|query|queries)(proj|linear|net|layer|transform|w|s)?"),
    "k": re.compile(r"(w|to|c|lin|linear|proj|fc)?(k|key|keys)(proj|linear|net|layer|transform|w|s)?"),
    "v": re.compile(
        r"(w|to|c|lin|linear|proj|fc)?(v|val|value|values)(proj|linear|net|layer|transform|w|s)?"
    ),
}
ORDERS = ("qkv", "qvk", "kqv", "kvq", "vqk", "vkq")
PACKINGS = tuple(f"{order} {split}" for split in ("parts", "per head") for order in ORDERS)
"""How three projections lie in one matrix: one after another, or together for each head."""


@dataclass
class Slot:
    """A parameter of a module, or some rows of it, that plays a role."""

    parameter: nn.Parameter
    transposed: bool = False
    """The matrix is [in, out]: x @ W."""
    rows: slice = field(default_factory=lambda: slice(None))
    """The rows of the role's matrix that this parameter has (one head of several modules)."""

    def fill(self, value: Tensor) -> None:
        part = value[self.rows]
        self.parameter.data.copy_((part.T if self.transposed else part).reshape(self.parameter.shape))


@dataclass
class Roles:
    """The slots of each role, `q_weight`, `q_bias`, ...; `packed_weight` has query, key and value."""

    slots: dict[str, list[Slot]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def add(self, role: str, slot: Slot) -> None:
        self.slots.setdefault(role, []).append(slot)

    @property
    def packed(self) -> bool:
        return "packed_weight" in self.slots

    def names(self) -> list[str]:
        """Return the roles; those of packed matrices by their parts."""
        names: list[str] = []
        for role in self.slots:
            kind = role.partition("_")[2]
            names += [f"{part}_{kind}" for part in "qkv"] if role.startswith("packed") else [role]
        return names

    def fill(self, values: Mapping[str, Tensor], n_heads: int, packing: str = PACKINGS[0]) -> None:
        """Copy values into the module."""
        for role, slots in self.slots.items():
            kind = role.partition("_")[2]
            if role.startswith("packed"):
                value = pack([values[f"{part}_{kind}"] for part in "qkv"], n_heads, packing)
            else:
                value = values[role]
            for slot in slots:
                slot.fill(value)


def pack(parts: list[Tensor], n_heads: int, packing: str) -> Tensor:
    """Return query, key and value in one matrix or vector."""
    order, _, split = packing.partition(" ")
    parts = [parts["qkv".index(letter)] for letter in order]
    if split == "parts":
        return torch.cat(parts)
    heads = [part.reshape(n_heads, -1, *part.shape[1:]) for part in parts]
    return torch.cat(heads, dim=1).reshape(-1, *parts[0].shape[1:])


def find_roles(module: nn.Module, width: int, n_heads: int, inner: int | None = None) -> Roles:
    """Find the roles of a module's parameters."""
    roles, head_counts = Roles(), dict.fromkeys("qkv", 0)
    norms: dict[str, str] = {}
    last = ""
    for name, parameter in module.named_parameters():
        path = name.split(".")
        raw = path[-1] not in ("weight", "bias")
        kind = "bias" if path[-1].endswith("bias") else "weight"
        owner = path if raw else path[:-1]
        parent = module.get_submodule(".".join(owner)) if not raw else None
        shape = tuple(parameter.shape)
        transposed = raw or (parent is not None and not isinstance(parent, nn.Linear))
        transposed = transposed and shape != (3 * width, width)
        role = name_role(owner)
        size = parameter.shape[0] if kind == "bias" else (parameter.numel() // width)
        if is_norm(owner, parent):
            number = norms.setdefault(".".join(owner), f"norm{len(norms) + 1}")
            roles.add(f"{number}_{kind}", Slot(parameter))
        elif role and size == width:
            roles.add(f"{role}_{kind}", Slot(parameter, transposed and kind == "weight"))
        elif role and size * n_heads == width:
            begin = head_counts[role] if kind == "weight" else head_counts[role] - size
            roles.add(
                f"{role}_{kind}", Slot(parameter, transposed and kind == "weight", slice(begin, begin + size))
            )
            head_counts[role] += size if kind == "weight" else 0
        elif size == 3 * width and role == "" and inner != 3 * width:
            roles.add(f"packed_{kind}", Slot(parameter, transposed and kind == "weight"))
        elif kind == "weight" and inner is not None and sorted(shape) == sorted((inner, width)):
            out = shape[1] if transposed else shape[0]
            roles.add("ff_in_weight" if out == inner else "ff_out_weight", Slot(parameter, transposed))
            last = "ff_in" if out == inner else "ff_out"
        elif kind == "bias" and inner is not None and shape == (inner,):
            roles.add("ff_in_bias", Slot(parameter))
        elif kind == "weight" and shape == (width, width) and "o_weight" not in roles.slots:
            roles.add("o_weight", Slot(parameter, transposed))
            last = "o"
        elif kind == "bias" and shape == (width,) and last in ("o", "ff_out"):
            roles.add(f"{last}_bias", Slot(parameter))
        else:
            roles.unknown.append(name)
    return roles


def name_role(owner: list[str]) -> str:
    """Return q, k or v if the last name that is no number says so, else nothing."""
    words = [word for word in owner if not word.isdigit()]
    last = simplify(words[-1]) if words else ""
    return next((role for role, pattern in QKV.items() if pattern.fullmatch(last)), "")


def is_norm(owner: list[str], parent: nn.Module | None) -> bool:
    last = simplify(owner[-1]) if owner else ""
    return isinstance(parent, nn.LayerNorm) or "norm" in last or bool(re.fullmatch(r"ln\d*f?", last))
