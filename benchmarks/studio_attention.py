"""Processor time per change of the page Attention: MiniLM, and a random model of BERT base's size.

    python -m benchmarks.studio_attention

A change is a temperature that was not asked for before: the whole text is read again, with the weights of all
heads, their small maps, the roll-out and one head in full, as the page gets them. "another head" shows
another head of the same reading, and "heads ranked" is the answer without each head in turn.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

LENGTHS = (128, 512)
CHANGES = 5
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "ran",
    "away",
    "because",
    "it",
    "was",
    "tired",
    "of",
    "him",
]


def measure_changes() -> list[dict[str, Any]]:
    """Return rows of `what` and `seconds` of processor time."""
    import torch

    from heedful.models import PRESETS, build
    from heedful.studio.folder import StudioFolder
    from heedful.studio.model_store import ModelStore, Network

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        models = ModelStore(StudioFolder.open(Path(folder)))
        minilm = models.network("minilm")
        torch.manual_seed(0)
        config = PRESETS["bert-tiny"].config.replace(
            vocab_size=minilm.model.config.vocab_size, d_model=768, n_layers=12, n_heads=12, d_head=64,
            d_ff=3072, max_len=512,
        )  # fmt: skip
        base = Network(build(config).eval(), minilm.tokenizer, (), 512)
        for title, network in (("minilm, 6 x 12 heads", minilm), ("random, 12 x 12 heads", base)):
            for length in LENGTHS:
                store = OneModel(models, network)
                rows += measure_length(store, f"{title}, {length} tokens", length, ranked=network is minilm)
    return rows


class OneModel:
    """A store whose only network is given."""

    def __init__(self, models: Any, network: Any) -> None:
        self.models, self.given = models, network
        models.held.clear()

    def network(self, name: str) -> Any:
        return self.given

    def get(self, kind: str, name: str, load: Any) -> Any:
        return self.models.get(kind, name, load)


def measure_length(store: Any, what: str, length: int, *, ranked: bool) -> list[dict[str, Any]]:
    """Measure the changes of a text of this many tokens."""
    from heedful.studio.work import attention

    params = {"model": "minilm", "text": " ".join(WORDS[i % len(WORDS)] for i in range(length - 2))}

    def look(**more: Any) -> int:
        content = attention.look({**params, **more}, store, ignore)
        size = struct.unpack("<I", content[:4])[0]
        return len(json.loads(content[4 : 4 + size])["rows"])

    assert look() == length
    temperatures = [1 + turn / 10 for turn in range(1, CHANGES + 1)]
    changed = [use(partial(look, temperature=one)) for one in temperatures]
    shown = {"temperature": temperatures[-1], "only": "head"}
    others = [use(partial(look, head=str(head), **shown)) for head in (2, 3, 4)]
    rows = [
        {"what": f"{what}: a change", "seconds": median(changed)},
        {"what": f"{what}: another head", "seconds": median(others)},
    ]
    if ranked:
        spent = use(partial(attention.find_effects, params, store, ignore))
        rows.append({"what": f"{what}: heads ranked", "seconds": spent})
    return rows


def use(work: Callable[[], Any]) -> float:
    """Return the processor time of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def ignore(share: float, message: str) -> None:
    """Take progress."""


def main() -> None:
    for row in measure_changes():
        print(f"{row['seconds']:8.3f} s  {row['what']}", flush=True)


if __name__ == "__main__":
    main()
