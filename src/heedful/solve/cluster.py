"""Candidates as a job array on a cluster: each has a node and all the minutes; the last worker concludes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from heedful.data import Task
from heedful.errors import UserError
from heedful.options.configuration import check_table
from heedful.options.launch import WORKERS
from heedful.options.solve import SolveOptions
from heedful.options.training import AdaptOptions
from heedful.report.outputs import write_report
from heedful.runs.answers import Answer, Table
from heedful.runs.directory import BEST, Run
from heedful.runs.files import to_json_value, write_json
from heedful.runs.json_files import read_json
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.solve import request
from heedful.solve.candidates import Candidate, DataFacts
from heedful.solve.held_out import fold_names
from heedful.solve.plan import FOLDS, count_possible_folds
from heedful.solve.state import SolveState
from heedful.studies.base import Study, StudyPlan, drop_checkpoints
from heedful.studies.shared import cluster
from heedful.training.run_task import load_run_task

OPTIONS = "options.json"
"""The options of the command, for the workers."""


def solve_on_cluster(
    options: SolveOptions, shared: AdaptOptions, facts: DataFacts, candidates: Sequence[Candidate]
) -> tuple[StudyFolder, Answer]:
    """Submit a worker per candidate; with `wait`, return the answer of the last one."""
    folds = count_possible_folds(facts)
    configurations = plan_runs(candidates, facts, folds)
    if options.launch.dry_run:
        record = replace(request.make_record(options, shared, facts), configurations=configurations)
        cluster.show_script(
            record, options.launch, request.choose_folder(options, shared, facts), options.threads
        )
    folder = request.open_folder(options, shared, facts)
    state = SolveState.read(folder.path)
    if folder.concluded and (options.minutes > state.minutes or options.unlabeled is not None):
        raise UserError(
            f"{folder.path}: is solved; without --on the same command continues on this machine, with "
            "--overwrite it begins anew"
        )
    if not folder.concluded:
        known = {configuration.name for configuration in folder.read().configurations}
        folder.add([one for one in configurations if one.name not in known])
        table = to_json_value(asdict(replace(options, launch=WORKERS, overwrite=False)))
        write_json(folder.path / OPTIONS, {name: value for name, value in table.items() if name != "launch"})
        if state.folds is None:
            replace(state, folds=folds, dev_rows=facts.dev).write(folder.path)
        cluster.submit_workers(folder, options.launch, options.threads)
    answer = folder.find_answer()
    assert answer is not None
    if not (folder.path / request.REPORT).is_file():  # the last worker is about to write it
        write_report([folder.path], folder.path / request.REPORT)
    return folder, answer


def plan_runs(candidates: Sequence[Candidate], facts: DataFacts, folds: int) -> tuple[Configuration, ...]:
    """Return the runs of all candidates that suit the data: a job each, its folds after the main run.

    Candidates that follow from another one come later (`SolveOnCluster.grow`).
    """
    suited = [c for c in candidates if c.unsuited(facts) is None and not c.after]
    return tuple(one for candidate in suited for one in plan_candidate_runs(candidate, {}, folds))


def plan_candidate_runs(candidate: Candidate, more: dict[str, Any], folds: int) -> list[Configuration]:
    settings = {**candidate.settings, **more}
    if folds and candidate.evaluates:
        settings["select"] = "last"  # what a fold selects may not be scored on it
    runs = [Configuration(candidate.name, settings, job=candidate.name)]
    for number, name in enumerate(fold_names(candidate.name, folds), 1):
        runs.append(Configuration(name, {**settings, "fold": f"{number}/{FOLDS}"}, job=candidate.name))
    return runs


class SolveOnCluster(Study):
    """A solve folder whose runs any worker can make. The last worker chooses, scores test and reports."""

    name = "solve"

    @classmethod
    def plan(cls, options: Any, run: Any) -> StudyPlan:
        raise UserError("heedful solve begins it")

    @classmethod
    def grows(cls, record: StudyRecord) -> bool:
        followed = {candidate.after for candidate in request.find_candidates(record.options["candidates"])}
        return any(configuration.name in followed for configuration in record.configurations)

    @cached_property
    def asked(self) -> SolveOptions:
        """The options of the command that has submitted the workers."""
        table = read_json(self.folder.path / OPTIONS)
        return SolveOptions(**check_table(SolveOptions, table, str(self.folder.path)))

    @cached_property
    def task(self) -> Task:
        return load_run_task(request.share_options(self.asked))

    @cached_property
    def facts(self) -> DataFacts:
        return request.read_facts(self.task)

    def check(self) -> None:
        """The command that submits the workers has read the data; a candidate that fails is left out."""

    def settings(self, configuration: Configuration, threads: int | None = None) -> AdaptOptions:
        given = {**configuration.settings, "out": self.folder.run(configuration.name), "resume": True}
        if "fold" in given:  # which has no dev split of its own, by which "auto" could decide
            main = Run.open(self.folder.run(configuration.claim)).read_config()["adapt"]
            given["class_weights"] = main.get("class_weights")
        options = replace(self.asked, threads=threads)
        state = SolveState.read(self.folder.path)
        table = request.make_run_options(self.folder, options, state, self.facts, given)
        return AdaptOptions(**check_table(AdaptOptions, table, str(self.folder.path)))

    def work_on_job(self, job: Sequence[Configuration], threads: int | None) -> None:
        """Make the main run of a candidate and its folds, each in its share of the minutes."""
        from heedful.training.train import train_run

        folds = SolveState.read(self.folder.path).folds or 0
        seconds = 60 * self.asked.minutes / (1 + folds * (FOLDS - 1) / FOLDS)
        for configuration in job:
            if "fold" in configuration.settings and self.main_failed(configuration):
                self.folder.fail(configuration.name, f"{configuration.claim} failed")
                continue
            with self.attempt(configuration):
                options = self.settings(configuration, threads)
                train_run(options, deadline=time.monotonic() + seconds, with_bag=False)
                drop_checkpoints(self.folder.run(configuration.name))
            if "fold" in configuration.settings:
                shutil.rmtree(self.folder.run(configuration.name) / BEST, ignore_errors=True)

    def main_failed(self, fold: Configuration) -> bool:
        return any(o.name == fold.claim and o.state == "failed" for o in self.folder.read_outcomes())

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """Return other learning rates of a finished candidate, as factors of the rate that it has chosen."""
        by_name = {outcome.name: outcome for outcome in outcomes}
        folds = SolveState.read(self.folder.path).folds or 0
        new: list[Configuration] = []
        for candidate in request.find_candidates(self.asked.candidates):
            before = by_name.get(candidate.after)
            if candidate.name in by_name or before is None or before.state != "finished":
                continue
            rate = Run.open(before.folder).read_config()["adapt"]["lr"]
            new += plan_candidate_runs(candidate, {"lr": rate * (candidate.rate or 1)}, folds)
        return new

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Choose among what was made, as on one machine."""
        from heedful.solve.runner import Solver

        failed = {o.name: f"failed: {o.ended.reason}" for o in outcomes if o.state == "failed" and o.ended}
        made = [c for c in request.find_candidates(self.asked.candidates) if c.name not in failed]
        state = SolveState.read(self.folder.path)
        begun = time.monotonic()
        options = replace(self.asked, minutes=self.asked.minutes + state.spent / 60)
        solver = Solver(options, self.facts, self.task, self.folder, state, made, begun)
        state.left_out = {c.name: failed[c.name] for c in request.find_candidates(()) if c.name in failed}
        with request.claim_lease(self.folder).held():
            solver.run()

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        written = self.folder.find_answer()
        if written is not None and "chosen" in written.facts:
            return written
        finished = [o for o in outcomes if o.state == "finished" and "fold" not in o.configuration.settings]
        table = Table(("candidate", "dev"), tuple((o.name, o.dev) for o in finished), "finished so far")
        many = "1 candidate is" if len(finished) == 1 else f"{len(finished)} candidates are"
        summary = (f"{many} finished; nothing is chosen yet.",)
        return Answer("solve", self.record.question, summary, finished=False, tables=(table,))
