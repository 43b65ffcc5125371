"""What comparisons of arms show, and what it would take to tell arms apart."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.report.formats import format_estimate, format_p, join_names
from heedful.statistics.comparison import Comparison, Ranking, rank
from heedful.statistics.power import required_data

SINGLE_RUN = "a single run per arm does not show how much the seed matters"


def describe_comparison(comparison: Comparison, metric: str = "accuracy") -> str:
    c = comparison.better_first()
    numbers = (
        f"{metric} {c.value_a:.3f} against {c.value_b:.3f}, a difference of {c.difference:.3f} "
        f"(95 % interval {c.low:.3f} to {c.high:.3f}, p {format_p(c.p)})"
    )
    sentences = (
        [f"{c.a} is better than {c.b}: {numbers}."]
        if c.differs
        else [f"{c.a} and {c.b} cannot be told apart: {numbers}.", describe_required_data(c)]
    )
    return _join(sentences, single_run=c.seeds < 2)


def describe_comparisons(comparisons: Sequence[Comparison], metric: str = "accuracy") -> str:
    """Describe which arm is best and which cannot be told apart from it, given what `compare_all` returns."""
    ranking = rank(comparisons)
    sentences = [describe_ranking(comparisons, metric)]
    if ranking.furthest is not None:
        if len(ranking.tied) + len(ranking.undecided) > 1 and ranking.undecided:
            furthest = ranking.furthest.b
            sentences.append(
                f"Of these, {furthest} is furthest behind; closer ones take more data to tell apart."
            )
        sentences.append(describe_required_data(ranking.furthest))
    return _join(sentences, single_run=ranking.single_run)


def describe_ranking(comparisons: Sequence[Comparison], metric: str = "accuracy") -> str:
    """Describe in one sentence which arm is best, or that none is shown to be."""
    ranking = rank(comparisons)
    higher, highest = ("higher", "highest") if comparisons[0].higher_is_better else ("lower", "lowest")
    if ranking.furthest is None:
        where = " on these examples" if ranking.single_run else ""
        beaten = join_names(ranking.beaten)
        return (
            f"{ranking.best} is best{where}: its {metric} is {higher} than that of {beaten}, beyond chance."
        )
    unclear = "" if ranking.beaten else "No arm is shown to be best: "
    return f"{unclear}{_describe_best(ranking, highest, metric)}."


def describe_required_data(comparison: Comparison) -> str:
    """Describe how many more examples or seeds would show the observed difference if it is real."""
    c = comparison
    if c.identical:
        return f"On each of these {c.n:,} examples both are equally right: there is nothing to tell apart."
    required = required_data(c)
    limit = (
        f"With these {c.n:,} examples, only a difference of about {required.detectable:.3f} or more would be "
        "detected."
        if required.detectable < 1
        else f"These {c.n:,} examples are too few to show any difference."
    )
    if abs(c.difference) < 0.5 / c.n:
        return limit
    options = [
        f"{format_estimate(count)} more {unit}{'s' if count > 1 else ''}{per}"
        for count, unit, per in (
            (required.more_examples, "example", ""),
            (required.more_seeds, "seed", " per arm"),
        )
        if count
    ]
    if options:
        return f"{limit} If the difference is real, about {' or '.join(options)} would show it."
    if required.more_examples is None and required.more_seeds is None:
        return f"{limit} If the difference is real, it takes both more examples and more seeds to show it."
    return f"{limit} The observed difference is about that large: a little more of either would show it."


def _describe_best(ranking: Ranking, highest: str, metric: str) -> str:
    """Describe the best arm relative to the others, of which at least one is not beaten."""
    if not ranking.beaten and not ranking.undecided:
        return f"{join_names([ranking.best, *ranking.tied])} have the same {metric}"
    tied = f", tied with {join_names(ranking.tied)}," if ranking.tied else ""
    beats = f" and beats {join_names(ranking.beaten)}" if ranking.beaten else ""
    but = f", but cannot be told apart from {join_names(ranking.undecided)}" if ranking.undecided else ""
    return f"{ranking.best}{tied} has the {highest} {metric}{beats}{but}"


def _join(sentences: Sequence[str], *, single_run: bool) -> str:
    caution = [f"{SINGLE_RUN[0].upper()}{SINGLE_RUN[1:]}."] if single_run else []
    return " ".join([*sentences, *caution])
