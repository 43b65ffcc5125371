"""Errors a user can fix, reported in one line that says what is wrong and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

LONGEST_MESSAGE = 2000


class UserError(ValueError):
    """A mistake the user can fix, described in one line.

    The command line prints the line after ``heedful: `` and exits with status 2, without a traceback.
    The message names the file, the line or the option, what is wrong and what would be right.
    """

    status = 2

    def __init__(self, message: str) -> None:
        super().__init__(shorten(message, LONGEST_MESSAGE))


class SubmittedElsewhere(Exception):  # noqa: N818 - not an error
    """The work was handed to a cluster (or its script was only printed), so nothing is left to do here.

    The message is for people, `facts` for `--json`.
    """

    def __init__(self, text: str, facts: Mapping[str, object]) -> None:
        super().__init__(text)
        self.facts = facts


def one_line(text: str) -> str:
    """Make text safe to print on one terminal line by escaping control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(text: str, width: int = 60) -> str:
    """Shorten text for a message to at most `width` characters, with control characters escaped."""
    text = one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for an unknown name; it lists the nearest names, or all of them when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        choices = " or ".join(f'"{n}"' for n in near)
        return UserError(f'unknown {kind} "{shorten(name)}"; did you mean {choices}?')
    return UserError(f'unknown {kind} "{shorten(name)}"; there are {", ".join(names) or "none"}')
