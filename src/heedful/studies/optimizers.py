"""Which optimiser? Each with a learning rate of its own, because one rate for all is no comparison."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.errors import UserError
from heedful.methods.registry import METHODS
from heedful.options.studies import OptimizersOptions, OptimizersRun
from heedful.options.values import check_bounds
from heedful.report.formats import join_names
from heedful.runs.answers import Answer, Note
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.base import best
from heedful.studies.commands import shared_options, study_command
from heedful.studies.shared import arms, scores
from heedful.studies.shared.arms import Arms, candidate
from heedful.studies.shared.runner import run
from heedful.studies.shared.search_space import rounded
from heedful.training.optimizers import OPTIMIZERS

STEP = 10**0.5
"""How far beyond the best rate the next one lies."""
MOST_RATES = 6
"""Of one optimiser; a search that has not turned by then is said to lie on its edge."""


def optimizers(options: OptimizersRun, study: OptimizersOptions) -> tuple[StudyFolder, Answer]:
    """Compare optimisers."""
    check_bounds(study)
    names = arms.read_list("--optimizers", study.optimizers)
    for name in names:
        OPTIMIZERS.find(name)
    if options.lr is not None and not study.same_settings:
        raise UserError("--lr belongs to --same-settings; --rates are what each optimizer is searched among")
    if study.rates and study.same_settings:
        raise UserError("--rates and --same-settings exclude each other; --lr is the one rate")
    usual = METHODS.find(options.method).learning_rate
    plan = []
    for name in names:
        if study.same_settings:
            rates = [options.lr if options.lr is not None else usual]
        elif study.rates:
            rates = arms.read_rates("--rates", study.rates)
        else:
            rates = [rounded(rate) for rate in OPTIMIZERS[name].usual_learning_rates(usual)]
        plan += [candidate(name, {"optimizer": name, "lr": rate}, options.seed) for rate in rates]
    record = StudyRecord(
        kind="optimizers",
        question=f"Which optimizer is best for {options.model} on {options.task}?",
        seed=options.seed,
        options={
            "optimizers": study.optimizers,
            "rates": study.rates,
            "same_settings": study.same_settings,
            "seeds": study.seeds,
            "run": shared_options(options, ("lr", "optimizer", "seed")),
        },
        configurations=tuple(plan),
        command=study_command("optimizers", (options.model, options.task), study, options),
    )
    return run(record, study, (options.task, options.model), options.threads)


class Optimizers(Arms):
    """An arm an optimiser."""

    kind = "optimizers"

    def further(self, arm: str, tried: Sequence[Outcome], top: Outcome) -> list[Configuration]:
        """One more rate beyond the best, while the best is the lowest or the highest."""
        if self.record.options["same_settings"] or self.record.options["rates"] or len(tried) >= MOST_RATES:
            return []
        rates = sorted(float(o.configuration.settings["lr"]) for o in tried)
        rate = float(top.configuration.settings["lr"])
        ends = {rates[0]: rounded(rate / STEP), rates[-1]: rounded(rate * STEP)}
        return (
            [candidate(arm, {"optimizer": arm, "lr": ends[rate]}, self.record.seed)] if rate in ends else []
        )

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """The optimisers at their best, and how much of a difference there is."""
        chosen = self.chosen(outcomes)
        split, metric = arms.scored_split(chosen), scores.metric_of(outcomes)
        comparisons = arms.compared(chosen, split)
        notes = [*arms.lost_runs(self, outcomes, chosen), *self.edges(outcomes)]
        summary = arms.sentences(chosen, comparisons, split, metric)
        if self.record.options["same_settings"]:
            summary += self.same(outcomes, chosen)
        else:
            rates = [
                f"{arm} {runs[0].configuration.settings['lr']:g}" for arm, runs in chosen.items() if runs
            ]
            if rates:
                summary.append(f"Learning rates, each chosen on dev: {join_names(rates)}.")
        tops = {arm: top for arm, own in self.of_arm(outcomes).items() if (top := best(self.candidates(own)))}
        return Answer(
            study=self.kind,
            title=self.record.question,
            summary=tuple(summary),
            notes=tuple(notes),
            figures=(
                arms.bars(self, outcomes, chosen, split, "Optimizers"),
                scores.curves(tops, "Each optimizer at its rate, on dev", metric),
                scores.curves(tops, "Each optimizer at its rate, on train", metric, "train_eval"),
            ),
            tables=(
                arms.arm_table(self, outcomes, chosen, split),
                *arms.comparison_table(comparisons, split),
            ),
            runs=arms.best_first(chosen),
            facts={
                "rates": {arm: runs[0].configuration.settings["lr"] for arm, runs in chosen.items() if runs},
                "collapsed": self.fallen(chosen, scores.COLLAPSED),
                "split": split,
                "comparisons": comparisons,
                "failed": {o.name: o.ended.reason for o in outcomes if o.state == "failed" and o.ended},
            },
        )

    def fallen(self, chosen: arms.Chosen, how: str) -> list[str]:
        """The optimisers that learnt nothing, and that in this way."""
        return [arm for arm, runs in chosen.items() if scores.fallen(runs) == how]

    def same(self, outcomes: Sequence[Outcome], chosen: arms.Chosen) -> list[str]:
        """What one rate for all can say."""
        rate = outcomes[0].configuration.settings["lr"]
        lost = self.fallen(chosen, scores.COLLAPSED)
        said = f"{join_names(lost)} collapsed at it. " if lost else ""
        for how in (scores.NOT_ABOVE, scores.NO_ANSWER):
            low = self.fallen(chosen, how)
            said += f"{join_names(low)} learnt nothing that shows: {how}. " if low else ""
        return [
            f"All have the learning rate {rate:g}. {said}This compares how well one rate suits each of them, "
            "not the optimizers; without --same-settings each is searched for its own."
        ]

    def edges(self, outcomes: Sequence[Outcome]) -> list[Note]:
        """Warn of an optimiser whose best rate is the lowest or the highest that was tried."""
        found = []
        for arm, own in self.of_arm(outcomes).items():
            tried = self.candidates(own)
            rates = sorted(float(o.configuration.settings["lr"]) for o in tried)
            top = best(tried)
            rate = float(top.configuration.settings["lr"]) if top is not None else None
            if len(rates) > 1 and rate in (rates[0], rates[-1]) and all(o.over for o in tried):
                end = "lowest" if rate == rates[0] else "highest"
                text = (
                    f"{arm} is best at the {end} rate that was tried, {rate:g}: its true best may lie beyond."
                )
                found.append(Note(text, "warning"))
        return found
