"""What comparisons of arms show, and what it would take to tell arms apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    if c.differs:
        where = " on these examples" if c.is_single else ""
        sentences = [f"{c.a} is better than {c.b}{where}: {numbers}.", describe_sources(c)]
    elif c.depends_on_seed:
        sentences = [
            f"The runs of {c.a} are ahead of those of {c.b} beyond chance, but another seed could change "
            f"that: {numbers}.",
            describe_sources(c),
            describe_required_data(c),
        ]
    else:
        sentences = [
            f"{c.a} and {c.b} cannot be told apart: {numbers}.",
            describe_sources(c),
            describe_required_data(c),
        ]
    return _join(sentences, single_run=c.is_single)


def describe_comparisons(comparisons: Sequence[Comparison], metric: str = "accuracy") -> str:
    """Describe which arm is best and which cannot be told apart from it, given what `compare_all` returns."""
    ranking = rank(comparisons)
    sentences = [describe_ranking(comparisons, metric)]
    if ranking.furthest is None:
        nearest = min((c for c in comparisons if c.a == ranking.best), key=lambda c: abs(c.difference))
        sentences.append(_describe_lead(nearest, "the next best" if len(ranking.beaten) > 1 else ""))
        return _join(sentences, single_run=ranking.single_run)
    if ranking.ahead:
        sentences.append(
            f"The runs of {ranking.best} are ahead of those of {join_names(ranking.ahead)} beyond chance, "
            "but another seed could change that."
        )
    several = len(ranking.tied) + len(ranking.undecided) > 1 and bool(ranking.undecided)
    if ranking.undecided:
        sentences.append(_describe_lead(ranking.furthest, "the furthest behind of these" if several else ""))
        sentences.append(_describe_choice(ranking))
    if several:
        sentences.append("Closer arms take more data to tell apart.")
    sentences.append(describe_required_data(ranking.furthest))
    return _join(sentences, single_run=ranking.single_run)


def describe_ranking(comparisons: Sequence[Comparison], metric: str = "accuracy") -> str:
    """Describe in one sentence which arm is best, or that none is shown to be."""
    ranking = rank(comparisons)
    values = {c.b: c.value_b for c in comparisons if c.a == ranking.best}
    score = f"{comparisons[0].value_a:.3f}"
    higher, highest = ("higher", "highest") if comparisons[0].higher_is_better else ("lower", "lowest")
    if ranking.furthest is None:
        where = " on these examples" if ranking.single_run else ""
        beaten = _name_with_values(ranking.beaten, values)
        return (
            f"{ranking.best} is best{where}: its {metric}, {score}, is {higher} than that of {beaten}, "
            "beyond chance."
        )
    unclear = "" if ranking.beaten else "No arm is shown to be best: "
    return f"{unclear}{_describe_best(ranking, f'{highest} {metric}, {score},', metric, values)}."


def describe_sources(comparison: Comparison) -> str:
    """Describe by how much other examples and other seeds could change a difference; empty if not known."""
    c = comparison
    if not c.freedom:
        return ""
    if not c.seed_variance:
        return "The seeds make no difference to these runs."
    by_examples, by_seeds = _format_reach(c.example_reach, c), _format_reach(c.seed_reach, c)
    sources = (
        f"Other examples could change the difference by about {by_examples}, other seeds by about {by_seeds}."
    )
    if c.seeds < 2:
        return f"{sources} An arm with a single run is taken to vary as much as the others."
    return sources


def describe_required_data(comparison: Comparison) -> str:
    """Describe how many more examples or seeds would show the observed difference if it is real."""
    c = comparison
    if c.identical:
        return f"On each of these {c.n:,} examples both are equally right: there is nothing to tell apart."
    required = required_data(c)
    seeds = f" and {c.seeds} seeds per arm" if c.seeds > 1 else ""
    limit = (
        f"With these {c.n:,} examples{seeds}, only a difference of about {required.detectable:.3f} or more "
        "would be detected."
        if required.detectable < 1 or not _is_share(c)
        else f"These {c.n:,} examples{seeds} are too few to show any difference."
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


def _describe_best(ranking: Ranking, highest: str, metric: str, values: Mapping[str, float]) -> str:
    """Describe the best arm relative to the others, of which at least one is not beaten."""
    if not ranking.beaten and not ranking.undecided:
        return f"{join_names([ranking.best, *ranking.tied])} have the same {metric}"
    tied = f", tied with {join_names(ranking.tied)}," if ranking.tied else ""
    beats = f" and beats {_name_with_values(ranking.beaten, values)}" if ranking.beaten else ""
    undecided = _name_with_values(ranking.undecided, values)
    but = f" but cannot be told apart from {undecided}" if ranking.undecided else ""
    if beats and but:
        but = f",{but}"
    return f"{ranking.best}{tied} has the {highest}{beats}{but}"


def _describe_choice(ranking: Ranking) -> str:
    """Describe which arm to use while nothing is decided."""
    near = [ranking.best, *ranking.tied, *(name for name in ranking.undecided if name not in ranking.ahead)]
    if len(near) == 1:
        return f"Until more seeds decide, {ranking.best} is the best guess."
    which = "cheaper" if len(near) == 2 else "cheapest"
    return f"Until more data decide, the {which} of {join_names(near)} is a sensible choice."


def _describe_lead(comparison: Comparison, which: str) -> str:
    c = comparison.better_first()
    if c.identical:
        return ""
    other = f"{c.b}, {which}," if which else c.b
    tests = f", corrected for {c.tests} tests" if c.tests > 1 else ""
    lead = (
        f"The difference between {c.a} and {other} is {c.difference:.3f} (95 % interval {c.low:.3f} to "
        f"{c.high:.3f}; p {format_p(c.p)}{tests})"
    )
    sources = describe_sources(c)
    if not sources:
        return f"{lead}."
    return f"{lead}: {sources[0].lower()}{sources[1:].replace('the difference', 'it')}"


def _name_with_values(names: Sequence[str], values: Mapping[str, float]) -> str:
    return join_names([f"{name} ({values[name]:.3f})" for name in names])


def _format_reach(reach: float, comparison: Comparison) -> str:
    if _is_share(comparison):
        reach = min(reach, 1.0)
    return f"{reach:.2f}" if reach >= 0.0095 else f"{reach:.3f}"


def _is_share(comparison: Comparison) -> bool:
    return (
        0 <= min(comparison.value_a, comparison.value_b) <= max(comparison.value_a, comparison.value_b) <= 1
    )


def _join(sentences: Sequence[str], *, single_run: bool) -> str:
    caution = [f"{SINGLE_RUN[0].upper()}{SINGLE_RUN[1:]}."] if single_run else []
    return " ".join(filter(None, [*sentences, *caution]))
