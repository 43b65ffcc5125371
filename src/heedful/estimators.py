"""`heedful.TextClassifier` and `heedful.TextRegressor`: estimators that adapt a pretrained model to texts.

classifier = heedful.TextClassifier("minilm", method="head", epochs=20).fit(texts, labels)
classifier.predict(["What a lovely place."])
cross_val_score(heedful.TextClassifier("minilm", method="head"), texts, labels, cv=5)
heedful.TextRegressor("minilm", method="head").fit(texts, scores).predict(["What a lovely place."])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin

from heedful.estimator_targets import (
    LabelTargets,
    NumberTargets,
    SetTargets,
    Targets,
    binarize_by,
    find_set_form,
    restore_sets,
)
from heedful.process_state import keep_process_state
from heedful.text_estimator import TextEstimator, read_columns

Labels = npt.NDArray[Any]
HALF = 0.5


class TextClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
    """Adapt a pretrained model to labeled texts, with the interface of scikit-learn.

    X is a list, an array or a series of texts, or pairs of texts: tuples, an array or a DataFrame with two
    columns. y has one label per text: strings, whole numbers or booleans. Or it has any number of labels per
    text: a matrix of 0 and 1 with a column per label, as scikit-learn's MultiLabelBinarizer writes it, or a
    list of lists, tuples or sets of labels. `predict` returns the form that `fit` was given.

    `fit` trains as `heedful adapt` does, with the same options and defaults, and leaves a run. A part of the
    rows, `dev_share`, is held out to select the best evaluation. Which rows these are depends on their
    content and `split_seed` alone, and copies of a text are on the same side. Where fewer than 20 rows would
    be held out, none are: the model trains on all rows, and the last one is kept.

    The run's folder is temporary. It is deleted with the estimator, and when `fit` is called again. With
    `out` it is `out/run`, beside the data in `out/data`; it is kept, and the next `fit` replaces it. Parallel
    fits (`n_jobs`) need a folder each: leave `out` unset there.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, a preset (heedful list models), or a Hub id.
    method
        full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods). auto finds
        the best model in `minutes`, as `heedful solve` does.
    dev_share
        Share of the rows to hold out; 0 for none.
    minutes
        With method="auto": time for one fit.
    kind
        label, labels (any number of labels per text) or ordered (classes with an order, such as stars:
        numbers, names that begin with one, or an ordered pandas Categorical). By default label, or labels
        where y shows several.

    The other parameters are the options of `heedful.adapt`.

    Attributes
    ----------
    classes_
        The labels, sorted; of a matrix of 0 and 1, the numbers or names of its columns.
    run_
        The run: its scores on the rows that were held out, its checks, curves and report.
    class_names_
        The names of the classes in the run.
    dev_rows_
        Number of rows that were held out.

    Examples
    --------
    >>> classifier = heedful.TextClassifier("minilm", method="head").fit(texts, labels)
    >>> classifier.predict_proba(["What a lovely place."])
    >>> GridSearchCV(heedful.TextClassifier("minilm"), {"method": ["head", "lora"]}).fit(texts, labels)

    """

    classes_: Labels

    def read_targets(self, y: Any, rows: int) -> Targets:
        if self.kind not in (None, "label", "labels", "ordered"):
            raise ValueError(f'kind {self.kind!r}: TextClassifier has "label", "labels" and "ordered"')
        several = self.kind == "labels" or (self.kind is None and find_set_form(y) is not None)
        if several:
            return SetTargets(y, rows)
        return LabelTargets(y, rows, ordered=self.kind == "ordered")

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable class of each text, or its labels in the form that `fit` was given."""
        probabilities = self.predict_proba(X)
        if not self._form:
            numbers = np.array([self.class_names_.index(name) for name in self.predictor.labels], np.int64)
            return self.classes_[numbers[self.predictor.choose_labels(probabilities[:, numbers])]]
        given = self.predictor.thresholds
        thresholds = np.full(len(self.classes_), HALF)
        if given is not None:
            for number, name in enumerate(self.class_names_):
                if name:
                    thresholds[number] = given[self.predictor.labels.index(name)]
        present = np.array([bool(name) for name in self.class_names_])
        chosen = (probabilities >= thresholds) & present
        return restore_sets(chosen.astype(np.uint8), self.classes_, self._form)

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return the probability of each class for each text, in the order of `classes_`.

        With several labels per text each has a probability of its own. That of a label that no text of y had
        is 0.
        """
        self.check_is_fitted()
        texts, pairs = read_columns(X)
        with keep_process_state():
            rows = self.predictor.predict_proba(texts, pairs)
        result = np.zeros((len(rows), len(self.class_names_)))
        for number, name in enumerate(self.class_names_):
            if name:
                result[:, number] = rows[:, self.predictor.labels.index(name)]
        return result

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the accuracy: with several labels, the share of texts of which all labels are right."""
        if not self._form or self._form == "indicator":
            return float(super().score(X, y, sample_weight))
        right = (binarize_by(self.predict(X), self.classes_) == binarize_by(y, self.classes_)).all(1)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class TextRegressor(RegressorMixin, TextEstimator):  # type: ignore[misc]
    """Adapt a pretrained model to texts with numbers, with the interface of scikit-learn.

    X is as for `TextClassifier`; y has a number per text. Numbers are standardized inside; `predict`
    returns them in their own unit. Parameters, attributes and folders are those of `TextClassifier`, which
    alone has classes.

    Examples
    --------
    >>> regressor = heedful.TextRegressor("minilm", method="head").fit(texts, scores)
    >>> regressor.predict(["What a lovely place."])

    """

    def read_targets(self, y: Any, rows: int) -> Targets:
        if self.kind not in (None, "number"):
            raise ValueError(f'kind {self.kind!r}: TextRegressor has "number"; TextClassifier has the others')
        return NumberTargets(y, rows)

    def predict(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return the number of each text."""
        self.check_is_fitted()
        texts, pairs = read_columns(X)
        with keep_process_state():
            rows = self.predictor.predict_proba(texts, pairs)
        return np.asarray(rows, np.float64).reshape(len(texts))
