"""Solve a problem from its plan to its answer: the process that keeps the time."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from heedful.data import Task
from heedful.data.unlabeled import open_unlabeled
from heedful.errors import UserError
from heedful.logs import notice
from heedful.options.solve import SolveOptions
from heedful.options.values import check_bounds
from heedful.progress import ProgressBar, progress
from heedful.runs.answers import Answer, write_answer
from heedful.runs.directory import BEST, PROGRESS, Run, name_refitted, write_choice
from heedful.runs.json_files import read_json_if_intact
from heedful.runs.studies import LOGS, StudyFolder
from heedful.solve import request
from heedful.solve.answer import describe_shortening, make_answer
from heedful.solve.candidates import Candidate, DataFacts, Speed, repeat_shortened, suit_kind
from heedful.solve.choice import Cost, ScoredCandidates, choose
from heedful.solve.closing import NOT_LISTED, Closing, expect_listing, has_listed
from heedful.solve.ensemble import make_candidate, make_ensemble
from heedful.solve.held_out import fold_names, score_candidates
from heedful.solve.insight import Insight, examine_data
from heedful.solve.plan import (
    NOT_FINISHED,
    REPORT_SECONDS,
    TIME_OVER,
    PlanEntry,
    choose_folds,
    describe_plan,
    explain_lack,
    format_seconds,
    make_plan,
    plan_anyway,
    plan_candidate,
)
from heedful.solve.process import LostProcessError, TimeOverError, TrainingProcess
from heedful.solve.run_maker import RunMaker
from heedful.solve.state import SolveState
from heedful.text import load as load_tokenizer
from heedful.training.run_task import load_run_task

MARGIN = 0.97
"""The share of the time that is planned: a machine is not always as fast as at the beginning."""
EXAMINE_SECONDS = 5.0
"""How long the answer waits for what the data says."""
PILOT_SHARE = 0.05
"""Share of the time in which the pilot measures."""
PILOT_LIMIT = 0.5
"""Share of the time that is left in which it must end: the rest is for candidates without the encoder."""
LEAST_FOLDS = 2
"""A candidate that was ended before it was scored on this many folds is left out: all are compared on the
folds that they have in common."""


class UnsolvedError(UserError):
    """No candidate could be finished."""


def solve(options: SolveOptions, begun: float | None = None) -> tuple[StudyFolder, Answer]:
    """Find the best model for a task in the given time, and return its folder and the answer.

    Ctrl-C ends it early, with the best candidate so far; the same options continue in the same folder.
    `begun` is when the time began, by `time.monotonic`; by default now.
    """
    begun = time.monotonic() if begun is None else begun
    check_bounds(options)
    candidates = request.find_candidates(options.candidates)
    shared = request.share_options(options)
    task = load_run_task(shared)
    facts = request.read_facts(task)
    shared = request.name_kind(shared, facts, options)
    candidates = suit_kind(candidates, facts.kind)
    if options.unlabeled is not None:
        open_unlabeled(options.unlabeled, task)  # refuses what cannot be read, before the time is spent
    if options.launch.elsewhere:
        from heedful.solve.cluster import solve_on_cluster

        return solve_on_cluster(options, shared, facts, candidates)
    folder = request.open_folder(options, shared, facts)
    state = SolveState.read(folder.path)
    if (answer := find_final_answer(options, folder, state, begun)) is not None:
        return folder, answer
    request.refuse_held(folder)
    with request.claim_lease(folder).held():
        return folder, Solver(options, facts, task, folder, state, candidates, begun).run()


def find_final_answer(
    options: SolveOptions, folder: StudyFolder, state: SolveState, begun: float
) -> Answer | None:
    """Return the answer of an earlier command, if there is nothing left to do or no time to do it in."""
    answer = folder.find_answer()
    if answer is None or not answer.finished or options.minutes > state.minutes:
        return None
    if not has_listed(options, state):
        left = find_end(options, state, begun) - time.monotonic() - REPORT_SECONDS
        if expect_listing(state, answer.facts["chosen"]) <= left:
            return None
        notice(NOT_LISTED)
    return answer


def find_end(options: SolveOptions, state: SolveState, begun: float) -> float:
    """Return when the time is over, by `time.monotonic`."""
    return begun + MARGIN * 60 * options.minutes - state.spent


class Solver:
    """One command at work in a solve folder."""

    def __init__(
        self,
        options: SolveOptions,
        facts: DataFacts,
        task: Task,
        folder: StudyFolder,
        state: SolveState,
        candidates: Sequence[Candidate],
        begun: float,
    ) -> None:
        self.options, self.facts, self.folder, self.state = options, facts, folder, state
        shortened = describe_shortening(folder, state, facts)
        self.candidates, self.begun = repeat_shortened(candidates, shortened), begun
        for name, weights in state.ensembles.items():
            self.candidates.append(make_candidate(name, weights, self.candidates))
        self.spent_before = state.spent
        self.end = find_end(options, state, begun)
        state.left_out = {}
        self.skipped = bool(task.splits["train"].rows.skipped)
        self.insight = Insight()
        self.examining = threading.Thread(target=self.examine, args=(task,), daemon=True)
        self.process = TrainingProcess(folder.path / LOGS / "worker.txt", options.threads)
        self.runs = RunMaker(options, facts, folder, state, self.process, self.end, self.look)
        self.bar: ProgressBar | None = None
        self.shown = 0
        self.unusable = dict[str, str]()  # why a scored candidate cannot be chosen

    def run(self) -> Answer:
        """Measure, plan, try the candidates, and conclude; Ctrl-C skips to the conclusion."""
        interrupted = False
        with self.process:
            try:
                seconds = int(60 * self.options.minutes)
                with progress("solving (seconds)", seconds, timed=True) as self.bar:
                    self.process.start()
                    self.examining.start()
                    self.measure()
                    for candidate in self.candidates:
                        self.adopt(candidate.name)
                    self.plan()
                    for candidate in self.candidates:
                        self.try_candidate(candidate)
                    if request.wants_ensemble(self.options.candidates):
                        self.try_ensemble()
            except KeyboardInterrupt:
                interrupted = True
                self.stop()
            finally:
                self.bar = None
            try:
                return self.conclude(interrupted=interrupted)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                self.stop()
                return self.conclude(interrupted=True)

    def stop(self) -> None:
        notice("stopping; the same command continues")
        self.process.stop()

    def examine(self, task: Task) -> None:
        """Look at the data itself, while the other process trains."""
        tokenizer = None
        with suppress(UserError):  # there is no encoder; what it could not read is not asked
            tokenizer = load_tokenizer(self.options.model)
        self.insight = examine_data(task, tokenizer)

    def look(self, name: str = "") -> None:
        """Show the time that has passed, and how far a candidate is."""
        passed = int(self.spent_before + time.monotonic() - self.begun)
        if self.bar is None or passed <= self.shown:
            return
        counts = read_json_if_intact(self.folder.run(name) / PROGRESS) if name else None
        note = name
        if counts and counts["total"]:
            note = f"{name}: {counts['label']} {counts['done']} of {counts['total']}"
        self.bar.advance(passed - self.shown, note)
        self.shown = passed

    def measure(self) -> None:
        """Measure how fast the encoder is here, unless an earlier command has."""
        if self.state.speed is not None or not any(c.encoder for c in self.candidates):
            return
        options = self.runs.make_run_options({"method": "full", "out": self.folder.run("pilot")})
        seconds = PILOT_SHARE * 60 * self.options.minutes
        alone = all(candidate.encoder for candidate in self.candidates)
        limit = self.runs.left * (1 if alone else PILOT_LIMIT)
        try:
            answer = self.process.ask(
                limit, lambda: self.look("measuring"), do="speed", options=options, seconds=seconds
            )
        except (TimeOverError, LostProcessError) as error:
            half = "" if alone else "half of "
            answer = {"error": str(error) or f"{half}{TIME_OVER} before the encoder had read a few texts"}
        if "error" in answer:
            self.state.no_encoder = answer["error"]
            if alone:
                raise UserError(answer["error"])
            notice(f"without the encoder: {answer['error']}")
        else:
            self.state.speed = Speed(**answer)

    def plan(self) -> None:
        """Print what is planned and what is left out, before the work begins."""
        state = self.state
        waiting = [c for c in self.candidates if c.name not in state.costs]
        if state.dev_rows is None or state.folds is None:  # the same rows for all candidates, ever
            state.dev_rows = self.runs.budget.facts.dev
            state.folds = choose_folds(waiting, self.runs.budget, self.runs.left)
        entries = make_plan(waiting, self.runs.budget, self.runs.left)
        for line in describe_plan(entries, self.runs.budget, self.options.minutes):
            notice(line)
        self.save()

    def try_candidate(self, candidate: Candidate) -> None:
        """Train a candidate, if it is not done and fits in the time that is left now."""
        if candidate.name in self.state.costs:
            return
        if reason := self.explain_skip(candidate):
            self.state.left_out[candidate.name] = reason
            return
        entry = plan_candidate(candidate, self.runs.budget, self.runs.left)
        if not entry.planned and self.is_last_resort(candidate):
            entry = plan_anyway(candidate, self.runs.budget)
        if not entry.planned:
            self.state.left_out[candidate.name] = entry.reason
            return
        self.train(entry)
        self.save()
        if self.usable_state.costs:
            self.write_answer(finished=False)

    def is_last_resort(self, candidate: Candidate) -> bool:
        """Whether there is no answer without this candidate, and it may be quick enough to be one."""
        quick = not (candidate.encoder or candidate.baseline or candidate.unsuited(self.facts))
        return quick and self.runs.left > 0 and not self.usable_state.costs

    def adopt(self, name: str) -> None:
        """Take over a candidate whose runs another process has made, if there is one."""
        runs = [Run(self.folder.run(run)) for run in (name, *fold_names(name, self.state.folds or 0))]
        made = all(run.has_results for run in runs) and self.runs.has_weights(name)
        if name in self.state.costs or self.state.folds is None or not made:
            return
        wanted = {"do": "cost", "run": str(runs[0].path)}
        with suppress(TimeOverError, LostProcessError):
            answer = self.process.ask(self.runs.left, lambda: self.look(name), **wanted)
            if "error" not in answer:
                seconds = sum(run.read_results().seconds for run in runs)
                self.state.costs[name] = Cost(seconds=seconds, folds=len(runs) - 1, **answer)
                self.state.partial.pop(name, None)
                self.save()

    def try_ensemble(self) -> None:
        """Average the best candidates, if that is worth its cost and there is time."""
        candidate = make_ensemble(self.runs, self.candidates, self.score(), self.usable_state)
        if candidate is not None:
            self.candidates.append(candidate)
            self.save()
            self.write_answer(finished=False)

    def explain_skip(self, candidate: Candidate) -> str:
        """Return why a candidate that builds on another one is not tried; empty if it is."""
        if not candidate.after:
            return ""
        if candidate.name in self.state.behind:
            return self.state.behind[candidate.name]
        after = self.runs.find_rival(candidate)
        cost = self.state.costs.get(after)
        if cost is None or cost.cut:
            return f"{after} {NOT_FINISHED}"
        if after in describe_shortening(self.folder, self.state, self.facts):
            return f"{after} had less training than usual"
        comparison = choose(self.score(), self.options.prefer).comparisons.get(after)
        if comparison is not None and comparison.differs:
            return f"{after} is worse than {comparison.a}"
        return ""

    def train(self, entry: PlanEntry) -> None:
        """Make the runs of a candidate, and note what it takes or why it failed."""
        name, state = entry.candidate.name, self.state
        notice(f"{name}: {entry.candidate.title}, about {format_seconds(entry.seconds)}")
        cost, error = state.partial.get(name), ""
        if cost is None:
            answer = self.runs.make_run(name, {**entry.candidate.settings, **entry.settings}, entry)
            error = answer.get("error") or answer.get("behind", "")
            if not error:
                cost = state.partial[name] = Cost(**answer)
                if entry.candidate.encoder and not cost.cut:
                    state.learn_speed(cost.seconds, entry.run_seconds)
                self.save()
        if cost is not None:
            cost, error = self.runs.make_folds(name, cost, entry)
        if cost is None or cost.folds < min(LEAST_FOLDS, state.folds or 0):
            state.left_out[name] = error
            notice(f"{name}: {error}")
            return
        state.costs[name] = cost
        state.partial.pop(name, None)
        scored = score_candidates(self.folder, self.candidates, state, self.facts)
        where = f"on {scored.held_out} after {format_seconds(cost.seconds)}"
        notice(f"{name}: {scored.metric.title} {scored.value(name):.3f} {where}")

    def score(self) -> ScoredCandidates:
        return score_candidates(self.folder, self.candidates, self.usable_state, self.facts)

    @property
    def usable_state(self) -> SolveState:
        """The state to answer from: if no candidate has finished its folds, with those that have not.

        A baseline alone is no answer, unless nothing else is asked for.
        """
        baselines = {c.name for c in self.candidates if c.baseline}
        alone = len(baselines) == len(self.candidates)
        return self.state.select_usable(set() if alone else baselines, self.unusable)

    def choose_with_weights(self, *, interrupted: bool) -> str:
        """Choose a candidate; if an earlier command removed its weights and they are lost, another one."""
        while self.usable_state.costs:
            chosen = choose(self.score(), self.options.prefer).chosen
            if self.runs.has_weights(chosen) or (not interrupted and self.runs.restore_weights(chosen)):
                return chosen
            self.unusable[chosen] = "its weights were removed by an earlier command and not made again"
            notice(f"{chosen} would be chosen, but {self.unusable[chosen]}")
        raise UserError(
            f"{self.folder.path}: the weights of all candidates are gone; --overwrite starts anew"
        )

    def conclude(self, *, interrupted: bool) -> Answer:
        """Score the chosen candidate on test, remove the other weights, and write answer and report."""
        state = self.state
        if not self.usable_state.costs:
            self.save()
            if interrupted:
                raise KeyboardInterrupt
            minutes = self.options.minutes
            raise UnsolvedError(explain_lack(self.candidates, state.left_out, self.facts, minutes))
        chosen = self.choose_with_weights(interrupted=interrupted)
        if self.examining.is_alive():
            self.examining.join(min(EXAMINE_SECONDS, max(0.0, self.runs.left)))
        if not interrupted:
            closing = Closing(self.process, self.folder, self.options, state, self.facts, self.end)
            closing.refit(chosen, {candidate.name: candidate for candidate in self.candidates})
            closing.score_test(chosen)
            closing.measure_help(chosen, skipped=self.skipped and self.facts.one_label)
            kept = {chosen, *state.ensembles.get(chosen, ())}
            for name in state.costs:  # those in `partial` have folds to come
                if name not in kept:
                    shutil.rmtree(self.folder.run(name) / BEST, ignore_errors=True)
                    # If it is chosen again, with more minutes, it is fitted again as well.
                    shutil.rmtree(name_refitted(self.folder.run(name)), ignore_errors=True)
                    state.refitted.pop(name, None)
        return self.write_answer(finished=not interrupted)

    def write_answer(self, *, finished: bool) -> Answer:
        """Write what is known so far: which candidate is chosen, and why."""
        answer = make_answer(
            self.folder, self.options, self.score(), self.usable_state, self.facts, self.insight, finished
        )
        chosen = answer.facts["chosen"]
        if not self.runs.has_weights(chosen):  # decided at the end; until then the earlier choice stays
            return answer
        write_choice(self.folder.path, request.find_final_run(self.folder, self.state, chosen))
        write_answer(self.folder.path, answer)
        if finished:
            from heedful.report.outputs import write_report

            write_report([self.folder.path], self.folder.path / request.REPORT)
            self.state.minutes = self.options.minutes
        self.save()
        return answer

    def save(self) -> None:
        self.state.spent = self.spent_before + time.monotonic() - self.begun
        self.state.write(self.folder.path)
