"""Submissions that share code, found by fingerprints of their tokens: a hint for a person, never a verdict.

Names that a student chooses, numbers, strings, comments and layout do not count, so that renaming hides
nothing. Of the hashes of all runs of `GRAM` tokens the least of each window is kept ("winnowing", Schleimer,
Wilkerson and Aiken 2003): any run of `GRAM + WINDOW - 1` tokens that two files share is found. What is in the
starter, or in many submissions, is no sign of anything and is taken out.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import keyword
import token
import tokenize
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

GRAM = 12
WINDOW = 6
LEAST_SHARED = 8
"""Fewer shared fingerprints than this, about 30 tokens or four lines, are not listed."""
COMMON_SHARE = 0.25
"""Fingerprints in more than this share of the class (and in more than `COMMON_LEAST` files) are taken out."""
COMMON_LEAST = 3
LAYOUT = frozenset({
    token.COMMENT, token.NL, token.NEWLINE, token.INDENT, token.DEDENT, token.ENCODING, token.ENDMARKER,
})  # fmt: skip
FIXED_NAMES = frozenset(dir(builtins)) | frozenset(keyword.kwlist)
STATEMENT_BEGINS = frozenset({token.NEWLINE, token.INDENT, token.DEDENT, token.ENCODING, token.NL})


@dataclass(frozen=True)
class Token:
    text: str
    line: int


@dataclass(frozen=True)
class Pair:
    """Two submissions that share code."""

    first: str
    second: str
    share: float
    """Shared fingerprints over those of the one that has fewer."""
    shared: int
    first_lines: tuple[int, ...]
    """Lines of the first with shared code, counted from 1."""
    second_lines: tuple[int, ...]


def normalize(source: str) -> list[Token]:
    """Return the tokens of Python code without what is easily changed; of broken code, the beginning."""
    tokens: list[Token] = []
    before = token.ENCODING
    after_dot = after_self = False
    try:
        for item in tokenize.generate_tokens(io.StringIO(source).readline):
            kind, text = item.type, item.string
            if kind not in LAYOUT and not (kind == token.STRING and before in STATEMENT_BEGINS):
                tokens.append(Token(normalize_token(kind, text, after_dot and not after_self), item.start[0]))
                after_self = text == "self" or (text == "." and after_self)
                after_dot = text == "."
            before = kind if kind != token.COMMENT else before
    except (tokenize.TokenError, SyntaxError):
        pass
    return tokens


def normalize_token(kind: int, text: str, is_library_name: bool) -> str:
    """Keep keywords, operators, builtins and the library's names (`torch.softmax`); all else is its kind."""
    if kind == token.NAME:
        return text if is_library_name or text in FIXED_NAMES else "name"
    if kind == token.NUMBER:
        return "number"
    return "string" if kind == token.STRING else text


def fingerprints(source: str) -> dict[int, list[int]]:
    """Return the fingerprints of Python code, each with the lines that it covers."""
    tokens = normalize(source)
    hashes = [hash_gram(tokens[i : i + GRAM]) for i in range(len(tokens) - GRAM + 1)]
    lines: defaultdict[int, set[int]] = defaultdict(set)
    for start in range(max(len(hashes) - WINDOW + 1, min(len(hashes), 1))):
        window = hashes[start : start + WINDOW]
        smallest = min(range(len(window)), key=lambda i: (window[i], -i))
        where = start + smallest
        lines[window[smallest]].update(item.line for item in tokens[where : where + GRAM])
    return {value: sorted(numbers) for value, numbers in lines.items()}


def hash_gram(gram: Sequence[Token]) -> int:
    text = "\x1f".join(item.text for item in gram)
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest())


def find_similar(sources: Mapping[str, str], starter: str = "", least_share: float = 0.4) -> list[Pair]:
    """Return the pairs of submissions that share at least `least_share` of their own code, most alike first.

    Parameters
    ----------
    sources
        The code of each submission.
    starter
        The code that everybody was given.
    least_share
        Pairs below this share are not listed.
    """
    given = fingerprints(starter)
    prints = {name: fingerprints(source) for name, source in sources.items()}
    spread = Counter(value for of_one in prints.values() for value in of_one)
    most = max(COMMON_LEAST, COMMON_SHARE * len(prints))
    own = {
        name: {
            value: lines for value, lines in of_one.items() if value not in given and spread[value] <= most
        }
        for name, of_one in prints.items()
    }
    pairs = []
    for first, second in combinations(sorted(own), 2):
        shared = own[first].keys() & own[second].keys()
        if len(shared) < LEAST_SHARED:
            continue
        share = len(shared) / min(len(own[first]), len(own[second]))
        if share >= least_share:
            pairs.append(
                Pair(
                    first,
                    second,
                    share,
                    len(shared),
                    tuple(sorted({line for value in shared for line in own[first][value]})),
                    tuple(sorted({line for value in shared for line in own[second][value]})),
                )
            )
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.shared, pair.first, pair.second))
