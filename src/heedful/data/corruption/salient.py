"""Salient spans: names, dates and numbers, which carry the facts of a text (Guu et al. 2020, section 3.4).

They are found by spelling rules alone. The paper uses a named-entity tagger; these rules need no list of
names or places, so they also work on an invented world, but they miss names in scripts without capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Ranges = list[tuple[int, int]]

MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b\.?(?:,? \d{{3,4}}\b)?"
    rf"|{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{3,4}}\b)?"
    rf"|{MONTH} \d{{3,4}}\b"
    r"|\d{4}-\d{2}-\d{2}\b)"
)
NUMBER = re.compile(r"(?<![\w.,])[-+]?\d+(?:[.,]\d+)*(?:st|nd|rd|th|s|%)?(?!\w)")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
SENTENCE_END = re.compile(r"[.!?:;]['\")\]]*\s+$|^\s*$|[\n\"“(]\s*$")
BETWEEN_NAMES = re.compile(r" |\. ")

# Words whose capital at the beginning of a sentence, or in a title, means nothing.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the this that these those i you he she it we they my your his her its our their who what which
        when where why how and or but nor so yet if as at by for from in into of off on onto out over to under
        up with after although because before during once since than though unless until while is are was were
        be been do does did has have had can could may might must shall should will would not no yes all any
        both each few many more most much some such there here then also only very just still even never
        always one two three born""",
    )
)
PARTICLES = frozenset(
    re.findall(r"\w+", "of de del della der den di da do du la le van von zu ter ten al el bin")
)


def find_salient_ranges(text: str) -> Ranges:
    """Return the character ranges (start, end) of names, dates and numbers, sorted and disjoint."""
    ranges = [m.span() for m in DATE.finditer(text)]
    taken = np.zeros(len(text) + 1, dtype=bool)
    for start, end in ranges:
        taken[start:end] = True
    for start, end in [*(m.span() for m in NUMBER.finditer(text)), *find_names(text)]:
        if not taken[start:end].any():
            taken[start:end] = True
            ranges.append((start, end))
    return sorted(ranges)


def find_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield runs of capitalized words, joined by initials and particles.

    The first word of a sentence counts only as part of a longer run, because its capital means nothing.
    """
    run: list[re.Match[str]] = []
    bridge: list[re.Match[str]] = []
    previous = 0
    for word in [*WORD.finditer(text), None]:
        joined = False
        if word is not None and run:
            gap = text[previous : word.start()]
            initial = len((bridge or run)[-1].group()) == 1
            joined = gap == " " or (initial and BETWEEN_NAMES.fullmatch(gap) is not None)
        letters = word.group() if word is not None else "."
        capital = letters[0].isupper() and letters.lower() not in FUNCTION_WORDS
        if word is not None and joined and capital:
            run += [*bridge, word]
            bridge = []
        elif word is not None and joined and word.group() in PARTICLES:
            bridge.append(word)
        else:
            if len(run) > 1 or (
                run and not SENTENCE_END.search(text[max(0, run[0].start() - 8) : run[0].start()])
            ):
                yield run[0].start(), run[-1].end()
            run, bridge = ([word] if word is not None and capital else []), []
        if word is not None:
            previous = word.end()


def convert_to_token_ranges(
    offsets: Sequence[tuple[int, int]] | npt.NDArray[np.integer], ranges: Ranges
) -> Ranges:
    """Convert character ranges to token ranges, given each token's characters; special tokens have (0, 0).

    A token that overlaps a range belongs to it; ranges that then share a token are joined.
    """
    spans = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    real = np.flatnonzero(spans[:, 1] > spans[:, 0])
    starts, ends = spans[real, 0], spans[real, 1]
    token_ranges: Ranges = []
    for start, end in ranges:
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(starts, end, side="left"))
        if first >= last:
            continue
        begin, stop = int(real[first]), int(real[last - 1]) + 1
        if token_ranges and begin < token_ranges[-1][1]:
            token_ranges[-1] = (token_ranges[-1][0], max(stop, token_ranges[-1][1]))
        else:
            token_ranges.append((begin, stop))
    return token_ranges
