"""The tokenizer of a run: one that is named, the model's own, or one trained on the run's text."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from heedful import __version__, text
from heedful.data import Task
from heedful.data.cache import build_once, digest
from heedful.data.corpus import Corpus, read_file_texts
from heedful.errors import UserError, unknown
from heedful.families import FAMILIES
from heedful.logs import notice
from heedful.models import PRESETS
from heedful.objectives.registry import OBJECTIVES
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.progress import track
from heedful.text import KINDS, MASK_KINDS, Tokenizer, missing_mask_error
from heedful.training.build.model import preset_family, starts_from_scratch


def task_tokenizer(options: AdaptOptions, task: Task) -> Tokenizer:
    tokenizer = load_existing_tokenizer(options)
    if tokenizer is not None:
        return tokenizer
    return text.train(task_texts(task), kind=str(options.tokenizer))


def load_existing_tokenizer(options: AdaptOptions) -> Tokenizer | None:
    """Load the tokenizer that is named, or the model's own; None where one is to be trained on the task."""
    name, model, from_scratch = options.tokenizer, options.model, starts_from_scratch(options.model)
    if name is None and from_scratch:
        raise UserError(
            f"{model} is a model from nothing and has no tokenizer; --tokenizer names one (minilm, a folder) "
            "or a kind to train (wordpiece, bpe, ...)"
        )
    if name is None:
        return text.load(model, other_names=PRESETS)
    if name not in KINDS or Path(name).is_dir():
        return text.load(name)
    if not from_scratch:
        raise UserError(f"--tokenizer {name}: {model} has a vocabulary already; leave the option out")
    objective = options.objective
    if objective != "auto" and OBJECTIVES.find(objective).hides_tokens and name not in MASK_KINDS:
        raise missing_mask_error(f"--objective {objective}")
    return None


def task_texts(task: Task) -> Iterator[str]:
    """Yield the texts that a task's own tokenizer is trained on: its corpus, and train with its answers."""
    if task.corpus is not None:
        yield from read_file_texts(task.corpus)
    train = task.splits["train"]
    for column in (train.texts, train.pairs, train.answers):
        yield from column or ()


def corpus_tokenizer(options: PretrainOptions, train: Corpus) -> Tokenizer:
    """Return the tokenizer for pretraining. A model that has weights keeps its vocabulary."""
    kind, family = options.tokenizer, preset_family(options.model)
    if kind is None and family is None:
        kind = options.model
    elif kind is None:
        form = FAMILIES[family].tokenizer if family is not None and family in FAMILIES else None
        kind = "char" if options.model.startswith("char") else form.kind if form is not None else "bpe"
        notice(f"a {kind} tokenizer is trained on the training text")
    if kind in KINDS and not Path(kind).is_dir():
        if family is None:
            raise UserError(
                f"--tokenizer {kind}: {options.model} goes on with the vocabulary it has; "
                "leave the option out"
            )
        return train_on_corpus(train, kind, options.vocab_size, options.min_count)
    if family is not None and not Path(kind).exists() and difflib.get_close_matches(kind, KINDS):
        raise unknown("tokenizer", kind, KINDS)
    if options.vocab_size is not None or options.min_count is not None:
        raise UserError(f"--vocab-size and --min-count belong to a tokenizer that is trained, not to {kind}")
    return text.load(kind)


def train_on_corpus(corpus: Corpus, kind: str, vocab_size: int | None, min_count: int | None) -> Tokenizer:
    """Train a tokenizer, or load it from the cache if the same text and options were used before."""
    key = digest("tokenizer", __version__, corpus.fingerprint, kind, vocab_size, min_count)

    def train_and_save(folder: Path) -> None:
        texts = track(corpus, f"reading {corpus.name} for a {kind} tokenizer")
        text.train(texts, kind=kind, vocab_size=vocab_size, min_count=min_count).save(folder)

    return text.load(build_once("tokenizers", key, train_and_save))
