"""Corpora: streams of texts from files, folders and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from heedful.data import cache, readers
from heedful.data.bad_rows import BadRows
from heedful.data.columns import ColumnChoice, find_layout, open_sheet
from heedful.data.named_tasks import TASKS
from heedful.data.notices import notify
from heedful.data.splits import Split, content_key
from heedful.data.store import read_examples
from heedful.data.tasks import find_task, load_task, split_files
from heedful.data.text_files import read_lines, split_name, strip_line_end
from heedful.errors import UserError

T = TypeVar("T")
UNLABELED = ("unlabeled.txt", "unlabelled.txt")
Documents = Literal["line", "paragraph", "file"]
PIECE_CHARS = 2**14
"""Length of the pieces in which a file that is one document is read, up to the end of a line."""


@dataclass(frozen=True)
class HashShare:
    """A share of the texts, chosen by a hash of their content: the same text is always on the same side."""

    share: float
    held_out: bool
    seed: int = 0

    def has(self, text: str) -> bool:
        return (content_key(self.seed, text, None) < self.share * 2**64) == self.held_out


@dataclass(frozen=True)
class Corpus:
    """Texts that can be read again and again, never all in memory.

    In a text file every line that is not empty is a text, unless `documents` says otherwise: paragraphs are
    separated by empty lines, and a whole file is read in order, in pieces of about 16,000 characters. In a
    table the text and its pair are two texts.
    """

    name: str
    files: tuple[Path, ...] = ()
    split: Split | None = None
    change: Callable[[str], str] | None = None
    documents: Documents = "line"
    part: HashShare | None = None

    def __iter__(self) -> Iterator[str]:
        yield from self.all() if self.part is None else filter(self.part.has, self.all())

    def all(self) -> Iterator[str]:
        """Yield every text, including those that `part` leaves out."""
        if self.split is not None:
            for texts, pairs in self.split.iterate_texts():
                for i, text in enumerate(texts):
                    yield text
                    if pairs is not None:
                        yield pairs[i]
        for path in self.files:
            yield from read_file_texts(path, self.change, self.documents)

    def hold_out(self, share: float, seed: int = 0) -> tuple[Corpus, Corpus]:
        rest, held = (replace(self, part=HashShare(share, held, seed)) for held in (False, True))
        return rest, held

    @property
    def megabytes(self) -> int | None:
        """The size of the files; None if the corpus is a split of a task."""
        return None if self.split else sum(path.stat().st_size for path in self.files) // 10**6

    @property
    def fingerprint(self) -> str:
        files = [(split_name(path)[1], cache.hash_content(path)) for path in self.files]
        change = getattr(self.change, "__name__", "")
        how: list[object] = [] if self.documents == "line" else [self.documents]
        if self.part is not None:
            how.append([self.part.share, self.part.held_out, self.part.seed])
        return cache.digest("corpus", self.split.fingerprint if self.split else "", files, change, *how)


def read_file_texts(
    path: Path, change: Callable[[str], str] | None = None, documents: Documents = "line"
) -> Iterator[str]:
    if readers.detect_format(path) == "text":
        lines = (line for _, line in read_lines(path))
        for text in join_lines(lines, documents):
            if not text.isspace():
                yield change(text) if change else text
        return
    sheet = open_sheet(path)
    layout = find_layout(sheet, ColumnChoice(), labeled=False)
    bad, count = BadRows(), 0
    for _, text, pair, *_ in read_examples(sheet, layout, change, bad):
        count += 1
        yield text
        if pair is not None:
            yield pair
    bad.refuse_bad_file(count)
    if skipped := bad.describe(path, count):
        notify(f"{path}: {skipped}")


def join_lines(lines: Iterable[str], documents: Documents) -> Iterator[str]:
    """Join the lines of a file into documents, without the end of their last line."""
    if documents == "line":
        yield from filter(None, map(strip_line_end, lines))
        return
    document: list[str] = []
    size = 0
    for line in lines:
        ends = documents == "paragraph" and line.isspace()
        if not ends:
            document.append(line)
            size += len(line)
        if document and (ends or (documents == "file" and size >= PIECE_CHARS)):
            yield strip_line_end("".join(document))
            document, size = [], 0
    if document:
        yield strip_line_end("".join(document))


def list_corpus_splits(source: str | Path, *, data_dir: Path | None = None) -> list[str]:
    """Return which of train, dev and test a corpus has as separate splits; a single file is train."""
    name = str(source)
    place, rules = find_task(name, data_dir)
    if place.is_file() or rules.corpus:
        return ["train"]
    parts: Iterable[str] = find_split_files(place, rules.more_splits)
    if name in TASKS or ("train" in parts and is_table(find_split_files(place)["train"])):
        parts = load_task(name, data_dir=data_dir).splits
    return [split for split in ("train", "dev", "test") if split in parts] or ["train"]


def open_corpus(source: str | Path, *, data_dir: Path | None = None, split: str = "train") -> Corpus:
    """Open a corpus: a file, a folder of files, or a task.

    The corpus of a task, or of a folder with train, dev and test files, is one split; that of train includes
    `unlabeled.txt` if there is one. A task with a corpus file (`birthplaces`) gives that instead.
    """
    name = str(source)
    place, rules = find_task(name, data_dir)
    if place.is_file():
        readers.detect_format(place)
        return Corpus(name, (place,))
    parts = find_split_files(place, rules.more_splits)
    extra = tuple(place / file for file in UNLABELED if (place / file).is_file()) if split == "train" else ()
    if rules.corpus and split == "train":
        if not (place / rules.corpus).is_file():
            raise UserError(f"{place}: its corpus {rules.corpus} is missing")
        return Corpus(name, (place / rules.corpus,))
    if name in TASKS or ("train" in parts and is_table(parts["train"])):
        task = load_task(name, data_dir=data_dir)
        return Corpus(name, extra, choose_split(task.splits, split, place), rules.change)
    if parts:
        return Corpus(name, (choose_split(parts, split, place), *extra))
    return Corpus(name, tuple(list_text_files(place)))


def find_split_files(place: Path, more: Iterable[str] = ()) -> dict[str, Path]:
    """Return the file of each split of a folder; none if all its files are in subfolders."""
    below = list_text_files(place)
    return {} if below and all(path.parent != place for path in below) else split_files(place, more)


def list_text_files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if readers.is_data_file(path))


def choose_split(parts: dict[str, T], split: str, place: Path) -> T:
    if split not in parts:
        raise UserError(f"{place}: no {split} split; there are {', '.join(parts)}")
    return parts[split]


def is_table(path: Path) -> bool:
    return len(open_sheet(path).names) > 1


def corpus_texts(source: str | Path, *, data_dir: Path | None = None, split: str = "train") -> Iterator[str]:
    """Stream the texts of a text file, a folder, a CSV, TSV, JSON lines or Parquet file, or a task."""
    return iter(open_corpus(source, data_dir=data_dir, split=split))
