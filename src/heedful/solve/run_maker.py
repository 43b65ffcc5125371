"""The runs of candidates, made in the training process within the time that is left."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from heedful.logs import notice
from heedful.options.solve import SolveOptions
from heedful.runs.directory import BEST, Run
from heedful.runs.studies import Configuration, StudyFolder
from heedful.solve import request
from heedful.solve.candidates import Candidate, DataFacts, Speed, name_whole
from heedful.solve.choice import Cost
from heedful.solve.closing import reserve_closing
from heedful.solve.held_out import fold_names
from heedful.solve.plan import FOLDS, NOT_IN_TIME, Budget, PlanEntry, reserve_seconds
from heedful.solve.process import LostProcessError, TimeOverError, TrainingProcess
from heedful.solve.state import SolveState
from heedful.studies.base import drop_checkpoints

FINISH_TEXTS = 130
"""About how many texts a run reads after its training: to check itself, and to measure its speed."""
LATE, LATE_SHARE = 4.0, 0.3
"""A candidate that cannot stop by itself is ended after this many times the expected time, this share of what
is left, or the time that another start of its process would take, whichever is longest."""


class RunMaker:
    """Makes runs in a solve folder.

    Attributes
    ----------
    end
        When the time is over, by `time.monotonic`.
    look
        Called with the name of a run while it is made.

    """

    def __init__(
        self,
        options: SolveOptions,
        facts: DataFacts,
        folder: StudyFolder,
        state: SolveState,
        process: TrainingProcess,
        end: float,
        look: Callable[[str], None],
    ) -> None:
        self.options, self.facts, self.folder, self.state = options, facts, folder, state
        self.process, self.end, self.look = process, end, look

    @property
    def left(self) -> float:
        """Seconds that are left for candidates."""
        budget = self.budget
        reserve = reserve_seconds(budget.facts, budget.speed or Speed(), self.process.startup)
        reserve = budget.slowness * reserve + reserve_closing(self.options.minutes)
        return self.end - time.monotonic() - reserve

    @property
    def budget(self) -> Budget:
        """What is known now about the data and the machine."""
        return self.state.make_budget(self.facts, self.options.minutes)

    def make_run(self, name: str, settings: dict[str, Any], entry: PlanEntry) -> dict[str, Any]:
        """Make one run, and return what it takes, or the error that ended it."""
        configured = self.read_configurations()
        if name not in configured:
            configured[name] = Configuration(name, settings)
            self.folder.add([configured[name]])
        folder = self.folder.run(name)
        options = self.make_run_options({**configured[name].settings, "out": folder, "resume": True})
        # The start of the process is not part of what a run may take.
        started = self.ask_in_time(name, partial(self.process.get_ready, self.left))
        if "error" in started:
            return started
        left, forward = self.left, (self.state.speed or Speed()).forward_row
        finish = self.state.slowness * (entry.candidate.setup + FINISH_TEXTS * forward)
        if entry.candidate.epoch_share is None:  # it does not look at the clock
            left = min(left, max(LATE * entry.run_seconds, LATE_SHARE * left, self.process.startup))
        wanted = {"options": options, "seconds": max(0.0, left - finish)}
        if entry.candidate.after and "fold" not in options:
            wanted["rival"] = str(self.folder.run(self.find_rival(entry.candidate)))
        answer = self.ask_in_time(name, partial(self.process.ask, left), do="train", **wanted)
        if "behind" in answer:
            self.state.behind[name] = answer["behind"]
        if "error" not in answer:
            drop_checkpoints(folder)
        return answer

    def find_rival(self, candidate: Candidate) -> str:
        """Return the name of the candidate that this one varies: its second attempt, if there was one."""
        whole = name_whole(candidate.after)
        return whole if whole in self.state.costs else candidate.after

    def ask_in_time(self, name: str, ask: Callable[..., Any], **wanted: Any) -> dict[str, Any]:
        """Ask the training process for a run; return its answer, or the error that ended it."""
        try:
            answer = ask(lambda: self.look(name), **wanted) or {}
        except TimeOverError:
            return {"error": NOT_IN_TIME}
        except LostProcessError as error:
            answer = {"error": str(error)}
        if "error" in answer:
            self.folder.fail(name, answer["error"])
            return {"error": f"failed: {answer['error']}"}
        return answer

    def make_folds(self, name: str, cost: Cost, entry: PlanEntry) -> tuple[Cost, str]:
        """Make the runs that hold out a fold each, as the main run was made; stop at the first error."""
        settings = {
            **self.read_configurations()[name].settings,
            # A fold has no dev split of its own, by which "auto" could decide as in the main run.
            "class_weights": Run.open(self.folder.run(name)).read_config()["adapt"].get("class_weights"),
        }
        for number, run in enumerate(fold_names(name, self.state.folds or 0), 1):
            answer = self.make_run(run, {**settings, "fold": f"{number}/{FOLDS}"}, entry)
            if "error" in answer:
                return cost, str(answer["error"])
            shutil.rmtree(self.folder.run(run) / BEST, ignore_errors=True)
            cost = replace(cost, seconds=cost.seconds + answer["seconds"], folds=number)
        return cost, ""

    def make_run_options(self, settings: dict[str, Any]) -> dict[str, Any]:
        return request.make_run_options(self.folder, self.options, self.state, self.facts, settings)

    def read_configurations(self) -> dict[str, Configuration]:
        return {configuration.name: configuration for configuration in self.folder.read().configurations}

    def has_weights(self, name: str) -> bool:
        return (self.folder.run(name) / BEST).is_dir()

    def restore_weights(self, name: str) -> bool:
        """Make a finished run again, if there is time, and take the weights of the copy if it is the same."""
        if name in self.state.ensembles:  # it is made of others
            return False
        run, copy = Run.open(self.folder.run(name)), self.folder.run(f"{name}-again")
        left = self.left
        cost = self.state.find_cost(name)
        if cost.cut or self.state.slowness * run.read_results().seconds > left:
            return False
        notice(f"{name}: is made again, since its weights were removed by an earlier command")
        shutil.rmtree(copy, ignore_errors=True)
        options = self.make_run_options({**self.read_configurations()[name].settings, "out": copy})
        try:
            answer = self.process.ask(left, do="train", options=options, seconds=left)
            same = "error" not in answer and Run.open(copy).read_predictions("dev") == run.read_predictions(
                "dev"
            )
            if same:
                (copy / BEST).rename(run.best)
        except (TimeOverError, LostProcessError):
            same = False
        except KeyboardInterrupt:
            self.process.stop(0.0)  # a checkpoint of the copy is of no use
            raise
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return same
