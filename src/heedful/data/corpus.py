"""Corpora: streams of texts from files, folders and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from heedful.data import cache, readers
from heedful.data.columns import Wanted, find_layout, open_sheet
from heedful.data.named import NAMED, WORLD
from heedful.data.splits import Split
from heedful.data.store import read_examples
from heedful.data.tasks import find_task, load_task, split_files
from heedful.errors import UserError

T = TypeVar("T")
UNLABELLED = ("unlabeled.txt", "unlabelled.txt")


@dataclass(frozen=True)
class Corpus:
    """Texts that can be gone through again and again, never all in memory.

    Of a text file every line is a text, empty ones apart; of a table the text and its pair are two texts.
    """

    name: str
    files: tuple[Path, ...] = ()
    split: Split | None = None
    change: Callable[[str], str] | None = None

    def __iter__(self) -> Iterator[str]:
        if self.split is not None:
            for texts, pairs in self.split.scan():
                for place, text in enumerate(texts):
                    yield text
                    if pairs is not None:
                        yield pairs[place]
        for path in self.files:
            yield from file_texts(path, self.change)

    @property
    def megabytes(self) -> int | None:
        """How much there is to read; None when it is a part of files."""
        return None if self.split else sum(path.stat().st_size for path in self.files) // 10**6

    @property
    def fingerprint(self) -> str:
        """A hash of every text and their order."""
        files = [(path.suffix.lower(), cache.content_hash(path)) for path in self.files]
        change = getattr(self.change, "__name__", "")
        return cache.digest("corpus", self.split.fingerprint if self.split else "", files, change)


def file_texts(path: Path, change: Callable[[str], str] | None = None) -> Iterator[str]:
    """Yield the texts of one file."""
    if readers.format_of(path) == "text":
        for _, line in readers.read_lines(path):
            if line and not line.isspace():
                line = readers.without_end(line)
                yield change(line) if change else line
        return
    sheet = open_sheet(path)
    for _, text, pair, _ in read_examples(sheet, find_layout(sheet, Wanted(), labelled=False), change):
        yield text
        if pair is not None:
            yield pair


def open_corpus(source: str | Path, *, data_dir: Path | None = None, split: str = "train") -> Corpus:
    """Open a corpus: a file, a folder of files, or a task.

    Of a task, and of a folder with train, dev and test files, it is one split; train's comes with
    `unlabeled.txt` where there is one. A task with a corpus of its own (`birthplaces`) gives that instead.
    """
    name = str(source)
    place, rules = find_task(name, data_dir)
    if place.is_file():
        readers.format_of(place)
        return Corpus(name, (place,))
    parts = split_files(place, rules.more_splits)
    extra = tuple(place / file for file in UNLABELLED if (place / file).is_file()) if split == "train" else ()
    if rules.corpus and split == "train":
        if not (place / rules.corpus).is_file():
            raise UserError(f"{place}: its corpus {rules.corpus} is missing")
        return Corpus(name, (place / rules.corpus,))
    if name in NAMED or name in WORLD or ("train" in parts and is_table(parts["train"])):
        task = load_task(name, data_dir=data_dir)
        return Corpus(name, extra, chosen(task.splits, split, place), rules.change)
    if parts:
        return Corpus(name, (chosen(parts, split, place), *extra))
    files = tuple(sorted(p for p in place.rglob("*") if p.suffix.lower() in readers.FORMATS and p.is_file()))
    return Corpus(name, files)


def chosen(parts: dict[str, T], split: str, place: Path) -> T:
    """Give one of the splits there are."""
    if split not in parts:
        raise UserError(f"{place}: no {split} split; there are {', '.join(parts)}")
    return parts[split]


def is_table(path: Path) -> bool:
    """Tell whether a file has several columns, and so is more than lines of text."""
    return len(open_sheet(path).names) > 1


def corpus_texts(source: str | Path, *, data_dir: Path | None = None, split: str = "train") -> Iterator[str]:
    """Stream the texts of a text file, a folder, a CSV, TSV, JSON lines or Parquet file, or a task."""
    return iter(open_corpus(source, data_dir=data_dir, split=split))
