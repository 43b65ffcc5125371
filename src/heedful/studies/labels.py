"""How many labels are enough, and does text without labels help? Accuracy against labels, arm by arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

from heedful.errors import UserError, unknown
from heedful.objectives.registry import OBJECTIVES
from heedful.options.studies import LabelsOptions, LabelsRun
from heedful.options.training import FIXED_SETTINGS
from heedful.options.values import flag
from heedful.problems import find_problem_of_task
from heedful.report.formats import capitalize, join_names
from heedful.report.sentences.comparisons import SINGLE_RUN, describe_comparison
from heedful.runs.answers import Answer, Figure, Table
from heedful.runs.studies import Outcome
from heedful.statistics.comparison import Comparison
from heedful.studies.base import StudyPlan
from heedful.studies.shared import arms, scores, sentences
from heedful.studies.shared.arms import ArmStudy
from heedful.studies.shared.commands import shared_options
from heedful.studies.shared.search_space import read_number, usual_rates
from heedful.training.build.settings import usual_batch_size
from heedful.training.run_task import load_run_task

ARMS = ("classify", "joint")
ALL = "all"


class Labels(ArmStudy):
    """How many labels are enough, and does text without labels help?

    The arms are classification alone, and classification together with masked
    language modeling on unlabeled text. The learning rate, the epochs (at least
    200 steps) and the weight of masked language modeling are chosen on dev for
    each number of labels and each arm. Each seed draws other labels. Test is
    scored once for each chosen run.

    Examples:
      heedful study labels minilm yelp --sizes 50,200,1000,all --seeds 5
      heedful study labels minilm reviews.csv --arms classify --sizes 20,100,all --seeds 3
    """

    name = "labels"
    options = LabelsOptions
    run_options = LabelsRun

    @classmethod
    def plan(cls, options: LabelsOptions, run: LabelsRun) -> StudyPlan:
        objectives = arms.read_list("--arms", options.arms)
        for objective in objectives:
            if objective not in ARMS:
                raise unknown("arm", objective, ARMS)
        rates = list(usual_rates(run.method, run.model))
        if options.rates:
            rates = arms.read_rates("--rates", options.rates)
        weights = arms.read_rates("--mlm-weights", options.mlm_weights)
        common = shared_options(
            run, ("lr", "epochs", "objective", "train_rows", "balanced", "mlm_weight", "seed")
        )
        of_all = set.intersection(*(set(OBJECTIVES[arm].own_options) for arm in ARMS))
        arm_settings: dict[str, dict[str, Any]] = {
            arm: {
                name: common.pop(name)
                for name in OBJECTIVES[arm].own_options
                if name in common and name not in of_all
            }
            for arm in ARMS
        }
        for arm, names in arm_settings.items():
            if names and arm not in objectives:
                flags = join_names([flag(name) for name in names])
                raise UserError(f"{flags}: for the arm {arm}, which --arms {options.arms} does not have")
        rows = count_rows(run)
        configurations = []
        for size in read_sizes(options.sizes, rows):
            n = rows if size == ALL else int(size)
            per_epoch = math.ceil(n / (run.batch_size or usual_batch_size(run.model)))
            epochs = max(run.epochs or FIXED_SETTINGS["epochs"], math.ceil(options.least_steps / per_epoch))
            data: dict[str, Any] = {"epochs": epochs} | (
                {} if size == ALL else {"train_rows": n, "balanced": run.balanced}
            )
            for objective in objectives:
                settings = {**data, "objective": objective}
                weighted = "mlm_weight" in OBJECTIVES[objective].own_options
                variants = [{"mlm_weight": weight} for weight in weights] if weighted else [{}]
                for rate, variant in product(rates, variants):
                    candidate = {**settings, "lr": rate, **arm_settings[objective], **variant}
                    configurations.append(cls.make_candidate(f"{objective} with {size}", candidate, run.seed))
        searched = ("sizes", "arms", "rates", "mlm_weights", "least_steps", "seeds")
        return StudyPlan(
            question=f"How many labels of {run.task} does {run.model} need?",
            seed=run.seed,
            options={**{name: getattr(options, name) for name in searched}, "rows": rows, "run": common},
            configurations=configurations,
            folder_words=(run.task, run.model),
        )

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        selected = self.select_runs(outcomes)
        split, metric = arms.find_scored_split(selected), scores.metric_title(outcomes)
        comparisons = compare_objectives(selected, split)
        titles = {"title": f"{capitalize(metric)} against labels", "x_title": "labeled examples"}
        baselines = scores.find_baselines(arms.list_runs(selected), split)
        options = {**titles, "y_title": f"{split} {metric}", "log_x": True, "levels": baselines}
        caption = "Means over seeds, each with its own labels; bands are 95 % intervals."
        return self.make_answer(
            outcomes,
            selected,
            split,
            list(comparisons.values()),
            summary=describe_objectives(selected, comparisons, split, metric),
            figures=[Figure("labels", "lines", self.make_curves(selected, split), options, caption)],
            table=make_table(outcomes, selected, split),
            facts={"arms": arms.mean_scores(selected, split)},
        )

    def make_curves(self, selected: arms.Runs, split: str) -> dict[str, list[list[float]]]:
        curves: dict[str, list[list[float]]] = {}
        for arm, score in arms.mean_scores(selected, split).items():
            objective, size = split_arm(arm)
            n = self.record.options["rows"] if size == ALL else int(size)
            curves.setdefault(objective, []).append([n, *score])
        return curves | self.make_baseline_curves(selected, split)

    def make_baseline_curves(self, selected: arms.Runs, split: str) -> dict[str, list[list[float]]]:
        """Return the curve of each baseline that learns from the labels, such as a bag of words."""
        shared = scores.find_baselines(arms.list_runs(selected), split)
        values: dict[str, dict[int, list[float]]] = {}
        for arm, runs in selected.items():
            _, size = split_arm(arm)
            n = self.record.options["rows"] if size == ALL else int(size)
            for outcome in runs:
                for name, value in scores.find_baselines([outcome], split).items():
                    if name not in shared:
                        values.setdefault(name, {}).setdefault(n, []).append(value)
        return {name: [[n, fmean(by_size[n])] for n in sorted(by_size)] for name, by_size in values.items()}


def count_rows(options: LabelsRun) -> int:
    task = load_run_task(options)
    train = task.splits["train"]
    if task.kind in ("labels", "number"):
        title = find_problem_of_task(task.kind).title
        raise UserError(f"{options.task}: has {title}; this study compares objectives of one label per text")
    if train.labels is None:
        raise UserError(f"{options.task}: its training data has no labels")
    return len(train)


def read_sizes(text: str, rows: int) -> list[str]:
    """Parse numbers of labels; the fewest come first."""
    sizes = arms.read_list("--sizes", text)
    counts = sorted({int(read_number("--sizes", int, size)) for size in sizes if size != ALL})
    if counts and counts[-1] > rows:
        raise UserError(f"--sizes {counts[-1]}: the training data has {rows:,} rows; {ALL} takes them all")
    return [*map(str, counts), *([ALL] if ALL in sizes else [])]


def split_arm(arm: str) -> tuple[str, str]:
    objective, _, size = arm.partition(" with ")
    return objective, size


def compare_objectives(selected: arms.Runs, split: str) -> dict[str, Comparison]:
    """Compare the two objectives at each number of labels, seed by seed; p is corrected for all sizes.

    How much a draw of the labels matters is estimated from all sizes.
    """
    sizes: dict[str, list[str]] = {}
    for arm, runs in selected.items():
        if runs:
            sizes.setdefault(split_arm(arm)[1], []).append(arm)
    pairs = [(names[0], names[1]) for names in sizes.values() if len(names) > 1]
    found = arms.compare_arms(selected, split, paired_seeds=True, pairs=pairs) if pairs else []
    by_size = {split_arm(c.a)[1]: c for c in found}
    return {size: by_size[size] for size in sizes if size in by_size}


def describe_objectives(
    selected: arms.Runs, comparisons: Mapping[str, Comparison], split: str, metric: str
) -> list[str]:
    """Describe where the objectives differ, and what more labels bring."""
    summary = []
    for objective in ARMS:
        better = [s for s, c in comparisons.items() if c.differs and split_arm(c.a)[0] == objective]
        once = [s for s in better if comparisons[s].is_single]
        low = [s for s in better if s not in once and scores.describe_low(selected[comparisons[s].a])]
        truly = [s for s in better if s not in (*once, *low)]
        for template, sizes in (
            (sentences.LABELS_BETTER, truly),
            (sentences.LABELS_BETTER_BUT_LOW, low),
            (sentences.LABELS_BETTER_ONCE, once),
        ):
            if sizes:
                names = join_names(sizes)
                summary.append(template.format(objective=objective, sizes=names, caution=SINGLE_RUN))
    if ahead := [size for size, c in comparisons.items() if c.depends_on_seed]:
        summary.append(sentences.LABELS_AHEAD.format(sizes=join_names(ahead)))
    if tied := [size for size, c in comparisons.items() if not c.differs and not c.depends_on_seed]:
        summary.append(sentences.LABELS_TIED.format(sizes=join_names(tied)))
    summary += [f"On {split}: {describe_comparison(c, metric)}" for c in comparisons.values()]
    means = arms.mean_scores(selected, split)
    for objective in dict.fromkeys(split_arm(arm)[0] for arm in selected):
        named = [arm for arm in means if split_arm(arm)[0] == objective]
        values = [(split_arm(arm)[1], means[arm][0]) for arm in named]
        about: dict[str, Any] = {"objective": objective, "metric": metric, "split": split}
        if len(values) > 1:
            about |= {"fewest": values[0][0], "low": values[0][1], "most": values[-1][0]}
            summary.append(sentences.LABELS_RANGE.format(**about, high=values[-1][1]))
        elif values and not comparisons:
            summary.append(sentences.LABELS_VALUE.format(**about, size=values[0][0], value=values[0][1]))
    return summary or [sentences.LABELS_WAITING]


def make_table(outcomes: Sequence[Outcome], selected: arms.Runs, split: str) -> Table:
    rows: list[tuple[Any, ...]] = []
    means, on_dev = arms.mean_scores(selected, split), arms.mean_scores(selected, "dev")
    for arm, runs in arms.group_by_arm(outcomes).items():
        objective, size = split_arm(arm)
        if not selected[arm]:
            rows.append((size, objective, *[None] * 7, f"failed: {arms.describe_missing(runs)}"))
            continue
        value, low, high = means[arm]
        settings = selected[arm][0].configuration.settings
        results = [o.results for o in selected[arm] if o.results is not None]
        epochs = [r.best_epoch for r in results if r.best_epoch is not None]
        best_epochs = " to ".join(f"{epoch:.3g}" for epoch in sorted({min(epochs), max(epochs)}))
        epochs_used, weight = f"{best_epochs} of {settings['epochs']}", settings.get("mlm_weight")
        dev, note = on_dev[arm][0], scores.describe_partly_low(selected[arm])
        row = (size, objective, settings["lr"], epochs_used, weight, len(results), dev, value)
        rows.append((*row, sentences.format_interval(low, high), note))
    metric = scores.metric_title(outcomes)
    columns = (
        "labels", "arm", "learning rate", "epochs", "mlm weight", "seeds", f"dev {metric}",
        f"{split} {metric}" if split != "dev" else "score", "95 % interval", "note",
    )  # fmt: skip
    return Table(columns, tuple(rows), "chosen on dev for each number of labels and each arm")
