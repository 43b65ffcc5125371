"""What is said about one run and about several: scores first, then selection and cost, then checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heedful.errors import shorten
from heedful.report.facts import RunFacts
from heedful.report.formats import format_duration, format_number
from heedful.report.run_figures import name_baselines
from heedful.runs.schemas import Check, SplitResult, summarize_check

SERIOUS = ("failed", "warning")


def describe_run(run: RunFacts) -> list[str]:
    if run.results is None:
        return describe_unfinished(run)
    scores = [describe_split(run, split) for split in ("test", "dev") if run.split(split) is not None]
    selection = []
    if run.split("dev") is not None and run.results.best_epoch is not None:
        epoch, step = f"epoch {run.results.best_epoch:.3g}", f"step {run.results.best_step or 0:,}"
        which = step if run.is_language_model else epoch
        is_last = run.options.get("select") == "last"
        selection.append(f"The last model was kept, from {which}." if is_last else f"Dev selected {which}.")
    selection += describe_threshold(run.results.splits, run.results.labels)
    if run.split("test") is None:
        selection.append("Test was not scored.")
    return [*scores, " ".join([*selection, describe_cost(run)]), describe_checks(run.checks)]


def describe_split(run: RunFacts, split: str) -> str:
    result = run.split(split)
    if result is None:
        return ""
    return f"On {split} the {run.metric} is {describe_score(result)}{describe_baselines(result)}."


def describe_threshold(splits: Mapping[str, SplitResult], labels: Sequence[str] | None) -> list[str]:
    """Say from which probability a label is predicted, and what the scores are at 0.5."""
    decided = {name: r for name, r in splits.items() if r.threshold not in (None, 0.5)}
    if not decided or not labels:
        return []
    first = next(iter(decided.values()))
    at_half = [
        f"{format_score(r.value_at_half, r)} on {name}"
        for name, r in decided.items()
        if r.value_at_half is not None
    ]
    other = f" (at 0.5 the {first.title} is {', '.join(at_half)})" if at_half else ""
    label = shorten(labels[-1], 40)
    return [f'"{label}" is predicted from a probability of {first.threshold:.3f} on{other}.']


def describe_unfinished(run: RunFacts) -> list[str]:
    last = run.metrics[-1] if run.metrics else None
    progress = f"it reached step {last.step:,} (epoch {last.epoch:.3g})" if last else "it has no scores yet"
    if run.ended is None:
        return [f"This run has not finished: {progress}. The same command with --resume continues it."]
    state, reason = run.ended
    how = "failed" if state == "failed" else "was stopped early"
    return [f"This run {how}: {reason.rstrip('.')}.", f"{progress[0].upper()}{progress[1:]}."]


def describe_score(result: SplitResult) -> str:
    if result.value is None:
        return "not a finite number"
    inside = [f"{result.n:,} {f'of {result.of:,} ' if result.of else ''}{result.unit}"]
    if result.ci95 and None not in result.ci95:
        low, high = (format_score(value, result) for value in result.ci95)
        inside.insert(0, f"95 % interval {low} to {high}")
    return f"{format_score(result.value, result)} ({', '.join(inside)})"


def format_score(value: float | None, result: SplitResult) -> str:
    """Format a value of a result's metric: three decimals up to 1, fewer for larger numbers."""
    if value is None:
        return "unknown"
    if result.is_share or abs(value) <= 1:
        return f"{value:.3f}"
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def describe_baselines(result: SplitResult) -> str:
    baselines = [
        f"{name} {format_score(value, result)}" for name, value in name_baselines(result.baselines).items()
    ]
    return f"; baselines: {', '.join(baselines)}" if baselines else ""


def describe_cost(run: RunFacts) -> str:
    r = run.results
    assert r is not None
    if r.trainable_parameters == r.total_parameters:
        parameters = f"All {r.total_parameters:,}"
    else:
        parameters = f"{r.trainable_parameters:,} of {r.total_parameters:,}"
    rates = [
        f"{format_number(round(rate, 1 if rate < 10 else 0))} {unit} per second"
        for rate, unit in ((r.examples_per_second, "examples"), (r.tokens_per_second, "tokens"))
        if rate
    ]
    speed = f" ({', '.join(rates)})" if rates else ""
    machine = ""
    if run.environment is not None:
        e = run.environment
        threads = f", {e.threads} thread{'s' if e.threads != 1 else ''}" if e.threads else ""
        machine = f" on {e.cpu if e.device in (None, 'cpu') else e.device}{threads}"
    memory = f", with at most {r.memory_gb:.1f} GB of memory" if r.memory_gb else ""
    return f"{parameters} parameters were trained in {format_duration(r.seconds)}{speed}{machine}{memory}."


def describe_checks(checks: Sequence[Check]) -> str:
    """Count the checks by severity: what is a problem, what asks for caution, what is fine."""
    names = {
        status: [summarize_check(check.name) for check in checks if check.status == status]
        for status in ("failed", "warning", "passed")
    }
    failed, cautions, fine = names.values()
    if not (failed or cautions or fine):
        return "No checks were made."
    if not failed and not cautions:
        return "The check is fine." if len(fine) == 1 else f"All {len(fine)} checks are fine."
    parts = [
        f"{len(found)} {word}{'s' if len(found) > 1 else ''} ({', '.join(found)})"
        for word, found in (("problem", failed), ("caution", cautions))
        if found
    ]
    return f"Checks: {', '.join([*parts, *([f'{len(fine)} fine'] if fine else [])])}."


def describe_runs(runs: Sequence[RunFacts], comparison: str | None) -> list[str]:
    """Describe which of several runs is best on dev, its score on test, and the outcome of paired tests."""
    if len(runs) == 1:
        return [f"{shorten(runs[0].name)}: {describe_run(runs[0])[0]}"]
    sentences = []
    scored = [
        (run, result) for run in runs if (result := run.split("dev")) is not None and result.value is not None
    ]
    if scored:
        choose = max if scored[0][0].best_is == "max" else min
        best, dev = choose(scored, key=lambda pair: pair[1].value or 0.0)
        tied = [shorten(run.name) for run, result in scored if result.value == dev.value]
        test = best.split("test")
        if len(tied) > 1:
            sentences.append(f"{', '.join(tied)} share the best {best.metric} on dev, {describe_score(dev)}.")
        else:
            on_test = f"; on test it has {describe_score(test)}" if test else ""
            sentences.append(f"{tied[0]} has the best {best.metric} on dev, {describe_score(dev)}{on_test}.")
    if comparison:
        sentences.append(comparison)
    sentences += [
        f"{shorten(run.name)} has no result ({run.missing_reason})." for run in runs if run.ended is not None
    ]
    unfinished = [shorten(run.name) for run in runs if run.results is None and run.ended is None]
    if unfinished:
        sentences.append(f"Not finished: {', '.join(unfinished)}.")
    serious = [shorten(run.name) for run in runs if any(c.status in SERIOUS for c in run.checks)]
    if serious:
        sentences.append(
            f"Checks found something in {len(serious)} of {len(runs)} runs: {', '.join(serious)}."
        )
    elif any(run.checks for run in runs):
        sentences.append("All checks of all runs are fine.")
    return sentences


def describe_seeds(runs: Sequence[RunFacts], scores: Sequence[float]) -> str:
    return (
        f"These {len(runs)} runs differ only in their seed: {runs[0].metric} on {runs[0].detail_split} is "
        f"{min(scores):.3f} to {max(scores):.3f}, with a mean of {sum(scores) / len(scores):.3f}."
    )
