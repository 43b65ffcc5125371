"""Tokens as pages show them: their spelling with visible spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.errors import shorten

if TYPE_CHECKING:
    from heedful.text import Tokenizer

LONGEST = 40
SPACE, NEW_LINE, TAB = "\N{OPEN BOX}", "\N{RETURN SYMBOL}", "\N{RIGHTWARDS ARROW TO BAR}"
SPELLINGS = {"Ġ": SPACE, "▁": SPACE, "Ċ": NEW_LINE, "ĉ": TAB}
"""How byte-level and sentencepiece vocabularies spell what cannot be seen."""
UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def show_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return tokens with visible spaces, line breaks and tabs, and with letters for their bytes."""
    return [
        shorten(show_piece(tokenizer, i, piece), LONGEST)
        for i, piece in zip(ids, tokenizer.pieces(ids), strict=True)
    ]


def show_piece(tokenizer: Tokenizer, token: int, piece: str) -> str:
    begins = piece[:1] in SPELLINGS
    if begins or not piece.isascii():  # spelled in bytes, perhaps
        text = tokenizer.decode([token], skip_special=False)
        if text.strip() and UNFINISHED not in text:
            lead = SPELLINGS.get(piece[:1], "") if begins or text[:1].isspace() else ""
            return lead + show_spaces(text.strip())
    return show_spaces("".join(SPELLINGS.get(c, c) for c in piece)) or "(nothing)"


def show_spaces(text: str) -> str:
    return text.replace(" ", SPACE).replace("\r", "").replace("\n", NEW_LINE).replace("\t", TAB)
