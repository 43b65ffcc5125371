"""Texts that a pretrained tokenizer, and so its model, does not know: another language or script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from heedful.text.tokenizer import Tokenizer

Floats = npt.NDArray[np.float64]
WORD = re.compile(r"\w+|[^\w\s]")
UNKNOWN = 0.1
"""The share of unknown tokens from which on a text is unfamiliar."""
FOREIGN = 0.5
"""The share of letters of unknown scripts from which on a text is unfamiliar."""
PIECES = 1.6
"""The number of tokens per word from which on a text is unfamiliar. With MiniLM's vocabulary, 99 % of English
sentences are below it (reviews, tweets, questions to a bank); those of other languages have 1.6 to 2.3."""
FEWEST_WORDS = 8
"""In shorter texts a single name decides the number of tokens per word."""
SCRIPT_SHARE = 0.02
"""A vocabulary knows a script if this share of its pieces is written in it; most have a few of many."""
CHUNK = 1024


@dataclass(frozen=True)
class Familiarity:
    """How well a tokenizer knows each of several texts."""

    unknown: Floats
    """The share of tokens that stand for what the vocabulary lacks."""
    pieces: Floats
    """Tokens per word or punctuation mark; 0 for a text without any."""
    foreign: Floats
    """The share of letters whose script the vocabulary does not know."""
    words: npt.NDArray[np.int64]
    scripts: tuple[str, ...]
    """The scripts that the vocabulary knows, such as LATIN."""
    counts_pieces: bool
    """Whether tokens per word mean anything: not for a tokenizer of characters or of whole words."""

    @property
    def unfamiliar(self) -> npt.NDArray[np.bool_]:
        """Whether the model probably does not know the language, the script or the notation of each text."""
        many = (self.pieces >= PIECES) & (self.words >= FEWEST_WORDS) & self.counts_pieces
        return np.asarray((self.unknown >= UNKNOWN) | (self.foreign >= FOREIGN) | many)


def measure_familiarity(texts: Sequence[str], tokenizer: Tokenizer) -> Familiarity:
    """Measure how well a tokenizer knows texts; meant for one that came with a pretrained model.

    A small vocabulary that was trained on the texts themselves has many pieces per word for other reasons.
    """
    scripts = find_scripts(tokenizer)
    known = frozenset(scripts)
    unknown, pieces, foreign = (np.zeros(len(texts)) for _ in range(3))
    words = np.array([len(WORD.findall(text)) for text in texts], np.int64)
    special = tokenizer.special_ids - {tokenizer.unk_id}
    for start in range(0, len(texts), CHUNK):
        encoded = tokenizer.encode_batch(list(texts[start : start + CHUNK]), None)
        for row, one in enumerate(encoded, start):
            ids = [i for i in one.ids if i not in special]
            pieces[row] = len(ids) / words[row] if words[row] else 0.0
            unknown[row] = (
                ids.count(tokenizer.unk_id) / len(ids) if ids and tokenizer.unk_id is not None else 0.0
            )
            foreign[row] = foreign_share(texts[row], known)
    return Familiarity(unknown, pieces, foreign, words, scripts, tokenizer.kind not in ("char", "word"))


def find_scripts(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the scripts in which a vocabulary has pieces, the most frequent first."""
    counts: Counter[str] = Counter()
    for piece in tokenizer.pieces(i for i in range(tokenizer.vocab_size) if i not in tokenizer.special_ids):
        counts.update({script for c in piece if (script := find_script(c))})
    return tuple(name for name, n in counts.most_common() if n >= SCRIPT_SHARE * counts.total())


def foreign_share(text: str, known: Iterable[str]) -> float:
    """Return the share of a text's letters that are in none of the known scripts."""
    scripts = [script for c in text if (script := find_script(c))]
    return sum(script not in known for script in scripts) / len(scripts) if scripts else 0.0


@lru_cache(maxsize=4096)
def find_script(character: str) -> str:
    """Return the script of a letter as Unicode names it (LATIN, CYRILLIC, CJK), or nothing for others."""
    return unicodedata.name(character, "").split(" ")[0] if character.isalpha() else ""
