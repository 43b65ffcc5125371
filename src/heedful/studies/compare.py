"""Which model and which method? Arms on the same examples, told apart only where chance cannot explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heedful.data.run_options import absolute_value
from heedful.errors import UserError, shorten, unknown
from heedful.methods.registry import METHODS
from heedful.options.studies import CompareOptions, CompareRun
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer, Figure
from heedful.runs.directory import slug
from heedful.runs.studies import Outcome, StudyFolder, StudyRecord
from heedful.studies.commands import shared_options, study_command
from heedful.studies.shared import arms, scores
from heedful.studies.shared.arms import Arms, candidate, folder_word
from heedful.studies.shared.epochs import Lengths, can_share
from heedful.studies.shared.runner import run
from heedful.studies.shared.search_space import number, usual_rates


def compare(options: CompareRun, study: CompareOptions) -> tuple[StudyFolder, Answer]:
    """Compare models and methods on a task."""
    check_bounds(study)
    models = arms.read_list("--models", study.models)
    methods = arms.read_list("--methods", study.methods)
    for method in methods:
        METHODS.find(method)
    if study.rates and not study.search:
        raise UserError("--rates belongs to --search; without it --lr is the rate")
    lengths = sorted(int(number("--epochs", int, word)) for word in arms.read_list("--epochs", study.epochs))
    if len(lengths) > 1 and not study.search:
        raise UserError(f"--epochs {study.epochs}: several belong to --search; without it one is the number")
    command = study_command("compare", (options.task,), study, options)
    # Of a grid over epochs a cell is its last one; the best of nine epochs would hide that of five.
    options = replace(options, epochs=lengths[0], select="last" if len(lengths) > 1 else options.select)
    if options.lr is not None and study.search:
        raise UserError("--lr and --search exclude each other; --rates are what is searched")
    names = short_names(models)
    common = shared_options(options, ("model", "method", "method_options", "seed"))
    counts = [{"epochs": n} for n in lengths] if len(lengths) > 1 else [{}]
    sharing = len(lengths) > 1 and can_share(common)
    plan = []
    for model in models:
        for method in methods:
            arm = " ".join([names[model]] * (len(models) > 1) + [method])
            given = {
                "model": absolute_value("model", model),
                "method": method,
                "method_options": own_options(options.method_options, method, methods),
            }
            if study.search:
                rates = arms.read_rates("--rates", study.rates) if study.rates else list(usual_rates(method))
            else:
                rates = [options.lr if options.lr is not None else METHODS[method].learning_rate]
            for rate in rates:
                job = folder_word(f"{arm}-lr={rate:g}") if sharing else ""
                plan += [
                    candidate(arm, {**given, "lr": rate, **n}, options.seed, job, Compare.shown)
                    for n in counts
                ]
    record = StudyRecord(
        kind="compare",
        question=f"Which is best on {options.task}?",
        seed=options.seed,
        options={
            "models": study.models,
            "methods": study.methods,
            "search": study.search,
            "rates": study.rates,
            "epochs": study.epochs,
            "seeds": study.seeds,
            "run": common,
        },
        configurations=tuple(plan),
        command=command,
    )
    return run(record, study, (options.task, "-".join(names.values())), options.threads)


def own_options(texts: Sequence[str], method: str, methods: Sequence[str]) -> list[str]:
    """The options of one method, from `lora:rank=8`."""
    found = []
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon:
            raise UserError(f'--method-options "{shorten(text)}": is not METHOD:option=value, as lora:rank=8')
        if name not in methods:
            raise unknown("method among those compared", name, methods)
        found += [rest] if name == method else []
    return found


def short_names(models: Sequence[str]) -> dict[str, str]:
    """A short name for each model; the whole one where two would be alike."""
    short = {model: slug(model) for model in models}
    return {m: name if list(short.values()).count(name) == 1 else m for m, name in short.items()}


class Compare(Lengths, Arms):
    """An arm a model and a method."""

    kind = "compare"
    shown = (*arms.SHOWN, "epochs")

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """Scores, costs, and which differences are real."""
        chosen = self.chosen(outcomes)
        split, metric = arms.scored_split(chosen), scores.metric_of(outcomes)
        fewer = self.record.options["run"].get("train_rows") is not None
        comparisons = arms.compared(chosen, split, paired_seeds=fewer)
        summary = arms.sentences(chosen, comparisons, split, metric)
        return Answer(
            study=self.kind,
            title=self.record.question,
            summary=tuple(summary),
            notes=tuple(arms.lost_runs(self, outcomes, chosen)),
            figures=(
                arms.bars(self, outcomes, chosen, split, "Models and methods"),
                cost(chosen, split, metric, "seconds", "training time in seconds"),
                cost(chosen, split, metric, "trainable_parameters", "trained parameters"),
            ),
            tables=(
                arms.arm_table(self, outcomes, chosen, split),
                *arms.comparison_table(comparisons, split),
            ),
            runs=arms.best_first(chosen),
            facts={
                "arms": {arm: arms.mean(runs, split) for arm, runs in chosen.items() if runs},
                "split": split,
                "comparisons": comparisons,
                "failed": {o.name: o.ended.reason for o in outcomes if o.state == "failed" and o.ended},
            },
        )


def cost(chosen: arms.Chosen, split: str, metric: str, what: str, title: str) -> Figure:
    """Score against cost."""
    points = []
    for arm, runs in chosen.items():
        for outcome in runs[:1]:
            value, low, high = arms.mean(runs, split)
            spent = getattr(outcome.results, what)
            points.append({"x": spent, "y": value, "low": low, "high": high, "label": arm, "group": arm})
    options = {
        "title": f"{metric.capitalize()} against {title}",
        "x_title": title,
        "y_title": f"{split} {metric}",
        "log_x": True,
    }
    return Figure(f"against-{what.replace('_', '-')}", "scatter", points, options)
