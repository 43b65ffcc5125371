"""Helper functions for writing prose."""

from __future__ import annotations

from collections.abc import Sequence


def split_words(text: str) -> tuple[str, ...]:
    """Split at spaces."""
    return tuple(text.split())


def split_phrases(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case and the rest unchanged."""
    return text[0].upper() + text[1:]


def join_as_list(items: Sequence[str]) -> str:
    """Join items with commas and "and"."""
    return f"{', '.join(items[:-1])} and {items[-1]}"
