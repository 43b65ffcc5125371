"""When a model should answer "not sure": a confidence that is wanted, or a share of mistakes that is allowed.

What a run predicted on dev says how often it is right at which confidence. From there come the temperature of
calibrated probabilities, and the threshold that keeps a promised risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from heedful.errors import UserError
from heedful.inference.predictions import PredictedLabel
from heedful.runs.directory import Run, follow_choice, name_before_refit
from heedful.runs.schemas import Prediction

NOT_SURE = "not sure"
"""The label of a text that gets no answer."""


@dataclass(frozen=True)
class AnswerRule:
    """Below which confidence the answer is "not sure", and how probabilities are calibrated."""

    threshold: float = 0.0
    temperature: float = 1.0
    by_risk: bool = False
    """Whether the threshold keeps a promised risk. It then compares the model's own confidence: a temperature
    that was fitted on the same rows would weaken the promise."""
    sentences: tuple[str, ...] = ()
    """What can be said about the rule, from dev."""

    def apply(self, answer: PredictedLabel) -> PredictedLabel:
        own = answer.confidence
        if self.temperature != 1.0:
            from heedful.statistics.temperature import scale_temperature

            scaled = scale_temperature(list(answer.probabilities.values()), self.temperature)
            probabilities = dict(zip(answer.probabilities, scaled.tolist(), strict=True))
            answer = replace(answer, confidence=probabilities[answer.label], probabilities=probabilities)
        if (own if self.by_risk else answer.confidence) < self.threshold:
            return replace(answer, label=NOT_SURE)
        return answer


def make_rule(
    run: str | Path | None,
    labels: Sequence[str],
    *,
    min_confidence: float | None = None,
    max_risk: float | None = None,
    calibrate: bool = False,
) -> AnswerRule:
    """Make the rule that a model answers by, from what its run predicted on dev."""
    if min_confidence is not None and max_risk is not None:
        raise UserError("--min-confidence and --max-risk both set a threshold; give one of them")
    for name, value in (("--min-confidence", min_confidence), ("--max-risk", max_risk)):
        if value is not None and not 0 < value < 1:
            raise UserError(f"{name} {value:g}: is between 0 and 1")
    if (min_confidence is not None or max_risk is not None) and NOT_SURE in labels:
        raise UserError(f'a label of this model is "{NOT_SURE}": it would mean two things; rename the label')
    rule = AnswerRule()
    if calibrate:
        rule = calibrate_rule(read_scored(run, "--calibrate"), labels)
    if max_risk is not None:
        return promise_risk(rule, read_scored(run, "--max-risk"), max_risk)
    if min_confidence is not None:
        rule = replace(rule, threshold=min_confidence)
        return replace(rule, sentences=(*rule.sentences, *describe_threshold(rule, run)))
    return rule


def read_scored(run: str | Path | None, option: str) -> list[Prediction]:
    """Return what a run predicted on the labeled rows of dev."""
    rows = find_scored(run)
    if not rows:
        where = "this model" if run is None else str(run)
        if run is not None and find_scored(before := name_before_refit(follow_choice(run))):
            raise UserError(
                f"{option}: {where} was fitted again on train and dev, so that it has no held-out rows; give "
                f"{before}, the same model as it was before that"
            )
        raise UserError(
            f"{option}: {where} has no predictions on dev; give the folder of a run that has dev rows"
        )
    return rows


def find_scored(run: str | Path | None) -> list[Prediction]:
    if run is None or not (follow_choice(run) / "predictions_dev.jsonl").is_file():
        return []
    rows = Run(follow_choice(run)).read_predictions("dev")
    return [row for row in rows if row.label is not None and row.probabilities.get(row.predicted) is not None]


def is_right(row: Prediction) -> bool:
    return row.label is not None and row.predicted.split() == row.label.split()


def calibrate_rule(rows: Sequence[Prediction], labels: Sequence[str]) -> AnswerRule:
    from heedful.statistics.calibration import calibration_error
    from heedful.statistics.temperature import fit_temperature, scale_temperature

    if not labels:
        raise UserError("--calibrate: is for models with classes; free answers have none")
    table = np.array([[row.probabilities[name] for name in labels] for row in rows])
    truth = [labels.index(row.label) for row in rows if row.label is not None]
    temperature = fit_temperature(table, truth)
    right = table.argmax(1) == truth
    before, after = (
        calibration_error(t.max(1), right) for t in (table, scale_temperature(table, temperature))
    )
    sentence = (
        f"Probabilities are calibrated on {len(rows):,} rows of dev with the temperature {temperature:.2f}: "
        f"confidence and accuracy differed by {before:.3f} in the mean, and now by {after:.3f}."
    )
    return AnswerRule(temperature=temperature, sentences=(sentence,))


def promise_risk(rule: AnswerRule, rows: Sequence[Prediction], max_risk: float) -> AnswerRule:
    """Add the threshold that answers most while at most a share of `max_risk` of the answers is wrong."""
    from heedful.statistics.proportions import LEVEL
    from heedful.statistics.risk import certify_threshold, count_needed

    confidence = [row.probabilities[row.predicted] for row in rows]
    right = [is_right(row) for row in rows]
    choice, n = certify_threshold(confidence, right, max_risk), len(rows)
    if choice is None:
        least = count_needed(max_risk)
        reason = (
            f"{least:,} rows would be needed even without a mistake"
            if n < least
            else "too many of the confident answers are wrong there"
        )
        raise UserError(
            f"--max-risk {max_risk:g}: dev's {n:,} rows cannot promise it: {reason}; allow a larger risk, "
            "or label more rows for dev"
        )
    sentence = (
        f"Answers have a confidence of at least {choice.threshold:.4g}: with {LEVEL:.0%} confidence at most "
        f"{max_risk:.1%} of them are wrong, if the texts are like dev's (the model was selected on dev too); "
        f"there {choice.coverage:.1%} of {n:,} rows are answered, {choice.risk:.1%} of them wrongly."
    )
    return replace(rule, threshold=choice.threshold, by_risk=True, sentences=(*rule.sentences, sentence))


def describe_threshold(rule: AnswerRule, run: str | Path | None) -> list[str]:
    """Say what a threshold does on dev, if the run has predictions of it."""
    from heedful.statistics.proportions import clopper_pearson

    if run is None or not (rows := find_scored(run)):
        return []
    answers = [
        rule.apply(PredictedLabel(r.predicted, r.probabilities[r.predicted], dict(r.probabilities)))
        for r in rows
    ]
    answered = [is_right(row) for row, a in zip(rows, answers, strict=True) if a.label != NOT_SURE]
    if not answered:
        return [f"None of dev's {len(rows):,} rows has a confidence of {rule.threshold:g}."]
    wrong, n = len(answered) - sum(answered), len(answered)
    low, high = clopper_pearson(wrong, n)
    return [
        f"On dev, {n:,} of {len(rows):,} rows have a confidence of at least {rule.threshold:g}; "
        f"{wrong / n:.1%} of their answers are wrong (95 % interval {low:.1%} to {high:.1%})."
    ]
