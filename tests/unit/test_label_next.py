from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from heedful.statistics.label_next import choose_rows_to_label, measure_margins


def test_the_margin_is_that_of_the_two_most_probable_classes() -> None:
    assert measure_margins([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]]) == pytest.approx([0.2, 0.7])
    with pytest.raises(ValueError, match="at least two classes"):
        measure_margins([[1.0]])
    with pytest.raises(ValueError, match="not a number"):
        measure_margins([[np.nan, 1.0]])


def test_uncertain_rows_of_all_kinds_are_chosen_and_copies_are_not() -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(8), 25)
    features = 5 * np.eye(8)[kinds] + 0.1 * rng.random((200, 8))
    features[1] = features[0]  # a copy
    sure = rng.uniform(0.5, 0.55, 200)
    sure[kinds == 7] = 0.99  # nobody needs to label these
    sure[[0, 1]] = 0.5
    table = np.stack([sure, 1 - sure], axis=1)
    rows = choose_rows_to_label(table, features, 7, pool=25)
    assert rows[0] == 0
    assert sorted(kinds[rows]) == list(range(7))
    np.testing.assert_array_equal(choose_rows_to_label(table, csr_matrix(features), 7, pool=25), rows)
    many = choose_rows_to_label(table, features, 100, pool=2)
    assert len(set(many)) == 100
    assert list(many).index(0) == 0
    assert 1 not in many[:99]


def test_few_rows_are_all_chosen() -> None:
    table = np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]])
    assert choose_rows_to_label(table, np.eye(3)).tolist() == [2, 1, 0]
    assert choose_rows_to_label(table, np.zeros((3, 2)), 2).tolist() == [2, 1]
    assert len(choose_rows_to_label(np.empty((0, 2)), np.empty((0, 4)))) == 0
    with pytest.raises(ValueError, match="3 of probabilities"):
        choose_rows_to_label(table, np.eye(4))
