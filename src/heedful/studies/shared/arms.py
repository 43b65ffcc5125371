"""Studies that compare arms: each chosen on dev, repeated with further seeds, and then told apart on test."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from heedful.errors import UserError, shorten
from heedful.evaluation.metrics import ACCURACY, Array
from heedful.report.formats import format_p
from heedful.report.sentences.comparisons import describe_comparisons
from heedful.runs.answers import Figure, Note, Table
from heedful.runs.studies import Configuration, Outcome
from heedful.statistics.comparison import Comparison
from heedful.studies.base import Study, best, failures
from heedful.studies.shared import scores
from heedful.studies.shared.search_space import number

Chosen = dict[str, list[Outcome]]
"""The runs of each arm at its chosen settings, one a seed, finished ones only."""


def read_list(option: str, text: str) -> list[str]:
    """Words divided by commas, each once."""
    found = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise UserError(f"{option}: names nothing; give one or more, divided by commas")
    return found


def read_rates(option: str, text: str) -> list[float]:
    """Numbers above zero, divided by commas."""
    return list(dict.fromkeys(float(number(option, float, word)) for word in read_list(option, text)))


LONGEST = 60
"""Letters of a part of a folder's name."""
SHOWN = ("lr", "mlm_weight")
"""Settings that tell an arm's candidates apart."""


def candidate(
    arm: str, settings: Mapping[str, Any], seed: int, job: str = "", shown: Collection[str] = SHOWN
) -> Configuration:
    """One of an arm's settings, with one seed; candidates of one job are worked on together."""
    named = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings.items() if k in shown]
    parts = [folder_word(word) for word in (arm, *named)]
    return Configuration(",".join([*parts, f"seed={seed}"]), {**settings, "seed": seed}, job, arm)


def folder_word(text: str) -> str:
    """A part of a folder's name; where it does not say all, a few digits set it apart from others."""
    word = "".join(c if c.isalnum() or c in "=.+-_" else "-" for c in text)
    if len(word) <= LONGEST and word == text.replace(" ", "-"):
        return word
    return f"{word[-LONGEST:]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


class Arms(Study):
    """Each arm's candidates have the first seed; the best of them on dev is repeated with the others."""

    shown: ClassVar[tuple[str, ...]] = SHOWN

    def of_arm(self, outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
        """The runs of each arm."""
        found: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            found.setdefault(outcome.configuration.arm, []).append(outcome)
        return found

    def candidates(self, own: Sequence[Outcome]) -> list[Outcome]:
        """Of an arm's runs those that it is chosen from."""
        return [o for o in own if o.configuration.settings["seed"] == self.record.seed]

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """Further seeds of each arm whose candidates are over."""
        new: list[Configuration] = []
        for arm, own in self.of_arm(outcomes).items():
            tried = self.candidates(own)
            top = best(tried)
            if top is None or not all(o.over for o in tried):
                continue
            further = self.further(arm, tried, top)
            if further:
                new += further
                continue
            names = {o.name for o in own}
            for i in range(1, int(self.record.options["seeds"])):
                settings = {k: v for k, v in top.configuration.settings.items() if k != "seed"}
                repeat = candidate(arm, settings, self.record.seed + i, shown=self.shown)
                new += [repeat] if repeat.name not in names else []
        return new

    def further(self, arm: str, tried: Sequence[Outcome], top: Outcome) -> list[Configuration]:
        """More candidates, now that these are over."""
        return []

    def chosen(self, outcomes: Sequence[Outcome]) -> Chosen:
        """The finished runs of each arm at its best settings; none for an arm that failed."""
        found: Chosen = {}
        for arm, own in self.of_arm(outcomes).items():
            top = best(self.candidates(own))
            found[arm] = [
                o
                for o in own
                if top is not None and o.results is not None and without_seed(o) == without_seed(top)
            ]
        return found

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Test, once, for each run that was chosen."""
        for runs in self.chosen(outcomes).values():
            for outcome in runs:
                self.score_test(outcome)


def without_seed(outcome: Outcome) -> dict[str, Any]:
    """What makes two runs the same but for chance."""
    return {k: v for k, v in outcome.configuration.settings.items() if k != "seed"}


def scored_split(chosen: Chosen) -> str:
    """Test where all chosen runs have been scored on it, else dev."""
    runs = [o for own in chosen.values() for o in own]
    return "test" if runs and all(o.results and "test" in o.results.splits for o in runs) else "dev"


def read_outputs(runs: Sequence[Outcome], split: str) -> tuple[Array, list[Array]]:
    """Return the targets of a split's examples, and each run's outputs."""
    examples = [scores.read_examples(o, split) for o in runs]
    return examples[0][0], [outputs for _, outputs in examples]


def mean(runs: Sequence[Outcome], split: str) -> tuple[float, float, float]:
    """Return the mean score over seeds with its 95 % interval, over examples and seeds."""
    metric = scores.find_metric(runs) or ACCURACY
    value, interval = metric.mean_with_interval(*read_outputs(runs, split))
    return value, *interval


def best_first(chosen: Chosen) -> tuple[str, ...]:
    """The folders of the chosen runs; before all the best on dev, which a report shows in full."""
    runs = [o for own in chosen.values() for o in own]
    top = best(runs)
    return tuple(f"runs/{o.name}" for o in sorted(runs, key=lambda o: o is not top))


def compared(chosen: Chosen, split: str, *, paired_seeds: bool = False) -> list[Comparison]:
    """Compare every two arms that have runs; p values are corrected for the number of tests."""
    examples = {arm: read_outputs(runs, split) for arm, runs in chosen.items() if runs}
    if len(examples) < 2 or any(len(targets) < 2 for targets, _ in examples.values()):
        return []
    metric = scores.find_metric(o for runs in chosen.values() for o in runs) or ACCURACY
    targets, _ = next(iter(examples.values()))
    outputs = {arm: own for arm, (_, own) in examples.items()}
    return metric.compare_all(targets, outputs, paired_seeds=paired_seeds and same_seeds(chosen))


def same_seeds(chosen: Chosen) -> bool:
    """Whether all arms have runs with the same seeds, which can be compared seed by seed."""
    return (
        len({tuple(o.configuration.settings["seed"] for o in runs) for runs in chosen.values() if runs}) == 1
    )


def sentences(chosen: Chosen, comparisons: Sequence[Comparison], split: str, metric: str) -> list[str]:
    """Which is best, what cannot be told apart, and what would tell."""
    if all(scores.collapsed(o) for runs in chosen.values() for o in runs) and any(chosen.values()):
        return ["Every arm collapsed: all give nearly one answer to everything, and nothing can be compared."]
    if comparisons:
        said = f"On {split}: {describe_comparisons(comparisons, metric)}"
        if all(scores.fallen(runs) for runs in chosen.values() if runs):
            said += " But none is shown to be better than always giving the most frequent label."
        return [said]
    alone = [arm for arm, runs in chosen.items() if runs]
    if len(alone) > 1:
        return [f"On {split} there is one example: nothing can be compared."]
    return [f"Only {alone[0]} has a finished run: there is nothing to compare."] if alone else []


def reason_of(own: Sequence[Outcome]) -> str:
    """Why an arm has no run."""
    reasons = [o.ended.reason for o in own if o.ended is not None]
    return shorten(reasons[0], 80) if reasons else "not finished yet"


def bars(study: Arms, outcomes: Sequence[Outcome], chosen: Chosen, split: str, title: str) -> Figure:
    """Dev and test of each arm with intervals; 0 with its reason for what failed."""
    metric = scores.metric_of(outcomes)
    groups = dict.fromkeys(("dev", split))
    rows: list[dict[str, Any]] = []
    for arm, own in study.of_arm(outcomes).items():
        for group in groups:
            if chosen[arm]:
                value, low, high = mean(chosen[arm], group)
                rows.append({"label": arm, "group": group, "value": value, "low": low, "high": high})
            else:
                rows.append({"label": arm, "group": group, "value": None, "note": reason_of(own)})
    options = {"title": title, "y_title": metric, "y_domain": [0, 1], "group_title": "split"}
    return Figure("scores", "bars", rows, options, "Bars are means over seeds, whiskers 95 % intervals.")


def arm_table(study: Arms, outcomes: Sequence[Outcome], chosen: Chosen, split: str, title: str = "") -> Table:
    """A line an arm: settings, scores, cost."""
    metric = scores.metric_of(outcomes)
    rows: list[tuple[Any, ...]] = []
    for arm, own in study.of_arm(outcomes).items():
        runs = chosen[arm]
        if not runs:
            rows.append((arm, None, 0, None, None, "", None, None, None, f"failed: {reason_of(own)}"))
            continue
        value, low, high = mean(runs, split)
        results = [o.results for o in runs if o.results is not None]
        memory = [r.memory_gb for r in results if r.memory_gb is not None]
        lost = sum(o.state == "failed" for o in own)
        note = scores.partly_fallen(runs) or (f"{lost} failed" if lost else "")
        rows.append(
            (
                arm,
                study.options(runs[0].configuration).lr,
                len(runs),
                mean(runs, "dev")[0],
                value,
                f"{low:.3f} to {high:.3f}",
                results[0].trainable_parameters,
                round(float(np.mean([r.seconds for r in results])), 1),
                round(max(memory), 2) if memory else None,
                note,
            )
        )
    columns: tuple[str, ...] = (
        "arm", "learning rate", "seeds", f"dev {metric}", f"{split} {metric}", "95 % interval", "trained",
        "seconds", "memory GB", "note",
    )  # fmt: skip
    if split == "dev":  # one column is enough
        columns = (*columns[:3], *columns[4:])
        rows = [(*row[:3], *row[4:]) for row in rows]
    return Table(columns, tuple(rows), title)


def comparison_table(comparisons: Sequence[Comparison], split: str) -> list[Table]:
    """Every two arms."""
    if not comparisons:
        return []
    rows = tuple(
        (
            c.a,
            c.b,
            c.difference,
            f"{c.low:.3f} to {c.high:.3f}",
            format_p(c.p).removeprefix("= "),
            "yes" if c.differs else "no",
        )
        for c in comparisons
    )
    test = comparisons[0].test
    title = f"on {split}, by {test}" + (f", p corrected for {len(rows)} tests" if len(rows) > 1 else "")
    return [Table(("better", "other", "difference", "95 % interval", "p", "told apart"), rows, title)]


def lost_runs(study: Arms, outcomes: Sequence[Outcome], chosen: Chosen) -> list[Note]:
    """Warn of arms that failed, of arms that learnt nothing, and of single runs that failed."""
    found = failures([o for o in outcomes if chosen[o.configuration.arm]])
    for arm, own in study.of_arm(outcomes).items():
        if not chosen[arm] and all(o.over for o in own):
            found.append(Note(f"{arm} has no result: {reason_of(own)}", "bad"))
        elif scores.fallen(chosen[arm]) == scores.COLLAPSED:
            found.append(Note(f"{arm} collapsed: it gives nearly one answer to everything.", "warning"))
        elif scores.fallen(chosen[arm]):
            found.append(Note(f"{arm} is on dev {scores.fallen(chosen[arm])}, within chance.", "warning"))
        elif said := scores.partly_fallen(chosen[arm]):
            found.append(Note(f"Of {arm} {said}: they give nearly one answer to everything.", "warning"))
    return found
