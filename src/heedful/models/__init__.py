"""Blocks, embeddings, positions and heads; `Encoder`, `Decoder`, `EncoderDecoder`; presets.

`load` is offered here because people look for it here; it lives in `heedful.checkpoints`, a layer above.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from heedful.models.blocks import Cache
from heedful.models.bodies import Decoder, Encoder, EncoderDecoder
from heedful.models.config import TransformerConfig
from heedful.models.heads import HEADS, Classifier, LanguageModel, Model, build
from heedful.models.presets import PRESETS

if TYPE_CHECKING:
    from heedful.checkpoints import load

__all__ = [
    "HEADS",
    "PRESETS",
    "Cache",
    "Classifier",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "LanguageModel",
    "Model",
    "TransformerConfig",
    "build",
    "load",
]


def __getattr__(name: str) -> Any:
    """Offer `load` from the layer above, found when it is first asked for."""
    if name == "load":
        return import_module("heedful.checkpoints").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
