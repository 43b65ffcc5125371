"""How byte-pair encoding put a text's pieces together, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Step:
    """One merge: the rule's place (0 was learned first), its two sides, and the pieces after it."""

    rule: int
    left: str
    right: str
    pieces: list[str]


@dataclass(frozen=True)
class Word:
    """A word's single symbols, and the merges in the order in which they were applied."""

    symbols: list[str]
    steps: list[Step]


def merge_words(tokenizer: Tokenizer, *texts: str) -> list[Word]:
    """Replay the merges of each different word of some texts, in their order.

    Of all rules that fit somewhere in the word, the one learned first is applied, at its leftmost place
    (Sennrich et al. 2016).
    """
    model = tokenizer.description["model"]
    sides = (merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"])
    rules = {(left, right): rule for rule, (left, right) in enumerate(sides)}
    prefix = model.get("continuing_subword_prefix") or ""
    suffix = model.get("end_of_word_suffix") or ""
    words: dict[tuple[str, ...], Word] = {}
    for pieces in chain.from_iterable(split_words(tokenizer, text) for text in texts):
        whole = model.get("ignore_merges", False) and len(pieces) == 1
        symbols = list(pieces) if whole else spell(pieces, prefix, suffix)
        words.setdefault(tuple(symbols), Word(symbols, replay(symbols, rules, prefix)))
    return list(words.values())


def split_words(tokenizer: Tokenizer, text: str) -> Iterator[list[str]]:
    """Yield the pieces of each word, without special tokens."""
    encoded = tokenizer.backend.encode(text, add_special_tokens=False)
    numbers = zip(encoded.ids, encoded.word_ids, strict=True)
    words = [None if i in tokenizer.special_ids else word for i, word in numbers]
    for word, group in groupby(zip(words, encoded.tokens, strict=True), key=lambda pair: pair[0]):
        if word is not None:
            yield [piece for _, piece in group]


def spell(pieces: list[str], prefix: str, suffix: str) -> list[str]:
    """Split pieces into the single symbols that the merges began with."""
    symbols: list[str] = []
    for at, piece in enumerate(pieces):
        if piece.startswith("<0x") and len(piece) == 6:  # a byte that is part of an unknown character
            symbols.append(piece)
            continue
        first, last = at == 0, at == len(pieces) - 1
        bare = piece if first or not prefix else piece.removeprefix(prefix)
        bare = bare.removesuffix(suffix) if last and suffix else bare
        for i, character in enumerate(bare):
            begins, ends = first and i == 0, last and i == len(bare) - 1
            symbols.append(("" if begins else prefix) + character + (suffix if ends else ""))
    return symbols


def replay(symbols: list[str], rules: dict[tuple[str, str], int], prefix: str) -> list[Step]:
    pieces, steps = list(symbols), list[Step]()
    while True:
        fits = [(rules[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in rules]
        if not fits:
            return steps
        rule, at = min(fits)
        left, right = pieces[at : at + 2]
        pieces = [*pieces[:at], left + right.removeprefix(prefix), *pieces[at + 2 :]]
        steps.append(Step(rule, left, right, pieces))


def byte_table() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary encodes (Radford et al. 2019).

    Printable Latin-1 characters encode themselves; the other bytes, in order, are the characters from 256 on.
    """
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


BYTES = byte_table()


def format_piece(tokenizer: Tokenizer, piece: str) -> str:
    """Format a piece for people: byte-level pieces as text, a space as ␣, broken characters in hex."""
    decoder = tokenizer.description["decoder"] or {}
    if decoder.get("type") == "ByteLevel" and all(character in BYTES for character in piece):
        piece = bytes(BYTES[character] for character in piece).decode("utf-8", "backslashreplace")
    return piece.replace(" ", "␣")
