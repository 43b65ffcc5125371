"""Names that data sets use: of their splits, in files, folders, Python and on the Hub."""

from __future__ import annotations

WORLD_FACTS = "world.json"
"""The file by which a generated world is known."""
SPLIT_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test",),
}


def find_split(name: str) -> str | None:
    """Return our name of the split that is called `name`; None if it is none of train, dev and test."""
    return next((split for split, names in SPLIT_NAMES.items() if name.lower() in names), None)
