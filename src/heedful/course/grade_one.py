"""Grades one submission: every suite in a sandbox; verdicts are made in this process alone."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

import heedful
from heedful.contracts.subject import SubjectError, SubjectStoppedError
from heedful.contracts.suite import Claim, Suite
from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment
from heedful.course.check import repeat_error, run_suite
from heedful.course.sandbox import make_sandbox
from heedful.course.sandboxed import SandboxedSubject
from heedful.course.scoring import (
    CriterionScore,
    Verdicts,
    absent,
    add_points,
    check_suites,
    score_criteria,
)
from heedful.course.subject import FailedImportError
from heedful.course.submissions import RefusedError, Submission, copy_submission, find_file, hash_folder
from heedful.errors import UserError, shorten
from heedful.runs.files import write_json

MOST_RESTARTS = 3
"""Times that a suite goes on in a new process after one was stopped."""
MOST_SOURCE, MOST_PRINTED = 200_000, 4000
LONGEST_REMARK = 100
FORMAT = 1
"""Results of another format are graded again."""


@dataclass(frozen=True)
class Task:
    """What a worker needs to grade one submission."""

    submission: Submission
    assignment: Path
    result: Path
    sandbox: bool = True
    again: bool = False


@dataclass(frozen=True)
class Result:
    """What one submission has; a JSON file in the folder of results."""

    student: str
    digest: str
    points: float
    most: float
    criteria: tuple[CriterionScore, ...]
    problem: str = ""
    """Why it was not graded at all."""
    stopped: tuple[str, ...] = ()
    """What it did that a limit forbids."""
    source: str = ""
    """The file that was graded."""
    file: str = ""
    printed: str = ""
    """The beginning of what it printed."""
    seconds: float = 0.0

    @property
    def mistakes(self) -> list[str]:
        """The known mistakes that were named."""
        names = (v.mistake for score in self.criteria for v in score.verdicts if v.mistake)
        return list(dict.fromkeys(names))

    @property
    def remark(self) -> str:
        """What is wrong in a line: a problem, known mistakes, or the error of what has no points at all."""
        words = [self.problem, *self.stopped, *self.mistakes]
        if self.points == 0 and not any(words):
            errors = (v.message for score in self.criteria for v in score.verdicts if v.status == "error")
            words = [next(errors, "")]
        return shorten("; ".join(filter(None, words)), LONGEST_REMARK)


def load_result(path: Path) -> Result | None:
    """Return a result that was written before; None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except (OSError, msgspec.MsgspecError):
        return None


def grade_submission(task: Task) -> Result:
    """Grade a submission, or return the result that is there already and still holds."""
    assignment = Assignment(task.assignment)
    begin = time.perf_counter()
    with fresh_folder() as folder:
        problem, file = "", None
        try:
            copy_submission(task.submission.path, folder)
            file = find_file(folder, assignment.file)
        except RefusedError as error:
            problem = str(error)
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}"
        digest = combine(hash_folder(folder), problem, assignment.digest(), heedful.__version__, task.sandbox)
        before = load_result(task.result)
        if before is not None and before.digest == digest and not task.again:
            return replace(before, student=task.submission.name)
        verdicts: Verdicts = {}
        stopped: list[str] = []
        printed = ""
        if file is not None:
            grading = Grading(assignment, folder, file, task.sandbox)
            verdicts = check_suites(assignment.list_suites(), grading.check)
            stopped, printed = (
                grading.stopped,
                grading.printed[:MOST_PRINTED].decode("utf-8", errors="replace"),
            )
        scores = score_criteria(assignment, verdicts)
        result = Result(
            task.submission.name,
            digest,
            add_points(scores),
            assignment.most,
            tuple(scores),
            problem,
            tuple(dict.fromkeys(stopped)),
            "" if file is None else file.read_text("utf-8", errors="replace")[:MOST_SOURCE],
            "" if file is None else file.relative_to(folder).as_posix(),
            printed,
            round(time.perf_counter() - begin, 2),
        )
    write_json(task.result, asdict(result))
    return result


def combine(*parts: object) -> str:
    return hashlib.sha256(repr((FORMAT, *parts)).encode()).hexdigest()


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """Make a temporary folder that every user can read, and remove it."""
    parent = Path(tempfile.mkdtemp(prefix="heedful-grade-"))
    try:
        parent.chmod(0o755)
        folder = parent / "submission"
        folder.mkdir(mode=0o755)
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)


class EndedError(Exception):
    """The process of a submission has ended before all claims were checked."""


class Grading:
    """The checks of one submission, suite by suite."""

    def __init__(self, assignment: Assignment, folder: Path, file: Path, sandbox: bool) -> None:
        self.folder, self.file, self.isolated = folder, file, sandbox
        self.limits = assignment.table.limits
        self.stopped: list[str] = []
        self.printed = bytearray()
        self.import_error: SubjectError | None = None

    def check(self, suite: Suite) -> list[Verdict]:
        """Check a suite; after a stop the claims about other operations are checked in a new process."""
        if self.import_error is not None:
            return repeat_error(suite.claims, self.import_error)
        verdicts: dict[str, Verdict] = {}
        remaining, name_mistakes = list(suite.claims), True
        for restart in range(MOST_RESTARTS + 1):
            if restart == MOST_RESTARTS:
                name_mistakes = False
            done, culprit = self.check_once(replace(suite, claims=tuple(remaining)), name_mistakes)
            verdicts |= {verdict.claim: verdict for verdict in done}
            if culprit is None:
                break
            if verdicts[culprit.name].status != "error":  # the search for the mistake's name ended it
                name_mistakes = False
            else:
                self.give_up(remaining, verdicts, culprit)
            remaining = [claim for claim in remaining if claim.name not in verdicts]
            if not remaining:
                break
        stopped = [claim for claim in suite.claims if claim.name not in verdicts]
        for claim in stopped:
            verdicts[claim.name] = Verdict(claim.name, claim.sentence, "error", "it was stopped too often")
        return [verdicts[claim.name] for claim in suite.claims]

    def give_up(self, remaining: list[Claim], verdicts: dict[str, Verdict], culprit: Claim) -> None:
        """Mark the claims that ask for the same operation as the one that ended the process."""
        reason = verdicts[culprit.name].message
        self.stopped.append(reason)
        for claim in remaining:
            if claim.name not in verdicts and claim.operation == culprit.operation:
                message = f"not checked, because at {culprit.name} {reason}"
                verdicts[claim.name] = Verdict(claim.name, claim.sentence, "error", message)

    def check_once(self, suite: Suite, name_mistakes: bool) -> tuple[list[Verdict], Claim | None]:
        """Check claims in one process; if it ended, return those verdicts that came before, and the claim."""
        limits = self.limits.sandbox_limits()
        sandbox = make_sandbox(self.folder, limits, isolated=self.isolated)
        done: list[Verdict] = []
        try:
            with SandboxedSubject(
                self.file, suite.name, sandbox, self.limits.call_seconds, self.printed
            ) as subject:

                def note(verdict: Verdict) -> None:
                    done.append(verdict)
                    if subject.ended:
                        raise EndedError

                try:
                    run_suite(suite, subject, on_verdict=note, name_mistakes=name_mistakes)
                except EndedError:
                    by_name = {claim.name: claim for claim in suite.claims}
                    return done, by_name[done[-1].claim]
        except SubjectError as error:
            if isinstance(error.__cause__ or error, SubjectStoppedError):
                self.stopped.append(str(error))
            if isinstance(error, FailedImportError):
                self.import_error = error
            return repeat_error(suite.claims, error), None
        except UserError as error:
            return absent(suite, error), None
        except Exception as error:  # whatever a submission sends, the others are graded
            reason = SubjectError(f"what it sent cannot be used: {type(error).__name__}: {error}")
            self.stopped.append(str(reason))
            return repeat_error(suite.claims, reason), None
        return done, None
