"""The estimators with several labels per text, ordered classes and numbers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import MultiLabelBinarizer

import heedful
from tiny import make_model

LABELS = ["anger", "joy", "love"]
QUICK: dict[str, Any] = {
    "epochs": 1,
    "max_len": 16,
    "threads": 1,
    "precision": "float32",
    "train_eval_rows": 0,
}


@pytest.fixture(scope="module")
def data() -> tuple[list[str], list[set[str]], list[float]]:
    rng = np.random.default_rng(0)
    sets = [{name for name in LABELS if rng.random() < 0.4} for _ in range(300)]
    texts = [f"{' '.join(sorted(one))} the {rng.choice(['day', 'night'])} {i}" for i, one in enumerate(sets)]
    numbers = [1000.0 + 100 * len(one) + 7 * ("joy" in one) for one in sets]
    return texts, sets, numbers


def test_several_labels_come_back_in_the_form_in_which_they_were_given(
    data: tuple[list[str], list[set[str]], list[float]], tmp_path: Path
) -> None:
    texts, sets, _ = data
    matrix = MultiLabelBinarizer().fit_transform(sets)
    by_sets = heedful.TextClassifier("tfidf", threads=1).fit(texts, sets)
    assert by_sets.classes_.tolist() == LABELS
    assert by_sets.predict(texts[:20]) == sets[:20]
    assert by_sets.score(texts, sets) > 0.95
    assert by_sets.predict_proba(texts).shape == (300, 3)
    by_matrix = heedful.TextClassifier("tfidf", threads=1).fit(texts, matrix)
    assert by_matrix.classes_.tolist() == [0, 1, 2]
    assert np.array_equal(by_matrix.predict(texts[:20]), matrix[:20])
    assert by_matrix.score(texts, matrix) == by_sets.score(texts, sets)
    lists = [sorted(one) for one in sets]
    saved = heedful.TextClassifier("tfidf", threads=1).fit(texts, lists).save(tmp_path / "saved")
    assert heedful.load(saved).predict(texts[:20]) == lists[:20]
    sparse = heedful.TextClassifier("tfidf", threads=1, dev_share=0.0).fit(texts, csr_matrix(matrix))
    assert sparse.predict(texts[:5]).tolist() == matrix[:5].tolist()


def test_a_column_that_no_row_has_is_never_predicted(
    data: tuple[list[str], list[set[str]], list[float]],
) -> None:
    texts, sets, _ = data
    matrix = np.insert(MultiLabelBinarizer().fit_transform(sets), 1, 0, axis=1)
    fitted = heedful.TextClassifier("tfidf", threads=1).fit(texts, matrix)
    assert not fitted.predict_proba(texts)[:, 1].any()
    assert np.array_equal(fitted.predict(texts[:9]), matrix[:9])


def test_numbers_come_back_in_their_own_unit(
    data: tuple[list[str], list[set[str]], list[float]], tmp_path: Path
) -> None:
    texts, _, numbers = data
    regressor = heedful.TextRegressor("tfidf", threads=1).fit(texts, numbers)
    assert is_regressor(regressor)
    assert not is_classifier(regressor)
    assert not hasattr(regressor, "classes_")
    assert regressor.score(texts, numbers) > 0.95
    assert regressor.predict([]).shape == (0,)
    copy = pickle.loads(pickle.dumps(regressor))
    assert np.array_equal(copy.predict(texts[:9]), regressor.predict(texts[:9]))
    again = heedful.load(regressor.save(tmp_path / "saved"))
    assert isinstance(again, heedful.TextRegressor)
    assert np.array_equal(again.predict(texts[:9]), regressor.predict(texts[:9]))
    with pytest.raises(NotFittedError, match="this TextRegressor is not fitted"):
        clone(regressor).predict(texts)


def test_regressors_can_be_searched(data: tuple[list[str], list[set[str]], list[float]]) -> None:
    texts, _, numbers = data
    assert min(cross_val_score(heedful.TextRegressor("tfidf", threads=1), texts, numbers, cv=2)) > 0.5
    grid = GridSearchCV(heedful.TextRegressor("tfidf", threads=1), {"dev_share": [0.0, 0.1]}, cv=2)
    assert grid.fit(texts, numbers).best_score_ > 0.5


def test_networks_have_each_kind(data: tuple[list[str], list[set[str]], list[float]], tmp_path: Path) -> None:
    texts, sets, numbers = data
    model = make_model(tmp_path / "tiny")
    several = heedful.TextClassifier(model, "head", **QUICK).fit(texts, sets)
    assert all(one <= set(LABELS) for one in several.predict(texts[:9]))
    ordered = heedful.TextClassifier(model, "head", kind="ordered", **QUICK).fit(
        texts, [len(one) for one in sets]
    )
    assert ordered.classes_.tolist() == [0, 1, 2, 3]
    assert set(ordered.predict(texts[:9]).tolist()) <= {0, 1, 2, 3}
    assert ordered.run_.results.labels == ("1 of 4", "2 of 4", "3 of 4", "4 of 4")
    predicted = heedful.TextRegressor(model, "head", **QUICK).fit(texts, numbers).predict(texts[:9])
    assert ((predicted > 500) & (predicted < 2000)).all()


def test_what_is_no_kind_is_refused(data: tuple[list[str], list[set[str]], list[float]]) -> None:
    texts, _, numbers = data
    for estimator, y, line in (
        (heedful.TextClassifier("tfidf", kind="number"), numbers, "kind 'number': TextClassifier has"),
        (heedful.TextRegressor("tfidf", kind="label"), numbers, "kind 'label': TextRegressor has"),
        (heedful.TextRegressor("tfidf"), ["a"] * 300, "y holds what is no number"),
        (heedful.TextRegressor("tfidf"), [2.0] * 300, "the same number for every text"),
        (heedful.TextClassifier("tfidf"), [{1}] * 300, "fewer than two labels that occur"),
        (heedful.TextClassifier("tfidf"), [{1, "a"}] * 300, "mixes labels of several types"),
        (
            heedful.TextClassifier("tfidf", kind="ordered"),
            ["low", "high"] * 150,
            "the order of 'high' is not known",
        ),
    ):
        with pytest.raises(ValueError, match=line):
            estimator.fit(texts, y)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("estimator", [heedful.TextClassifier, heedful.TextRegressor])
def test_a_missing_answer_is_no_label(missing: Any, estimator: Any) -> None:
    answers = ["a", "b", missing] if estimator is heedful.TextClassifier else [1.0, 2.0, missing]
    with pytest.raises(ValueError, match="missing value"):
        estimator(model="tfidf").fit(["one text", "another", "a third"], answers)
