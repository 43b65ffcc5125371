"""Checks of free answers: are they better than one answer for all, and can the vocabulary spell them?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy.typing as npt

from heedful.evaluation.checks.findings import percent, quote
from heedful.report.formats import format_p
from heedful.runs.schemas import Check
from heedful.statistics.comparison import compare

UNKNOWN_LIMIT = 0.01
"""As many texts as an evaluation of usual size can just tell."""


def beats_constant_answer(right: npt.ArrayLike, right_of_constant: npt.ArrayLike, constant: str) -> Check:
    """Is the model better than one answer to every question? Takes 1 or 0 for each question, of both."""
    name = "beats_constant_answer"
    always = f"always answering {quote(constant)}"
    try:
        c = compare(right, right_of_constant, names=("the model", always))
    except ValueError:
        return Check(name, "skipped", "There are too few questions that both were scored on.")
    numbers = (
        f"exact match {c.value_a:.3f} against {c.value_b:.3f}, difference {c.difference:+.3f} "
        f"(95 % interval {c.low:+.3f} to {c.high:+.3f}, p {format_p(c.p)}, {c.n:,} questions)"
    )
    if c.differs and c.difference > 0:
        return Check(name, "passed", f"Better than {always}: {numbers}.", c.difference, 0.0)
    verdict = "Worse than" if c.differs else "No better than"
    sentence = (
        f"{verdict} {always}: {numbers}; nothing shows that the model knows any answer; pretrain it on text "
        f"that holds the answers, or longer."
    )
    return Check(name, "failed" if c.differs else "warning", sentence, c.difference, 0.0)


def unknown_tokens(counts: Mapping[str, tuple[int, int]]) -> Check:
    """Has the vocabulary what texts are written in? Takes how many of how many texts lack something."""
    name = "unknown_tokens"
    lacking = {where: (n, total) for where, (n, total) in counts.items() if n}
    worst = max((n / total for n, total in lacking.values()), default=0.0)
    if not lacking:
        sentence = "The vocabulary has everything that is asked and answered."
        return Check(name, "passed", sentence, 0.0, UNKNOWN_LIMIT)
    listed = ", ".join(f"{n:,} of {total:,} in {where}" for where, (n, total) in lacking.items())
    if worst <= UNKNOWN_LIMIT:
        return Check(name, "passed", f"Few texts have unknown characters: {listed}.", worst, UNKNOWN_LIMIT)
    sentence = (
        f"Texts have characters or words that the vocabulary lacks ({percent(worst)} at worst): {listed}; "
        f"names that differ only there look the same to the model; train the tokenizer on them too."
    )
    return Check(name, "warning", sentence, worst, UNKNOWN_LIMIT)
