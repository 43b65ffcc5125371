"""Train a tokenizer on a stream of texts; the same corpus gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError, shorten, unknown
from heedful.text.tokenizer import NO_TYPES, ONE_CHARACTER, WITH_TYPES, Tokenizer

ALL_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
PREFIX = "##"
# Continuing characters of WordPiece are trained as private characters from here on; see `wordpiece`.
PRIVATE, PRIVATE_END = 0xF0000, 0x10FFFE
CHUNK_WORDS = 10_000
UNLIMITED = 2**31


@dataclass(frozen=True)
class Order:
    """The settings of a vocabulary, all defaults filled in."""

    size: int
    min_count: int
    specials: list[str]
    lowercase: bool
    punctuation: bool


@dataclass(frozen=True)
class Plan:
    """What distinguishes one kind: its special tokens in the order of their ids, and its defaults."""

    specials: tuple[str, ...]
    roles: dict[str, str]
    size: int
    min_count: int | None
    sentinels: int
    template: bool
    build: Callable[[Iterator[str], Order], Backend]


def train(
    texts: Iterable[str],
    *,
    kind: str,
    vocab_size: int | None = None,
    min_count: int | None = None,
    lowercase: bool = False,
    sentinels: int | None = None,
    punctuation: bool = False,
) -> Tokenizer:
    """Train a tokenizer; `texts` is read once and never held in memory.

    The special tokens have the first ids, then come the sentinels `<extra_id_0>`, `<extra_id_1>`, ... in
    order, then the vocabulary:

    | kind        | ids                                 | sentinels | a pair becomes          |
    | ----------- | ----------------------------------- | --------- | ----------------------- |
    | `bpe`       | `<pad>` `<unk>` `<s>` `</s>` `<mask>` | 100     | `<s> a </s> b </s>`     |
    | `unigram`   | `<pad>` `<unk>` `<s>` `</s>` `<mask>` | 100     | `<s> a </s> b </s>`     |
    | `wordpiece` | `[PAD]` `[UNK]` `[CLS]` `[SEP]` `[MASK]` | 100  | `[CLS] a [SEP] b [SEP]` |
    | `word`      | `<START>` `<STOP>` `<UNK>` `<PAD>`  | 0         | `<START> a <STOP> b <STOP>` |
    | `char`      | `<pad>` `<mask>` `<unk>`            | 0         | `a b`                   |

    `<s>` and `[CLS]` are both bos and cls, `</s>` and `[SEP]` both eos and sep; the second of a pair has
    token type 1. One vocabulary so serves causal, masked and span objectives.

    `bpe` works on bytes, so that nothing is unknown and decoding gives the text back (Sennrich et al. 2016;
    Radford et al. 2019). `wordpiece` cleans and splits as BERT does (Devlin et al. 2019). `unigram` is
    Kudo's (2018). `word` splits at white space, with `punctuation` also around it. `min_count` is how often
    a pair (`bpe`, `wordpiece`), a word or a character must occur: by default 2, for characters 1.
    `vocab_size` counts the special tokens: by default 8,000, for words and characters no limit.
    """
    if kind not in KINDS:
        raise unknown("kind of tokenizer", kind, KINDS)
    plan = PLANS[kind]
    if punctuation and kind != "word":
        raise UserError(
            f"splitting at punctuation is a choice of kind word alone; kind {kind} has its own rule"
        )
    if min_count is not None and plan.min_count is None:
        raise UserError(f"kind {kind} keeps pieces by likelihood, not by count: leave out the minimum count")
    if min_count is not None and min_count < 1:
        raise UserError(f"minimum count {min_count}: must be at least 1")
    n_sentinels = plan.sentinels if sentinels is None else sentinels
    if n_sentinels < 0:
        raise UserError(f"{n_sentinels} sentinels: must be 0 or more")
    size = plan.size if vocab_size is None else vocab_size
    specials = [*plan.specials, *(f"<extra_id_{i}>" for i in range(n_sentinels))]
    least = len(specials) + (len(ALL_BYTES) if kind == "bpe" else 1)
    order = Order(size, min_count or plan.min_count or 1, specials, lowercase, punctuation)
    if size < least:
        raise size_error(order, kind, least)
    try:
        backend = plan.build(require_texts(texts), order)
    except UnicodeEncodeError as error:
        raise UserError(f'a text of the corpus is not valid Unicode: "{shorten(error.object)}"') from None
    if backend.get_vocab_size() > size:
        raise size_error(order, kind, backend.get_vocab_size())
    backend.add_special_tokens(specials)
    if plan.template:
        first, last = plan.roles["bos"], plan.roles["eos"]
        backend.post_processor = processors.TemplateProcessing(
            single=f"{first}:0 $A:0 {last}:0",
            pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
            special_tokens=[(token, specials.index(token)) for token in (first, last)],
        )
    return Tokenizer(
        backend, plan.roles, {"model_input_names": WITH_TYPES if kind == "wordpiece" else NO_TYPES}
    )


def size_error(order: Order, kind: str, least: int) -> UserError:
    more = {"word": "", "char": "", "bpe": " and the 256 bytes"}.get(kind, " and every character")
    n_sentinels = sum(token.startswith("<extra_id_") for token in order.specials)
    fewer = f"; --sentinels 0 saves {n_sentinels}" if n_sentinels else ""
    other = "; --kind bpe needs no characters" if kind in ("wordpiece", "unigram") and least > 361 else ""
    return UserError(
        f"vocabulary size {order.size:,} is too small for {kind}: "
        f"the special tokens{more} need {least:,}{fewer}{other}"
    )


def require_texts(texts: Iterable[str]) -> Iterator[str]:
    stream = iter(texts)
    for text in stream:
        if text.strip():
            return chain([text], stream)
    raise UserError("the corpus has no text to train a tokenizer on")


def count_words(
    texts: Iterator[str], normalizer: normalizers.Normalizer | None, splitter: pre_tokenizers.PreTokenizer
) -> list[tuple[str, int]]:
    """Count words on all cores, most frequent first, equal counts in the order of the alphabet."""
    counter = Backend(models.WordLevel())
    if normalizer is not None:
        counter.normalizer = normalizer
    counter.pre_tokenizer = splitter
    trainer = trainers.WordLevelTrainer(vocab_size=1, special_tokens=[], show_progress=False)
    counter.train_from_iterator(texts, trainer)
    words: dict[str, int] = json.loads(trainer.__getstate__())["WordLevelTrainer"]["words"]
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))


def bpe(texts: Iterator[str], order: Order) -> Backend:
    backend = Backend(models.BPE())
    if order.lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(texts, bpe_trainer(order, ALL_BYTES))
    return backend


def bpe_trainer(order: Order, alphabet: list[str]) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=order.size,
        min_frequency=order.min_count,
        special_tokens=order.specials,
        initial_alphabet=alphabet,
        show_progress=False,
    )


def wordpiece(texts: Iterator[str], order: Order) -> Backend:
    """WordPiece as the library trains it: merges of the most frequent pair, inner pieces marked `##`.

    The library's own trainer numbers the `##` characters in the order of a hash table, which differs in
    every process and decides between equal counts. Here each inner character becomes a private character
    of its own, which plain BPE numbers in order; afterwards they are turned back.
    """
    normalizer = normalizers.BertNormalizer(lowercase=order.lowercase)
    splitter = pre_tokenizers.BertPreTokenizer()
    words = count_words(texts, normalizer, splitter)
    alphabet = sorted({character for word, _ in words for character in word if ord(character) < PRIVATE})
    inner = {ord(c): chr(PRIVATE + i) for i, c in enumerate(alphabet[: PRIVATE_END - PRIVATE])}
    outer = {ord(private): chr(c) for c, private in inner.items()}
    learner = Backend(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marked = ((w[0] + w[1:].translate(inner), n) for w, n in words)
    learner.train_from_iterator(repeat_words(marked), bpe_trainer(order, alphabet))
    vocabulary = {}
    for piece, i in sorted(learner.get_vocab().items(), key=lambda item: item[1]):
        plain = piece.translate(outer)
        vocabulary[PREFIX + plain if plain[:1] != piece[:1] else plain] = i
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix=PREFIX))
    backend.normalizer = normalizer
    backend.pre_tokenizer = splitter
    backend.decoder = decoders.WordPiece(prefix=PREFIX)
    return backend


def repeat_words(counted: Iterable[tuple[str, int]]) -> Iterator[str]:
    for word, n in counted:
        for start in range(0, n, CHUNK_WORDS):
            yield " ".join([word] * min(CHUNK_WORDS, n - start))


def unigram(texts: Iterator[str], order: Order) -> Backend:
    """Unigram language model with sentencepiece's conventions: NFKC, one space between words, `▁` for it.

    The library sums likelihoods in an order that differs in every process. Scores are rounded to four
    decimals and equal ones ordered by spelling, so that the file is the same each time.
    """
    steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    steps += [normalizers.Lowercase()] if order.lowercase else []
    learner = Backend(models.Unigram())
    learner.normalizer = normalizers.Sequence([*steps, normalizers.Strip()])
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=order.size, special_tokens=order.specials, unk_token="<unk>", show_progress=False
    )
    try:
        learner.train_from_iterator(texts, trainer)
    except Exception as error:  # the library raises bare exceptions
        if "not large enough to contain all chars" not in str(error):
            raise
        words = json.loads(trainer.__getstate__())["UnigramTrainer"]["words"]
        raise size_error(order, "unigram", len(order.specials) + len(set("".join(words)))) from None
    learned = json.loads(learner.to_str())["model"]["vocab"]
    lowest = min(score for _, score in learned)
    # Characters that were not learned get the lowest score, which the library raises by 0.0001 from each to
    # the next in the order of a hash table.
    raised = lowest + 1e-4 * (1 + sum(len(piece) == 1 for piece, _ in learned))
    pieces = [
        (piece, round(lowest if len(piece) == 1 and score < raised else score, 4))
        for piece, score in learned
        if piece not in order.specials
    ]
    # Every character stays, then the likeliest pieces: the library forgets the size once characters fill it.
    pieces.sort(key=lambda item: (len(item[0]) > 1, -item[1], item[0]))
    characters = sum(len(piece) == 1 for piece, _ in pieces)
    pieces = pieces[: max(characters, order.size - len(order.specials))]
    pieces.sort(key=lambda item: (-item[1], item[0]))
    backend = Backend(
        models.Unigram([*((s, 0.0) for s in order.specials), *pieces], unk_id=order.specials.index("<unk>"))
    )
    backend.normalizer = learner.normalizer
    backend.pre_tokenizer = learner.pre_tokenizer
    backend.decoder = decoders.Metaspace()
    return backend


def word(texts: Iterator[str], order: Order) -> Backend:
    splitter = pre_tokenizers.Whitespace() if order.punctuation else pre_tokenizers.WhitespaceSplit()
    return frequent_units(texts, order, splitter, "<UNK>")


def char(texts: Iterator[str], order: Order) -> Backend:
    splitter = pre_tokenizers.Split(Regex(ONE_CHARACTER), "isolated")
    backend = frequent_units(texts, order, splitter, "<unk>")
    backend.decoder = decoders.Fuse()
    return backend


def frequent_units(
    texts: Iterator[str], order: Order, splitter: pre_tokenizers.PreTokenizer, unk: str
) -> Backend:
    """Build a vocabulary of the units that occur often enough, most frequent first."""
    normalizer = normalizers.Lowercase() if order.lowercase else None
    counted = count_words(texts, normalizer, splitter)
    units = [unit for unit, n in counted if n >= order.min_count and unit not in order.specials]
    if not units:
        raise UserError(
            f"nothing occurs {order.min_count:,} times, the most frequent only {counted[0][1]:,}; "
            "lower the minimum count"
        )
    kept = [*order.specials, *units[: order.size - len(order.specials)]]
    backend = Backend(models.WordLevel({unit: i for i, unit in enumerate(kept)}, unk_token=unk))
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = splitter
    return backend


def subword(
    pad: str, unk: str, first: str, last: str, mask: str, build: Callable[..., Backend], least: int | None
) -> Plan:
    """Lay out a kind that serves every objective: one token begins a text, one ends it."""
    roles = {"pad": pad, "unk": unk, "bos": first, "eos": last, "cls": first, "sep": last, "mask": mask}
    return Plan((pad, unk, first, last, mask), roles, 8000, least, 100, True, build)


PLANS = {
    "bpe": subword("<pad>", "<unk>", "<s>", "</s>", "<mask>", bpe, 2),
    "wordpiece": subword("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", wordpiece, 2),
    "unigram": subword("<pad>", "<unk>", "<s>", "</s>", "<mask>", unigram, None),
    "word": Plan(
        specials=("<START>", "<STOP>", "<UNK>", "<PAD>"),
        roles={"pad": "<PAD>", "unk": "<UNK>", "bos": "<START>", "eos": "<STOP>",
               "cls": "<START>", "sep": "<STOP>"},
        size=UNLIMITED, min_count=2, sentinels=0, template=True, build=word,
    ),
    "char": Plan(
        specials=("<pad>", "<mask>", "<unk>"),
        roles={"pad": "<pad>", "unk": "<unk>", "mask": "<mask>"},
        size=UNLIMITED, min_count=1, sentinels=0, template=False, build=char,
    ),
}  # fmt: skip
KINDS = tuple(PLANS)
MASK_KINDS = tuple(kind for kind, plan in PLANS.items() if "mask" in plan.roles)


def missing_mask_error(what: str) -> UserError:
    kinds = ", ".join(MASK_KINDS)
    return UserError(f"this tokenizer has no mask token; {what} needs one (kinds that have it: {kinds})")
