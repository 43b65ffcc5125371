"""A corpus repeats its words: each is encoded once, where a tokenizer never looks across a space.

There the ids of a text are those of its words, one after another. Whether it is so is read off the parts of
the tokenizer (`rule_of`); what is not known to be so is left to the library, text by text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import tokenizers

from heedful.text.sentencepiece import SPACE
from heedful.text.tokenizer import ONE_CHARACTER

MEMORY_CHARS = 2**19
"""Words are forgotten after this many characters of other words, so that the memory stays small."""

SPLITTERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
INSIDE_WORDS = SPLITTERS | {"Punctuation", "Digits"}
CHARACTER_BY_CHARACTER = {"Lowercase", "NFC", "NFD"}
AROUND_DROPPED_SPACES = CHARACTER_BY_CHARACTER | {"BertNormalizer", "NFKC", "NFKD", "StripAccents", "Strip"}
SENTENCEPIECE = CHARACTER_BY_CHARACTER | {"NFKC", "NFKD", "StripAccents", "Strip", "Nmt", "Precompiled"}
SINGLE_SPACES = {(r"\s+", " "), (" {2,}", " "), ("^ +| +$", "")}


@dataclass(frozen=True)
class Rule:
    """How a text falls into words that can be encoded one by one."""

    keeps_space: bool
    """A word's ids tell of the space before it."""
    is_plain: Callable[[str], bool]
    """A text that has a word for which this is False is encoded whole."""


def rule_of(backend: tokenizers.Tokenizer) -> Rule | None:
    """Find the rule of a tokenizer; None when it may look across a space, or draws at random."""
    if any(getattr(backend.model, name, None) for name in ("dropout", "alpha", "nbest_size")):
        return None
    splits = list(steps(backend.pre_tokenizer, "pretokenizers"))
    changes = list(steps(backend.normalizer, "normalizers"))
    added = list(backend.get_added_tokens_decoder().values())
    if not splits or any(" " in added_token_text(backend, token) for token in added):
        return None
    kinds, changed = [step["type"] for step in splits], {step["type"] for step in changes}
    if kinds[0] in SPLITTERS:
        return (
            Rule(False, accept_any) if {*kinds} <= INSIDE_WORDS and changed <= AROUND_DROPPED_SPACES else None
        )
    if len(splits) > 1 or any(token.rstrip for token in added):
        return None
    (split,) = splits
    if split["type"] == "ByteLevel":
        return Rule(True, is_unbroken) if split["use_regex"] and changed <= CHARACTER_BY_CHARACTER else None
    if split["type"] == "Split" and split["pattern"] == {"Regex": ONE_CHARACTER}:
        return (
            Rule(True, accept_any) if changed <= {"Lowercase"} and not any(t.lstrip for t in added) else None
        )
    if split["type"] == "Metaspace" and split["split"] and split["prepend_scheme"] == "always":
        if split["replacement"] != SPACE or any(token.normalized for token in added):
            return None
        if not all(step["type"] in SENTENCEPIECE or replaces_inside_words(step) for step in changes):
            return None
        return Rule(False, without([SPACE, *(str(token.content) for token in added)]))
    return None


def steps(part: Any, name: str) -> Iterator[dict[str, Any]]:
    """Go through the steps of a normaliser or pre-tokenizer, as tokenizer.json describes them."""

    def flat(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if state["type"] == "Sequence":
            for inner in state[name]:
                yield from flat(inner)
        else:
            yield state

    if part is not None:
        yield from flat(json.loads(part.__getstate__()))


def added_token_text(backend: tokenizers.Tokenizer, token: tokenizers.AddedToken) -> str:
    """Give what a text must hold for an added token to be found in it."""
    content = str(token.content)
    return backend.normalizer.normalize_str(content) if token.normalized and backend.normalizer else content


def replaces_inside_words(step: dict[str, Any]) -> bool:
    """Tell whether a replacement makes several spaces one, or never touches a space."""
    if step["type"] != "Replace":
        return False
    ((how, pattern),) = step["pattern"].items()
    if how == "Regex":
        return (pattern, step["content"]) in SINGLE_SPACES
    return " " not in pattern + step["content"]


def accept_any(word: str) -> bool:
    """White space alone never tells anything: any word will do."""
    return True


def is_unbroken(word: str) -> bool:
    """Refuse what may make a run of white space: byte-level pieces tell its length."""
    return bool(word) and word.isprintable()


def without(marks: Sequence[str]) -> Callable[[str], bool]:
    """Make the test for sentencepiece's words, which hold no added token.

    Their ends must be characters that never join with a space, so that the normaliser sees the space alone.
    """
    special = re.compile("|".join(map(re.escape, marks)))

    def is_firm(word: str) -> bool:
        ends = word[:1], word[-1:]
        firm = all(c.isascii() or unicodedata.category(c) in ("Lu", "Ll", "Lt") for c in ends)
        return is_unbroken(word) and firm and not special.search(word)

    return is_firm


class WordCache:
    """Ids of texts, by words remembered from texts before. `encode` gives the ids of whole texts."""

    def __init__(self, rule: Rule, encode: Callable[[list[str]], list[bytes]]) -> None:
        self.rule, self.encode = rule, encode
        self.known: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        self.size = 0

    def ids(self, texts: Sequence[str]) -> list[bytes]:
        """Give the ids of each text, without special tokens around it."""
        keys = [text.split(" ") for text in texts]
        if self.rule.keeps_space:
            for words in keys:
                words[0] = " " + words[0]  # no word has a space: a key of its own, for the first of a text
        self.learn(set(chain.from_iterable(keys)))
        get, found, whole = self.known.__getitem__, [], []
        for place, words in enumerate(keys):
            try:
                found.append(b"".join(map(get, words)))
            except TypeError:  # a word is None
                found.append(b"")
                whole.append(place)
        for place, ids in zip(whole, self.encode([texts[place] for place in whole]), strict=True):
            found[place] = ids
        return found

    def learn(self, keys: set[str]) -> None:
        """Encode the words that are new; None stands for one that is not plain."""
        if self.size > MEMORY_CHARS:
            self.known, self.before, self.size = {}, self.known, 0
        new = []
        for key in keys - self.known.keys():
            self.size += len(key)
            word = key.removeprefix(" ")
            if key in self.before:
                self.known[key] = self.before[key]
            elif self.rule.is_plain(word):
                new.append(key)
            else:
                self.known[key] = None
        self.known.update(zip(new, self.encode([self.spell(key) for key in new]), strict=True))

    def spell(self, key: str) -> str:
        """Give the text that a key stands for."""
        if not self.rule.keeps_space:
            return key
        return key[1:] if key.startswith(" ") else " " + key
