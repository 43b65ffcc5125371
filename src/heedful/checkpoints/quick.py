"""Loading a model to use it: weights that the file has are not drawn first, a tenth of the time.

Training loads with `load`, after which torch's random stream is where it is when every weight is drawn,
so that what a run draws next has the same bits whatever the file holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.checkpoints.files import LEGACY_PATTERNS, read_model_json
from heedful.checkpoints.reader import OWN, load
from heedful.families import FAMILIES
from heedful.models import PRESETS, Model
from heedful.models.deferred import DeferredWeights
from heedful.text.model_folders import find_folder


def load_to_use(name: str | Path, head: str | None = None, **options: Any) -> Model:
    """Load a model by name as `load` does, ready to evaluate; only what the file lacks is drawn."""
    if is_hub_model(str(name)):
        return load(name, head, **options)
    with DeferredWeights() as weights:
        model = load(name, head, **options)
    weights.draw_missing()
    return model


def is_hub_model(name: str) -> bool:
    """Whether transformers builds the model, by its own rules for weights that a file lacks."""
    if name in PRESETS and not Path(name).is_dir():
        return False
    theirs = read_model_json(find_folder(name, LEGACY_PATTERNS, PRESETS) / "config.json")
    return theirs.get("model_type") not in (*FAMILIES, OWN) or "hub" in theirs
