"""The text that a language model is trained on: its splits, and the tokenizer that goes with it."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from heedful import __version__, text
from heedful.data import Tokens, tokenize
from heedful.data.cache import build_once, digest
from heedful.data.corpus import Corpus, list_corpus_splits, open_corpus
from heedful.errors import UserError, unknown
from heedful.evaluation.checks.findings import percent
from heedful.families import FAMILIES
from heedful.options.training import PretrainOptions
from heedful.progress import track
from heedful.text import Tokenizer

SPLIT_SEED = 0
"""Of the part that is held out: never the training's own, so that runs with other seeds share it."""


@dataclass(frozen=True)
class Texts:
    """A corpus by splits, and in words where each comes from."""

    name: str
    splits: dict[str, Corpus]
    how: dict[str, str]

    def tokens(self, tokenizer: Tokenizer, special: bool = True) -> dict[str, Tokens]:
        """The ids of every split."""
        return {name: tokenize(corpus, tokenizer, special=special) for name, corpus in self.splits.items()}


def open_texts(options: PretrainOptions) -> Texts:
    """Find train, dev and test: the corpus's own, those that were named, or a part held out as dev."""
    o = options
    own = list_corpus_splits(o.corpus, data_dir=o.data_dir)
    splits: dict[str, Corpus] = {}
    how: dict[str, str] = {}
    for split, named in (("train", o.corpus), ("dev", o.dev), ("test", o.test)):
        if split == "train" or named is not None:
            corpus = open_corpus(str(named), data_dir=o.data_dir if split == "train" else None)
        elif split in own:
            corpus = open_corpus(o.corpus, data_dir=o.data_dir, split=split)
        else:
            continue
        splits[split] = replace(corpus, documents=o.documents)
        how[split] = str(named) if named is not None else f"{o.corpus}'s own"
    if "dev" not in splits and o.dev_share:
        train, dev = splits["train"].hold_out(o.dev_share, SPLIT_SEED)
        if next(iter(dev), None) is None or next(iter(train), None) is None:
            raise UserError(
                f"{o.corpus}: has too few documents to hold out {percent(o.dev_share)} of them; "
                "--dev names a text, --dev-share 0 does without, --documents divides otherwise"
            )
        splits = {"train": train, "dev": dev} | {k: v for k, v in splits.items() if k != "train"}
        how |= {"dev": f"{percent(o.dev_share)} of {o.corpus}, by content hash"}
    return Texts(Path(o.corpus).stem if Path(o.corpus).exists() else o.corpus, splits, how)


def find_tokenizer(options: PretrainOptions, train: Corpus, family: str | None) -> Tokenizer:
    """The tokenizer that was named, the model's own, or one trained on the training text.

    `family` is that of a model from nothing; one that goes on keeps its vocabulary.
    """
    o = options
    kind = o.tokenizer
    if kind is None and family is None:
        kind = o.model
    elif kind is None:
        form = FAMILIES[family].tokenizer if family is not None and family in FAMILIES else None
        kind = "char" if o.model.startswith("char") else form.kind if form is not None else "bpe"
        print(f"heedful: a {kind} tokenizer is trained on the training text", file=sys.stderr)
    if kind in text.KINDS and not Path(kind).is_dir():
        if family is None:
            raise UserError(
                f"--tokenizer {kind}: {o.model} goes on with the vocabulary it has; leave the option out"
            )
        return trained(train, kind, o.vocab_size, o.min_count)
    if family is not None and not Path(kind).exists() and difflib.get_close_matches(kind, text.KINDS):
        raise unknown("tokenizer", kind, text.KINDS)
    if o.vocab_size is not None or o.min_count is not None:
        raise UserError(f"--vocab-size and --min-count belong to a tokenizer that is trained, not to {kind}")
    return text.load(kind)


def trained(corpus: Corpus, kind: str, vocab_size: int | None, min_count: int | None) -> Tokenizer:
    """Train a tokenizer, once for the same text and options."""
    key = digest("tokenizer", __version__, corpus.fingerprint, kind, vocab_size, min_count)

    def build(folder: Path) -> None:
        texts = track(corpus, f"reading {corpus.name} for a {kind} tokenizer")
        text.train(texts, kind=kind, vocab_size=vocab_size, min_count=min_count).save(folder)

    return text.load(build_once("tokenizers", key, build))
