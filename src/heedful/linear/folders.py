"""How a linear model is known by its name and its folder, without importing what fits and applies it."""

from __future__ import annotations

from pathlib import Path

from heedful.options.model_names import LINEAR_MODELS

FACTS, WEIGHTS = "linear.json", "model.safetensors"
WORDS = "words"
"""The folder, beside a network's weights, of a model of words whose logits are added to the network's."""


def is_linear(model: str) -> bool:
    """Whether a name is that of a linear model, whatever the current folder has; ./tfidf is a folder."""
    return model in LINEAR_MODELS


def holds_linear(folder: Path) -> bool:
    return (folder / FACTS).is_file()
