"""Bad rows of a file: skipped and counted, or refused."""

from __future__ import annotations

from pathlib import Path

from heedful.data.notices import notify
from heedful.errors import UserError

MALFORMED_SHARE = 0.1
MOST_EXAMPLES = 50


class RowError(UserError):
    """A row that cannot be used, in a file that can."""


class EmptyCellError(RowError):
    """A text or a label is missing, which is common in real files; other bad rows point to a misread file."""


class BadRows:
    """Counts the rows of one file that cannot be used; `strict` refuses the first one.

    A line that is no text may be part of a longer row. It is marked, and the row is bad once it is complete.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.count, self.malformed = 0, 0
        self.first: UserError | None = None
        self.first_malformed: UserError | None = None
        self.marked: UserError | None = None
        self.examples: list[str] = []
        """What is wrong with the first of them, each in a sentence."""

    def add(self, error: UserError) -> None:
        if self.strict:
            raise error
        self.count += 1
        self.first = self.first or error
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(str(error))
        if not isinstance(error, EmptyCellError):
            self.malformed += 1
            self.first_malformed = self.first_malformed or error

    def mark_line(self, path: Path, number: int, what: str) -> None:
        error = UserError(f"{path} line {number}: {what}")
        if self.strict:
            raise error
        self.marked = self.marked or error

    def has_marked_line(self) -> bool:
        """Return whether the row that has just been completed has a marked line, which makes it bad."""
        if self.marked is None:
            return False
        self.add(self.marked)
        self.marked = None
        return True

    def refuse_bad_file(self, good: int) -> None:
        """Refuse a file without a good row, or with so many malformed ones that it is not what it seems."""
        total = good + self.count
        if self.first is not None and not good:
            raise self.first
        if self.first_malformed is not None and self.malformed > MALFORMED_SHARE * total:
            raise UserError(f"{self.first_malformed} ({self.malformed:,} of {total:,} rows are malformed)")

    def describe(self, path: Path, good: int) -> str:
        """Return what was skipped, or "" if nothing was."""
        if self.first is None:
            return ""
        reason = str(self.first).removeprefix(str(path)).strip()
        rows = f"{self.count:,} of {good + self.count:,} rows"
        return f"skipped {rows}, first {reason}"


def report_skipped(path: Path, skipped: str) -> None:
    if skipped:
        notify(f"{path}: {skipped} (--strict refuses such files)", warning=True)
