"""A row of the list from the folder of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.launch.slurm.records import JobEnd, JobProgress, Submission, read_submission
from heedful.runs.directory import BEST, CHECKS, CONFIG, JOB, PROGRESS, RESULTS
from heedful.runs.json_files import read_record
from heedful.runs.schemas import Checks, Results, summarize_check
from heedful.runs.studies import FAILED, PRUNED, Ended
from heedful.runs.toml import read_toml
from heedful.studio.listing.activity import Activity, find_run_activity
from heedful.studio.listing.files import Files
from heedful.studio.listing.folders import Listing
from heedful.studio.listing.rows import Fired, Row, State, Work, choose_score, describe_options, thin_spark

ENDED = "ended.json"
SERIOUS = ("failed", "warning")
COMMANDS = ("adapt", "pretrain")


@dataclass
class RunReader:
    """Reads the row of one run again and again."""

    folder: Path
    name: str
    study: str = ""
    row: Row | None = None
    files: Files = field(init=False)
    first_count: JobProgress | None = None
    """The first count of the present work that was seen: the pace is measured from there."""

    def __post_init__(self) -> None:
        self.files = Files(self.folder)

    def update(self, listing: Listing, *, listed: bool) -> Row:
        """Return the row as it is now; a finished run is read again only if its folder was `listed` anew."""
        if self.row is not None and not listed and self.row.state in ("finished", "failed", "pruned"):
            return self.row
        changed = max(listing.changed / 1e9, self.row.changed if self.row else 0.0)
        try:
            self.row = self.read(listing, changed)
        except UserError as error:
            reason = str(error).replace(f"{self.folder}/", "")
            self.row = Row(self.name, "run", "damaged", study=self.study, reason=reason, changed=changed)
        return self.row

    def read(self, listing: Listing, changed: float) -> Row:
        config: dict[str, Any] = self.files.read(CONFIG, read_toml) or {}
        row = Row(self.name, "run", "stopped", study=self.study, changed=changed)
        row = replace(
            describe_options(row, config),
            spark=thin_spark(self.files.read_curve()),
            checks=self.read_checks(),
        )
        results = self.files.read(RESULTS, lambda path: read_record(Results, path))
        if results is not None:
            score = choose_score(results)
            answers = BEST in self.list_best() and config.get("command") == "adapt"
            row = replace(row, state="finished", score=score, seconds=results.seconds, answers=answers)
            return replace(row, model=row.model or results.model)
        endings: dict[str, State] = {FAILED: "failed", PRUNED: "pruned"}
        for file, state in endings.items():
            if file in listing.files:
                ended = self.files.read(file, lambda path: read_record(Ended, path))
                return replace(row, state=state, reason=ended.reason if ended else "")
        return self.add_work(row, config)

    def list_best(self) -> tuple[str, ...]:
        return (BEST,) if (self.folder / BEST).is_dir() else ()

    def read_checks(self) -> tuple[Fired, ...]:
        checks = self.files.read(CHECKS, lambda path: read_record(Checks, path))
        found = [check for check in (checks.checks if checks else ()) if check.status in SERIOUS]
        found.sort(key=lambda check: SERIOUS.index(check.status))
        return tuple(Fired(check.status, summarize_check(check.name), check.message) for check in found)

    def add_work(self, row: Row, config: dict[str, Any]) -> Row:
        """Add who works on the run, how far that is, and what can be done about it."""
        activity = find_run_activity(self.folder)
        submitted = self.files.read(JOB, read_submission_file)
        if activity is not None:
            stops = activity.process is not None or submitted is not None
            return replace(row, state="running", work=self.read_work(), stops=stops, reason=where(activity))
        self.first_count = None
        state, reason = decide_state(submitted, self.read_end())
        resumes = config.get("command") in COMMANDS and state == "stopped" and submitted is None
        stops = state == "queued"
        return replace(row, state=state, reason=reason, resumes=resumes and not row.study, stops=stops)

    def read_end(self) -> JobEnd | None:
        try:
            return self.files.read(ENDED, lambda path: read_record(JobEnd, path))
        except UserError:
            return None

    def read_work(self) -> Work | None:
        try:
            count = self.files.read(PROGRESS, lambda path: read_record(JobProgress, path))
        except UserError:
            return None  # it is written every two seconds; the next one will do
        if count is None:
            return None
        first = self.first_count
        if first is None or first.label != count.label or first.seconds > count.seconds:
            first = self.first_count = count
        return Work(count.label, count.done, count.total, count.note, estimate_left(first, count))


def read_submission_file(path: Path) -> Submission | None:
    return read_submission(path.parent)


def where(activity: Activity) -> str:
    return "" if activity.process is not None else f"on {activity.machine}"


def decide_state(submitted: Submission | None, ended: JobEnd | None) -> tuple[State, str]:
    """Return the state of a run without results that nobody works on, and why."""
    if submitted is None:
        return "stopped", ""
    if ended is None or ended.job != submitted.job or ended.requeued:
        return "queued", f"job {submitted.job}"
    return "stopped", ended.message


def estimate_left(first: JobProgress, now: JobProgress) -> float | None:
    """Return the seconds that the work will take, at its pace since it was first seen, or since it began."""
    if not now.total or now.done >= now.total:
        return None
    done, seconds = now.done - first.done, now.seconds - first.seconds
    if done < 1 or seconds < 4:  # not seen for long
        done, seconds = now.done, now.seconds
    return None if done < 1 else (now.total - now.done) * seconds / done
