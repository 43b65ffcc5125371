"""The constant answer as a baseline: how many questions about birth places "London" answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from heedful.contracts.asking import collect
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.verdicts import RefutedError

LONDON = "London"
NAMES = (
    "Ada Lovelace",
    "Kurt Godel",
    "Emmy Noether",
    "Alan Turing",
    "London Jones",
    "Grace Hopper",
    "Jack London",
    "Mary Shelley",
)
Rows = Sequence[tuple[str, str]]


def ask_where(name: str) -> str:
    return f"Where was {name} born?"


def rows_of(*places: str) -> list[tuple[str, str]]:
    """Return a question and a place per row."""
    return [(ask_where(NAMES[i % len(NAMES)]), place) for i, place in enumerate(places)]


CASES: dict[str, tuple[list[tuple[str, str]], str]] = {
    "one": (rows_of("London"), ""),
    "half": (rows_of("London", "Paris"), ""),
    "third": (rows_of("Paris", "London", "Rome"), ""),
    "none": (rows_of("Paris", "Rome", "Berlin"), ""),
    "longer names": (rows_of("London", "New London", "Londonderry", "London, Ontario"), ""),
    "other letters": (rows_of("London", "london", "LONDON", "Paris"), ""),
    "questions": ([(ask_where("Jack London"), "San Francisco"), (ask_where("Ada"), "London")], ""),
    "first row": (rows_of("London", "Paris", "Rome", "Oslo", "Bern"), ""),
    "blank line at the end": (rows_of("London", "Paris"), "\n"),
    "repeated": (rows_of("London", "London", "London", "Paris", "Rome"), ""),
    "many": (rows_of(*[LONDON if i % 20 == 0 else f"Place {i % 7}" for i in range(500)]), ""),
}
"""Rows, and what is at the end of the file, in the order of their difficulty."""


def write_file(rows: Rows, end: str = "") -> str:
    return "".join(f"{question}\t{place}\n" for question, place in rows) + end


def run(subject: Subject, case: str) -> dict[str, Any]:
    """Return what it says of a file: correct, total and percent, as far as it says them."""
    rows, end = CASES[case]
    answer = subject.call("score", {"file": write_file(rows, end), "answer": LONDON})
    if not {"correct", "percent"} & set(answer):
        raise RefutedError("no number comes back", inputs={"file": write_file(rows, end)}, got=answer.get("text", ""),
                           expected="Correct: 1 out of 2: 50.0%")  # fmt: skip
    return answer


def expect(case: str) -> dict[str, float]:
    rows = CASES[case][0]
    right = sum(place == LONDON for _, place in rows)
    return {"correct": float(right), "total": float(len(rows)), "percent": 100 * right / len(rows)}


def compare(subject: Subject, cases: Sequence[str], what: str) -> str:
    """Compare what is said with what is true, for the first case that is wrong."""
    for case in cases:
        answer, expected = run(subject, case), expect(case)
        for name, right in expected.items():
            if name in answer and abs(float(answer[name]) - right) > (0.06 if name == "percent" else 1e-6):
                rows, end = CASES[case]
                raise RefutedError(
                    f"{name} is {answer[name]:g} instead of {right:g}", got={n: answer[n] for n in expected if n in answer},
                    inputs={"file": write_file(rows[:8], end)}, expected=expected,
                )  # fmt: skip
    return what


def check_share(subject: Subject) -> str:
    """Count the places that are London."""
    return compare(
        subject,
        ["one", "half", "third", "first row", "repeated", "many"],
        "the share of rows with London is right",
    )


def check_exact(subject: Subject) -> str:
    """Places that only contain London are others."""
    return compare(subject, ["longer names"], "New London is another place")


def check_letters(subject: Subject) -> str:
    """Small and capital letters make a difference, as in the course's own scores."""
    return compare(subject, ["other letters"], "small and capital letters make a difference")


def check_places(subject: Subject) -> str:
    """London in a question is no answer."""
    return compare(subject, ["questions"], "only the places count, not the questions")


def check_blank(subject: Subject) -> str:
    """A blank line at the end is no question."""
    return compare(subject, ["blank line at the end"], "a blank line is no question")


def check_none(subject: Subject) -> str:
    """No row with London makes 0, not an error."""
    return compare(subject, ["none"], "no row with London makes 0")


def check_unknown(subject: Subject) -> str:
    """A file without places has no score."""
    text = "".join(f"{question}\n" for question, _ in CASES["third"][0])
    try:
        answer = subject.call("score", {"file": text, "answer": LONDON})
    except NotApplicable:
        raise
    except Exception as error:  # an error is an answer too: there is no score
        return f"a file without places has no score: {error}"
    scores = [float(answer.get(name) or 0) for name in ("correct", "percent")]
    if any(score > 0 for score in scores):  # a number that is none is no score
        raise RefutedError(
            "a file without places has a score", inputs={"file": text}, got=answer, expected="no score, or 0"
        )
    return "a file without places has no score"


def read_case(subject: Subject, case: str) -> dict[str, float]:
    answer = run(subject, case)
    return {
        f"{case}: {name}": float(answer[name])
        for name in ("correct", "total", "percent")
        if answer.get(name) is not None
    }


def fingerprint(subject: Subject) -> Fingerprint:
    """What is said of each file."""
    answers = collect({case: partial(read_case, subject, case) for case in CASES})
    found: dict[str, float] = {}
    for case in CASES:
        found |= answers.get(case, {f"{case}: fails": 1.0})
    return found


SUITE = Suite(
    "london-baseline",
    'the constant answer as a baseline: how many questions about birth places "London" answers',
    {"score": "file (the text of a table: a question, a tab and a place per line) and answer; returns correct, total and percent, "
     "as far as it says them"},
    (
        Claim("share", "The score is the share of rows whose place is the answer.", check_share, "score",
              "count every row once, and divide by the number of rows"),
        Claim("exact places", "A place that only contains the answer is another place.", check_exact, "score", "== instead of in"),
        Claim("letters", "Small and capital letters make a difference.", check_letters, "score"),
        Claim("places alone", "Only the places count, not the questions.", check_places, "score", "split each line at its tab"),
        Claim("blank line", "A blank line at the end is no question.", check_blank, "score"),
        Claim("zero", "No right row makes 0.", check_none, "score"),
        Claim("no places", "A file without places has no score.", check_unknown, "score"),
    ),
    fingerprint,
    dict.fromkeys((f"{case}: percent" for case in CASES), 0.002),
)  # fmt: skip
