"""Which settings are best? A grid, random draws or guided ones; the best on dev is scored on test, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS, Metric
from heedful.objectives.registry import OBJECTIVES
from heedful.options.configuration import check_table
from heedful.options.studies import SearchOptions, SearchRun, StudyOptions
from heedful.options.training import AdaptOptions
from heedful.problems import find_metric_name
from heedful.runs.answers import Answer
from heedful.runs.studies import Configuration, Outcome, StudyRecord
from heedful.studies.base import Study, StudyPlan, find_best
from heedful.studies.shared import search_space
from heedful.studies.shared.commands import shared_options
from heedful.studies.shared.epochs import can_share_epochs
from heedful.studies.shared.search_space import Axis

HEADS = "heads"
"""The job of all heads of a grid, which share the features of their frozen body."""


class Search(Study):
    """Which settings are best? Tries a grid or random draws; the best on dev is scored on test, once.

    Runs that differ only in epochs share their first epochs, and heads on a
    frozen body share its features; the results have the same bits as those of
    separate runs. The same command continues a search that was stopped (Ctrl-C,
    SIGTERM: status 75).

    Examples:
      heedful study search minilm boolq --lr 1e-4,5e-4,1e-3 --epochs 5,7,9 --method head
      heedful study search minilm sst2 --random 4 --lr 2e-5:8e-5 --epochs 10,15,20 --batch-size 32,64
      heedful study search minilm reviews.csv --tpe 20 --prune --lr 1e-5:1e-3 --epochs 3:9 --jobs 2
    """

    name = "search"
    options = SearchOptions
    run_options = SearchRun

    @classmethod
    def plan(cls, options: SearchOptions, run: SearchRun) -> StudyPlan:
        """Return the cells of the grid, or the random draws; guided draws are added one after another."""
        if options.random is not None and options.tpe is not None:
            raise UserError("--random and --tpe exclude each other")
        how = "tpe" if options.random is None else "random"
        trials = getattr(options, how)
        if options.prune and trials is None:
            raise UserError("--prune needs --random or --tpe; a grid runs every cell")
        inherited = {field.name for field in fields(StudyOptions)}
        texts = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in inherited}
        space = search_space.read_space(texts, ranges=trials is not None)
        common = shared_options(run, ("lr", "epochs", "batch_size", "method", "seed")) | {"seed": run.seed}
        if trials is None:
            configurations = plan_grid(space, common)
        else:
            axes = search_space.fill_rates(space, run.model)
            if (most := search_space.count_combinations(axes)) < trials:
                remedy = f"the grid, without --{how}, tries all"
                raise UserError(f"--{how} {trials}: the lists have {most} combinations; {remedy}")
            draws = islice(search_space.draw_distinct(axes, run.seed), options.random or 0)
            configurations = [make_trial(i, settings) for i, settings in enumerate(draws)]
        return StudyPlan(
            question=f"Which settings are best for {run.model} on {run.task}?",
            seed=run.seed,
            options={**texts, "run": common},
            configurations=configurations,
            folder_words=(run.task, run.model),
        )

    def read_axes(self) -> dict[str, Axis]:
        space = search_space.read_space(self.record.options, ranges=True)
        return search_space.fill_rates(space, self.record.options["run"]["model"])

    def find_metric(self) -> Metric:
        """Return the metric of the runs, which is known before the first of them has a score."""
        from heedful.training.build.objective import resolve_objective

        table = check_table(AdaptOptions, self.record.options["run"], str(self.folder.path))
        options = resolve_objective(AdaptOptions(**table))
        return METRICS.find(find_metric_name(options, OBJECTIVES[options.objective]))

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        trials = self.record.options.get("tpe")
        if trials is None or len(outcomes) >= trials:
            return ()
        from heedful.studies.search.sampling import suggest

        settings = suggest(self.find_metric(), self.read_axes(), outcomes, self.record.seed)
        return [make_trial(len(outcomes), settings)]

    @classmethod
    def grows(cls, record: StudyRecord) -> bool:
        return record.options.get("tpe") is not None

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """Make one run, which --prune may stop early."""
        if not self.record.options.get("prune"):
            super().work(configuration, threads)
            return
        from heedful.studies.search.sampling import Pruner
        from heedful.training.train import train_run

        epochs = int(configuration.settings["epochs"])
        pruner = Pruner(self.folder, configuration.name, self.find_metric(), self.read_axes(), epochs)
        train_run(self.settings(configuration, threads), on_row=pruner.stop_if_worse)

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        if (best := find_best(outcomes)) is not None:
            self.score_test(best)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        from heedful.studies.search.answer import write_answer

        return write_answer(self.record, outcomes)


def plan_grid(space: Mapping[str, Axis], common: Mapping[str, Any]) -> list[Configuration]:
    """Return every cell with its job: all heads are one job, and so are runs that differ in epochs alone."""
    cells = search_space.list_grid(space, common["model"])
    names = search_space.varied_names(cells)
    sharing_epochs = can_share_epochs(common)
    objective = common.get("objective", "auto")
    sharing_features = common.get("cache_features", True) and (
        objective == "auto" or OBJECTIVES.find(objective).caches_features
    )
    configurations = []
    for cell in cells:
        job = ""
        if sharing_features and cell["method"] == "head" and len(cells) > 1:
            job = HEADS
        elif sharing_epochs and "epochs" in names:
            job = search_space.name_cell(cell, [name for name in names if name != "epochs"])
        configurations.append(Configuration(search_space.name_cell(cell, names), cell, job))
    return configurations


def make_trial(number: int, settings: Mapping[str, Any]) -> Configuration:
    return Configuration(f"trial-{number:03d}", settings)
