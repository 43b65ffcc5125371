"""The text that a language model is trained on, by splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heedful.data import Tokens, tokenize
from heedful.data.corpus import Corpus, list_corpus_splits, open_corpus
from heedful.errors import UserError
from heedful.evaluation.checks.findings import percent
from heedful.options.training import PretrainOptions
from heedful.text import Tokenizer

SPLIT_SEED = 0
"""Seed of the held-out part. It is never the training seed, so that runs with other seeds share the split."""


@dataclass(frozen=True)
class CorpusSplits:
    """The splits of a corpus, with a description of where each comes from."""

    name: str
    splits: dict[str, Corpus]
    how: dict[str, str]

    def tokens(self, tokenizer: Tokenizer, special: bool = True) -> dict[str, Tokens]:
        return {name: tokenize(corpus, tokenizer, special=special) for name, corpus in self.splits.items()}


def open_splits(options: PretrainOptions) -> CorpusSplits:
    """Open train, dev and test: the corpus's own splits, those that are named, or a held-out part as dev."""
    o = options
    own_splits = list_corpus_splits(o.corpus, data_dir=o.data_dir)
    splits: dict[str, Corpus] = {}
    how: dict[str, str] = {}
    for split, named in (("train", o.corpus), ("dev", o.dev), ("test", o.test)):
        if split == "train" or named is not None:
            corpus = open_corpus(str(named), data_dir=o.data_dir if split == "train" else None)
        elif split in own_splits:
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
    return CorpusSplits(Path(o.corpus).stem if Path(o.corpus).exists() else o.corpus, splits, how)
