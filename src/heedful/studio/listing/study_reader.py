"""A row of the list from the folder of a study or a solution, and from the rows of its runs."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful.errors import UserError
from heedful.options.solve import SolveOptions
from heedful.report.facts import shorten_paths
from heedful.runs.answers import ANSWER, Answer
from heedful.runs.directory import CHOSEN, STUDY
from heedful.runs.json_files import read_json, read_record
from heedful.runs.studies import StudyFolder, StudyRecord
from heedful.studies import STUDIES
from heedful.studio.listing.activity import Activity, find_study_activity
from heedful.studio.listing.files import Files
from heedful.studio.listing.folders import Listing
from heedful.studio.listing.rows import Row, Score, Work

SOLVE = "solve"
PLAN = "plan.json"
"""What a solution remembers (`heedful.solve.state`)."""
MINUTES = re.compile(r"--minutes[= ]([0-9.]+)")
OVER = ("finished", "failed", "pruned")


@dataclass
class StudyReader:
    """Reads the row of one study again and again."""

    folder: Path
    name: str
    row: Row | None = None
    files: Files = field(init=False)

    def __post_init__(self) -> None:
        self.files = Files(self.folder)

    def update(self, listing: Listing, members: Sequence[Row]) -> Row:
        changed = max([listing.changed / 1e9, *(member.changed for member in members)])
        try:
            self.row = self.read(changed, members)
        except UserError as error:
            reason = str(error).replace(f"{self.folder}/", "")
            self.row = Row(self.name, "study", "damaged", reason=reason, changed=changed)
        return self.row

    def read(self, changed: float, members: Sequence[Row]) -> Row:
        record = self.files.read(STUDY, lambda path: StudyFolder(path.parent).read())
        answer = self.files.read(ANSWER, lambda path: read_record(Answer, path))
        if record is None:
            raise UserError(f"{self.folder}: {STUDY} is missing")
        is_solution = record.kind == SOLVE
        names = [f"{self.name}/runs/{configuration.name}" for configuration in record.configurations]
        by_name = {member.name: member for member in members}
        over = sum(1 for name in names if name in by_name and by_name[name].state in OVER)
        row = Row(
            self.name,
            "solve" if is_solution else "study",
            "finished" if answer is not None and answer.finished else "stopped",
            method=record.kind,
            question=shorten_paths(answer.title if is_solution and answer is not None else record.question),
            changed=changed,
            runs=len(names),
            over=over,
            members=tuple(by_name),
        )
        best = self.find_best(members)
        if best is not None:
            row = replace(row, score=best.score, spark=best.spark, checks=best.checks, answers=best.answers)
            row = replace(row, task=best.task, model=best.model)
        return row if row.state == "finished" else self.add_work(row, record, members)

    def find_best(self, members: Sequence[Row]) -> Row | None:
        """Return the run that a study has chosen, or that with the best score."""
        chosen = self.files.read(CHOSEN, read_json)
        if isinstance(chosen, dict):
            name = f"{self.name}/{chosen.get('run')}"
            return next((member for member in members if member.name == name), None)
        scored = [(member.score, member) for member in members if member.score is not None]
        metrics = {(score.metric, score.split) for score, _ in scored}
        if len(metrics) != 1:
            return None  # there is no order between different metrics
        return max(scored, key=lambda one: sort_key(one[0]))[1]

    def add_work(self, row: Row, record: StudyRecord, members: Sequence[Row]) -> Row:
        working = [member for member in members if member.state == "running"]
        activity = find_study_activity(self.folder)
        if activity is None and not working:
            return replace(row, resumes=is_known(record))
        stops = activity is None or activity.process is not None
        reason = "" if activity is None or activity.process is not None else f"on {activity.machine}"
        work = (
            time_solution(self.files, record.command, activity)
            if row.kind == "solve"
            else count_runs(row, members)
        )
        return replace(row, state="running", work=work, stops=stops, reason=reason)


def time_solution(files: Files, command: Sequence[str], activity: Activity | None) -> Work | None:
    """Return how much of the time of a solution is over; it passes while a process works on it."""
    minutes = MINUTES.search(" ".join(command))
    total = 60 * float(minutes[1] if minutes else SolveOptions.minutes)
    try:
        plan = files.read(PLAN, read_json)
        spent = float(plan.get("spent", 0.0)) if isinstance(plan, dict) else 0.0
        if activity is not None:
            written = (files.folder / (PLAN if plan else STUDY)).stat().st_mtime
            spent += max(0.0, time.time() - max(written, activity.started))
    except (UserError, OSError, TypeError, ValueError):
        return None
    done = min(total, spent)
    return Work("solving (seconds)", round(done), round(total), left=total - done)


def sort_key(score: Score) -> float:
    return score.value if score.higher_is_better else -score.value


def is_known(record: StudyRecord) -> bool:
    return record.kind == SOLVE or record.kind in STUDIES


def count_runs(row: Row, members: Sequence[Row]) -> Work:
    """Return how many runs of a study are over, and how long the others will take."""
    took = [member.seconds for member in members if member.seconds]
    working = [member for member in members if member.state == "running"]
    left = None
    if took and row.runs > row.over:
        mean = sum(took) / len(took)
        begun = sum(min(mean, member.work.left or mean) for member in working if member.work)
        waiting = max(0, row.runs - row.over - len(working))
        left = (waiting * mean + begun) / max(1, len(working))
    return Work("runs", row.over, row.runs or None, left=left)
