"""Linear models of several labels per text, of numbers and of ordered classes, against scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.multiclass import OneVsRestClassifier

from heedful.linear import ridge
from heedful.linear.label_sets import fit_label_sets
from heedful.linear.model import TfidfModel
from heedful.linear.ridge import fit_ridge

EXACT = {"solver": "newton-cg", "tol": 1e-12, "max_iter": 1000}
NAMES = ["joy", "love", "anger", "fear"]


def make_texts(n: int = 90, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts with words that hint at each of four labels, and other words."""
    rng = np.random.default_rng(seed)
    sets = (rng.random((n, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(np.uint8)
    texts = [
        " ".join(
            [*(f"{NAMES[i]}{rng.integers(3)}" for i in np.flatnonzero(row)), *rng.choice(list("abcdef"), 4)]
        )
        for row in sets
    ]
    return texts, sets


def sparse_features(n: int, d: int, seed: int = 0) -> csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.random((n, d)) * (rng.random((n, d)) < 0.2)
    return csr_matrix(dense)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(60, 150), (150, 40)])
def test_label_sets_are_one_logistic_regression_per_label(rows: int, columns: int, balanced: bool) -> None:
    x = sparse_features(rows, columns)
    sets = (np.random.default_rng(1).random((rows, 3)) < [0.5, 0.3, 0.15]).astype(np.uint8)
    fit = fit_label_sets(x, sets, balanced=balanced, strengths=[3.0], tolerance=1e-15)
    weight = "balanced" if balanced else None
    theirs = OneVsRestClassifier(LogisticRegression(C=3.0, class_weight=weight, **EXACT)).fit(x, sets)
    ours = 1 / (1 + np.exp(-fit.apply(x)))
    assert np.abs(ours - theirs.predict_proba(x)).max() < 1e-6


def test_a_label_on_no_row_or_on_every_row_has_nearly_its_share() -> None:
    x, sets = sparse_features(50, 20), np.zeros((50, 3), np.uint8)
    sets[:, 1], sets[::2, 2] = 1, 1
    probabilities = 1 / (1 + np.exp(-fit_label_sets(x, sets).apply(x)))
    assert (probabilities[:, 0] < 0.02).all()
    assert (probabilities[:, 1] > 0.98).all()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(40, 90), (120, 30)])
def test_ridge_is_that_of_sklearn_and_its_strength_that_of_leaving_one_out(
    rows: int, columns: int, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sparse_features(rows, columns)
    rng = np.random.default_rng(2)
    y = 3000 + 500 * (x @ rng.normal(size=columns) + rng.normal(size=rows))
    features = x.toarray() if dense else x
    standard = (features - features.mean(0)) / (features.std(0) + 1e-6) if dense else features
    alphas = np.array([0.1, 1.0, 10.0, 100.0])
    theirs = RidgeCV(alphas=alphas).fit(standard.toarray() if not dense else standard, y)
    fit = fit_ridge(features, y, strengths=list(1 / alphas))
    assert 1 / fit.strength == pytest.approx(theirs.alpha_)
    expected = Ridge(alpha=theirs.alpha_, solver="cholesky" if dense else "sparse_cg", tol=1e-14).fit(
        standard, y
    )
    assert fit.apply(features)[:, 0] == pytest.approx(expected.predict(standard), rel=1e-6)
    monkeypatch.setattr(ridge, "MOST_CLOSED", 10)  # by conjugate gradients
    again = fit_ridge(features, y, strengths=[fit.strength])
    assert again.apply(features)[:, 0] == pytest.approx(expected.predict(standard), rel=1e-6)


@pytest.mark.parametrize("kind", ["labels", "number", "ordered"])
def test_models_of_each_kind_learn_and_are_saved(kind: str, tmp_path: Path) -> None:
    texts, sets = make_texts(300)
    targets = {"labels": sets, "number": sets @ [1.0, 2.0, -1.0, 5.0], "ordered": sets[:, :2].sum(1)}[kind]
    names = {"labels": NAMES, "number": [], "ordered": ["0", "1", "2"]}[kind]
    model = TfidfModel.fit(texts[:240], None, targets[:240], names, kind=kind)
    outputs, truth = model.probabilities(texts[240:]), targets[240:]
    if kind == "number":
        assert np.corrcoef(outputs, truth)[0, 1] > 0.9
    elif kind == "labels":
        assert outputs.shape == (60, 4)
        assert np.mean((outputs > 0.5) == truth) > 0.95
    else:
        assert np.mean(outputs.argmax(1) == truth) > 0.8
    model.save(tmp_path)
    again = TfidfModel.load(tmp_path)
    assert again.kind == kind
    assert (again.probabilities(texts[240:]) == outputs).all()
    half = again.add_logits(outputs, texts[240:], None)  # its own scores twice
    assert half == pytest.approx(model.apply_link(2 * model.logits(texts[240:])), rel=1e-6, abs=1e-9)


def test_shares_are_those_of_the_rows() -> None:
    _, sets = make_texts(100)
    assert TfidfModel.from_shares(sets, NAMES, "labels").probabilities(["x"])[0] == pytest.approx(
        sets.mean(0)
    )
    assert TfidfModel.from_shares(np.array([1.0, 4.0]), [], "number").probabilities(["x", "y"]).tolist() == [
        2.5,
        2.5,
    ]
