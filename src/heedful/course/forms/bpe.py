"""Byte-pair encoding as students write it: functions, or a class with train, encode and decode."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, pick_parameter, simplify

CLASSES = ["BPETokenizer", "BPE", "BPETokeniser", "BytePairEncoder", "BasicTokenizer", "ByteLevelBPE", "Tokenizer", "BytePairEncoding",
           "RegexTokenizer", "BPEncoder"]  # fmt: skip
LEARNERS = [
    "train_bpe",
    "learn_bpe",
    "bpe_train",
    "train",
    "get_merges",
    "learn_merges",
    "byte_pair_encoding",
    "bpe",
    "fit",
    "train_tokenizer",
]
ENCODERS = [
    "encode",
    "tokenize",
    "apply_bpe",
    "bpe_encode",
    "encode_bpe",
    "encode_text",
    "segment",
    "apply_merges",
    "encode_word",
]
DECODERS = ["decode", "detokenize", "bpe_decode", "decode_bpe", "decode_text"]
MERGES = (
    "merges",
    "bpe_merges",
    "merge_rules",
    "rules",
    "merge_list",
    "ranks",
    "bpe_ranks",
    "pairs",
    "learned_merges",
)
VOCABULARIES = (
    "vocab",
    "id_to_token",
    "itos",
    "vocabulary",
    "inverse_vocab",
    "id2token",
    "decoder",
    "token_to_id",
    "stoi",
    "token2id",
)
BYTES = 256
SAMPLE = ["ab ab ab abc"]


class BPEForm:
    """How to train one student's encoder, and how to read its merges and pieces as text."""

    def __init__(
        self, kind: type | None, learner: Callable[..., Any] | None, encoder: Any, decoder: Any
    ) -> None:
        self.kind, self.learner, self.encoder, self.decoder = kind, learner, encoder, decoder
        self.counts = ""
        self.shape = ""
        self.level = ""
        self.calibrate()

    def calibrate(self) -> None:
        """Find out which form of the corpus it takes: a text, a list of texts, or counts of words."""
        problem: Exception | None = None
        silent = []
        for shape in ("text", "texts", "counts", "spaced counts", "words"):
            self.shape = shape
            try:
                merges = self.read_merges(self.train(SAMPLE, 2))
            except Exception as error:  # another form may fit
                problem = problem or error
                continue
            if merges:
                return
            silent.append(shape)
        self.shape = silent[0] if silent else "text"
        if problem is not None and not silent:
            raise NotApplicable(f"it cannot learn from a text: {type(problem).__name__}: {problem}")

    def shape_corpus(self, texts: Sequence[str]) -> Any:
        words = Counter(word for text in texts for word in text.split())
        if self.shape == "text":
            return "\n".join(texts) if len(texts) > 1 else texts[0]
        if self.shape == "texts":
            return list(texts)
        if self.shape == "words":
            return [word for text in texts for word in text.split()]
        if self.shape == "counts":
            return dict(words)
        return {" ".join([*word, "</w>"]): number for word, number in words.items()}

    def train(self, texts: Sequence[str], number: int) -> tuple[Any, Any]:
        """Learn, and return the tokenizer (None for functions) and what was returned."""
        tokenizer = None
        function = self.learner
        arguments: dict[str, Any] = {}
        if self.kind is not None:
            sizes = self.fill_sizes(self.kind, texts, number, skip=0)
            tokenizer = self.kind(**sizes)
            name = pick_name(tokenizer, LEARNERS)
            function = getattr(tokenizer, name) if name else None
        if function is None:
            raise NotApplicable("it has no function that learns merges")
        arguments = self.fill_sizes(function, texts, number, skip=1)
        returned = function(self.shape_corpus(texts), **arguments)
        return tokenizer, returned

    def fill_sizes(self, function: Any, texts: Sequence[str], number: int, skip: int) -> dict[str, Any]:
        """Return the arguments that say how many merges or pieces there are to be."""
        found: dict[str, Any] = {}
        characters = len({c for text in texts for c in text})
        for name, parameter in list(inspect.signature(function).parameters.items())[skip:]:
            simple = simplify(name)
            if "vocabsize" in simple or simple in ("size", "maxvocab", "targetvocabsize", "nvocab"):
                self.counts = self.counts or "vocabulary"
                found[name] = number + (BYTES if self.level != "characters" else characters)
            elif "merge" in simple or simple in ("n", "k", "steps", "iterations", "numiterations", "niter"):
                self.counts = "merges"
                found[name] = number
            elif "special" in simple:
                if parameter.default is parameter.empty:
                    found[name] = []
            elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                raise NotApplicable(f"the meaning of its parameter {name} is unknown")
        return found

    def learned(self, texts: Sequence[str], number: int) -> tuple[Any, Any]:
        """Learn; a size of the vocabulary that counts characters is tried if bytes give too many merges."""
        state = self.train(texts, number)
        if self.counts == "vocabulary" and not self.level:
            values = self.raw_merges(state)
            symbols = [part for pair in values for part in pair]
            self.level = (
                "bytes" if symbols and all(isinstance(s, int | bytes) for s in symbols) else "characters"
            )
            if self.level == "characters" and len(values) == number:
                self.level = "bytes"
            if self.level == "characters":
                return self.train(texts, number)
        return state

    def raw_merges(self, state: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        """Return the pairs in the order in which they were learned."""
        tokenizer, returned = state
        candidates = (
            [getattr(tokenizer, n) for n in MERGES if hasattr(tokenizer, n)] if tokenizer is not None else []
        )
        candidates += list(returned) if isinstance(returned, tuple) else [returned]
        for candidate in candidates:
            if isinstance(candidate, Mapping) and candidate and all(isinstance(k, tuple) for k in candidate):
                values = list(candidate.values())
                order = (
                    sorted(candidate, key=lambda k: candidate[k])
                    if all(isinstance(v, int) for v in values)
                    else list(candidate)
                )
                return [(a, b) for a, b in order]
            if (
                isinstance(candidate, list)
                and candidate
                and all(isinstance(p, tuple | list) for p in candidate)
            ):
                pairs = [p[0] if isinstance(p[0], tuple) else p for p in candidate]
                if all(len(p) == len("ab") for p in pairs):
                    return [(a, b) for a, b in pairs]
            if (
                isinstance(candidate, list)
                and candidate
                and all(isinstance(p, str) and " " in p for p in candidate)
            ):
                return [tuple(p.split(" ", 1)) for p in candidate]
        return []

    def read_merges(self, state: tuple[Any, Any]) -> list[list[str]]:
        table = self.find_pieces(state)
        return [[to_text(part, table) for part in pair] for pair in self.raw_merges(state)]

    def find_pieces(self, state: tuple[Any, Any]) -> dict[int, str]:
        """Return the text of each id: of the vocabulary, of single bytes, and of merged pairs."""
        tokenizer, returned = state
        table = {i: chr(i) for i in range(BYTES)}
        parts = list(returned) if isinstance(returned, tuple) else [returned]
        parts += (
            [getattr(tokenizer, n) for n in VOCABULARIES if hasattr(tokenizer, n)]
            if tokenizer is not None
            else []
        )
        merges = getattr(tokenizer, "merges", None)
        for part in [*parts, merges]:
            if (
                isinstance(part, Mapping)
                and part
                and all(isinstance(k, tuple) and isinstance(v, int) for k, v in part.items())
            ):
                for pair, i in part.items():
                    if all(isinstance(p, int) for p in pair) and all(p in table for p in pair):
                        table[i] = table[pair[0]] + table[pair[1]]
        for part in parts:
            if isinstance(part, list) and part and all(isinstance(p, str | bytes) for p in part):
                table |= {i: to_text(p, {}) for i, p in enumerate(part)}
            if isinstance(part, Mapping) and part:
                pairs = list(part.items())
                if all(isinstance(k, str | bytes) and isinstance(v, int) for k, v in pairs):
                    pairs = [(v, k) for k, v in pairs]
                if all(isinstance(k, int) and isinstance(v, str | bytes) for k, v in pairs):
                    table |= {k: to_text(v, {}) for k, v in pairs}
        return table

    def learn(self, texts: list[str], merges: int, **_: Any) -> dict[str, Any]:
        """Carry out the operation `learn`."""
        return {"merges": self.read_merges(self.learned(texts, merges))}

    def encode(self, texts: list[str], merges: int, text: str, **_: Any) -> dict[str, Any]:
        """Carry out the operation `encode`."""
        state = self.learned(texts, merges)
        tokenizer, _returned = state
        encoder, decoder = self.encoder, self.decoder
        if tokenizer is not None:
            encoder, decoder = (
                getattr(tokenizer, pick_name(tokenizer, n) or "", None) for n in (ENCODERS, DECODERS)
            )
        tokens = self.call_function(encoder, text, state)
        table = self.find_pieces(state)
        back = "" if decoder is None else self.call_function(decoder, tokens, state)
        tokens = [t for group in tokens for t in (group if isinstance(group, list | tuple) else [group])]
        return {"pieces": [to_text(t, table) for t in tokens], "text": to_text(back, table)}

    def call_function(self, function: Any, value: Any, state: tuple[Any, Any]) -> Any:
        """Call with a text or tokens, and with the merges and the vocabulary if it takes them."""
        arguments: dict[str, Any] = {}
        parts = list(state[1]) if isinstance(state[1], tuple) else [state[1]]
        pairs = self.raw_merges(state)
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
            if pick_parameter([name], *MERGES, "merge") is not None:
                arguments[name] = next(
                    (p for p in parts if isinstance(p, list | Mapping) and len(p) == len(pairs)), pairs
                )
            elif pick_parameter([name], *VOCABULARIES) is not None:
                arguments[name] = next(
                    (p for p in parts if isinstance(p, list | Mapping) and len(p) != len(pairs)), parts[0]
                )
            elif parameter.default is parameter.empty:
                raise NotApplicable(f"the meaning of its parameter {name} is unknown")
        return function(value, **arguments)

    def facts(self) -> dict[str, Any]:
        """Return what was understood."""
        found = self.kind.__name__ if self.kind is not None else getattr(self.learner, "__name__", "")
        self.learned(SAMPLE, 2)
        symbols = [s for pair in self.raw_merges(self.train(SAMPLE, 2)) for s in pair]
        in_bytes = bool(symbols) and all(isinstance(s, int | bytes) for s in symbols)
        return {"found": found, "corpus": self.shape, "counts": self.counts, "bytes": in_bytes}


def to_text(value: Any, table: Mapping[int, str]) -> str:
    """Return a token as text; bytes have one character each."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, int):
        return table.get(value, f"<{value}>")
    return "".join(to_text(v, table) for v in value) if isinstance(value, list | tuple) else str(value)


def pick_name(thing: Any, names: Sequence[str]) -> str | None:
    own = {simplify(n): n for n in dir(thing) if not n.startswith("__") and callable(getattr(thing, n, None))}
    return next((own[simplify(name)] for name in names if simplify(name) in own), None)


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has."""
    kind = file.find(CLASSES, kind="class")
    learner = None if kind is not None else file.find(LEARNERS, kind="function")
    if kind is None and learner is None:
        return {}
    encoder, decoder = (file.find(names, kind="function") for names in (ENCODERS, DECODERS))
    form = BPEForm(kind, learner, encoder, decoder)
    facts = form.facts()
    operations = {"learn": Operation(form.learn, facts)}
    has = pick_name(kind, ENCODERS) and pick_name(kind, DECODERS) if kind is not None else encoder and decoder
    return operations | ({"encode": Operation(form.encode, facts)} if has else {})
