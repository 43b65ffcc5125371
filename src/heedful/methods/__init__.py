"""What a step may change: full, head, prompt, prefix, lora, bitfit."""

from heedful.methods.adapters import read_adapter, write_adapter
from heedful.methods.base import Method, head_names, room
from heedful.methods.peft import why_not_peft
from heedful.methods.registry import METHODS, find, make, options

__all__ = [
    "METHODS",
    "Method",
    "find",
    "head_names",
    "make",
    "options",
    "read_adapter",
    "room",
    "why_not_peft",
    "write_adapter",
]
