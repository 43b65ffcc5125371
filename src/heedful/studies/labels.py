"""How many labels are enough, and does text without labels help? Accuracy against labels, arm by arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError, unknown
from heedful.options.studies import LabelsOptions, LabelsRun
from heedful.options.values import check_bounds
from heedful.problems.tasks import load_run_task
from heedful.report.formats import join_names
from heedful.report.sentences.comparisons import SINGLE_RUN, describe_comparison
from heedful.runs.answers import Answer, Figure, Table
from heedful.runs.studies import Outcome, StudyFolder, StudyRecord
from heedful.statistics.comparison import Comparison, correct_for_tests
from heedful.studies.commands import shared_options, study_command
from heedful.studies.shared import arms, scores
from heedful.studies.shared.arms import Arms, candidate
from heedful.studies.shared.runner import run
from heedful.studies.shared.search_space import number, usual_rates

OBJECTIVES = ("classify", "joint")
ALL = "all"
OF_JOINT = ("unlabeled", "mlm_first", "mlm_rate")


def labels(options: LabelsRun, study: LabelsOptions) -> tuple[StudyFolder, Answer]:
    """Compare objectives over numbers of labels."""
    check_bounds(study)
    chosen = arms.read_list("--arms", study.arms)
    for arm in chosen:
        if arm not in OBJECTIVES:
            raise unknown("arm", arm, OBJECTIVES)
    rates = arms.read_rates("--rates", study.rates) if study.rates else list(usual_rates(options.method))
    weights = arms.read_rates("--mlm-weights", study.mlm_weights)
    common = shared_options(options, ("lr", "epochs", "objective", "train_rows", "mlm_weight", "seed"))
    of_joint = {name: common.pop(name) for name in OF_JOINT if name in common}
    if of_joint and "joint" not in chosen:
        given_in_vain = join_names([f"--{name.replace('_', '-')}" for name in of_joint])
        raise UserError(f"{given_in_vain}: of the arm joint, and --arms {study.arms} has none")
    rows = count_rows(options)
    plan = []
    for size in read_sizes(study.sizes, rows):
        n = rows if size == ALL else int(size)
        epochs = max(options.epochs, math.ceil(study.least_steps / math.ceil(n / options.batch_size)))
        given: dict[str, Any] = {"epochs": epochs} if size == ALL else {"epochs": epochs, "train_rows": n}
        for arm in chosen:
            for rate in rates:
                settings = {**given, "objective": arm, "lr": rate}
                several = [{**of_joint, "mlm_weight": w} for w in weights] if arm == "joint" else [{}]
                plan += [
                    candidate(f"{arm} with {size}", {**settings, **more}, options.seed) for more in several
                ]
    record = StudyRecord(
        kind="labels",
        question=f"How many labels of {options.task} does {options.model} need?",
        seed=options.seed,
        options={
            "sizes": study.sizes,
            "arms": study.arms,
            "rates": study.rates,
            "mlm_weights": study.mlm_weights,
            "least_steps": study.least_steps,
            "seeds": study.seeds,
            "rows": rows,
            "run": common,
        },
        configurations=tuple(plan),
        command=study_command("labels", (options.model, options.task), study, options),
    )
    return run(record, study, (options.task, options.model), options.threads)


def count_rows(options: LabelsRun) -> int:
    """How many labels there are."""
    train = load_run_task(options).splits["train"]
    if train.labels is None:
        raise UserError(f"{options.task}: its training data has no labels")
    return len(train)


def read_sizes(text: str, rows: int) -> list[str]:
    """Numbers of labels, the fewest first."""
    sizes = arms.read_list("--sizes", text)
    counts = sorted({int(number("--sizes", int, size)) for size in sizes if size != ALL})
    if counts and counts[-1] > rows:
        raise UserError(f"--sizes {counts[-1]}: the training data has {rows:,} rows; {ALL} takes them all")
    return [*map(str, counts), *([ALL] if ALL in sizes else [])]


class Labels(Arms):
    """An arm a number of labels and an objective."""

    kind = "labels"

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """The curves, what was chosen, and where the objectives truly differ."""
        chosen = self.chosen(outcomes)
        split, metric = arms.scored_split(chosen), scores.metric_of(outcomes)
        comparisons = self.compared(chosen, split)
        return Answer(
            study=self.kind,
            title=self.record.question,
            summary=tuple(self.sentences(chosen, comparisons, split, metric)),
            notes=tuple(arms.lost_runs(self, outcomes, chosen)),
            figures=(
                Figure(
                    "labels",
                    "lines",
                    self.bands(chosen, split),
                    {
                        "title": f"{metric.capitalize()} against labels",
                        "x_title": "labelled examples",
                        "y_title": f"{split} {metric}",
                        "log_x": True,
                    },
                    "Means over seeds, each with labels of its own; bands are 95 % intervals.",
                ),
            ),
            tables=(
                self.table(outcomes, chosen, split, metric),
                *arms.comparison_table(list(comparisons.values()), split),
            ),
            runs=arms.best_first(chosen),
            facts={
                "arms": {arm: arms.mean(runs, split) for arm, runs in chosen.items() if runs},
                "split": split,
                "comparisons": list(comparisons.values()),
                "failed": {o.name: o.ended.reason for o in outcomes if o.state == "failed" and o.ended},
            },
        )

    def compared(self, chosen: arms.Chosen, split: str) -> dict[str, Comparison]:
        """The two objectives at each number of labels, the better first, seed by seed; p corrected."""
        found: dict[str, Comparison] = {}
        for size in dict.fromkeys(size_of(arm) for arm in chosen):
            own = {arm: runs for arm, runs in chosen.items() if size_of(arm) == size and runs}
            if pair := arms.compared(own, split, paired_seeds=True):
                found[size] = pair[0]
        return dict(zip(found, correct_for_tests(list(found.values())), strict=True))

    def sentences(
        self, chosen: arms.Chosen, comparisons: Mapping[str, Comparison], split: str, metric: str
    ) -> list[str]:
        """Where the objectives differ, and what more labels bring."""
        found = []
        for wins in OBJECTIVES:
            sizes = [s for s, c in comparisons.items() if c.differs and objective_of(c.a) == wins]
            once = [s for s in sizes if comparisons[s].seeds < 2]
            poor = [s for s in sizes if s not in once and scores.fallen(chosen[comparisons[s].a])]
            if truly := [s for s in sizes if s not in (*once, *poor)]:
                found.append(f"{wins} is truly better with {join_names(truly)} labels.")
            if poor:
                worth = "but there not shown to be better than always giving the most frequent label"
                found.append(f"{wins} is better with {join_names(poor)} labels, {worth}.")
            if once:
                found.append(
                    f"{wins} is better with {join_names(once)} labels on these examples; {SINGLE_RUN}."
                )
        equal = [size for size, c in comparisons.items() if not c.differs]
        if equal:
            found.append(f"With {join_names(equal)} labels the arms cannot be told apart.")
        found += [f"On {split}: {describe_comparison(c, metric)}" for c in comparisons.values()]
        for objective in dict.fromkeys(objective_of(arm) for arm in chosen):
            own = [(size_of(a), runs) for a, runs in chosen.items() if objective_of(a) == objective and runs]
            values = [(size, arms.mean(runs, split)[0]) for size, runs in own]
            if len(values) > 1:
                (fewest, low), (most, high) = values[0], values[-1]
                found.append(
                    f"{objective}: {metric} on {split} goes from {low:.3f} with {fewest} labels to "
                    f"{high:.3f} with {most}."
                )
            elif values and not comparisons:
                found.append(
                    f"{objective}: {metric} on {split} is {values[0][1]:.3f} with {values[0][0]} labels."
                )
        return found or ["No arm has finished yet."]

    def bands(self, chosen: arms.Chosen, split: str) -> dict[str, list[list[float]]]:
        """A curve an objective."""
        found: dict[str, list[list[float]]] = {}
        for arm, runs in chosen.items():
            if runs:
                size = self.record.options["rows"] if size_of(arm) == ALL else int(size_of(arm))
                found.setdefault(objective_of(arm), []).append([size, *arms.mean(runs, split)])
        return found

    def table(self, outcomes: Sequence[Outcome], chosen: arms.Chosen, split: str, metric: str) -> Table:
        """What was chosen for each number of labels and objective, beside its scores."""
        rows: list[tuple[Any, ...]] = []
        for arm, own in self.of_arm(outcomes).items():
            runs = chosen[arm]
            if not runs:
                rows.append((size_of(arm), objective_of(arm), *[None] * 7, f"failed: {arms.reason_of(own)}"))
                continue
            value, low, high = arms.mean(runs, split)
            settings = runs[0].configuration.settings
            epochs = [o.results.best_epoch for o in runs if o.results and o.results.best_epoch is not None]
            picked = " to ".join(f"{epoch:.3g}" for epoch in sorted({min(epochs), max(epochs)}))
            rows.append(
                (
                    size_of(arm),
                    objective_of(arm),
                    settings["lr"],
                    f"{picked} of {settings['epochs']}",
                    settings.get("mlm_weight"),
                    len(runs),
                    arms.mean(runs, "dev")[0],
                    value,
                    f"{low:.3f} to {high:.3f}",
                    scores.partly_fallen(runs),
                )
            )
        columns = (
            "labels", "arm", "learning rate", "epochs", "mlm weight", "seeds", f"dev {metric}",
            f"{split} {metric}" if split != "dev" else "score", "95 % interval", "note",
        )  # fmt: skip
        return Table(columns, tuple(rows), "chosen on dev for each number of labels and each arm")


def size_of(arm: str) -> str:
    """The number of labels of an arm."""
    return arm.partition(" with ")[2]


def objective_of(arm: str) -> str:
    """The objective of an arm."""
    return arm.partition(" with ")[0]
