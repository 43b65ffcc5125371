"""Models whose weights a file is about to replace: only those that it lacks are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

DRAWS = {"normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_"}
"""Functions of torch that fill a tensor with random numbers."""


class DeferredWeights(TorchFunctionMode):
    """Inside the `with`, weights stay empty instead of being drawn, until something is copied into them.

    `draw_missing` then draws those that nothing was copied into. Parts of tensors are drawn at once.

        with DeferredWeights() as weights:
            model = build(config)
            set_weights(model, tensors)
        weights.draw_missing()
    """

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[tuple[Tensor, Callable[..., Any], Sequence[Any], Mapping[str, Any]]] = []
        self.filled: set[int] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in DRAWS:
            tensor = args[0] if args else kwargs["tensor"]
            if tensor._base is None:
                self.draws.append((tensor, func, args, kwargs))
                return tensor
        elif name == "copy_":
            self.filled.add(id(args[0]))
        return func(*args, **kwargs)

    def draw_missing(self) -> None:
        with torch.no_grad():
            for tensor, draw, args, kwargs in self.draws:
                if id(tensor) not in self.filled:
                    draw(*args, **kwargs)
        self.draws.clear()
