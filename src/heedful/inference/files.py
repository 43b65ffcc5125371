"""Labeling a file of texts, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.bad_rows import BadRows, RowError
from heedful.data.named_tasks import TASKS, TaskRules, find_rules
from heedful.data.notices import notify
from heedful.errors import UserError
from heedful.inference.abstention import AnswerRule
from heedful.inference.loading import read_run_facts, reads_pairs
from heedful.inference.predictions import PredictedLabel, PredictedLabels, PredictedNumber
from heedful.inference.predictor import Predictor
from heedful.progress import progress
from heedful.runs.files import temporary_path, write_error
from heedful.runs.leftovers import clear_leftovers

if TYPE_CHECKING:  # one text is labeled without importing what reads and writes files
    from heedful.data.columns import ColumnChoice, Layout, Sheet

CHUNK_ROWS, CHUNK_CHARS = 1024, 2**23
"""Rows that are held at a time, by number and by length."""

Row = tuple[list[Any], str | None, str | None]
"""All cells, the text, its pair; a row without a text has cells alone."""


@dataclass(frozen=True)
class LabeledFile:
    rows: int
    counts: dict[str, int]
    """Number of rows per label; rows without a text have none."""
    columns: tuple[str, ...]
    """Names of the new columns: the label and its confidence; the labels and the probability of each; or the
    number. Probabilities of each label that were asked for follow."""


class Labeler:
    """A run's predictor, with the columns and the text preparation of its task."""

    def __init__(self, run: str | Path, predictor: Predictor, rule: AnswerRule | None = None) -> None:
        _, config = read_run_facts(run)
        self.run, self.predictor, self.rule = Path(run), predictor, rule
        self.pairs: bool | None = None
        if config["task"]:
            self.pairs = config["pairs"] if "pairs" in config else reads_pairs(run)
        task = config["task"]
        rules = (TASKS.get(task) or find_rules(Path(task))) if task else TaskRules()
        self.change: Callable[[str], str] = rules.change or str
        self.config = config

    def label_text(self, text: str, pair: str | None) -> PredictedLabel:
        first, second = self.prepare_text(text, pair)
        return self.predictor.predict([first], None if second is None else [second], rule=self.rule)[0]

    def prepare_text(self, text: str, pair: str | None) -> tuple[str, str | None]:
        """Return a text, or a pair, in the form of the task's texts; an empty one is refused."""
        self.check_pairs(pair is not None, "give the second text after the first")
        if not text.strip() or (pair is not None and not pair.strip()):
            raise UserError("the text is empty: there is nothing to label")
        return self.change(text), None if pair is None else self.change(pair)

    def label_items(self, items: Sequence[tuple[str, str | None]]) -> list[PredictedLabel]:
        """Label texts, or pairs of texts, whose form the caller has checked."""
        pairs = [self.change(pair) for _, pair in items if pair is not None]
        texts = [self.change(text) for text, _ in items]
        return self.predictor.predict(texts, pairs or None, rule=self.rule)

    def check_pairs(self, paired: bool, advice: str) -> None:
        """Refuse single texts for a model of pairs, and pairs for a model of single texts."""
        if self.pairs and not paired:
            raise UserError(f"{self.run}: labels pairs of texts; {advice}")
        if self.pairs is False and paired:
            raise UserError(f"{self.run}: labels single texts, not pairs")

    def label_file(
        self,
        source: Path,
        out: Path,
        *,
        text_column: str | None,
        pair_column: str | None,
        overwrite: bool,
        strict: bool = False,
        probabilities: bool = False,
        raw_cells: bool = False,
    ) -> LabeledFile:
        """Label every row of a file; the new file appears when it is complete.

        A row whose text is empty is written without a label, and one that cannot be read is left out, with a
        notice; `strict` refuses both. With `probabilities`, there is a column for each label. In CSV and TSV
        files, cells that a spreadsheet would take for a formula get a ' before them, unless `raw_cells`.
        """
        from heedful.data.columns import open_sheet
        from heedful.inference.columns import trained_columns, wanted_columns
        from heedful.inference.row_writers import ColumnTypes, open_writer, refuse_suffix

        refuse_suffix(out)
        if probabilities and not self.predictor.classes:
            raise UserError(f"--probabilities: {self.run} has no labels to give probabilities of")
        if out.exists() and not overwrite:
            raise UserError(f"--out {out}: is there already; --overwrite replaces it")
        wanted, task_path = wanted_columns(self.config)
        trained = trained_columns(task_path, wanted)
        stated = [name for name in (text_column, pair_column) if name]
        sheet = with_all_keys(open_sheet(source, [*stated, *trained.names()]))
        layout = self.layout(sheet, trained, text_column, pair_column)
        bad = BadRows(strict=strict)
        total = good = 0
        types = ColumnTypes(len(sheet.names))
        for cells, text, _ in self.rows(sheet, layout, bad):  # a wrong row is found before the first hour
            total += 1
            good += text is not None
            types.add(cells)
        bad.refuse_bad_file(good)
        if bad.first is not None:
            reason = str(bad.first).removeprefix(str(source)).strip()
            notify(
                f"{source}: {bad.count:,} of {good + bad.count:,} rows get no label, first {reason} "
                f"(--strict refuses such files)"
            )
        columns = self.name_columns(sheet.names, probabilities=probabilities)
        clear_leftovers(out.parent, f".{out.name}.")
        temporary, counts = temporary_path(out), Counter(dict.fromkeys(self.predictor.labels, 0))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            with (
                open_writer(
                    temporary,
                    out,
                    sheet,
                    columns,
                    labels=self.predictor.labels,
                    types=types,
                    text_columns=int(self.predictor.kind != "number"),
                    safe=not raw_cells,
                ) as writer,
                progress("labeling (rows)", total) as shown,
            ):
                for chunk in chunks(self.rows(sheet, layout, BadRows())):
                    answers = iter(self.label_rows([row for row in chunk if row[1] is not None], layout))
                    rows = []
                    for cells, text, _ in chunk:
                        if text is None:
                            rows.append([*cells, *[None] * len(columns)])
                            continue
                        answer = next(answers)
                        rows.append([*cells, *list_cells(answer, probabilities=probabilities)])
                        counts.update(list_labels(answer))
                    writer.write(rows)
                    shown.advance(len(chunk))
            temporary.replace(out)
        except OSError as error:
            raise write_error(out, error) from None
        finally:
            temporary.unlink(missing_ok=True)
        if writer.made_safe:
            notify(
                f"{out}: {writer.made_safe:,} cells begin like a formula, and got a ' before them, so that a "
                "spreadsheet shows them as text; --raw-cells leaves them as they are"
            )
        return LabeledFile(total, dict(counts), columns)

    def name_columns(self, names: Sequence[str], *, probabilities: bool = False) -> tuple[str, ...]:
        """Return the names of the columns with the answers, which the file does not have yet."""
        kind, labels = self.predictor.kind, self.predictor.labels
        if kind == "number":
            return (free_name("number", names),)
        if kind == "labels":
            return free_names(("labels", *labels), names)
        answer = new_columns(names)
        if not probabilities:
            return answer
        return (*answer, *free_names([f"probability_{label}" for label in labels], [*names, *answer]))

    def layout(self, sheet: Sheet, trained: ColumnChoice, text: str | None, pair: str | None) -> Layout:
        """Return the columns to read: those named, those of the task, or those chosen as for a task."""
        from heedful.data.columns import ColumnChoice, Layout, find_layout

        names = (trained.text, trained.pair, trained.label)
        present = [name if name in sheet.names else None for name in names]
        wanted = ColumnChoice(text or present[0], pair or (None if text else present[1]), present[2])
        chosen = find_layout(sheet, wanted, labeled=False)
        if self.pairs is False and pair is None:
            return Layout(chosen.text, None, None)
        self.check_pairs(chosen.pair is not None, f"--pair-column names the second text in {sheet.path}")
        return chosen

    def rows(self, sheet: Sheet, layout: Layout, bad: BadRows) -> Iterator[Row]:
        """Yield every row with all its cells, after checking its texts."""
        from heedful.data.store import check_text

        names = list(sheet.names)
        text, pair = names.index(layout.text), None if layout.pair is None else names.index(layout.pair)
        every = sheet.rows(names, bad) if sheet.is_typed else sheet.cells(range(len(names)), bad)
        for number, cells in every:
            try:
                first = check_text(sheet, number, layout.text, cells[text])
                second = None if pair is None else check_text(sheet, number, layout.pair, cells[pair])
            except RowError as error:
                bad.add(error)
                yield list(cells), None, None
            else:
                yield list(cells), first, second

    def label_rows(self, chunk: Sequence[Row], layout: Layout) -> list[PredictedLabel]:
        if not chunk:
            return []
        texts = [self.change(str(text)) for _, text, _ in chunk]
        pairs = None if layout.pair is None else [self.change(str(pair)) for _, _, pair in chunk]
        return self.predictor.predict(texts, pairs, rule=self.rule)


def with_all_keys(sheet: Sheet) -> Sheet:
    """Return the sheet with the keys of all objects of a JSON Lines file, not only of its first ones."""
    if sheet.format != "jsonl":
        return sheet
    from heedful.data.readers import read_json

    names = tuple(
        dict.fromkeys([*sheet.names, *(key for _, row in read_json(sheet.path, BadRows()) for key in row)])
    )
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


def free_name(name: str, names: Sequence[str]) -> str:
    """Return the name, or with "predicted_" before it if the file has such a column."""
    while name.casefold() in {other.casefold() for other in names}:
        name = f"predicted_{name}"
    return name


def free_names(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return several names that the file does not have, each another one."""
    chosen: list[str] = []
    for name in wanted:
        chosen.append(free_name(name, [*names, *chosen]))
    return tuple(chosen)


def list_cells(answer: PredictedLabel, *, probabilities: bool = False) -> list[Any]:
    """Return the cells of an answer: label and confidence, or all labels and the probability of each."""
    if isinstance(answer, PredictedNumber):
        return [answer.value]
    each = [round_share(p) for p in answer.probabilities.values()]
    if isinstance(answer, PredictedLabels):
        return [answer.label, *each]
    return [answer.label, round_share(answer.confidence), *(each if probabilities else ())]


def round_share(share: float) -> float:
    return float(f"{share:.6g}")


def list_labels(answer: PredictedLabel) -> tuple[str, ...]:
    """Return what is counted of an answer: its labels, and nothing of a number."""
    if isinstance(answer, PredictedNumber):
        return ()
    return answer.labels if isinstance(answer, PredictedLabels) else (answer.label,)


def new_columns(names: Sequence[str]) -> tuple[str, str]:
    """Return names for the added columns that the file does not have yet, in any case (`Label`)."""
    label, confidence = "label", "confidence"
    while {label, confidence} & {name.casefold() for name in names}:
        label, confidence = f"predicted_{label}", f"predicted_{confidence}"
    return label, confidence
