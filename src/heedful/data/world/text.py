"""Small helps for writing prose."""

from __future__ import annotations

from collections.abc import Sequence


def split_words(text: str) -> tuple[str, ...]:
    """Split at spaces."""
    return tuple(text.split())


def split_phrases(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


def capitalize(text: str) -> str:
    """Let a text begin with a capital and leave the rest as it is."""
    return text[0].upper() + text[1:]


def join_as_list(items: Sequence[str]) -> str:
    """Join items as prose does."""
    return f"{', '.join(items[:-1])} and {items[-1]}"
