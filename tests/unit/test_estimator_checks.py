"""`check_estimator` on `heedful.TextClassifier`: every check of scikit-learn passes or is an exception with a reason."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_array

import heedful
from tiny import make_model

QUICK: dict[str, Any] = {
    "method": "head", "epochs": 1, "lr": 0.01, "max_len": 8, "threads": 1, "precision": "float32",
    "dev_share": 0.0, "train_eval_rows": 0, "head_start": "random",
}  # fmt: skip
"""A fitted head has large weights on texts without meaning, and enlarges the rounding of a batch."""
WITHOUT_X = (
    "check_do_not_raise_errors_in_init_or_set_params", "check_estimator_cloneable", "check_estimator_repr",
    "check_estimator_tags_renamed", "check_get_params_invariance", "check_mixin_order",
    "check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_set_params",
    "check_valid_tag_types",
)  # fmt: skip
"""Checks that need no X, and run on the estimator as it is."""
WITH_TEXTS = (
    "check_classifiers_one_label", "check_classifiers_regression_target", "check_dict_unchanged",
    "check_dont_overwrite_parameters", "check_estimators_fit_returns_self", "check_estimators_overwrite_params",
    "check_estimators_pickle", "check_estimators_unfitted", "check_fit_check_is_fitted", "check_fit_idempotent",
    "check_fit_score_takes_y", "check_methods_sample_order_invariance", "check_methods_subset_invariance",
    "check_pipeline_consistency", "check_requires_y_none", "check_supervised_y_2d", "check_supervised_y_no_nan",
)  # fmt: skip
"""Checks that make an X of random numbers but ask nothing about numbers: they run with a text for each row."""
NUMBERS = "is about X as a matrix of numbers: its type, shape, memory or values"
WEIGHTS = "is about sample_weight, which fit does not take; the option class_weights weights labels"
ACCURACY = (
    "asks for an accuracy on blobs of numbers, whose texts say nothing; our own tests ask it with texts"
)
OPTIONAL = "is about a method or attribute that a text classifier does not have"
EXCEPTIONS = {
    **dict.fromkeys((
        "check_array_api_input", "check_array_api_mixed_inputs", "check_array_api_same_namespace",
        "check_classifier_data_not_an_array", "check_complex_data", "check_dtype_object", "check_estimator_sparse_array",
        "check_estimator_sparse_matrix", "check_estimator_sparse_tag", "check_estimators_dtypes",
        "check_estimators_empty_data_messages", "check_estimators_nan_inf", "check_f_contiguous_array_estimator",
        "check_fit1d", "check_fit2d_1feature", "check_fit2d_1sample", "check_fit2d_predict1d",
        "check_positive_only_tag_during_fit", "check_readonly_memmap_input",
    ), NUMBERS),
    **dict.fromkeys((
        "check_all_zero_sample_weights_error", "check_classifiers_one_label_sample_weights",
        "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data",
        "check_sample_weights_list", "check_sample_weights_not_an_array", "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series", "check_sample_weights_shape",
    ), WEIGHTS),
    **dict.fromkeys(("check_classifiers_classes", "check_classifiers_train"), ACCURACY),
    **dict.fromkeys((
        "check_class_weight_balanced_linear_classifier", "check_class_weight_classifiers",
        "check_decision_proba_consistency", "check_estimators_partial_fit_n_features", "check_n_features_in",
        "check_n_features_in_after_fitting", "check_non_transformer_estimators_n_iter", "check_sparsify_coefficients",
    ), OPTIONAL),
}  # fmt: skip
"""Checks that make no sense for texts, each with the reason."""


class ReadsNumbers(heedful.TextClassifier):  # type: ignore[misc]
    """A `TextClassifier` that writes each row of numbers as a text, for checks that pass numbers."""

    def fit(self, X: Any, y: Any) -> ReadsNumbers:  # noqa: N803
        super().fit(write_rows(X), y)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        self.check_is_fitted()
        return super().predict_proba(write_rows(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        return tags


def write_rows(X: Any) -> list[str]:  # noqa: N803
    return [" ".join(f"{10 * value:.0f}" for value in row) for row in check_array(X)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


def test_every_check_of_scikit_learn_runs_or_is_an_exception_with_a_reason() -> None:
    checks = {
        getattr(check, "func", check).__name__
        for check in estimator_checks._yield_all_checks(LogisticRegression(), legacy=True)
    }
    ours = [*WITHOUT_X, *WITH_TEXTS, *EXCEPTIONS]
    assert len(ours) == len(set(ours))
    assert checks <= set(ours), "new in scikit-learn: run it or name the reason"
    assert set(WITH_TEXTS) | set(EXCEPTIONS) <= checks, "gone from scikit-learn"


def test_check_estimator_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # it says itself that texts are not checked
        estimator_checks.check_estimator(heedful.TextClassifier())


@pytest.mark.parametrize("name", WITHOUT_X)
def test_checks_that_need_no_texts(name: str) -> None:
    getattr(estimator_checks, name)("TextClassifier", heedful.TextClassifier())


@pytest.mark.parametrize("name", WITH_TEXTS)
def test_checks_with_a_text_for_each_row(name: str, model: Path) -> None:
    getattr(estimator_checks, name)("ReadsNumbers", ReadsNumbers(str(model), **QUICK))


@pytest.mark.parametrize("numbers", [
    np.zeros((4, 3)), np.zeros((4, 2)), np.zeros((4, 1)), np.arange(4), [[1.0, 2.0]] * 4, [1, 2, 3, 4],
], ids=["matrix", "two columns", "one column", "array", "lists", "list"])  # fmt: skip
def test_an_x_of_numbers_is_refused_with_what_is_wanted(numbers: Any, model: Path) -> None:
    estimator = heedful.TextClassifier(str(model), **QUICK)
    with pytest.raises(ValueError, match="must be a text") as caught:
        estimator.fit(numbers, ["a", "b", "a", "b"])
    assert str(caught.value).startswith("texts: row 0 is ")
    assert str(caught.value).endswith("it must be a text")
