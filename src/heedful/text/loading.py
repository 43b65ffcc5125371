"""Load the tokenizer that a model ships, in any of the usual forms."""

from __future__ import annotations

from pathlib import Path

import tokenizers

from heedful.text.places import TOKENIZER_FILES, find_folder
from heedful.text.tokenizer import Tokenizer


def load(name: str | Path) -> Tokenizer:
    """Load a tokenizer by folder, file or model name."""
    folder = find_folder(str(name), TOKENIZER_FILES)
    import json

    named = json.loads((folder / "tokenizer_config.json").read_text())
    roles = {
        r: named[f"{r}_token"]
        for r in ("pad", "unk", "bos", "eos", "cls", "sep", "mask")
        if f"{r}_token" in named
    }
    return Tokenizer(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), roles, named)
