"""One interface to every tokenizer: ids, token types and truncation, with the model's own separators."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers
from tokenizers import processors

from heedful.errors import UserError, shorten
from heedful.options.types import LongTexts
from heedful.runs.files import write_text

if TYPE_CHECKING:
    from heedful.text.bulk_encoder import BulkEncoder

ROLES = ("pad", "unk", "bos", "eos", "cls", "sep", "mask")
KIND_OF_MODEL = {"BPE": "bpe", "WordPiece": "wordpiece", "Unigram": "unigram", "WordLevel": "word"}
ONE_CHARACTER = r"[\s\S]"
SENTINEL = re.compile(r"<extra_id_(\d+)>")
NO_TYPES = ["input_ids", "attention_mask"]
WITH_TYPES = ["input_ids", "token_type_ids", "attention_mask"]
# What transformers must know besides tokenizer.json; other settings of a loaded model describe its
# historical class, which would build another tokenizer than the one in the file.
KEPT_SETTINGS = ("model_max_length", "model_input_names", "padding_side", "truncation_side")


@dataclass(frozen=True, slots=True)
class Encoding:
    ids: list[int]
    types: list[int]
    truncated: int
    """How many tokens were cut off; 0 when nothing was."""


@dataclass(frozen=True, slots=True)
class LocatedEncoding:
    """The tokens of a text, or a pair, with the characters that they are made of."""

    ids: list[int]
    types: list[int]
    spans: list[tuple[int, int, int] | None]
    """For each token the text (0, or 1 for the second of a pair) and the range of its characters; None for
    the special tokens that the tokenizer adds."""


class Tokenizer:
    """A tokenizer from the `tokenizers` library, without the padding and truncation stored in its file.

    `roles` names the special tokens by what they do (`pad unk bos eos cls sep mask`); `settings` are the
    entries of `tokenizer_config.json` that transformers needs to use the saved tokenizer with the model.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        roles: Mapping[str, str],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        backend.no_padding()
        backend.no_truncation()
        self.backend = backend
        self.roles = {role: roles[role] for role in ROLES if role in roles}
        self.settings = {key: value for key, value in (settings or {}).items() if key in KEPT_SETTINGS}
        if backend.post_processor is None:
            # The library's quick path forgets the second text's type where nothing frames the texts.
            backend.post_processor = processors.TemplateProcessing(
                single=["$A:0"], pair=["$A:0", "$B:1"], special_tokens=[]
            )
        vocabulary = backend.get_vocab(with_added_tokens=True)
        if not vocabulary:
            raise UserError("the tokenizer has an empty vocabulary")
        self.vocab_size = max(vocabulary.values()) + 1
        ids = {role: vocabulary[token] for role, token in self.roles.items()}
        self.pad_id: int | None = ids.get("pad")
        self.unk_id: int | None = ids.get("unk")
        self.bos_id: int | None = ids.get("bos")
        self.eos_id: int | None = ids.get("eos")
        self.cls_id: int | None = ids.get("cls")
        self.sep_id: int | None = ids.get("sep")
        self.mask_id: int | None = ids.get("mask")
        added = backend.get_added_tokens_decoder()
        self.special_ids = frozenset(ids.values()) | {i for i, token in added.items() if token.special}
        sentinels = [(int(m[1]), i) for token, i in vocabulary.items() if (m := SENTINEL.fullmatch(token))]
        self.sentinel_ids = [i for _, i in sorted(sentinels)]
        """`<extra_id_0>`, `<extra_id_1>`, ...: the marks of removed spans (Raffel et al. 2020)."""
        self._added_to_one = backend.num_special_tokens_to_add(False)
        self._added_to_pair = backend.num_special_tokens_to_add(True)
        self._types_of_one = set(backend.encode("a").type_ids)

    @cached_property
    def description(self) -> dict[str, Any]:
        """The content of tokenizer.json."""
        content: dict[str, Any] = json.loads(self.backend.to_str())
        return content

    @cached_property
    def kind(self) -> str:
        """One of `bpe wordpiece unigram word char`."""
        splitter = self.description["pre_tokenizer"] or {}
        if splitter.get("pattern") == {"Regex": ONE_CHARACTER}:
            return "char"
        return KIND_OF_MODEL[self.description["model"]["type"]]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that changes ids; padding, truncation and decoding are left out."""
        parts = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model")
        canonical = {part: self.description[part] for part in parts} | {"roles": self.roles}
        if self.kind == "unigram":
            # The library does not read a score back to the last bit.
            scores = [(piece, round(score, 6)) for piece, score in canonical["model"]["vocab"]]
            canonical["model"] = canonical["model"] | {"vocab": scores}
        return hashlib.sha256(json.dumps(canonical, sort_keys=True).encode()).hexdigest()

    @cached_property
    def word_starts(self) -> list[bool]:
        """For each id: does the piece begin a new word? Special tokens do. For whole-word masking.

        Read off the piece alone (`##` continues in WordPiece, a leading space begins elsewhere), so that it
        serves cached ids; the first piece of a text begins a word whatever it is.
        """
        pieces = self.pieces(range(self.vocab_size))
        if self.kind == "wordpiece":
            prefix = self.description["model"]["continuing_subword_prefix"]
            begins = [not piece.startswith(prefix) for piece in pieces]
        elif self.kind == "word":
            begins = [True] * len(pieces)
        else:
            # Byte-level pieces write a space as Ġ, a newline as Ċ and a tab as ĉ; sentencepiece writes ▁.
            begins = [piece[:1] in ("Ġ", "Ċ", "ĉ", "▁") or piece[:1].isspace() for piece in pieces]
        return [begin or i in self.special_ids for i, begin in enumerate(begins)]

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_len: int | None = None,
        special: bool = True,
        long_texts: LongTexts = "cut",
    ) -> Encoding:
        """Encode a text, or a pair with the model's own separators and token types.

        `max_len` counts the special tokens. Of a pair only the second is cut; when the first alone leaves
        no room, both are, longest first. What is cut keeps its beginning, or, with `long_texts` "head-tail",
        its beginning and its end; see `divide_text`.
        """
        pairs = None if pair is None else [pair]
        return self.encode_batch([text], pairs, max_len=max_len, special=special, long_texts=long_texts)[0]

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        max_len: int | None = None,
        special: bool = True,
        long_texts: LongTexts = "cut",
    ) -> list[Encoding]:
        """Encode many texts, or pairs, on all cores. See `encode`."""
        inputs = list(texts) if pairs is None else list(zip(texts, pairs, strict=True))
        added = (self._added_to_one if pairs is None else self._added_to_pair) if special else 0
        refuse_no_room(max_len, added)
        try:
            encoded = self.backend.encode_batch_fast(inputs, add_special_tokens=special)
        except TypeError:
            raise text_error([*texts, *(pairs or ())]) from None
        plain = pairs is None and self._types_of_one == {0}
        limit = max_len if max_len is not None else max(map(len, encoded), default=0)
        return [
            Encoding(ids := one.ids, [0] * len(ids) if plain else one.type_ids, 0)
            if len(one) <= limit
            else truncate(one, limit, long_texts)
            for one in encoded
        ]

    def locate(
        self, text: str, pair: str | None = None, *, max_len: int | None = None, long_texts: LongTexts = "cut"
    ) -> LocatedEncoding:
        """Encode a text, or a pair, as `encode` does, and find the characters of each token."""
        refuse_no_room(max_len, self._added_to_one if pair is None else self._added_to_pair)
        try:
            whole = self.backend.encode(text, pair)
        except TypeError:
            raise text_error([text, *([] if pair is None else [pair])]) from None
        spans = [
            None if owner is None else (owner, *offsets)
            for owner, offsets in zip(whole.sequence_ids, whole.offsets, strict=True)
        ]
        limit = len(whole) if max_len is None else max_len
        kept = [slice(0, len(whole))] if len(whole) <= limit else find_kept(whole, limit, long_texts)
        types = whole.type_ids if pair is not None or self._types_of_one != {0} else [0] * len(whole)
        return LocatedEncoding(
            [i for part in kept for i in whole.ids[part]],
            [i for part in kept for i in types[part]],
            [span for part in kept for span in spans[part]],
        )

    def bulk(
        self, *, paired: bool, max_len: int | None, special: bool, long_texts: LongTexts = "cut"
    ) -> BulkEncoder:
        """Prepare for many texts, or pairs: the same ids as `encode_batch`, as bytes, and faster."""
        from heedful.text.bulk_encoder import BulkEncoder

        wide = self.vocab_size > 2**16
        options: dict[str, Any] = {"max_len": max_len, "special": special, "long_texts": long_texts}
        return BulkEncoder(self.backend, paired=paired, wide=wide, **options)

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        text: str = self.backend.decode([int(i) for i in ids], skip_special_tokens=skip_special)
        return text

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the vocabulary's own spelling of each id."""
        return [self.backend.id_to_token(int(i)) or "" for i in ids]

    def save(self, folder: Path) -> None:
        """Write the Hub form: tokenizer.json, tokenizer_config.json, special_tokens_map.json.

        The class is written as PreTrainedTokenizerFast, so that transformers uses tokenizer.json as it is.
        """
        named = {f"{role}_token": token for role, token in self.roles.items()}
        added = self.backend.get_added_tokens_decoder()
        extra = [str(token.content) for _, token in sorted(added.items()) if token.special]
        extra = [token for token in extra if token not in self.roles.values()]
        if extra:
            named["additional_special_tokens"] = extra  # type: ignore[assignment]
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        config |= {**self.settings, **named}
        files = {
            "tokenizer.json": self.backend.to_str(pretty=True),
            "tokenizer_config.json": json.dumps(config, indent=2, ensure_ascii=False),
            "special_tokens_map.json": json.dumps(named, indent=2, ensure_ascii=False),
        }
        for name, text in files.items():
            write_text(Path(folder) / name, text + "\n")


def refuse_no_room(max_len: int | None, added: int) -> None:
    if max_len is not None and max_len < added:
        raise UserError(f"max_len {max_len} is too small: this tokenizer adds {added} special tokens itself")


def text_error(texts: Iterable[object]) -> Exception:
    """Build the error for a text with half of a surrogate pair, which is no character; else for no text."""
    for text in texts:
        if not isinstance(text, str):
            return TypeError(f"a text must be a string, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError:
            return UserError(f'not valid Unicode: "{shorten(text)}"')
    return TypeError("texts must be strings")


def truncate(encoded: tokenizers.Encoding, max_len: int, long_texts: LongTexts = "cut") -> Encoding:
    """Cut an encoding to `max_len` tokens; the special tokens around the texts stay."""
    ids, types, kept = encoded.ids, encoded.type_ids, find_kept(encoded, max_len, long_texts)
    cut_ids = [i for part in kept for i in ids[part]]
    return Encoding(cut_ids, [t for part in kept for t in types[part]], len(ids) - len(cut_ids))


def find_kept(encoded: tokenizers.Encoding, max_len: int, long_texts: LongTexts) -> list[slice]:
    """Return the parts of an encoding that stay when it is cut to `max_len` tokens."""
    owners = encoded.sequence_ids
    first, second = owners.count(0), owners.count(1)
    room = max_len - (len(owners) - first - second)
    (head_1, tail_1), (head_2, tail_2) = (
        divide_text(n, keep, long_texts)
        for n, keep in zip((first, second), divide_room(first, second, room), strict=True)
    )
    at_first = owners.index(0) if first else 0
    at_second = owners.index(1) if second else len(owners)
    return [
        slice(0, at_first + head_1),
        slice(at_first + first - tail_1, at_second + head_2),
        slice(at_second + second - tail_2, len(owners)),
    ]


def divide_text(n: int, keep: int, long_texts: LongTexts) -> tuple[int, int]:
    """Return how many tokens stay at the beginning and at the end of a text, of whose n tokens `keep` do.

    "head-tail" keeps three times as many at the end: what a review concludes is there, and of ways to cut
    texts this one did best in Sun et al. 2019, How to Fine-Tune BERT for Text Classification?, section 5.3.
    """
    if long_texts == "cut" or keep == n:
        return keep, 0
    head = -(-keep // 4)
    return head, keep - head


def divide_room(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of each text stay, when `first + second > room`."""
    if second == 0:
        return room, 0
    if first < room:
        return first, room - first
    # Longest first: the longer loses tokens until both are equal, an odd one stays with the longer.
    small, large = sorted((first, second))
    large = max(small, room - small)
    if small + large > room:
        small, large = room // 2, room - room // 2
    return (large, small) if first > second else (small, large)
