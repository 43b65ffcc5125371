"""Which optimizer? Each gets its own learning-rate search, because one rate for all is no comparison."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import UserError
from heedful.options.studies import OptimizersOptions, OptimizersRun
from heedful.report.formats import join_names
from heedful.runs.answers import Answer, Note
from heedful.runs.studies import Configuration, Outcome
from heedful.studies.base import StudyPlan, find_best
from heedful.studies.shared import arms, scores, sentences
from heedful.studies.shared.arms import ArmStudy
from heedful.studies.shared.commands import shared_options
from heedful.studies.shared.search_space import round_rate, usual_rate
from heedful.training.optimizers import OPTIMIZERS

STEP = 10**0.5
"""The factor from the best rate to the next one beyond it."""
MOST_RATES = 6
"""Learning rates to try with one optimizer; a search that has not turned by then is noted as on its edge."""


class Optimizers(ArmStudy):
    """Which optimizer is best? Each gets its own learning-rate search on dev.

    A single rate for all would only show how well that rate suits each of them;
    --same-settings does that, and flags the optimizers that learned nothing.
    The best run of each optimizer is scored on test, once.

    Examples:
      heedful study optimizers minilm sst2 --epochs 2 --train-rows 2000
      heedful study optimizers minilm sst2 --optimizers adamw,sgd,rmsprop --same-settings --lr 5e-5
    """

    name = "optimizers"
    options = OptimizersOptions
    run_options = OptimizersRun

    @classmethod
    def plan(cls, options: OptimizersOptions, run: OptimizersRun) -> StudyPlan:
        names = arms.read_list("--optimizers", options.optimizers)
        for name in names:
            OPTIMIZERS.find(name)
        if run.lr is not None and not options.same_settings:
            raise UserError("--lr needs --same-settings; --rates are what each optimizer is searched among")
        if options.rates and options.same_settings:
            raise UserError("--rates and --same-settings exclude each other; --lr is the one rate")
        usual = usual_rate(run.method, run.model)
        configurations = []
        for name in names:
            rates = [round_rate(rate) for rate in OPTIMIZERS[name].usual_learning_rates(usual)]
            if options.same_settings:
                rates = [usual if run.lr is None else run.lr]
            if options.rates:
                rates = arms.read_rates("--rates", options.rates)
            configurations += [
                cls.make_candidate(name, {"optimizer": name, "lr": rate}, run.seed) for rate in rates
            ]
        searched = ("optimizers", "rates", "same_settings", "seeds")
        common = shared_options(run, ("lr", "optimizer", "seed"))
        return StudyPlan(
            question=f"Which optimizer is best for {run.model} on {run.task}?",
            seed=run.seed,
            options={**{name: getattr(options, name) for name in searched}, "run": common},
            configurations=configurations,
            folder_words=(run.task, run.model),
        )

    def further_candidates(
        self, arm: str, candidates: Sequence[Outcome], best: Outcome
    ) -> list[Configuration]:
        """Return one more rate beyond the best, while the best is the lowest or the highest."""
        fixed = self.record.options["same_settings"] or self.record.options["rates"]
        if fixed or len(candidates) >= MOST_RATES:
            return []
        rates = sorted(rate_of(o) for o in candidates)
        beyond = {rates[0]: rate_of(best) / STEP, rates[-1]: rate_of(best) * STEP}.get(rate_of(best))
        if beyond is None:
            return []
        return [self.make_candidate(arm, {"optimizer": arm, "lr": round_rate(beyond)}, self.record.seed)]

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        selected = self.select_runs(outcomes)
        split, metric = arms.find_scored_split(selected), scores.metric_title(outcomes)
        comparisons = arms.compare_arms(selected, split)
        summary = arms.describe_arms(selected, comparisons, split, metric)
        rates = {arm: runs[0].configuration.settings["lr"] for arm, runs in selected.items() if runs}
        if self.record.options["same_settings"]:
            summary.append(describe_same_rate(outcomes, selected))
        elif rates:
            names = join_names([f"{arm} {rate:g}" for arm, rate in rates.items()])
            summary.append(sentences.OPTIMIZERS_RATES.format(rates=names))
        groups = arms.group_by_arm(outcomes).items()
        best = {arm: run for arm, runs in groups if (run := find_best(self.find_candidates(runs)))}
        return self.make_answer(
            outcomes,
            selected,
            split,
            comparisons,
            summary=summary,
            notes=self.edge_notes(outcomes),
            figures=(
                arms.draw_bars(outcomes, selected, split, "Optimizers"),
                scores.draw_curves(best, "Each optimizer at its rate, on dev"),
                scores.draw_curves(best, "Each optimizer at its rate, on train", "train_eval"),
            ),
            table=arms.make_arm_table(self, outcomes, selected, split),
            facts={"rates": rates, "collapsed": find_low(selected, sentences.COLLAPSED)},
        )

    def edge_notes(self, outcomes: Sequence[Outcome]) -> list[Note]:
        """Warn of an optimizer whose best rate is the lowest or the highest that was tried."""
        notes = []
        for arm, runs in arms.group_by_arm(outcomes).items():
            candidates = self.find_candidates(runs)
            rates = sorted(rate_of(o) for o in candidates)
            best = find_best(candidates)
            if best is None or len(rates) < 2 or not all(o.over for o in candidates):
                continue
            if end := {rates[-1]: "highest", rates[0]: "lowest"}.get(rate_of(best)):
                text = sentences.OPTIMIZERS_EDGE.format(name=arm, end=end, rate=rate_of(best))
                notes.append(Note(text, "warning"))
        return notes


def rate_of(outcome: Outcome) -> float:
    return float(outcome.configuration.settings["lr"])


def find_low(selected: arms.Runs, how: str) -> list[str]:
    """Return the optimizers that learned nothing in this way."""
    return [arm for arm, runs in selected.items() if scores.describe_low(runs) == how]


def describe_same_rate(outcomes: Sequence[Outcome], selected: arms.Runs) -> str:
    lost = ""
    if collapsed := find_low(selected, sentences.COLLAPSED):
        lost = sentences.OPTIMIZERS_COLLAPSED.format(names=join_names(collapsed))
    for how in (sentences.NOT_ABOVE, sentences.NO_ANSWER):
        if low := find_low(selected, how):
            lost += sentences.OPTIMIZERS_LOW.format(names=join_names(low), how=how)
    return sentences.OPTIMIZERS_SAME.format(rate=rate_of(outcomes[0]), lost=lost)
