import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from heedful.linear import logistic
from heedful.linear.logistic import (
    DENSE_STRENGTHS,
    Regression,
    SimpleColumns,
    assign_folds,
    choose_strength,
    fit_logistic,
    sample_stratified,
)

EXACT = {"solver": "newton-cg", "tol": 1e-10, "max_iter": 1000}


def clusters(
    n: int = 300, classes: int = 3, apart: float = 3.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    centers = rng.normal(size=(classes, 8)) * apart
    scale = [1, 10, 0.1, 1, 1, 1, 1, 1]
    return (centers[labels] * scale + rng.normal(size=(n, 8))).astype(np.float32), labels


def test_a_fitted_head_is_a_logistic_regression() -> None:
    states, labels = clusters()
    for n_classes, rows in ((3, labels < 3), (3, labels < 2), (2, labels < 2)):
        logits = fit_logistic(states[rows], labels[rows], n_classes, strengths=[0.01], tolerance=1e-14).apply(
            states[rows]
        )
        assert (logits.argmax(1) == labels[rows]).mean() > 0.95
        x = (states[rows] - states[rows].mean(0)) / (states[rows].std(0) + 1e-6)
        x = x.astype(np.float64)
        theirs = LogisticRegression(C=0.01, **EXACT).fit(x, labels[rows]).predict_proba(x)
        present = np.unique(labels[rows])
        assert np.abs(softmax(logits[:, present], axis=1) - theirs).max() < 1e-5
    alone = fit_logistic(states, np.ones(300, np.int64), 2)
    assert not alone.weight.any()
    assert (alone.apply(states).argmax(1) == 1).all()


def test_sparse_features_are_not_standardized_and_balanced_weights_are_those_of_sklearn() -> None:
    states, labels = clusters(apart=0.5)
    sparse = csr_matrix(np.abs(states) / np.linalg.norm(states, axis=1, keepdims=True), dtype=np.float64)
    labels[labels == 1] = np.where(np.arange((labels == 1).sum()) % 5, 0, 1)
    for balanced, weight in ((False, None), (True, "balanced")):
        fit = fit_logistic(sparse, labels, 3, balanced=balanced, strengths=[3.0], tolerance=1e-14)
        theirs = LogisticRegression(C=3.0, class_weight=weight, **EXACT).fit(sparse, labels)
        assert np.abs(softmax(fit.apply(sparse), axis=1) - theirs.predict_proba(sparse)).max() < 1e-6


def test_the_strength_is_weak_for_noise_and_strong_for_clear_labels() -> None:
    states, labels = clusters()
    clear = choose_strength(states, labels, 3)
    noise = choose_strength(states, np.random.default_rng(1).permutation(labels), 3)
    assert noise.value < 0.01 < 0.1 < clear.value
    assert clear.loss < 0.1 < noise.loss
    # the loss of guessing; the shares of the three labels are not quite equal, which is worth 0.005
    assert noise.loss == pytest.approx(np.log(3), abs=0.05)
    assert fit_logistic(states, labels, 3).strength == clear.value


@pytest.mark.parametrize("classes", [2, 3, 12])
@pytest.mark.parametrize("rows", [60, 700])
def test_every_form_of_the_features_leads_to_the_same_minimum(
    rows: int, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((rows, 200)) * (rng.random((rows, 200)) < 0.1)
    dense[1] = dense[0]
    x, labels = csr_matrix(dense), rng.integers(0, classes, rows)
    theirs = LogisticRegression(C=3.0, **EXACT).fit(x, labels).predict_proba(x)
    for few in (0, 1_000):  # as they are, or with as many columns as rows
        monkeypatch.setattr(logistic, "FEW_ROWS", few)
        exact = fit_logistic(x, labels, classes, strengths=[3.0], tolerance=1e-14).apply(x)
        assert np.abs(softmax(exact, axis=1) - theirs).max() < 1e-6
        quick = fit_logistic(x, labels, classes, strengths=[3.0]).apply(x)
        chosen = np.arange(rows), labels
        losses = [-np.log(softmax(logits, axis=1)[chosen]).mean() for logits in (quick, exact)]
        assert abs(losses[0] - losses[1]) < 0.02
        assert quick.dtype == np.float64
        assert fit_logistic(x, labels, classes, strengths=[3.0]).weight.dtype == np.float32


def test_few_rows_with_many_columns_get_as_many_columns_as_rows() -> None:
    x = csr_matrix(np.random.default_rng(0).random((60, 500)))
    simple = SimpleColumns(x, np.float64)
    assert simple.features.shape == (60, 60)
    assert np.abs(simple.features @ simple.features.T - (x @ x.T).toarray()).max() < 1e-9


def test_a_fit_starts_where_the_last_one_ended() -> None:
    states, labels = clusters(apart=0.5)
    regression = Regression(SimpleColumns(states).features, labels, balanced=False)
    regression.improve(0.1)
    before = regression.weights
    regression.improve(0.1)
    assert np.array_equal(regression.weights, before)
    regression.improve(0.3)
    assert np.abs(regression.weights).sum() > np.abs(before).sum()


def test_too_few_rows_to_hold_any_out_take_the_middle_strength() -> None:
    states, labels = clusters(8)
    labels[:] = np.arange(8)
    strength = choose_strength(states, labels, 10)
    assert strength.value == DENSE_STRENGTHS[len(DENSE_STRENGTHS) // 2]
    assert np.isnan(strength.loss)
    fit = fit_logistic(states, labels, 10)
    assert fit.bias[8:].max() < fit.bias[:8].min()
    labels[:] = [0, 0, 0, 1, 1, 1, 2, 9]  # labels with one row are never scored, and disturb nothing
    assert np.isfinite(choose_strength(states, labels, 10).loss)


def test_folds_and_samples_have_the_shares_of_the_labels() -> None:
    labels = np.repeat([0, 1, 2], [500, 50, 7])
    folds = assign_folds(labels, 5, seed=1)
    for label, count in ((0, 100), (1, 10), (2, 7 / 5)):
        sizes = np.bincount(folds[labels == label], minlength=5)
        assert np.abs(sizes - count).max() < 1
    rows = sample_stratified(labels, 100, seed=1)
    assert len(np.unique(rows)) == 100
    assert np.abs(np.bincount(labels[rows]) - np.array([500, 50, 7]) * 100 / 557).max() <= 1
    assert (assign_folds(labels, 5, seed=1) == folds).all()
    assert (assign_folds(labels, 5, seed=2) != folds).any()


def test_a_strength_chosen_on_a_part_of_the_rows_is_lowered_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states, labels = clusters(400, apart=0.3)
    monkeypatch.setattr(logistic, "FEWEST_CHOICE_ROWS", 100)
    monkeypatch.setattr(logistic, "MOST_CHOICE_ROWS", 100)
    part = sample_stratified(labels, 100, 0)
    chosen = choose_strength(states[part], labels[part], 3)
    assert choose_strength(states, labels, 3).value == pytest.approx(chosen.value / 4, rel=1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 3], [0, 0, 0, 1, 1]])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_handful_of_rows_is_fitted_too(labels: list[int], sparse: bool) -> None:
    features = np.eye(len(labels), 8, dtype=np.float32) + np.array(labels)[:, None]
    fit = fit_logistic(csr_matrix(features) if sparse else features, np.array(labels), 4)
    assert np.isfinite(fit.apply(features)).all()
