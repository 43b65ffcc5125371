"""Which model and which method? Arms on the same examples, told apart only where chance cannot explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from heedful.data.run_options import absolute_value
from heedful.errors import UserError, shorten, unknown
from heedful.methods.registry import METHODS
from heedful.options.studies import CompareOptions, CompareRun
from heedful.options.types import TASK_HELP
from heedful.report.formats import capitalize
from heedful.runs.answers import Answer, Figure
from heedful.runs.directory import slug
from heedful.runs.studies import Outcome
from heedful.studies.base import StudyPlan
from heedful.studies.shared import arms, scores
from heedful.studies.shared.arms import ArmStudy
from heedful.studies.shared.commands import shared_options
from heedful.studies.shared.epochs import can_share_epochs
from heedful.studies.shared.search_space import read_number, usual_rate, usual_rates


class Compare(ArmStudy):
    """Which model and which method are best on a task, and which cannot be told apart?

    Each arm is a model with a method. Arms are compared on the same examples
    (McNemar's test for single runs, a bootstrap over examples and seeds for
    several), corrected for the number of tests. An arm that fails or does not
    fit into memory is shown at 0 with its reason.

    Examples:
      heedful study compare reviews.csv --models minilm --methods full,head,lora --seeds 3
      heedful study compare boolq --models minilm,bert-base-uncased --methods full,head --search --jobs 2
    """

    name = "compare"
    options = CompareOptions
    run_options = CompareRun
    arguments: ClassVar[Mapping[str, str]] = {"task": TASK_HELP}
    named_settings = (*ArmStudy.named_settings, "epochs")

    @classmethod
    def plan(cls, options: CompareOptions, run: CompareRun) -> StudyPlan:
        models = arms.read_list("--models", options.models)
        methods = arms.read_list("--methods", options.methods)
        for method in methods:
            METHODS.find(method)
        if options.rates and not options.search:
            raise UserError("--rates needs --search; without it --lr is the rate")
        words = arms.read_list("--epochs", options.epochs)
        lengths = sorted(int(read_number("--epochs", int, word)) for word in words)
        several = len(lengths) > 1
        if several and not options.search:
            raise UserError(f"--epochs {options.epochs}: several numbers need --search")
        if run.lr is not None and options.search:
            raise UserError("--lr and --search exclude each other; --rates are what is searched")
        # A cell of a grid over epochs is its last epoch; the best of nine epochs would hide that of five.
        run = replace(run, epochs=lengths[0], select="last" if several else run.select)
        names = shorten_names(models)
        common = shared_options(run, ("model", "method", "method_options", "seed"))
        sharing = several and can_share_epochs(common)
        configurations = []
        for model in models:
            for method in methods:
                arm = " ".join([names[model]] * (len(models) > 1) + [method])
                settings = {
                    "model": absolute_value("model", model),
                    "method": method,
                    "method_options": select_method_options(run.method_options, method, methods),
                }
                rates = [usual_rate(method, model) if run.lr is None else run.lr]
                if options.search:
                    rates = list(usual_rates(method, model))
                if options.rates:
                    rates = arms.read_rates("--rates", options.rates)
                for rate in rates:
                    job = arms.make_folder_word(f"{arm}-lr={rate:g}") if sharing else ""
                    configurations += [
                        cls.make_candidate(arm, {**settings, "lr": rate, **epochs}, run.seed, job)
                        for epochs in ([{"epochs": n} for n in lengths] if several else [{}])
                    ]
        searched = ("models", "methods", "search", "rates", "epochs", "seeds")
        return StudyPlan(
            question=f"Which is best on {run.task}?",
            seed=run.seed,
            options={**{name: getattr(options, name) for name in searched}, "run": common},
            configurations=configurations,
            folder_words=(run.task, "-".join(names.values())),
        )

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        selected = self.select_runs(outcomes)
        split, metric = arms.find_scored_split(selected), scores.metric_title(outcomes)
        fewer_rows = self.record.options["run"].get("train_rows") is not None
        comparisons = arms.compare_arms(selected, split, paired_seeds=fewer_rows)
        return self.make_answer(
            outcomes,
            selected,
            split,
            comparisons,
            summary=arms.describe_arms(selected, comparisons, split, metric),
            figures=(
                arms.draw_bars(outcomes, selected, split, "Models and methods"),
                draw_cost(selected, split, metric, "seconds", "training time in seconds"),
                draw_cost(selected, split, metric, "trainable_parameters", "trained parameters"),
            ),
            table=arms.make_arm_table(self, outcomes, selected, split),
            facts={"arms": arms.mean_scores(selected, split)},
        )


def select_method_options(texts: Sequence[str], method: str, methods: Sequence[str]) -> list[str]:
    """Return the options of one method, from `lora:rank=8`."""
    selected = []
    for text in texts:
        name, colon, option = text.partition(":")
        if not colon:
            raise UserError(f'--method-options "{shorten(text)}": is not METHOD:option=value, as lora:rank=8')
        if name not in methods:
            raise unknown("method among those compared", name, methods)
        selected += [option] if name == method else []
    return selected


def shorten_names(models: Sequence[str]) -> dict[str, str]:
    """Return a short name for each model; the whole one where two would be the same."""
    short = {model: slug(model) for model in models}
    return {m: name if list(short.values()).count(name) == 1 else m for m, name in short.items()}


def draw_cost(selected: arms.Runs, split: str, metric: str, field: str, title: str) -> Figure:
    points = []
    means = arms.mean_scores(selected, split)
    for arm, runs in selected.items():
        for outcome in runs[:1]:
            value, low, high = means[arm]
            cost = getattr(outcome.results, field)
            points.append({"x": cost, "y": value, "low": low, "high": high, "label": arm, "group": arm})
    titles = {"title": f"{capitalize(metric)} against {title}", "x_title": title}
    baselines = scores.find_baselines(arms.list_runs(selected), split)
    options = {**titles, "y_title": f"{split} {metric}", "log_x": True, "levels": baselines}
    return Figure(f"against-{field.replace('_', '-')}", "scatter", points, options)
