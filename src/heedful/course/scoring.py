"""Points: runs the suites of an assignment on one file, and gives every criterion its share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.contracts.suite import Suite
from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment, Criterion

Verdicts = Mapping[tuple[str, str], Verdict]
"""Verdicts by the names of suite and claim."""


@dataclass(frozen=True)
class CriterionScore:
    """What a submission has for one criterion."""

    name: str
    points: float
    most: float
    hidden: bool
    suite: str
    verdicts: tuple[Verdict, ...] = field(default=())


def score_criteria(
    assignment: Assignment, verdicts: Verdicts, criteria: Sequence[Criterion] | None = None
) -> list[CriterionScore]:
    """Give each criterion its points: the share of its claims that hold. What does not apply is not there."""
    scores = []
    for criterion in assignment.criteria if criteria is None else criteria:
        claims = assignment.load_claims(criterion)
        own = [
            verdicts[criterion.suite, claim.name]
            for claim in claims
            if (criterion.suite, claim.name) in verdicts
        ]
        share = sum(verdict.status == "passed" for verdict in own) / len(claims)
        scores.append(
            CriterionScore(
                criterion.name,
                round(criterion.points * share, 2),
                criterion.points,
                criterion.hidden,
                criterion.suite,
                tuple(own),
            )
        )
    return scores


def check_suites(
    suites: Sequence[Suite], check: Callable[[Suite], Sequence[Verdict]]
) -> dict[tuple[str, str], Verdict]:
    """Check suite by suite, and return the verdicts by suite and claim."""
    verdicts: dict[tuple[str, str], Verdict] = {}
    for suite in suites:
        verdicts |= {(suite.name, verdict.claim): verdict for verdict in check(suite)}
    return verdicts


def add_points(scores: Sequence[CriterionScore]) -> float:
    return round(sum(score.points for score in scores), 2)


def absent(suite: Suite, reason: Any) -> list[Verdict]:
    """Return a verdict for each claim of a suite about which a file has nothing."""
    return [Verdict(claim.name, claim.sentence, "not applicable", str(reason)) for claim in suite.claims]
