from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.inference.abstention import NOT_SURE, AnswerRule, make_rule
from heedful.inference.predictions import PredictedLabel
from heedful.runs import Prediction, Run
from heedful.statistics.calibration import calibration_error
from heedful.statistics.proportions import clopper_pearson
from heedful.statistics.risk import STARTS, certify_threshold, count_needed
from heedful.statistics.temperature import fit_temperature, scale_temperature

LABELS = ["no", "perhaps", "yes"]


def draw(n: int, seed: int, sharper: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels from known probabilities, and return these as a model sees them that is too sure."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.normal(size=(n, 3))
    table = scale_temperature(np.exp(logits) / np.exp(logits).sum(1, keepdims=True), 1.0)
    labels = (rng.random((n, 1)) > table.cumsum(1)[:, :2]).sum(1)
    return labels, scale_temperature(table, 1 / sharper)


def write_dev(folder: Path, n: int, seed: int = 0, sharper: float = 1.0) -> Path:
    labels, table = draw(n, seed, sharper)
    rows = [
        Prediction(
            f"dev-{i}", LABELS[label], LABELS[row.argmax()], dict(zip(LABELS, row.tolist(), strict=True))
        )
        for i, (label, row) in enumerate(zip(labels, table, strict=True))
    ]
    folder.mkdir()
    Run(folder).write_predictions("dev", rows)
    return folder


def answer(confidence: float) -> PredictedLabel:
    rest = (1 - confidence) / 2
    return PredictedLabel("yes", confidence, {"no": rest, "perhaps": rest, "yes": confidence})


def test_below_the_smallest_confidence_the_label_is_not_sure_and_the_confidence_stays(tmp_path: Path) -> None:
    rule = make_rule(write_dev(tmp_path / "run", 200), LABELS, min_confidence=0.8)
    assert rule.apply(answer(0.8)) == answer(0.8)
    unsure = rule.apply(answer(0.79))
    assert (unsure.label, unsure.confidence) == (NOT_SURE, 0.79)
    assert unsure.probabilities == answer(0.79).probabilities
    assert "On dev" in rule.sentences[0]
    assert make_rule(None, LABELS, min_confidence=0.8).sentences == ()


def test_a_promised_risk_holds_on_new_texts() -> None:
    new, unseen = draw(20_000, 999)
    risks = []
    for seed in range(60):
        labels, table = draw(500, seed)
        choice = certify_threshold(table.max(1), table.argmax(1) == labels, 0.1)
        if choice is not None:
            answered = unseen.max(1) >= choice.threshold
            risks.append(np.mean(unseen.argmax(1)[answered] != new[answered]))
    assert len(risks) > 40  # the others promised nothing
    assert np.sum(np.array(risks) > 0.1) <= 3  # 5 % of 60


def test_the_promise_is_a_sentence(tmp_path: Path) -> None:
    rule = make_rule(write_dev(tmp_path / "run", 900), LABELS, max_risk=0.1)
    assert "with 95% confidence at most 10.0% of them are wrong" in rule.sentences[0]
    assert rule.apply(answer(rule.threshold - 0.01)).label == NOT_SURE


def test_a_risk_is_certified_by_an_exact_bound_at_thresholds_fixed_beforehand() -> None:
    labels, table = draw(2000, 3)
    sure, right = table.max(1), table.argmax(1) == labels
    choice = certify_threshold(sure, right, 0.1)
    assert choice is not None
    answered = sure >= choice.threshold
    assert choice.coverage == answered.mean()
    assert choice.risk == pytest.approx(1 - right[answered].mean())
    level = 1 - 2 * 0.05 / len(STARTS)  # one side of the interval
    assert choice.bound == pytest.approx(
        clopper_pearson(int((~right[answered]).sum()), answered.sum(), level).high
    )
    assert choice.bound <= 0.1
    n = count_needed(0.05)
    assert certify_threshold(np.full(n, 0.99), np.full(n, True), 0.05) is not None
    assert certify_threshold(np.full(n - 1, 0.99), np.full(n - 1, True), 0.05) is None
    assert certify_threshold([], [], 0.05) is None


def test_a_risk_that_dev_cannot_promise_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"dev's 40 rows cannot promise it: \d+ rows would be needed"
    ) as error:
        make_rule(write_dev(tmp_path / "few", 40), LABELS, max_risk=0.05)
    assert "\n" not in str(error.value)
    bad = write_dev(tmp_path / "bad", 900)
    rows = [
        Prediction(f"dev-{i}", LABELS[i % 3], "yes", {"no": 0.0, "perhaps": 0.1, "yes": 0.9})
        for i in range(900)
    ]
    Run(bad).write_predictions("dev", rows)
    with pytest.raises(UserError, match="too many of the confident answers are wrong"):
        make_rule(bad, LABELS, max_risk=0.05)
    with pytest.raises(UserError, match="has no predictions on dev"):
        make_rule(tmp_path, LABELS, max_risk=0.05)
    with pytest.raises(UserError, match="give one of them"):
        make_rule(bad, LABELS, max_risk=0.05, min_confidence=0.5)
    with pytest.raises(UserError, match="two things"):
        make_rule(bad, [*LABELS, NOT_SURE], min_confidence=0.5)
    with pytest.raises(UserError, match="between 0 and 1"):
        make_rule(bad, LABELS, min_confidence=80)


def test_calibrated_probabilities_are_as_sure_as_they_are_right(tmp_path: Path) -> None:
    labels, table = draw(3000, 5, sharper=2.5)
    temperature = fit_temperature(table, labels)
    # fitted to 3,000 rows: over eight draws it is 2.46 with a standard deviation of 0.08
    assert temperature == pytest.approx(2.5, rel=0.1)
    new, sure = draw(3000, 6, sharper=2.5)
    before, after = (
        calibration_error(t.max(1), t.argmax(1) == new) for t in (sure, scale_temperature(sure, temperature))
    )
    assert before > 0.1 > 0.03 > after
    rule = make_rule(write_dev(tmp_path / "run", 1000, sharper=2.5), LABELS, calibrate=True)
    scaled = rule.apply(answer(0.9))
    assert scaled.label == "yes"
    assert scaled.confidence == scaled.probabilities["yes"] < 0.8
    assert sum(scaled.probabilities.values()) == pytest.approx(1)
    assert "calibrated on 1,000 rows of dev" in rule.sentences[0]
    with pytest.raises(UserError, match="free answers"):
        make_rule(tmp_path / "run", [], calibrate=True)


def test_few_rows_without_a_mistake_do_not_make_a_model_certain() -> None:
    table = np.tile([0.9, 0.05, 0.05], (20, 1))
    assert scale_temperature(table, fit_temperature(table, np.zeros(20, int))).max() < 0.98


def test_a_promised_risk_is_kept_by_the_model_s_own_confidence(tmp_path: Path) -> None:
    folder = write_dev(tmp_path / "run", 400, sharper=2.0)
    both = make_rule(folder, LABELS, max_risk=0.15, calibrate=True)
    assert both.threshold == make_rule(folder, LABELS, max_risk=0.15).threshold
    just = answer(both.threshold)
    assert both.apply(just).label == "yes"
    assert both.apply(just).confidence < just.confidence
    assert AnswerRule().apply(just) is just
