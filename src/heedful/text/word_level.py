"""A corpus repeats its words: each is encoded once, if the tokenizer never looks across a space.

For such a tokenizer the ids of a text are those of its words, one after another. Whether it is so follows
from the tokenizer's parts (`find_rule`); any other tokenizer is left to the library, text by text.
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

Step = dict[str, Any]
"""One step of a normalizer or pre-tokenizer, as tokenizer.json describes it."""
SPLITTERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
INSIDE_WORDS = SPLITTERS | {"Punctuation", "Digits"}
CHARACTER_BY_CHARACTER = {"Lowercase", "NFC", "NFD"}
AROUND_DROPPED_SPACES = CHARACTER_BY_CHARACTER | {"BertNormalizer", "NFKC", "NFKD", "StripAccents", "Strip"}
SENTENCEPIECE = CHARACTER_BY_CHARACTER | {"NFKC", "NFKD", "StripAccents", "Strip", "Nmt", "Precompiled"}
SINGLE_SPACES = {(r"\s+", " "), (" {2,}", " "), ("^ +| +$", "")}


@dataclass(frozen=True)
class Rule:
    """How a text splits into words that can be encoded one by one."""

    keeps_space: bool
    """A word's ids tell of the space before it."""
    is_plain: Callable[[str], bool]
    """A text that has a word for which this is False is encoded whole."""


def find_rule(backend: tokenizers.Tokenizer) -> Rule | None:
    """Return the rule of a tokenizer; None if it may look across a space, or draws at random.

    What the parts of the `tokenizers` library do to spaces decides. Only combinations that are known to treat
    words separately have a rule.
    """
    if any(getattr(backend.model, name, None) for name in ("dropout", "alpha", "nbest_size")):
        return None
    splits = list(steps(backend.pre_tokenizer, "pretokenizers"))
    changes = list(steps(backend.normalizer, "normalizers"))
    added = list(backend.get_added_tokens_decoder().values())
    # Without a split the model sees the whole text; an added token with a space spans two words.
    if not splits or any(" " in added_token_text(backend, token) for token in added):
        return None
    if splits[0]["type"] in SPLITTERS:
        # It drops the spaces, so the later steps must only split inside words.
        separate = step_types(splits) <= INSIDE_WORDS and step_types(changes) <= AROUND_DROPPED_SPACES
        return Rule(False, accept_any) if separate else None
    # An added token that takes the space after it would take it from the next word.
    if len(splits) > 1 or any(token.rstrip for token in added):
        return None
    rules = {"ByteLevel": byte_level_rule, "Split": character_rule, "Metaspace": sentencepiece_rule}
    find = rules.get(splits[0]["type"])
    return None if find is None else find(splits[0], changes, added)


def step_types(changes: Sequence[Step]) -> set[str]:
    return {step["type"] for step in changes}


def byte_level_rule(split: Step, changes: Sequence[Step], added: Sequence[Any]) -> Rule | None:
    """GPT-2's expression puts one space before the word; without the expression, merges may cross spaces."""
    separate = split["use_regex"] and step_types(changes) <= CHARACTER_BY_CHARACTER
    return Rule(True, is_unbroken) if separate else None


def character_rule(split: Step, changes: Sequence[Step], added: Sequence[Any]) -> Rule | None:
    """Each character is a token, the space too, unless an added token takes the space before it."""
    if split["pattern"] != {"Regex": ONE_CHARACTER} or any(token.lstrip for token in added):
        return None
    # Unicode normalization could join a character with the next one; lowercasing does not.
    return Rule(True, accept_any) if step_types(changes) <= {"Lowercase"} else None


def sentencepiece_rule(split: Step, changes: Sequence[Step], added: Sequence[Any]) -> Rule | None:
    """Each word begins with the space's mark, if the first one does too and pieces never cross it."""
    if not split["split"] or split["prepend_scheme"] != "always" or split["replacement"] != SPACE:
        return None
    # The library looks for normalized added tokens in the whole text, marks included.
    if any(token.normalized for token in added):
        return None
    if not all(step["type"] in SENTENCEPIECE or replaces_inside_words(step) for step in changes):
        return None
    return Rule(False, without([SPACE, *(str(token.content) for token in added)]))


def steps(part: Any, name: str) -> Iterator[Step]:
    def flat(state: Step) -> Iterator[Step]:
        if state["type"] == "Sequence":
            for inner in state[name]:
                yield from flat(inner)
        else:
            yield state

    if part is not None:
        yield from flat(json.loads(part.__getstate__()))


def added_token_text(backend: tokenizers.Tokenizer, token: tokenizers.AddedToken) -> str:
    """Return what a text must contain for an added token to be found in it."""
    content = str(token.content)
    return backend.normalizer.normalize_str(content) if token.normalized and backend.normalizer else content


def replaces_inside_words(step: Step) -> bool:
    """Whether a replacement makes several spaces one, or never touches a space."""
    if step["type"] != "Replace":
        return False
    ((how, pattern),) = step["pattern"].items()
    if how == "Regex":
        return (pattern, step["content"]) in SINGLE_SPACES
    return " " not in pattern + step["content"]


def accept_any(word: str) -> bool:
    """Accept any word: white space leaves no trace in the ids."""
    return True


def is_unbroken(word: str) -> bool:
    """Whether no run of white space can form: byte-level pieces depend on the length of one."""
    return bool(word) and word.isprintable()


def without(marks: Sequence[str]) -> Callable[[str], bool]:
    """Make the test for sentencepiece's words, which hold no added token.

    Their ends must be characters that never join with a space, so that the normalizer sees the space alone.
    """
    special = re.compile("|".join(map(re.escape, marks)))

    def is_firm(word: str) -> bool:
        ends = word[:1], word[-1:]
        firm = all(c.isascii() or unicodedata.category(c) in ("Lu", "Ll", "Lt") for c in ends)
        return is_unbroken(word) and firm and not special.search(word)

    return is_firm


class WordCache:
    """Remembers the ids of words. `encode` gives the ids of whole texts."""

    def __init__(self, rule: Rule, encode: Callable[[list[str]], list[bytes]]) -> None:
        self.rule, self.encode = rule, encode
        self.ids_of: dict[str, Any] = {}
        self.older: dict[str, Any] = {}
        self.size = 0

    def ids(self, texts: Sequence[str]) -> list[bytes]:
        keys = [text.split(" ") for text in texts]
        if self.rule.keeps_space:
            for words in keys:
                words[0] = " " + words[0]  # no word has a space: a key of its own, for the first of a text
        self.learn(set(chain.from_iterable(keys)))
        get, rows, whole = self.ids_of.__getitem__, [], []
        for row, words in enumerate(keys):
            try:
                rows.append(b"".join(map(get, words)))
            except TypeError:  # a word is None
                rows.append(b"")
                whole.append(row)
        for row, ids in zip(whole, self.encode([texts[row] for row in whole]), strict=True):
            rows[row] = ids
        return rows

    def learn(self, keys: set[str]) -> None:
        """Encode the words that are new; None marks one that is not plain."""
        if self.size > MEMORY_CHARS:
            self.ids_of, self.older, self.size = {}, self.ids_of, 0
        new = []
        for key in keys - self.ids_of.keys():
            self.size += len(key)
            word = key.removeprefix(" ")
            if key in self.older:
                self.ids_of[key] = self.older[key]
            elif self.rule.is_plain(word):
                new.append(key)
            else:
                self.ids_of[key] = None
        self.ids_of.update(zip(new, self.encode([self.spell(key) for key in new]), strict=True))

    def spell(self, key: str) -> str:
        if not self.rule.keeps_space:
            return key
        return key[1:] if key.startswith(" ") else " " + key
