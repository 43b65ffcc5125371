"""Studies of arms: each is chosen on dev, repeated with further seeds, and then compared on test."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from heedful.errors import UserError, shorten
from heedful.evaluation.metrics import ACCURACY, Array
from heedful.report.formats import format_p
from heedful.report.sentences.comparisons import describe_comparisons
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.studies import Configuration, Outcome
from heedful.statistics.comparison import Comparison
from heedful.studies.base import Study, failure_notes, failure_reasons, find_best
from heedful.studies.shared import scores, sentences
from heedful.studies.shared.search_space import read_number

Runs = dict[str, list[Outcome]]
"""Finished runs of each arm at its chosen settings, one per seed."""
LONGEST = 60
"""Letters of a part of a folder's name."""


def read_list(option: str, text: str) -> list[str]:
    """Parse words divided by commas, each once."""
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise UserError(f"{option}: is empty; give one or more names, separated by commas")
    return words


def read_rates(option: str, text: str) -> list[float]:
    """Parse numbers above zero, divided by commas."""
    return list(dict.fromkeys(float(read_number(option, float, word)) for word in read_list(option, text)))


def make_folder_word(text: str) -> str:
    """Return a part of a folder's name; where it cannot hold the whole text, a few digits identify it."""
    word = "".join(c if c.isalnum() or c in "=.+-_" else "-" for c in text)
    if len(word) <= LONGEST and word == text.replace(" ", "-"):
        return word
    return f"{word[-LONGEST:]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


class ArmStudy(Study):
    """A study of arms. Each arm's candidates have the first seed; the best on dev is repeated with others."""

    named_settings: ClassVar[Collection[str]] = ("lr", "mlm_weight")
    """The settings that distinguish an arm's candidates, in the names of their folders."""

    @classmethod
    def make_candidate(cls, arm: str, settings: Mapping[str, Any], seed: int, job: str = "") -> Configuration:
        """Return one of an arm's settings with one seed; candidates of one job are run one after another."""
        named = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in settings.items()
            if name in cls.named_settings
        ]
        words = [*(make_folder_word(word) for word in (arm, *named)), f"seed={seed}"]
        return Configuration(",".join(words), {**settings, "seed": seed}, job, arm)

    def find_candidates(self, runs: Sequence[Outcome]) -> list[Outcome]:
        return [o for o in runs if o.configuration.settings["seed"] == self.record.seed]

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """Return further seeds of each arm whose candidates are over."""
        new: list[Configuration] = []
        for arm, runs in group_by_arm(outcomes).items():
            candidates = self.find_candidates(runs)
            best = find_best(candidates)
            if best is None or not all(o.over for o in candidates):
                continue
            if further := self.further_candidates(arm, candidates, best):
                new += further
                continue
            names = {o.name for o in runs}
            for i in range(1, int(self.record.options["seeds"])):
                repeat = self.make_candidate(arm, settings_without_seed(best), self.record.seed + i)
                new += [repeat] if repeat.name not in names else []
        return new

    def further_candidates(
        self, arm: str, candidates: Sequence[Outcome], best: Outcome
    ) -> list[Configuration]:
        """Return more candidates of an arm, now that these are over."""
        return []

    def select_runs(self, outcomes: Sequence[Outcome]) -> Runs:
        """Return the finished runs of each arm at its best settings; none for an arm that failed."""
        selected: Runs = {}
        for arm, runs in group_by_arm(outcomes).items():
            best = find_best(self.find_candidates(runs))
            selected[arm] = []
            if best is not None:
                chosen = settings_without_seed(best)
                selected[arm] = [o for o in runs if o.results and settings_without_seed(o) == chosen]
        return selected

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in list_runs(self.select_runs(outcomes)):
            self.score_test(outcome)

    def make_answer(
        self, outcomes: Sequence[Outcome], selected: Runs, split: str, comparisons: Sequence[Comparison], *,
        summary: Sequence[str], figures: Sequence[Figure], table: Table, facts: Mapping[str, Any],
        notes: Sequence[Note] = (),
    ) -> Answer:  # fmt: skip
        """Return the answer of a study of arms: what the study gives, and what all of them have."""
        shared = {"split": split, "comparisons": comparisons, "failed": failure_reasons(outcomes)}
        best = find_best(list_runs(selected))
        return Answer(
            study=self.name,
            title=self.record.question,
            summary=tuple(summary),
            notes=(*arm_notes(outcomes, selected), *notes),
            figures=tuple(figures),
            tables=(table, *make_comparison_tables(comparisons, split)),
            # The best on dev comes first, because a report shows it in full.
            runs=tuple(f"runs/{o.name}" for o in sorted(list_runs(selected), key=lambda o: o is not best)),
            facts={**facts, **shared},
        )


def group_by_arm(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    arms: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        arms.setdefault(outcome.configuration.arm, []).append(outcome)
    return arms


def list_runs(selected: Runs) -> list[Outcome]:
    return [outcome for runs in selected.values() for outcome in runs]


def settings_without_seed(outcome: Outcome) -> dict[str, Any]:
    return {name: value for name, value in outcome.configuration.settings.items() if name != "seed"}


def find_scored_split(selected: Runs) -> str:
    """Return test where all selected runs have been scored on it, otherwise dev."""
    runs = list_runs(selected)
    return "test" if runs and all(o.results and "test" in o.results.splits for o in runs) else "dev"


def read_outputs(runs: Sequence[Outcome], split: str) -> tuple[Array, list[Array]]:
    """Return the targets of a split's examples, and each run's outputs."""
    examples = [scores.read_examples(o, split) for o in runs]
    return examples[0][0], [outputs for _, outputs in examples]


def mean_scores(selected: Runs, split: str) -> dict[str, tuple[float, float, float]]:
    """Return each arm's mean score over seeds with its 95 % interval, over examples and seeds.

    How much the seeds matter to an arm is estimated from all arms.
    """
    targets, outputs = read_arms(selected, split)
    if not outputs:
        return {}
    metric = scores.find_metric(list_runs(selected)) or ACCURACY
    means = metric.means_with_intervals(targets, outputs)
    return {arm: (value, *interval) for arm, (value, interval) in means.items()}


def read_arms(selected: Runs, split: str) -> tuple[Array, dict[str, list[Array]]]:
    """Return the targets of a split's examples, and the outputs of each arm that has runs."""
    examples = {arm: read_outputs(runs, split) for arm, runs in selected.items() if runs}
    targets = next((targets for targets, _ in examples.values()), np.empty(0))
    return targets, {arm: outputs for arm, (_, outputs) in examples.items()}


def compare_arms(
    selected: Runs,
    split: str,
    *,
    paired_seeds: bool = False,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> list[Comparison]:
    """Compare pairs of arms that have runs, by their metric; p is corrected for the number of tests.

    Without `pairs`, every pair is compared. How much the seeds matter is estimated from all arms.
    """
    targets, outputs = read_arms(selected, split)
    if len(outputs) < 2 or len(targets) < 2:
        return []
    metric = scores.find_metric(list_runs(selected)) or ACCURACY
    seeds = {tuple(o.configuration.settings["seed"] for o in runs) for runs in selected.values() if runs}
    # Only arms with the same seeds can be compared seed by seed.
    paired = paired_seeds and len(seeds) == 1
    return metric.compare_all(targets, outputs, paired_seeds=paired, pairs=pairs)


def describe_arms(selected: Runs, comparisons: Sequence[Comparison], split: str, metric: str) -> list[str]:
    """Describe which arm is best, which cannot be told apart, and what would tell."""
    runs = list_runs(selected)
    if runs and all(scores.has_collapsed(o) for o in runs):
        return [sentences.ARMS_ALL_COLLAPSED]
    if comparisons:
        low = all(scores.describe_low(arm_runs) for arm_runs in selected.values() if arm_runs)
        caution = sentences.ARMS_NOT_ABOVE if low else ""
        return [f"On {split}: {describe_comparisons(comparisons, metric)}{caution}"]
    arms = [arm for arm, arm_runs in selected.items() if arm_runs]
    if len(arms) > 1:
        return [sentences.ARMS_ONE_EXAMPLE.format(split=split)]
    return [sentences.ARMS_ALONE.format(arm=arms[0])] if arms else []


def describe_missing(runs: Sequence[Outcome]) -> str:
    reasons = [o.ended.reason for o in runs if o.ended is not None]
    return shorten(reasons[0], 80) if reasons else "not finished yet"


def draw_bars(outcomes: Sequence[Outcome], selected: Runs, split: str, title: str) -> Figure:
    """Return a figure of each arm on dev and test with intervals; 0 with its reason for what failed."""
    rows: list[dict[str, Any]] = []
    means = {group: mean_scores(selected, group) for group in ("dev", split)}
    for arm, runs in group_by_arm(outcomes).items():
        for group in means:
            row: dict[str, Any] = {"label": arm, "group": group}
            if selected[arm]:
                value, low, high = means[group][arm]
                rows.append({**row, "value": value, "low": low, "high": high})
            else:
                rows.append({**row, "value": None, "note": describe_missing(runs)})
    metric = scores.find_metric(outcomes)
    axis: dict[str, Any] = {"y_domain": [0, 1]} if metric is None or metric.is_share else {}
    baselines, on_dev = (scores.find_baselines(list_runs(selected), one) for one in (split, "dev"))
    if baselines != on_dev:
        baselines = {f"{name}, {split}": value for name, value in baselines.items()}
    titles = {"title": title, "y_title": scores.metric_title(outcomes), "group_title": "split"}
    options = {**titles, **axis, "rules": baselines}
    return Figure("scores", "bars", rows, options, "Bars are means over seeds, whiskers 95 % intervals.")


def make_arm_table(study: ArmStudy, outcomes: Sequence[Outcome], selected: Runs, split: str) -> Table:
    metric = scores.metric_title(outcomes)
    means, on_dev = mean_scores(selected, split), mean_scores(selected, "dev")
    rows: list[tuple[Any, ...]] = []
    for arm, runs in group_by_arm(outcomes).items():
        if not selected[arm]:
            rows.append((arm, None, 0, None, None, "", None, None, None, f"failed: {describe_missing(runs)}"))
            continue
        value, low, high = means[arm]
        results = [o.results for o in selected[arm] if o.results is not None]
        memory = [r.memory_gb for r in results if r.memory_gb is not None]
        lost = sum(o.state == "failed" for o in runs)
        rate = study.settings(selected[arm][0].configuration).lr
        dev, interval = on_dev[arm][0], sentences.format_interval(low, high)
        seconds = round(float(np.mean([r.seconds for r in results])), 1)
        peak = round(max(memory), 2) if memory else None
        note = scores.describe_partly_low(selected[arm]) or (f"{lost} failed" if lost else "")
        row = (arm, rate, len(results), dev, value, interval, results[0].trainable_parameters, seconds, peak)
        rows.append((*row, note))
    columns: tuple[str, ...] = (
        "arm", "learning rate", "seeds", f"dev {metric}", f"{split} {metric}", "95 % interval", "trained",
        "seconds", "memory GB", "note",
    )  # fmt: skip
    if split == "dev":  # one column is enough
        columns = (*columns[:3], *columns[4:])
        rows = [(*row[:3], *row[4:]) for row in rows]
    return Table(columns, tuple(rows), "")


def make_comparison_tables(comparisons: Sequence[Comparison], split: str) -> list[Table]:
    """Return a table with one row per pair of arms; none where nothing was compared."""
    if not comparisons:
        return []
    rows = []
    for c in comparisons:
        p, apart = format_p(c.p).removeprefix("= "), "yes" if c.differs else "no"
        interval = sentences.format_interval(c.low, c.high)
        sources = (c.example_reach, c.seed_reach if c.freedom else None)
        rows.append((c.a, c.b, c.difference, interval, *sources, p, apart))
    corrected = f", p corrected for {len(rows)} tests" if len(rows) > 1 else ""
    columns = (
        "better", "other", "difference", "95 % interval", "± examples", "± seeds", "p", "told apart",
    )  # fmt: skip
    return [Table(columns, tuple(rows), f"on {split}, by {comparisons[0].test}{corrected}")]


def arm_notes(outcomes: Sequence[Outcome], selected: Runs) -> list[Note]:
    """Warn of arms that failed, of arms that learned nothing, and of single runs that failed."""
    notes = failure_notes([o for o in outcomes if selected[o.configuration.arm]])
    for arm, runs in group_by_arm(outcomes).items():
        low, partly = scores.describe_low(selected[arm]), scores.describe_partly_low(selected[arm])
        if not selected[arm] and all(o.over for o in runs):
            text = sentences.ARM_WITHOUT_RESULT.format(arm=arm, reason=describe_missing(runs))
            notes.append(Note(text, "bad"))
        elif low or partly:
            template = sentences.ARM_LOW if low else sentences.ARM_PARTLY_COLLAPSED
            if low == sentences.COLLAPSED:
                template = sentences.ARM_COLLAPSED
            notes.append(Note(template.format(arm=arm, how=low or partly), "warning"))
    return notes
