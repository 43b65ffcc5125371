"""Every mechanism of the registry, with the options that change what it does; inputs for the contracts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from heedful.attention import MECHANISMS, Mask, Mechanism, make
from heedful.contracts.claims import CPU

HEADS, WIDTH, MAX_LEN = 2, 4, 48
SIZES: dict[str, Any] = {"n_heads": HEADS, "d_head": WIDTH, "max_len": MAX_LEN}


@dataclass(frozen=True)
class Case:
    """A mechanism and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{k}={v}" for k, v in self.options.items() if k != "unsafe")])

    @property
    def kind(self) -> type[Mechanism]:
        return MECHANISMS[self.name]

    def build(self, dtype: torch.dtype = torch.float64, **more: Any) -> Mechanism:
        """Build the mechanism, with the same parameters every time."""
        torch.manual_seed(5)
        return make(self.name, **SIZES, **{**self.options, **more}).to(dtype)


BIRD = {"block": 3, "n_global": 1, "n_random": 1}
CASES = [
    Case("softmax"),
    Case("argmax"),
    Case("argmax", {"straight_through": True}),
    Case("additive"),
    Case("additive", {"d_hidden": 7}),
    Case("linformer", {"rank": 5}),
    Case("linformer", {"rank": 5, "share": "nothing"}),
    Case("linformer", {"rank": 5, "share": "all"}),
    Case("bigbird", {**BIRD, "window": 1}),
    Case("bigbird", {**BIRD, "window": 3, "n_random": 2}),
    Case("bigbird", {"block": 4, "window": 3, "n_global": 0, "n_random": 0}),
    Case("performer", {"features": 32}),
    Case("performer", {"features": 32, "kind": "hyperbolic"}),
    Case("performer", {"features": 32, "kind": "trigonometric"}),
    Case("performer", {"features": 24, "orthogonal": False}),
    Case("synthesizer"),
    Case("synthesizer", {"d_hidden": 3}),
    Case("zero_after", {"unsafe": True}),
    Case("zero_after", {"unsafe": True, "renormalize": True}),
    Case("zero_scores", {"unsafe": True}),
]


def cases(test: Callable[[Case], bool] = lambda case: True) -> list[Case]:
    """The cases that a claim is about."""
    return [case for case in CASES if test(case)]


def able(*capabilities: str, safe: bool = False) -> list[Case]:
    """The cases whose class says it can do all of this."""
    return cases(
        lambda case: all(getattr(case.kind, c) for c in capabilities) and not (safe and case.kind.unsafe)
    )


def inputs(
    length: int = 13,
    keys: int | None = None,
    batch: int = 2,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    grad: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of moderate size: [b, h, t, d], [b, h, s, d], [b, h, s, d]."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (length, keys or length, keys or length)
    drawn = [torch.randn(batch, HEADS, n, WIDTH, generator=generator, dtype=dtype) for n in sizes]
    return tuple(x.requires_grad_(grad) for x in drawn)  # type: ignore[return-value]


def lengths_mask(lengths: list[int], n: int, side: str = "right") -> Tensor:
    """True at the real keys [b, n] of rows with these lengths."""
    place = torch.arange(n)
    if side == "left":
        place = place.flip(0)
    return place < torch.tensor(lengths)[:, None]


def segments_of(lengths: list[int], batch: int = 1) -> Tensor:
    """Document numbers [b, n] of documents with these lengths, one after another."""
    return torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))[None].expand(batch, -1)


def masks(case: Case) -> dict[str, Mask]:
    """Masks of 13 text keys (and 2 of prefix) that this mechanism takes."""
    keys = lengths_mask([9, 13], 13)
    left = lengths_mask([9, 13], 13, "left")
    documents = segments_of([4, 1, 8], 2)
    every = {
        "plain": Mask(),
        "padded": Mask(keys=keys),
        "padded-left": Mask(keys=left),
        "documents": Mask(segments=documents),
        "prefix": Mask(prefix=2),
        "causal": Mask(causal=True),
        "causal-padded": Mask(causal=True, keys=keys),
        "causal-padded-left": Mask(causal=True, keys=left),
        "causal-documents-padded": Mask(causal=True, segments=documents, keys=keys),
        "causal-prefix": Mask(causal=True, prefix=2, keys=keys),
    }
    kind = case.kind
    return {
        name: mask
        for name, mask in every.items()
        if (kind.causal or not mask.causal)
        and (kind.segments or mask.segments is None)
        and (kind.prefix or not mask.prefix)
    }


def close(a: Tensor, b: Tensor) -> None:
    """Refuse a difference larger than rounding makes."""
    CPU.require_close(a, b, "more than rounding")


def gradient(x: Tensor) -> Tensor:
    """What reached x; a mechanism that never looks at its keys gives them none."""
    return torch.zeros_like(x) if x.grad is None else x.grad


def real_rows(out: Tensor, keys: Tensor) -> Tensor:
    """The rows of real queries; what padding attends to has no meaning."""
    return out.transpose(1, 2)[keys]
