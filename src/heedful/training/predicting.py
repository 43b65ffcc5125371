"""A file of texts into a file of labels, in constant memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from heedful.data.columns import Layout, Sheet, Wanted, find_layout, open_sheet
from heedful.data.named import NAMED, WORLD, rules_of
from heedful.data.readers import read_json
from heedful.data.store import read_text
from heedful.data.tasks import split_files
from heedful.errors import UserError
from heedful.progress import progress
from heedful.runs.files import beside, write_error
from heedful.training.evaluating import reads_pairs
from heedful.training.loading import Adapted, Answer, told

CHUNK_ROWS, CHUNK_CHARS = 1024, 2**23
"""Rows that are held at a time, by number and by length."""
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")

Row = tuple[list[Any], str, str | None]
"""All cells, the text, its pair."""


@dataclass(frozen=True)
class Labelled:
    """What was written."""

    rows: int
    counts: dict[str, int]
    """Rows a label."""
    columns: tuple[str, str]
    """The names of the new columns, of the label and its probability."""


class Labeller:
    """A run's model and what its task knows of texts."""

    def __init__(self, run: str | Path, adapted: Adapted) -> None:
        _, config = told(run)
        self.run, self.adapted = Path(run), adapted
        self.pairs: bool | None = config["pairs"] if "pairs" in config else reads_pairs(run)
        named = NAMED.get(config["task"]) or WORLD.get(config["task"])
        rules = named or rules_of(Path(config["task"]))
        self.change: Callable[[str], str] = rules.change or str
        stated = (config.get(f"{role}_column") for role in ("text", "pair", "label"))
        known = (rules.columns.text, rules.columns.pair, rules.columns.label)
        self.wanted = Wanted(*(mine or theirs for mine, theirs in zip(stated, known, strict=True)))
        self.place = None if named else Path(config["task"])
        """Where the task's files are, if they are a person's own."""

    def one(self, text: str, pair: str | None) -> Answer:
        """Label one text, or a pair."""
        self.refuse_other(pair is not None, "the second text stands after the first")
        second = None if pair is None else [self.change(pair)]
        return self.adapted.predict([self.change(text)], second)[0]

    def refuse_other(self, paired: bool, advice: str) -> None:
        """A model of pairs needs pairs, and one of single texts has no use for them."""
        if self.pairs and not paired:
            raise UserError(f"{self.run}: labels pairs of texts; {advice}")
        if self.pairs is False and paired:
            raise UserError(f"{self.run}: labels single texts, not pairs")

    def file(
        self, source: Path, out: Path, *, text_column: str | None, pair_column: str | None, overwrite: bool
    ) -> Labelled:
        """Label every row of a file; the new file appears when it is complete."""
        if out.suffix.lower() not in (*DELIMITERS, *LINES):
            raise UserError(f"--out {out}: is one of {', '.join((*DELIMITERS, *LINES))}")
        if out.exists() and not overwrite:
            raise UserError(f"--out {out}: is there already; --overwrite replaces it")
        trained = self.wanted if self.place is None else trained_columns(self.place, self.wanted)
        stated = [name for name in (text_column, pair_column) if name]
        sheet = every_key(open_sheet(source, [*stated, *trained.names()]))
        layout = self.layout(sheet, trained, text_column, pair_column)
        total = sum(1 for _ in self.rows(sheet, layout))  # a row that is wrong is found before the first hour
        columns = new_columns(sheet.names)
        temporary = beside(out)
        counts = Counter(dict.fromkeys(self.adapted.labels, 0))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                temporary.open("x", encoding="utf-8", newline="") as file,
                progress("labelling (rows)", total) as shown,
            ):
                write = writer(file, out, [*sheet.names, *columns])
                for chunk in chunks(self.rows(sheet, layout)):
                    answers = self.answers(chunk, layout)
                    for (cells, _, _), answer in zip(chunk, answers, strict=True):
                        write([*cells, answer.label, float(f"{answer.confidence:.6g}")])
                    counts.update(answer.label for answer in answers)
                    shown.advance(len(chunk))
            temporary.replace(out)
        except OSError as error:
            raise write_error(out, error) from None
        finally:
            temporary.unlink(missing_ok=True)
        return Labelled(counts.total(), dict(counts), columns)

    def layout(self, sheet: Sheet, trained: Wanted, text: str | None, pair: str | None) -> Layout:
        """The columns to read: those named, those the task had, or those found as for a task."""
        names = (trained.text, trained.pair, trained.label)
        known = [name if name in sheet.names else None for name in names]
        wanted = Wanted(text or known[0], pair or (None if text else known[1]), known[2])
        found = find_layout(sheet, wanted, labelled=False)
        if self.pairs is False and pair is None:
            return Layout(found.text, None, None)
        self.refuse_other(found.pair is not None, f"--pair-column names the second text in {sheet.path}")
        return found

    def rows(self, sheet: Sheet, layout: Layout) -> Iterator[Row]:
        """Every row with all its cells, its texts checked."""
        names = list(sheet.names)
        tabular = sheet.format in ("jsonl", "parquet")
        text, pair = names.index(layout.text), None if layout.pair is None else names.index(layout.pair)
        for number, cells in sheet.rows(names) if tabular else sheet.cells(range(len(names))):
            first = read_text(sheet, number, layout.text, cells[text])
            second = None if pair is None else read_text(sheet, number, layout.pair, cells[pair])
            yield list(cells), first, second

    def answers(self, chunk: Sequence[Row], layout: Layout) -> list[Answer]:
        """Label some rows."""
        texts = [self.change(text) for _, text, _ in chunk]
        pairs = None if layout.pair is None else [self.change(str(pair)) for _, _, pair in chunk]
        return self.adapted.predict(texts, pairs)


def trained_columns(place: Path, wanted: Wanted) -> Wanted:
    """The columns that were trained on: as the task's files have them, where these are still there."""
    try:
        files = {"train": place} if place.is_file() else split_files(place)
        sheet = open_sheet(files["train"], wanted.names())
        found = find_layout(sheet, wanted)
    except (UserError, OSError, KeyError):
        return wanted
    return Wanted(found.text, found.pair, found.label) if sheet.header else wanted


def every_key(sheet: Sheet) -> Sheet:
    """A sheet with the keys of all objects of a JSON lines file, also of those behind its beginning."""
    if sheet.format != "jsonl":
        return sheet
    names = tuple(dict.fromkeys([*sheet.names, *(key for _, row in read_json(sheet.path) for key in row)]))
    more = [None] * (len(names) - len(sheet.names))
    return replace(sheet, names=names, sample=tuple([*row, *more] for row in sheet.sample))


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """So many rows at a time that they fit in memory."""
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += sum(len(cell) if isinstance(cell, str) else 64 for cell in row[0])
        if len(held) >= CHUNK_ROWS or size >= CHUNK_CHARS:
            yield held
            held, size = [], 0
    if held:
        yield held


def new_columns(names: Sequence[str]) -> tuple[str, str]:
    """Names for what is added, other than those that are there."""
    label, confidence = "label", "confidence"
    while label in names or confidence in names:
        label, confidence = f"predicted_{label}", f"predicted_{confidence}"
    return label, confidence


def writer(file: TextIO, out: Path, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """How a row is written: cells are data, whatever stands in them."""
    delimiter = DELIMITERS.get(out.suffix.lower())
    if delimiter is None:
        return lambda row: file.write(
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str) + "\n"
        )
    special = {delimiter, '"', "\n", "\r"}

    def write(row: Sequence[Any]) -> None:
        cells = [quote(plain(cell), special) for cell in row]
        file.write(delimiter.join(cells) + "\n")

    write(names)
    return write


def quote(cell: str, special: set[str]) -> str:
    """A cell of a CSV file (RFC 4180). Python's writer leaves a lone carriage return bare; it ends a row."""
    return cell if special.isdisjoint(cell) else '"' + cell.replace('"', '""') + '"'


def plain(cell: Any) -> str:
    """A cell as text; a number keeps all its digits."""
    if isinstance(cell, float):
        return repr(cell)
    if cell is None or isinstance(cell, str):
        return cell or ""
    return json.dumps(cell, ensure_ascii=False, default=str)
