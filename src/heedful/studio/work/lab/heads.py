"""The topic heads, played with: what each head of a model attends to in a text, and what it is worth."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import UserError
from heedful.lab.head_maps import mean_weights
from heedful.studio.work.lab.play import find, write_command
from heedful.studio.work.lab.settings import Settings

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore

TEXT = "The cat sat on the mat because it was tired."


def play(settings: Settings, models: ModelStore, report: Any) -> dict[str, Any]:
    text, name = settings.text("text", TEXT), settings.text("model", "minilm")
    folder = models.find(name)
    report(-1.0, "reading the text, and again without each head")
    model = name if name == "minilm" else str(folder)
    try:
        shown = find_once(text, model, newest(folder))
    except UserError as error:
        raise UserError(str(error).replace(model, name)) from None
    said = shown["finding"]
    lines = [line.replace(model, name) for line in said["construction"]]
    command = write_command("heads", (text,), {"model": name})  # as in the studio's folder
    return {**shown, "finding": {**said, "construction": lines, "command": command}}


@lru_cache(maxsize=4)
def find_once(text: str, model: str, version: int) -> dict[str, Any]:
    """Return what is shown of a text, which takes some seconds; `version` is that of the model's files."""
    finding, said = find("heads", (text,), model=model)
    results = finding.results
    return {
        "finding": said,
        "tokens": results.tokens,
        "weights": np.round(results.weights, 4),
        "entropy": results.entropy,
        "distance": results.distance,
        "change": results.change,
        "cosine": results.cosine,
        "means": [[mean_weights(head) for head in layer] for layer in results.weights],
    }


def newest(folder: Path) -> int:
    return max((file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()), default=0)
