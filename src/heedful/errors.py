"""What a person sees when they made a mistake: one line that says what is wrong and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


class UserError(Exception):
    """A mistake of the person at the keyboard, told in one line.

    The command line prints the line after ``heedful: `` and leaves with status 2, without a traceback.
    The text names the file, the line or the option, what is wrong and what would be right.
    """

    status = 2

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class Elsewhere(Exception):  # noqa: N818 - no mistake at all
    """Nothing is left to do here: the work was given to a cluster. Says so in words, and in facts."""

    def __init__(self, text: str, facts: Mapping[str, object]) -> None:
        super().__init__(text)
        self.facts = facts


def one_line(text: str) -> str:
    """Make text safe for a single terminal line: control characters are shown, never sent."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(text: str, width: int = 60) -> str:
    """Quote data in a message: at most `width` characters, control characters escaped."""
    text = one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for a name that does not exist; it lists the nearest, or all when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        choices = " or ".join(f'"{n}"' for n in near)
        return UserError(f'unknown {kind} "{shorten(name)}"; did you mean {choices}?')
    return UserError(f'unknown {kind} "{shorten(name)}"; there are {", ".join(names) or "none"}')
