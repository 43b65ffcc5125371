"""Which settings are best? A grid, random draws, or guided ones; best on dev, then test once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from heedful.errors import UserError
from heedful.options.studies import SearchOptions, SearchRun, StudyOptions
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.base import best
from heedful.studies.commands import shared_options, study_command
from heedful.studies.shared import epochs, search_space
from heedful.studies.shared.epochs import Lengths
from heedful.studies.shared.runner import run
from heedful.studies.shared.search_space import Axis

HEADS = "heads"
"""The job of all heads of a grid."""


def search(options: SearchRun, study: SearchOptions) -> tuple[StudyFolder, Answer]:
    """Search a space of settings for a model on a task."""
    check_bounds(study)
    if study.random is not None and study.tpe is not None:
        raise UserError("--random and --tpe exclude each other")
    trials = study.random if study.random is not None else study.tpe
    how = "tpe" if study.random is None else "random"
    if study.prune and trials is None:
        raise UserError("--prune belongs to --random or --tpe; of a grid every cell is wanted")
    own = [f.name for f in fields(SearchOptions) if f.name not in {g.name for g in fields(StudyOptions)}]
    asked = {name: getattr(study, name) for name in own}
    space = search_space.read_space(asked, ranges=trials is not None)
    common = shared_options(options, ("lr", "epochs", "batch_size", "method", "seed"))
    common["seed"] = options.seed
    if trials is None:
        plan = plan_grid(space, common)
    else:
        drawn = search_space.drawable(space)
        if (most := search_space.combinations(drawn)) < trials:
            raise UserError(
                f"--{how} {trials}: the lists have {most} combinations; the grid, without --{how}, tries all"
            )
        plan = [
            trial(i, one)
            for i, one in enumerate(islice(search_space.draws(drawn, options.seed), study.random or 0))
        ]
    record = StudyRecord(
        kind="search",
        question=f"Which settings are best for {options.model} on {options.task}?",
        seed=options.seed,
        options={**asked, "run": common},
        configurations=tuple(plan),
        command=study_command("search", (options.model, options.task), study, options),
    )
    return run(record, study, (options.task, options.model), options.threads)


def plan_grid(space: dict[str, Axis], common: dict[str, Any]) -> list[Configuration]:
    """Every cell, with the job it belongs to: all heads are one, and so are equal runs of other lengths."""
    cells = search_space.grid(space)
    names = search_space.varied(cells)
    sharing = epochs.can_share(common)
    together = (
        sharing
        and common.get("head") != "family"
        and common.get("objective", "auto") in ("auto", "classify")
        and common.get("accumulate", 1) == 1
        and common.get("cache_features", True)
    )
    found = []
    for cell in cells:
        job = ""
        if together and cell["method"] == "head":
            job = HEADS
        elif sharing and "epochs" in names:
            job = search_space.name_of(cell, [name for name in names if name != "epochs"])
        found.append(Configuration(search_space.name_of(cell, names), cell, job))
    return found


def trial(number: int, settings: dict[str, Any]) -> Configuration:
    """One draw."""
    return Configuration(f"trial-{number:03d}", settings)


class Search(Lengths):
    """The run directories of a grid or of draws."""

    kind = "search"

    def space(self) -> dict[str, Axis]:
        """What is searched."""
        return search_space.read_space(self.record.options, ranges=True)

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """The next guided draw."""
        wanted = self.record.options.get("tpe")
        if wanted is None or len(outcomes) >= wanted:
            return ()
        from heedful.studies.search.sampling import suggest

        space = search_space.drawable(self.space())
        return [trial(len(outcomes), suggest(space, outcomes, self.record.seed))]

    @classmethod
    def grows(cls, record: StudyRecord) -> bool:
        """Only with guided draws."""
        return record.options.get("tpe") is not None

    def work_all(self, job: Sequence[Configuration], threads: int | None) -> None:
        """Heads together; runs that differ in epochs one from the other; all else one by one."""
        if job[0].job == HEADS and len(job) > 1:
            from heedful.studies.search.heads import work_heads

            if work_heads(self, job, threads):
                return
        super().work_all(job, threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """One run, stopped early where that was asked for."""
        if not self.record.options.get("prune"):
            super().work(configuration, threads)
            return
        from heedful.studies.search.sampling import Pruner
        from heedful.training.train import train

        space = search_space.drawable(self.space())
        pruner = Pruner(self.folder, configuration.name, space, self.epochs(configuration))
        train(self.options(configuration, threads), on_row=pruner.stop_if_worse)

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Test, once, for the selected run."""
        chosen = best(outcomes)
        if chosen is not None:
            self.score_test(chosen)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """The table, the best, and how far it can be trusted."""
        from heedful.studies.search.answer import answer

        return answer(self.record, outcomes)
