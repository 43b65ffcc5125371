"""Labeling a file of texts, in constant memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from heedful.data.columns import ColumnChoice, Layout, Sheet, find_layout, open_sheet
from heedful.data.named_tasks import TASKS, find_rules
from heedful.data.readers import read_json
from heedful.data.store import check_text
from heedful.data.tasks import split_files
from heedful.errors import UserError
from heedful.inference.loading import read_run_facts, reads_pairs
from heedful.inference.predictor import PredictedLabel, Predictor
from heedful.progress import progress
from heedful.runs.files import temporary_path, write_error

CHUNK_ROWS, CHUNK_CHARS = 1024, 2**23
"""Rows that are held at a time, by number and by length."""
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")

Row = tuple[list[Any], str, str | None]
"""All cells, the text, its pair."""


@dataclass(frozen=True)
class LabeledFile:
    rows: int
    counts: dict[str, int]
    """Number of rows per label."""
    columns: tuple[str, str]
    """Names of the new columns: the label and its probability."""


class Labeler:
    """A run's predictor, with the columns and the text preparation of its task."""

    def __init__(self, run: str | Path, predictor: Predictor) -> None:
        _, config = read_run_facts(run)
        self.run, self.predictor = Path(run), predictor
        self.pairs: bool | None = config["pairs"] if "pairs" in config else reads_pairs(run)
        named = TASKS.get(config["task"])
        rules = named or find_rules(Path(config["task"]))
        self.change: Callable[[str], str] = rules.change or str
        stated = (config.get(f"{role}_column") for role in ("text", "pair", "label"))
        defaults = (rules.columns.text, rules.columns.pair, rules.columns.label)
        self.wanted = ColumnChoice(*(one or default for one, default in zip(stated, defaults, strict=True)))
        self.task_path = None if named else Path(config["task"])
        """The task's files, unless the task is built in."""

    def label_text(self, text: str, pair: str | None) -> PredictedLabel:
        self.check_pairs(pair is not None, "give the second text after the first")
        if not text.strip() or (pair is not None and not pair.strip()):
            raise UserError("the text is empty: there is nothing to label")
        second = None if pair is None else [self.change(pair)]
        return self.predictor.predict([self.change(text)], second)[0]

    def check_pairs(self, paired: bool, advice: str) -> None:
        """Refuse single texts for a model of pairs, and pairs for a model of single texts."""
        if self.pairs and not paired:
            raise UserError(f"{self.run}: labels pairs of texts; {advice}")
        if self.pairs is False and paired:
            raise UserError(f"{self.run}: labels single texts, not pairs")

    def label_file(
        self, source: Path, out: Path, *, text_column: str | None, pair_column: str | None, overwrite: bool
    ) -> LabeledFile:
        """Label every row of a file; the new file appears when it is complete."""
        if out.suffix.lower() not in (*DELIMITERS, *LINES):
            raise UserError(f"--out {out}: is one of {', '.join((*DELIMITERS, *LINES))}")
        if out.exists() and not overwrite:
            raise UserError(f"--out {out}: is there already; --overwrite replaces it")
        trained = self.wanted if self.task_path is None else trained_columns(self.task_path, self.wanted)
        stated = [name for name in (text_column, pair_column) if name]
        sheet = with_all_keys(open_sheet(source, [*stated, *trained.names()]))
        layout = self.layout(sheet, trained, text_column, pair_column)
        total = sum(1 for _ in self.rows(sheet, layout))  # a row that is wrong is found before the first hour
        columns = new_columns(sheet.names)
        temporary = temporary_path(out)
        counts = Counter(dict.fromkeys(self.predictor.labels, 0))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                temporary.open("x", encoding="utf-8", newline="") as file,
                progress("labeling (rows)", total) as shown,
            ):
                write = row_writer(file, out, [*sheet.names, *columns])
                for chunk in chunks(self.rows(sheet, layout)):
                    answers = self.label_rows(chunk, layout)
                    for (cells, _, _), answer in zip(chunk, answers, strict=True):
                        write([*cells, answer.label, float(f"{answer.confidence:.6g}")])
                    counts.update(answer.label for answer in answers)
                    shown.advance(len(chunk))
            temporary.replace(out)
        except OSError as error:
            raise write_error(out, error) from None
        finally:
            temporary.unlink(missing_ok=True)
        return LabeledFile(counts.total(), dict(counts), columns)

    def layout(self, sheet: Sheet, trained: ColumnChoice, text: str | None, pair: str | None) -> Layout:
        """Return the columns to read: those named, those of the task, or those chosen as for a task."""
        names = (trained.text, trained.pair, trained.label)
        present = [name if name in sheet.names else None for name in names]
        wanted = ColumnChoice(text or present[0], pair or (None if text else present[1]), present[2])
        chosen = find_layout(sheet, wanted, labeled=False)
        if self.pairs is False and pair is None:
            return Layout(chosen.text, None, None)
        self.check_pairs(chosen.pair is not None, f"--pair-column names the second text in {sheet.path}")
        return chosen

    def rows(self, sheet: Sheet, layout: Layout) -> Iterator[Row]:
        """Yield every row with all its cells, after checking its texts."""
        names = list(sheet.names)
        tabular = sheet.format in ("jsonl", "parquet")
        text, pair = names.index(layout.text), None if layout.pair is None else names.index(layout.pair)
        for number, cells in sheet.rows(names) if tabular else sheet.cells(range(len(names))):
            first = check_text(sheet, number, layout.text, cells[text])
            second = None if pair is None else check_text(sheet, number, layout.pair, cells[pair])
            yield list(cells), first, second

    def label_rows(self, chunk: Sequence[Row], layout: Layout) -> list[PredictedLabel]:
        texts = [self.change(text) for _, text, _ in chunk]
        pairs = None if layout.pair is None else [self.change(str(pair)) for _, _, pair in chunk]
        return self.predictor.predict(texts, pairs)


def trained_columns(path: Path, wanted: ColumnChoice) -> ColumnChoice:
    """Return the columns of the task's files, where these still exist."""
    try:
        files = {"train": path} if path.is_file() else split_files(path)
        sheet = open_sheet(files["train"], wanted.names())
        layout = find_layout(sheet, wanted)
    except (UserError, OSError, KeyError):
        return wanted
    return ColumnChoice(layout.text, layout.pair, layout.label) if sheet.header else wanted


def with_all_keys(sheet: Sheet) -> Sheet:
    """Return the sheet with the keys of all objects of a JSON Lines file, not only of its first ones."""
    if sheet.format != "jsonl":
        return sheet
    names = tuple(dict.fromkeys([*sheet.names, *(key for _, row in read_json(sheet.path) for key in row)]))
    more = [None] * (len(names) - len(sheet.names))
    return replace(sheet, names=names, sample=tuple([*row, *more] for row in sheet.sample))


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
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
    """Return names for the added columns that the file does not have yet."""
    label, confidence = "label", "confidence"
    while label in names or confidence in names:
        label, confidence = f"predicted_{label}", f"predicted_{confidence}"
    return label, confidence


def row_writer(file: TextIO, out: Path, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return a function that writes a row; cells are data, whatever they contain."""
    delimiter = DELIMITERS.get(out.suffix.lower())
    if delimiter is None:
        return lambda row: file.write(
            json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str) + "\n"
        )
    special = {delimiter, '"', "\n", "\r"}

    def write(row: Sequence[Any]) -> None:
        file.write(delimiter.join(quote(cell_text(cell), special) for cell in row) + "\n")

    write(names)
    return write


def quote(cell: str, special: set[str]) -> str:
    """Quote a cell of a CSV file (RFC 4180); Python's writer leaves a lone carriage return unquoted."""
    return cell if special.isdisjoint(cell) else '"' + cell.replace('"', '""') + '"'


def cell_text(cell: Any) -> str:
    """Return a cell as text; a number keeps all its digits."""
    if isinstance(cell, float):
        return repr(cell)
    if cell is None or isinstance(cell, str):
        return cell or ""
    return json.dumps(cell, ensure_ascii=False, default=str)
