"""Blocks, embeddings, positions and heads; `Encoder`, `Decoder`, `EncoderDecoder`; presets.

`load` is offered here because people look for it here; it lives in `heedful.checkpoints`, a layer above.
"""

from typing import TYPE_CHECKING

from heedful.models.config import TransformerConfig
from heedful.models.presets import PRESETS
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.checkpoints import load
    from heedful.models.blocks import Cache
    from heedful.models.bodies import Decoder, Encoder, EncoderDecoder
    from heedful.models.heads import HEADS, Classifier, LanguageModel, Model, build
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "heedful.models.blocks": "Cache",
            "heedful.models.bodies": "Decoder Encoder EncoderDecoder",
            "heedful.models.heads": "HEADS Classifier LanguageModel Model build",
            "heedful.checkpoints": "load",
        },
    )

__all__ = [
    "HEADS", "PRESETS", "Cache", "Classifier", "Decoder", "Encoder", "EncoderDecoder", "LanguageModel",
    "Model", "TransformerConfig", "build", "load",
]  # fmt: skip
