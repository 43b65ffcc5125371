"""Data: files, Hub datasets and a generated world; splits, corruption and batches."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.api.data import show as show
    from heedful.data.corpus import Corpus as Corpus
    from heedful.data.corpus import corpus_texts as corpus_texts
    from heedful.data.corpus import open_corpus as open_corpus
    from heedful.data.manifest import save_manifest as save_manifest
    from heedful.data.sources import materialize as materialize
    from heedful.data.splits import Example as Example
    from heedful.data.splits import Split as Split
    from heedful.data.tasks import Task as Task
    from heedful.data.tasks import load_task as load_task
    from heedful.data.tokens import Tokens as Tokens
    from heedful.data.tokens import tokenize as tokenize

PUBLIC = {
    "Corpus": "corpus",
    "Example": "splits",
    "Split": "splits",
    "Task": "tasks",
    "Tokens": "tokens",
    "corpus_texts": "corpus",
    "load_task": "tasks",
    "materialize": "sources",
    "open_corpus": "corpus",
    "save_manifest": "manifest",
    "tokenize": "tokens",
}


def __getattr__(name: str) -> Any:
    if name == "show":  # it needs layers above this one
        return import_module("heedful.api.data").show
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PUBLIC[name]}"), name)
