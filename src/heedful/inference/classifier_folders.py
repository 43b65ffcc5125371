"""Classifiers that no run of heedful made: a `...ForSequenceClassification` in a folder or on the Hub."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.errors import UserError
from heedful.inference.devices import find_device
from heedful.inference.network_predictors import ClassifierPredictor
from heedful.models import Classifier
from heedful.paths import expand_path
from heedful.text import load as load_tokenizer
from heedful.text.model_folders import HUB_ID

MOST_TOKENS = 512
"""Where neither the model nor its tokenizer has a limit, as with relative positions."""


def names_classifier(path: str | Path) -> bool:
    """Whether a path is a folder in the form of the Hub, or no path but the id of a model there."""
    folder = expand_path(path)
    if folder.is_dir():
        return (folder / "config.json").is_file()
    name = str(path)
    if folder.exists() or HUB_ID.fullmatch(name) is None:
        return False
    models = os.environ.get("HEEDFUL_MODELS")
    if models and (expand_path(models) / name).is_dir():
        return True
    return "/" in name and not folder.parent.exists()  # runs/reviws is a path with a mistake


def load_classifier(name: str, device: str) -> ClassifierPredictor:
    """Load a classifier with its own head, tokenizer and names of labels."""
    from heedful import checkpoints

    model = checkpoints.load(name, head="classify")
    assert isinstance(model, Classifier)
    if any(part.startswith("head.") for part in model.report.new):
        raise UserError(
            f"{name}: its weights have no classification head, so that its labels would be drawn at random; "
            f"heedful adapt {name} TASK trains one"
        )
    tokenizer = load_tokenizer(name)
    stated = tokenizer.settings.get("model_max_length")
    limits = [model.body.room if model.config.position != "relative" else MOST_TOKENS]
    if isinstance(stated, int):  # transformers writes 1e30 where there is no limit
        limits.append(stated)
    return ClassifierPredictor(
        model.eval().to(find_device(device)), tokenizer, min(limits), list(model.labels)
    )
