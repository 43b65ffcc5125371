"""The first sentence of a report: how good the model is, and whether it beats the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heedful.report.facts import RunFacts
from heedful.report.page import Finding, Headline, Kind
from heedful.report.run_figures import BASELINES, is_right, name_baselines
from heedful.report.sentences.runs import describe_unfinished, format_score
from heedful.runs.directory import BAG_OF_WORDS
from heedful.runs.schemas import Check, SplitResult, summarize_check
from heedful.statistics.comparison import compare

KINDS: Mapping[str, Kind] = {"failed": "bad", "warning": "warning", "passed": "good", "skipped": "plain"}
"""The severity of each status of a check, the most severe first."""
IN_A_SENTENCE = {
    "bag of words": "a bag of words",
    **{name: f"a {name}" for name in ("unigram", "bigram", "trigram")},
    "most frequent label": "always giving the most frequent label",
}
BASELINE_CHECKS = ("beats_bag_of_words", "beats_constant_answer", "beats_ngrams")


def make_headline(run: RunFacts) -> Headline:
    """Return the score of a run on test, or on dev, and whether it beats the best baseline."""
    result, split = run.detail_result, run.detail_split
    if result is None or split is None:
        kind: Kind = "bad" if run.ended is not None and run.ended[0] == "failed" else "warning"
        return Headline(describe_unfinished(run)[0], kind)
    kind, comparison = compare_with_baselines(run, result)
    invalid = [
        check for check in run.checks if check.status == "failed" and check.name not in BASELINE_CHECKS
    ]
    if invalid:
        kind, comparison = "bad", f"{comparison}, and a check found a problem: {name_check(invalid[0])}"
    score, interval = format_score(result.value, result), format_interval(result)
    within = f" (95 % interval {interval})" if interval else ""
    whole = f"of {result.of:,} " if result.of else ""
    size = f"{result.n:,} {whole}{result.unit}"
    return Headline(
        verdict=f"The {run.metric} on {split} is {score}{within}: {comparison}.",
        kind=kind,
        value=score,
        label=f"{run.metric} on {split}",
        detail=f"95 % interval {interval}, {size}" if interval else size,
        split=split,
    )


def compare_with_baselines(run: RunFacts, result: SplitResult) -> tuple[Kind, str]:
    """Return whether a run beats its baselines, as the severity of the finding and the end of a sentence."""
    if result.value is None:
        return "bad", "it is not a finite number"
    baselines = name_baselines(result.baselines)
    if not baselines:
        return "plain", "no baseline was measured to compare it with"
    sign = 1 if result.higher_is_better else -1
    name = max(baselines, key=lambda one: sign * baselines[one])
    best = baselines[name]
    baseline = f"{IN_A_SENTENCE.get(name, name)} ({format_score(best, result)})"
    if sign * result.value < sign * best:
        return "bad", f"{baseline} is better"
    others = "the best baseline, " if len(baselines) > 1 else ""
    beaten = beats_on_the_same_examples(run, result) if name == BASELINES[BAG_OF_WORDS] else None
    if beaten:
        return "good", f"it beats {others}{baseline}"
    if beaten is not None:
        return "warning", f"it is not shown to beat {baseline} on the same examples"
    near_end = (result.ci95 or (None, None))[0 if sign > 0 else 1]
    # Runs compare themselves with a baseline example by example, on dev; that finds more than an interval.
    paired = {check.status for check in run.checks if check.name in BASELINE_CHECKS} - {"skipped"}
    on_dev = run.detail_split == "dev"
    inside = near_end is not None and sign * near_end <= sign * best
    if inside and not (on_dev and paired):
        return "warning", f"it is not shown to beat {baseline}, which is inside the interval"
    if paired - {"passed"}:
        if on_dev:
            return "warning", f"it is not shown to beat {baseline} on the same examples"
        return "warning", f"it is better than {baseline}, but on dev it is not shown to beat a baseline"
    return "good", f"it beats {others}{baseline}"


def beats_on_the_same_examples(run: RunFacts, result: SplitResult) -> bool | None:
    """Return whether a run is shown to beat its bag of words; None if their answers cannot be compared."""
    model, bag = run.predictions, run.bag_predictions
    if not result.is_share or len(model) < 2 or [p.id for p in model] != [p.id for p in bag]:
        return None
    found = compare(*([is_right(p) for p in rows] for rows in (model, bag)))
    return found.differs and found.difference > 0


def format_interval(result: SplitResult) -> str:
    low, high = result.ci95 or (None, None)
    return (
        "" if low is None or high is None else f"{format_score(low, result)} to {format_score(high, result)}"
    )


def name_check(check: Check) -> str:
    """Name a check: by what it found if that is serious, otherwise by what it looked at."""
    serious = check.status in ("failed", "warning")
    return summarize_check(check.name) if serious else check.name.replace("_", " ")


def list_findings(checks: Sequence[Check]) -> list[Finding]:
    """Return the checks of a run as findings, the most severe first."""
    ordered = sorted(checks, key=lambda check: list(KINDS).index(check.status))
    return [
        Finding(KINDS[check.status], f"{name[0].upper()}{name[1:]}", check.message)
        for check in ordered
        if (name := name_check(check))
    ]


def count_findings(checks: Sequence[Check]) -> str:
    """Count the checks that found nothing: "8 other checks are fine."."""
    fine = sum(check.status == "passed" for check in checks)
    other = "other " if any(check.status in ("failed", "warning") for check in checks) else ""
    if not fine:
        return ""
    return f"{fine} {other}{'check is' if fine == 1 else 'checks are'} fine."
