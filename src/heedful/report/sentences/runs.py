"""What a report says in words: the outcome first, then how it came about, then what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import shorten
from heedful.report.figures import baseline_levels, metric_name
from heedful.report.formats import format_duration, format_number
from heedful.report.reading import SHARES, RunFacts
from heedful.runs.schemas import Check, SplitResult, in_short


def run_summary(run: RunFacts) -> list[str]:
    """Say how a run did."""
    if run.results is None:
        last = run.metrics[-1] if run.metrics else None
        reached = (
            f"it has reached step {last.step:,} (epoch {last.epoch:.3g})"
            if last
            else "it has scored nothing yet"
        )
        if run.ended is not None:
            state, reason = run.ended
            how = "has failed" if state == "failed" else "was stopped before its end"
            return [f"This run {how}: {reason.rstrip('.')}.", f"{reached[0].upper()}{reached[1:]}."]
        return [f"This run has not finished: {reached}. The same command with --resume continues it."]
    splits = run.results.splits
    told = [
        f"On {split} the {metric_name(found.metric)} is {score(found)}{beside(found)}."
        for split in ("test", "dev")
        if (found := splits.get(split)) is not None
    ]
    chosen = []
    if "dev" in splits and run.results.best_epoch is not None:
        epoch, step = f"epoch {run.results.best_epoch:.3g}", f"step {run.results.best_step or 0:,}"
        which = step if run.metric == "perplexity" else epoch
        kept_last = run.options.get("select") == "last"
        how = "The last model is kept, that of" if kept_last else "Dev selected the model of"
        chosen.append(f"{how} {which}.")
    if "test" not in splits:
        chosen.append("Test was not scored.")
    return [*told, " ".join([*chosen, cost(run)]), findings(run.checks)]


def score(found: SplitResult) -> str:
    """Write a score with its interval and what it is taken over."""
    if found.value is None:
        return "not a finite number"
    units = "tokens" if found.metric == "perplexity" else "examples"
    inside = [f"{found.n:,} {f'of {found.of:,} ' if found.of else ''}{units}"]
    if found.ci95 and None not in found.ci95:
        low, high = (number(value, found.metric) for value in found.ci95)
        inside.insert(0, f"95 % interval {low} to {high}")
    return f"{number(found.value, found.metric)} ({', '.join(inside)})"


def number(value: float | None, metric: str) -> str:
    """Write a score: shares with three digits, others with as many as can be compared."""
    if value is None:
        return "unknown"
    if metric in SHARES:
        return f"{value:.3f}"
    return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"


def beside(found: SplitResult) -> str:
    """Say what simple classifiers have on the same examples."""
    simple = [f"{name} {value:.3f}" for name, value in baseline_levels(found.baselines).items()]
    return f"; baselines: {', '.join(simple)}" if simple else ""


def cost(run: RunFacts) -> str:
    """Say what was trained, where, and how long it took."""
    r = run.results
    assert r is not None
    share = r.trainable_parameters / max(1, r.total_parameters)
    whole = (
        f"all {r.total_parameters:,}"
        if share == 1
        else f"{r.trainable_parameters:,} of {r.total_parameters:,}"
    )
    told = f"{whole} parameters were trained in {format_duration(r.seconds)}"
    rates = [
        f"{format_number(round(rate, 1 if rate < 10 else 0))} {unit} a second"
        for rate, unit in ((r.examples_per_second, "examples"), (r.tokens_per_second, "tokens"))
        if rate
    ]
    told += f" ({', '.join(rates)})" if rates else ""
    if run.environment is not None:
        e = run.environment
        threads = f", {e.threads} thread{'s' if e.threads != 1 else ''}" if e.threads else ""
        on = e.cpu if e.device in (None, "cpu") else str(e.device)
        told += f" on {on}{threads}"
    if r.memory_gb:
        told += f", with at most {r.memory_gb:.1f} GB of memory"
    return told[0].upper() + told[1:] + "."


def findings(checks: Sequence[Check]) -> str:
    """Say what the run found when it examined itself."""
    serious = [check for check in checks if check.status in ("failed", "warning")]
    made = sum(check.status != "skipped" for check in checks)
    if not made:
        return "Nothing was checked."
    if not serious:
        return f"It examined itself: all {made} checks passed."
    told = ", ".join(in_short(check.name) for check in serious)
    return f"It examined itself: {len(serious)} of {made} checks found something: {told}."


def several_summary(runs: Sequence[RunFacts], verdict: str | None) -> list[str]:
    """Say which of several runs is best on dev, what it has on test, and what the tests say."""
    if len(runs) == 1:
        return [f"{shorten(runs[0].name)}: {run_summary(runs[0])[0]}"]
    told = []
    scored = [
        (run, found) for run in runs if (found := run.split("dev")) is not None and found.value is not None
    ]
    if scored:
        choose = max if scored[0][0].better == "max" else min
        best, dev = choose(scored, key=lambda pair: pair[1].value or 0.0)
        tied = [shorten(run.name) for run, found in scored if found.value == dev.value]
        line = f"{tied[0]} has the best {metric_name(dev.metric)} on dev, {score(dev)}"
        test = best.split("test")
        told.append(line + (f"; on test it has {score(test)}." if test else "."))
        if len(tied) > 1:
            told[-1] = f"{', '.join(tied)} share the best {metric_name(dev.metric)} on dev, {score(dev)}."
    if verdict:
        told.append(verdict)
    for run in runs:
        if run.ended is not None:
            told.append(f"{shorten(run.name)} has no result ({run.lacking}).")
    unfinished = [shorten(run.name) for run in runs if run.lacking == "not finished"]
    if unfinished:
        told.append(f"Not finished: {', '.join(unfinished)}.")
    serious = [
        shorten(run.name) for run in runs if any(c.status in ("failed", "warning") for c in run.checks)
    ]
    if serious:
        told.append(f"Checks found something in {len(serious)} of {len(runs)} runs: {', '.join(serious)}.")
    elif any(run.checks for run in runs):
        told.append("All checks of all runs passed.")
    return told
