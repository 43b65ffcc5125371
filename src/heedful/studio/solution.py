"""What a solution looks like now: its time, what it is doing, its answer so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.launch.slurm.records import JobProgress
from heedful.report.study_sections import draw_figure
from heedful.runs.answers import ANSWER, Answer, Table
from heedful.runs.directory import PROGRESS, STUDY
from heedful.runs.json_files import read_record
from heedful.runs.studies import RUNS, StudyFolder, StudyRecord
from heedful.studio.children import Child, Children
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.activity import Activity, find_study_activity
from heedful.studio.listing.files import Files
from heedful.studio.listing.study_reader import SOLVE, time_solution
from heedful.studio.offers import iterate_folders

LOG_LINES = 40
NOT_SHOWN = ("solving (seconds)",)
"""How lines of the output begin that only say how much time is over, which the page shows itself."""


@dataclass
class SolutionReader:
    """Reads one solution again and again."""

    folder: StudioFolder
    children: Children
    name: str
    drawn: tuple[int, list[dict[str, Any]]] = (0, [])
    files: Files = field(init=False)

    def __post_init__(self) -> None:
        self.path = self.folder.root / self.name
        self.files = Files(self.path)

    def read(self) -> dict[str, Any]:
        """Return everything that the page shows, as JSON."""
        child = self.children.known.get(self.name)
        try:
            record = self.files.read(STUDY, lambda path: StudyFolder(path.parent).read())
            answer = self.files.read(ANSWER, lambda path: read_record(Answer, path))
        except UserError as error:
            return describe_failure(self.name, str(error))
        activity = find_study_activity(self.path)
        state = self.decide_state(activity, child, answer)
        log = [] if child is None else self.children.read_log(child)
        command: tuple[str, ...] = () if record is None else record.command
        command = child.command if child is not None and child.runs else command
        shown: dict[str, Any] = {
            "name": self.name,
            "state": state,
            "question": "" if record is None else record.question,
            "source": self.name_source(record, child),
            "reason": log[-1] if log and state in ("failed", "stopped") else "",
            "log": [line for line in log if not line.startswith(NOT_SHOWN)][-LOG_LINES:],
            "command": list(command),
            "answer": None if answer is None else self.describe_answer(answer),
            "now": self.describe_work() if state == "running" else "",
        }
        work = time_solution(self.files, command, activity) if record is not None else None
        shown["spent"], shown["total"] = (0, None) if work is None else (work.done, work.total)
        return shown

    def decide_state(self, activity: Activity | None, child: Child | None, answer: Answer | None) -> str:
        if activity is not None:
            return "running"
        if child is not None and child.runs:
            return "running" if answer is not None else "starting"
        if answer is not None and answer.finished:
            return "finished"
        failed = self.children.find_failure(self.name) or (child is not None and answer is None)
        return "failed" if failed else "stopped"

    def name_source(self, record: StudyRecord | None, child: Child | None) -> str:
        """Return the file of data, as pages call it; "" if it is not in the folder."""
        words = record.command if record is not None else child.command if child is not None else ()
        path = Path(words[1]) if len(words) > 1 else None
        inside = path is not None and path.is_absolute() and path.is_relative_to(self.folder.root)
        return self.folder.name(path) if inside and path is not None else ""

    def describe_work(self) -> str:
        """Return what the training process does now, in words."""
        newest, shown = 0.0, ""
        for file in self.path.glob(f"{RUNS}/*/{PROGRESS}"):
            try:
                changed = file.stat().st_mtime
                if changed > newest:
                    newest, shown = (
                        changed,
                        f"{file.parent.name}: {read_record(JobProgress, file).describe()}",
                    )
            except (OSError, UserError):
                continue
        return shown if time.time() - newest < 60 else ""

    def describe_answer(self, answer: Answer) -> dict[str, Any]:
        if self.drawn[0] != id(answer):  # the file has changed
            self.drawn = (id(answer), [draw_figure(figure, ANSWER) for figure in answer.figures])
        notes = [{"text": note.text, "kind": note.kind} for note in answer.notes]
        return {
            "finished": answer.finished,
            "title": answer.title,
            "summary": list(answer.summary),
            "notes": notes,
            "charts": self.drawn[1],
            "captions": [figure.caption for figure in answer.figures],
            "tables": [as_json(table) for table in answer.tables],
            "chosen": str(answer.facts.get("chosen", "")),
        }


def describe_failure(name: str, reason: str) -> dict[str, Any]:
    """Return what the page shows of a solution that cannot be read."""
    facts = {"name": name, "state": "failed", "reason": reason, "question": "", "source": "", "now": ""}
    return {**facts, "log": [], "command": [], "answer": None, "spent": 0, "total": None}


def as_json(table: Table) -> dict[str, Any]:
    rows = [[show_cell(cell) for cell in row] for row in table.rows]
    return {"title": table.title, "columns": list(table.columns), "rows": rows}


def show_cell(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return "" if cell is None else str(cell)


def list_solutions(folder: StudioFolder, children: Children) -> Iterator[dict[str, Any]]:
    """Yield the solutions below the folder, and those that have just been started."""
    seen = set()
    for path in iterate_folders(folder):
        if not (path / STUDY).is_file():
            continue
        try:
            record = StudyFolder(path).read()
        except UserError:
            continue
        if record.kind == SOLVE:
            reader = SolutionReader(folder, children, folder.name(path))
            seen.add(reader.name)
            yield summarize(reader.read(), (path / STUDY).stat().st_mtime)
    for child in children.known.values():
        if child.command[:1] == (SOLVE,) and child.name not in seen:
            yield summarize(SolutionReader(folder, children, child.name).read(), child.started)


def summarize(solution: dict[str, Any], changed: float) -> dict[str, Any]:
    answer = solution.get("answer")
    return {
        "name": solution["name"],
        "state": solution["state"],
        "changed": changed,
        "summary": answer["summary"][0] if answer and answer["summary"] else solution.get("reason", ""),
    }
