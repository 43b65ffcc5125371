"""Texts that are nearly the same, such as copies with a word changed, in two splits of any size.

MinHash signatures of character shingles (Broder 1997) in bands propose pairs; each of them is verified by its
exact similarity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heedful.evaluation.checks.splits import normalize_text

Hashes = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]
SIMILAR = 0.8
"""The share of common shingles from which on two texts are nearly the same."""
SHINGLE = 5
"""Characters per shingle."""
BANDS, BAND_HASHES = 12, 4
"""Of two texts with the similarity 0.8, 99.8 % have at least one of the bands in common."""
SIGNED_CHARS = 600
"""Characters at the beginning of a text that its signature is computed from."""
CHUNK_TEXTS = 4096
BUCKET_ROWS = 8
"""Earlier texts that a later one is compared with per band; forms have thousands of texts in common bands."""
MARGIN = 0.25
"""How much a similarity that a signature estimates may be too low."""
EDGE = "\0" * 2


@dataclass(frozen=True)
class NearDuplicate:
    """A row of the later split and the most similar row of the earlier one."""

    later: int
    earlier: int
    similarity: float
    """The common shingles as a share of all shingles of both texts (Jaccard's index)."""


def find_near_duplicates(
    earlier: Sequence[str], later: Sequence[str], similar: float = SIMILAR
) -> list[NearDuplicate]:
    """Find the rows of `later` that are nearly the same as a row of `earlier`, the most similar first.

    Texts are compared without case, punctuation and repeated white space.
    """
    old, new = ([normalize_text(text) for text in texts] for texts in (earlier, later))
    old_signs, new_signs = sign_texts(old), sign_texts(new)
    best: dict[int, NearDuplicate] = {}
    pairs = propose_pairs(old_signs, new_signs)
    agreement = (new_signs[pairs[:, 0]] == old_signs[pairs[:, 1]]).mean(1) if len(pairs) else np.empty(0)
    for row, other in pairs[agreement >= similar - MARGIN].tolist():
        similarity = measure_similarity(new[row], old[other])
        if similarity >= similar and (row not in best or similarity > best[row].similarity):
            best[row] = NearDuplicate(row, other, similarity)
    return sorted(best.values(), key=lambda pair: (-pair.similarity, pair.later))


def propose_pairs(old: Signatures, new: Signatures) -> Ints:
    """Return pairs of rows (later, earlier) with a band in common, or with the whole signature."""
    pairs = [np.empty((0, 2), np.int64)]
    for band in (slice(None), *(slice(i * BAND_HASHES, (i + 1) * BAND_HASHES) for i in range(BANDS))):
        old_keys, new_keys = combine_hashes(old[:, band]), combine_hashes(new[:, band])
        order = np.argsort(old_keys, kind="stable")
        first, last = (np.searchsorted(old_keys[order], new_keys, side) for side in ("left", "right"))
        for step in range(BUCKET_ROWS):
            rows = np.flatnonzero(first + step < last)
            if not len(rows):
                break
            pairs.append(np.stack([rows, order[first[rows] + step]], axis=1))
    together = np.concatenate(pairs)
    return np.unique(together, axis=0) if len(together) else together


def combine_hashes(band: Signatures) -> Hashes:
    key = np.zeros(len(band), np.uint64)
    for column in band.T:
        key = mix(key ^ column.astype(np.uint64))
    return key


def sign_texts(texts: Sequence[str]) -> Signatures:
    """Return the smallest of a text's hashed shingles under each of several hash functions, `[n, hashes]`."""
    rng = np.random.default_rng(0)
    n_hashes = BANDS * BAND_HASHES
    factors = rng.integers(0, 2**64, n_hashes, np.uint64) | np.uint64(1)
    signatures = np.empty((len(texts), n_hashes), np.uint32)
    for start in range(0, len(texts), CHUNK_TEXTS):
        part = [text[:SIGNED_CHARS] for text in texts[start : start + CHUNK_TEXTS]]
        hashes, starts = hash_chunk(part)
        for column, factor in enumerate(factors):
            drawn = ((hashes * factor) >> np.uint64(32)).astype(np.uint32)
            signatures[start : start + len(part), column] = np.minimum.reduceat(drawn, starts)
    return signatures


def hash_chunk(texts: Sequence[str]) -> tuple[Hashes, Ints]:
    """Hash the shingles of all texts; return them one after another, and where each text's begin."""
    padded = [f"{EDGE}{text or ' '}{EDGE}" for text in texts]  # every text has at least one shingle
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, padded), np.int64, len(padded))
    rolled = np.zeros(len(codes) - SHINGLE + 1, np.uint64)
    for offset in range(SHINGLE):
        rolled = rolled * np.uint64(0x100000001B3) + codes[offset : offset + len(rolled)]
    ends = np.cumsum(lengths)
    inside = np.ones(len(codes), bool)  # a shingle must not begin in the last characters of a text
    for back in range(1, SHINGLE):
        inside[ends - back] = False
    starts = np.append(0, np.cumsum(lengths - SHINGLE + 1)[:-1])
    return mix(rolled[inside[: len(rolled)]]), starts


def mix(values: Hashes) -> Hashes:
    """Spread the bits of numbers (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def measure_similarity(one: str, other: str) -> float:
    """Return Jaccard's index of the shingles of two normalized texts."""
    a, b = set(list_shingles(one)), set(list_shingles(other))
    return len(a & b) / len(a | b)


def list_shingles(text: str) -> Iterator[str]:
    padded = f"{EDGE}{text or ' '}{EDGE}"
    return (padded[i : i + SHINGLE] for i in range(len(padded) - SHINGLE + 1))
