"""The assignments that `heedful course new` writes: a folder each, with an annotated solution."""

from __future__ import annotations

from pathlib import Path

from heedful.errors import unknown

ABOUT = {
    "attention": "attention by hand, with questions whose answers are tested",
    "classifier": "a BERT classifier, masking, and both losses on one encoder",
    "birthplaces": "span corruption, a schedule, and what pretraining has to beat",
    "variants": "a GPT, additive attention, and perplexity",
    "finetuning": "LoRA and adapters, and an honest search",
}
"""The assignments in the order of a course."""


def find_source(name: str) -> Path:
    """Return the folder of an assignment's sources."""
    if name not in ABOUT:
        raise unknown("assignment", name, ABOUT)
    return Path(__file__).parent / name
