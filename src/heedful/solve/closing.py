"""What is measured at the end: test, and, as far as the time allows, what would help most."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from heedful.data.run_options import absolute_value
from heedful.inference.decisions import read_decision
from heedful.logs import notice
from heedful.options.model_names import ENSEMBLE
from heedful.options.solve import SolveOptions
from heedful.runs.directory import Run, name_refitted
from heedful.runs.json_files import decode_record
from heedful.runs.studies import StudyFolder
from heedful.solve import request
from heedful.solve.candidates import CANDIDATES, SETUP_SECONDS, Candidate, DataFacts, Speed
from heedful.solve.choice import Cost
from heedful.solve.insight import LabelNext, LongTextScores, MeasuredCurve
from heedful.solve.insight.label_next import FILE
from heedful.solve.plan import FOLDS, REPORT_SECONDS
from heedful.solve.process import LostProcessError, TimeOverError, TrainingProcess
from heedful.solve.state import SolveState

CLOSING_SHARE = 0.03
"""Share of the time that candidates leave for what is measured at the end."""
LEAST_SECONDS = 2 * SETUP_SECONDS
"""In less time nothing can be measured, and candidates may have it."""
CURVE_MODELS = ("head", "tfidf")
"""Candidates whose model the learning curve is measured with: the first for which there is time."""
CURVE_FITS = 2.0
"""The parts of train together have about twice the rows of train."""
REFIT_MARGIN, NO_TIME = 1.3, "the time that was left was too short"
"""A fit on train and dev, and scoring test, are expected to take this many times what was measured."""
LEAST_UNLABELED = 100
"""With time for fewer rows, none is labeled."""
NOT_LISTED = "rows to label next are not listed: the time was over; --minutes gives more"


def reserve_closing(minutes: float) -> float:
    """Return the seconds that candidates leave for the end."""
    seconds = CLOSING_SHARE * 60 * minutes
    return seconds if seconds >= LEAST_SECONDS else 0.0


def name_unlabeled(options: SolveOptions) -> str:
    return "" if options.unlabeled is None else str(absolute_value("unlabeled", options.unlabeled))


def has_listed(options: SolveOptions, state: SolveState) -> bool:
    """Whether rows of the file of --unlabeled, if there is one, were listed by an earlier command."""
    listed = "" if state.label_next is None else state.label_next.unlabeled
    return options.unlabeled is None or listed == name_unlabeled(options)


def expect_listing(state: SolveState, chosen: str) -> float:
    """Return the seconds in which the chosen candidate labels as many rows as are worth listing."""
    cost = state.find_cost(chosen)
    return state.slowness * (SETUP_SECONDS + LEAST_UNLABELED * cost.ms_per_text / 1000)


class Closing:
    """The measurements at the end of one command; what an earlier command has measured is kept."""

    def __init__(
        self,
        process: TrainingProcess,
        folder: StudyFolder,
        options: SolveOptions,
        state: SolveState,
        facts: DataFacts,
        end: float,
    ) -> None:
        self.process, self.folder, self.options = process, folder, options
        self.state, self.facts, self.end = state, facts, end

    @property
    def left(self) -> float:
        return self.end - time.monotonic() - REPORT_SECONDS

    def score_test(self, chosen: str) -> None:
        """Score the chosen candidate on test, once."""
        run = request.find_final_run(self.folder, self.state, chosen)
        if not self.facts.test or self.has_test(chosen):
            return
        grace = min(0.04 * 60 * self.options.minutes, 8.0)
        seconds = max(self.end - time.monotonic(), 5.0) + grace
        rows = self.state.make_budget(self.facts, self.options.minutes).facts.test
        try:
            answer = self.process.ask(seconds, do="test", run=str(run), rows=rows)
        except (TimeOverError, LostProcessError):
            answer = {"error": "the time was over"}
        if "error" in answer:
            notice(f"test was not scored: {answer['error']}")
        elif chosen not in self.state.tested:
            self.state.tested.append(chosen)

    def has_test(self, name: str) -> bool:
        """Whether the model to use was scored on test."""
        run = Run.open(request.find_final_run(self.folder, self.state, name))
        return "test" in run.read_results().splits

    def refit(self, chosen: str, candidates: Mapping[str, Candidate]) -> None:
        """Fit the chosen candidate again on train and dev, if it suits it and fits in the time.

        Of an average, all members are fitted again; they keep their weights. A candidate whose test score is
        known stays as it is: test is scored once.
        """
        state = self.state
        if self.has_test(chosen) or state.refitted.get(chosen) == "" or candidates[chosen].baseline:
            return
        members = list(state.ensembles.get(chosen, (chosen,)))
        reason = self.explain_no_refit(chosen, [candidates[name] for name in members])
        if not reason:
            notice(f"{chosen}: is fitted again, on train and dev")
            for name in members:
                if not reason and state.refitted.get(name) != "":
                    reason = self.train_with_dev(name)
                    if len(members) > 1 and not reason:
                        state.refitted[name] = ""
            if not reason and chosen in state.ensembles:
                reason = self.average_again(chosen)
        state.refitted[chosen] = reason

    def explain_no_refit(self, chosen: str, members: Sequence[Candidate]) -> str:
        """Return why a candidate, or an average of these members, is not fitted again; empty if it is."""
        if self.facts.kind == "labels":
            return "dev selected the thresholds of its labels"
        its = "its" if len(members) == 1 else "a member's"
        expected = 0.0
        for member in members:
            settings, cost = self.read_settings(member.name), self.state.find_cost(member.name)
            if not member.refits and settings.get("select") != "last":  # which it is where folds decide
                return f"dev selected {its} training step"
            if "train_rows" in settings or cost.cut:
                what = "it was" if len(members) == 1 else "a member was"
                return f"{what} trained on a part of train, to fit in the time"
            if self.state.refitted.get(member.name) != "":
                run = cost.seconds / (1 + cost.folds * (FOLDS - 1) / FOLDS)
                expected += REFIT_MARGIN * run * (1 + self.facts.dev / self.facts.train)
        expected += SETUP_SECONDS * (len(members) > 1)
        return NO_TIME if expected + self.expect_test(self.state.find_cost(chosen)) > self.left else ""

    def expect_test(self, cost: Cost) -> float:
        """Return the seconds to score test, in another process if this one had to be ended."""
        rows = self.state.make_budget(self.facts, self.options.minutes).facts.test
        return self.process.startup + SETUP_SECONDS + REFIT_MARGIN * rows * cost.ms_per_text / 1000

    def train_with_dev(self, name: str) -> str:
        """Make the run on train and dev as the chosen one was made; return why it failed, if it did."""
        weights = Run.open(self.folder.run(name)).read_config()["adapt"].get("class_weights")
        settings = {**self.read_settings(name), "class_weights": weights}
        return self.make_refitted(name, settings, do="train", seconds=True)

    def average_again(self, name: str) -> str:
        """Make the average of the members that were fitted again; return why it failed, if it did."""
        weights = {
            str(name_refitted(self.folder.run(member))): weight
            for member, weight in self.state.ensembles[name].items()
        }
        return self.make_refitted(name, {"model": ENSEMBLE}, do="average", weights=weights)

    def make_refitted(self, name: str, settings: dict[str, Any], **wanted: Any) -> str:
        """Ask for the run of a candidate on train and dev; return why it failed, if it did."""
        settings = {**settings, "with_dev": True}
        if (decision := read_decision(Run.open(self.folder.run(name)).best)) is not None:
            settings["threshold"] = decision.threshold  # there is no dev to tune another one on
        table = request.make_run_options(self.folder, self.options, self.state, self.facts, settings)
        table |= {"out": name_refitted(self.folder.run(name)), "resume": True}
        seconds = self.left - self.expect_test(self.state.find_cost(name))
        if "seconds" in wanted:  # that it may take
            wanted["seconds"] = seconds
        try:
            answer = self.process.ask(seconds, options=table, **wanted)
        except TimeOverError:
            return NO_TIME
        except KeyboardInterrupt:  # ends this alone: there is a model
            self.process.stop()
            return "it was stopped"
        except LostProcessError as error:
            return f"it failed ({error})"
        return f"it failed ({answer['error']})" if "error" in answer else ""

    def measure_help(self, chosen: str, *, skipped: bool) -> None:
        """Measure what fits in the time. Ctrl-C ends this alone: the model is there.

        `skipped` says whether rows of the task's own file were skipped, of which some may have no label.
        """
        if self.state.long_texts is None and self.options.long_texts == "cut":
            self.state.long_texts = self.count_long_texts()
        with suppress(TimeOverError, LostProcessError, KeyboardInterrupt):
            if self.state.curve is None:
                self.measure_curve()
            found, wanted = self.state.label_next, skipped or self.options.unlabeled is not None
            listed = found is not None and found.model == chosen and has_listed(self.options, self.state)
            if wanted and not listed:
                self.label_rows(chosen)
            if self.state.long_texts is not None and self.state.long_texts.open:
                self.measure_long_texts()

    def ask(self, what: str, **wanted: Any) -> dict[str, Any]:
        answer = self.process.ask(self.left, **wanted)
        if "error" in answer:
            notice(f"{what} not measured: {answer['error']}")
        return answer

    def read_settings(self, name: str) -> dict[str, Any]:
        """Return the settings of a run of the folder; none if there is no such run."""
        recorded = {c.name: c.settings for c in self.folder.read().configurations}
        return dict(recorded.get(name, {}))

    def make_run_options(self, name: str, usual: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a candidate's run, or the usual ones if it was not tried."""
        settings = self.read_settings(name) or dict(usual)
        return request.make_run_options(self.folder, self.options, self.state, self.facts, settings)

    def measure_curve(self) -> None:
        """Measure what more labels would bring."""
        for candidate in (c for name in CURVE_MODELS for c in CANDIDATES if c.name == name):
            if self.expect_curve(candidate) > self.left or (candidate.encoder and self.state.speed is None):
                continue
            answer = self.ask(
                "what more labels would bring was",
                do="curve",
                options=self.make_run_options(candidate.name, candidate.settings),
                labels=self.facts.train,
                folds=self.state.folds or 0,
                seconds=0.8 * self.left,
            )
            if answer.get("curve") is not None:
                self.state.curve = decode_record(MeasuredCurve, answer["curve"], "the learning curve")
            return

    def expect_curve(self, candidate: Candidate) -> float:
        """Return the seconds that the curve is expected to take with a candidate's model.

        The states of an encoder are in the cache if a candidate was tried that fits a head to them.
        """
        cost = self.state.costs.get(candidate.name)
        if cost is not None and not candidate.encoder:  # its runs fitted about as many rows, and did more
            return self.state.slowness * SETUP_SECONDS + cost.seconds
        heads = [c.name for c in CANDIDATES if c.settings.get("method") == "head"]
        if candidate.encoder and any(name in self.state.costs for name in heads):
            return self.state.slowness * 2 * SETUP_SECONDS
        facts = self.state.make_budget(self.facts, self.options.minutes).facts
        seconds = candidate.seconds(facts, self.state.speed or Speed())
        if not candidate.encoder:
            seconds *= CURVE_FITS * (1 + (self.state.folds or 0))
        return self.state.slowness * (SETUP_SECONDS + seconds)

    def count_long_texts(self) -> LongTextScores | None:
        """Return how many texts the encoder cuts, as a candidate's own checks say; None without one."""
        for name in self.state.costs:
            run = Run.open(self.folder.run(name))
            checks = {check.name: check.value for check in run.read_checks().checks}
            share, max_len = checks.get("truncation"), run.read_config()["adapt"].get("max_len")
            if share is not None and max_len is not None:
                return LongTextScores(share, max_len)
        return None

    def measure_long_texts(self) -> None:
        """Measure what reading more of the texts that the encoder cuts would bring."""
        head = next(c for c in CANDIDATES if c.name == "head")
        if self.expect_curve(head) > self.left:
            return
        answer = self.ask(
            "long texts were",
            do="long texts",
            options=self.make_run_options(head.name, head.settings),
            folds=self.state.folds or 0,
            seconds=0.7 * self.left,
        )
        if "long_texts" in answer:
            self.state.long_texts = decode_record(LongTextScores, answer["long_texts"], "long texts")

    def label_rows(self, chosen: str) -> None:
        """Label rows without a label by the chosen model, and choose those to label next."""
        if expect_listing(self.state, chosen) > self.left:
            notice(NOT_LISTED)
            return
        answer = self.ask(
            "rows to label next were",
            do="label",
            options=request.make_run_options(self.folder, self.options, self.state, self.facts, {}),
            run=str(request.find_final_run(self.folder, self.state, chosen)),
            model=chosen,
            unlabeled=name_unlabeled(self.options),
            out=str(self.folder.path / FILE),
            seconds=self.left - SETUP_SECONDS,
        )
        if "label_next" in answer:
            self.state.label_next = decode_record(LabelNext, answer["label_next"], "the rows to label")
