from __future__ import annotations

import warnings

import numpy as np
import pytest

from heedful.data.world import World
from heedful.data.world.messages import Messages
from heedful.statistics.label_errors import count_confident, estimate_joint, find_label_errors, round_to_sum

DESKS = ["animals", "food", "health", "music"]


def draw_noisy(n: int, n_classes: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return noisy labels, which of them are wrong, and probabilities of a good model."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    wrong = rng.random(n) < noise
    labels = np.where(wrong, (truth + rng.integers(1, n_classes, n)) % n_classes, truth)
    logits = rng.normal(size=(n, n_classes)) + 5.0 * np.eye(n_classes)[truth]
    table = np.exp(logits)
    return labels, wrong, table / table.sum(1, keepdims=True)


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (4, 1), (7, 2)])
def test_confident_learning_agrees_with_cleanlab(n_classes: int, seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cleanlab.count import compute_confident_joint
        from cleanlab.count import estimate_joint as joint_of_cleanlab
        from cleanlab.filter import find_label_issues
    labels, _, table = draw_noisy(800, n_classes, 0.1, seed)
    theirs = compute_confident_joint(labels, table, calibrate=False)
    np.testing.assert_array_equal(count_confident(labels, table), theirs)
    np.testing.assert_allclose(
        estimate_joint(labels, table), joint_of_cleanlab(labels, table), atol=1 / len(labels)
    )
    issues = find_label_issues(labels, table, n_jobs=1)
    errors = find_label_errors(labels, table)
    # Only the rounding of the numbers of rows per cell may differ.
    assert len(set(errors.rows) ^ set(np.flatnonzero(issues))) <= n_classes
    assert len(errors.rows) > 40


def test_wrong_labels_are_found_with_the_right_suggestion() -> None:
    labels, wrong, table = draw_noisy(2000, 4, 0.08, 3)
    errors = find_label_errors(labels, table)
    first = errors.rows[: wrong.sum()]
    assert wrong[first].mean() > 0.8
    # 2,000 draws have a share of 0.08 with a standard deviation of 0.006, and this draw has 0.098
    assert errors.noise == pytest.approx(0.08, abs=0.02)
    assert (np.diff(errors.margins) <= 0).all()
    assert (errors.suggested != labels[errors.rows]).all()


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_wrong_labels_of_texts_are_found_from_out_of_fold_probabilities_of_a_linear_model(
    noise: float,
) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    messages = Messages(World(0), 0)
    letters = [letter for i in range(1800) if (letter := messages.at(i)).label in DESKS]
    truth = np.array([DESKS.index(letter.label) for letter in letters])
    rng = np.random.default_rng(1)
    wrong = rng.random(len(truth)) < noise
    labels = np.where(wrong, (truth + rng.integers(1, 4, len(truth))) % 4, truth)
    features = TfidfVectorizer(sublinear_tf=True).fit_transform([letter.text for letter in letters])
    table = cross_val_predict(LogisticRegression(C=10), features, labels, cv=5, method="predict_proba")
    errors = find_label_errors(labels, table)
    assert wrong[errors.rows[: wrong.sum()]].mean() > 0.6
    assert errors.agreement == pytest.approx((table.argmax(1) == labels).mean())


def test_clean_labels_of_a_sure_model_have_no_errors() -> None:
    labels = np.arange(60) % 3
    assert not len(find_label_errors(labels, np.eye(3)[labels] * 0.9 + 1 / 30).rows)


def test_a_class_without_rows_and_a_single_row_are_no_obstacle() -> None:
    table = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    errors = find_label_errors([0, 1, 1], table)
    assert errors.joint.sum() == pytest.approx(1.0)
    assert not len(find_label_errors([0], table[:1]).rows)
    with pytest.raises(ValueError, match="0 to 2"):
        find_label_errors([0, 1, 3], table)
    with pytest.raises(ValueError, match="not a number"):
        find_label_errors([0], [[np.nan, 1.0]])


def test_numbers_are_rounded_to_their_sum() -> None:
    assert round_to_sum(np.array([1.4, 2.4, 0.2])).tolist() == [2, 2, 0]
    assert round_to_sum(np.array([3.0, 0.0])).tolist() == [3, 0]
