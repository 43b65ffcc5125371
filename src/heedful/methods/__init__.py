"""What a step may change: full, head, top-layers, prompt, prefix, lora, bitfit, contrastive."""

from typing import TYPE_CHECKING

from heedful.methods.registry import METHODS, make, options
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.methods.adapters import read_adapter, write_adapter
    from heedful.methods.base import Method, head_names, measure_room
    from heedful.methods.contrastive import Contrastive
    from heedful.methods.peft import why_not_peft
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "heedful.methods.adapters": "read_adapter write_adapter",
            "heedful.methods.base": "Method head_names measure_room",
            "heedful.methods.contrastive": "Contrastive",
            "heedful.methods.peft": "why_not_peft",
        },
    )

__all__ = [
    "METHODS",
    "Contrastive",
    "Method",
    "head_names",
    "make",
    "measure_room",
    "options",
    "read_adapter",
    "why_not_peft",
    "write_adapter",
]  # fmt: skip
