"""Every metric and its interval against scikit-learn, scipy and loops over the same resamples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as theirs

from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS, Metric, correct, find_metric
from heedful.statistics.resampling import RARE, draw_weights, find_strata

NAMES = ["a", "b", "c"]
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def rounded(p: np.ndarray) -> np.ndarray:
    """Round probabilities, so that some are equal, and let each row sum to 1."""
    p = p.round(1) + 1e-3
    return p / p.sum(1, keepdims=True)


def draw_classes(rng: np.random.Generator, n: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, classes, n)
    return labels, np.where(rng.random(n) < 0.6, labels, rng.integers(0, classes, n))


def draw_probabilities(rng: np.random.Generator, n: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    labels, guess = draw_classes(rng, n, classes)
    return labels, rounded(0.5 * rng.dirichlet(np.ones(classes), n) + 0.5 * np.eye(classes)[guess])


def draw_two(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return draw_probabilities(rng, n, 2)


def draw_sets(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels = (rng.random((n, 3)) < [0.2, 0.4, 0.6]).astype(np.uint8)
    return labels, labels ^ (rng.random((n, 3)) < 0.25).astype(np.uint8)


def draw_set_probabilities(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels, _ = draw_sets(rng, n)
    return labels, (0.3 * labels + 0.7 * rng.random((n, 3))).round(1)


def draw_numbers(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = (5 * rng.random(n)).round(1)
    return numbers, (numbers + rng.normal(size=n)).round(1) + 1000.0  # correlations must survive an offset


def label_set(labels: np.ndarray, p: np.ndarray) -> list[int]:
    return sorted({*labels.tolist(), *p.tolist()})


ORACLES: list[tuple[str, Draw, Callable[[np.ndarray, np.ndarray], float]]] = [
    ("accuracy", draw_classes, theirs.accuracy_score),
    ("balanced_accuracy", draw_classes, theirs.balanced_accuracy_score),
    ("macro_f1", draw_classes, lambda t, p: theirs.f1_score(t, p, average="macro")),
    ("weighted_f1", draw_classes, lambda t, p: theirs.f1_score(t, p, average="weighted")),
    ("f1:b", draw_classes, lambda t, p: theirs.f1_score(t == 1, p == 1)),
    ("matthews", draw_classes, theirs.matthews_corrcoef),
    (
        "quadratic_kappa",
        draw_classes,
        lambda t, p: theirs.cohen_kappa_score(t, p, weights="quadratic", labels=[0, 1, 2]),
    ),
    ("mae", draw_classes, theirs.mean_absolute_error),
    ("auroc", draw_probabilities, lambda t, p: theirs.roc_auc_score(t, p, multi_class="ovr")),
    ("auroc", draw_two, lambda t, p: theirs.roc_auc_score(t, p[:, 1])),
    ("average_precision", draw_probabilities, theirs.average_precision_score),
    ("average_precision", draw_two, lambda t, p: theirs.average_precision_score(t, p[:, 1])),
    (
        "average_precision:a",
        draw_probabilities,
        lambda t, p: theirs.average_precision_score(t == 0, p[:, 0]),
    ),
    ("log_loss", draw_probabilities, lambda t, p: theirs.log_loss(t, p, labels=range(p.shape[1]))),
    ("brier", draw_probabilities, lambda t, p: theirs.brier_score_loss(t, p, labels=range(p.shape[1]))),
    ("brier", draw_two, lambda t, p: theirs.brier_score_loss(t, p[:, 1])),
    ("micro_f1", draw_sets, lambda t, p: theirs.f1_score(t, p, average="micro")),
    ("macro_f1", draw_sets, lambda t, p: theirs.f1_score(t, p, average="macro", zero_division=np.nan)),
    ("f1:c", draw_sets, lambda t, p: theirs.f1_score(t[:, 2], p[:, 2])),
    ("subset_accuracy", draw_sets, theirs.accuracy_score),
    ("hamming_loss", draw_sets, theirs.hamming_loss),
    ("jaccard", draw_sets, lambda t, p: theirs.jaccard_score(t, p, average="samples", zero_division=1.0)),
    (
        "label_ranking_average_precision",
        draw_set_probabilities,
        theirs.label_ranking_average_precision_score,
    ),
    ("auroc", draw_set_probabilities, theirs.roc_auc_score),
    ("average_precision", draw_set_probabilities, theirs.average_precision_score),
    (
        "log_loss",
        draw_set_probabilities,
        lambda t, p: np.mean([theirs.log_loss(t[:, i], p[:, i]) for i in range(t.shape[1])]),
    ),
    (
        "brier",
        draw_set_probabilities,
        lambda t, p: np.mean([theirs.brier_score_loss(t[:, i], p[:, i]) for i in range(t.shape[1])]),
    ),
    ("pearson", draw_numbers, lambda t, p: stats.pearsonr(t, p).statistic),
    ("spearman", draw_numbers, lambda t, p: stats.spearmanr(t, p).statistic),
    ("mae", draw_numbers, theirs.mean_absolute_error),
    ("rmse", draw_numbers, theirs.root_mean_squared_error),
    ("r2", draw_numbers, theirs.r2_score),
]
IDS = [f"{name}-{draw.__name__[5:]}" for name, draw, _ in ORACLES]
# Ranks of correlations and areas are sums of thousands of terms; 1e-9 is far above their rounding.
CLOSE = {"rel": 1e-9, "abs": 1e-9}


@pytest.mark.parametrize(("name", "draw", "oracle"), ORACLES, ids=IDS)
def test_a_metric_is_that_of_scikit_learn(
    name: str, draw: Draw, oracle: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    for seed, n in ((0, 40), (1, 41), (2, 400)):
        targets, outputs = draw(np.random.default_rng(seed), n)
        ours = find_metric(name, NAMES).compute(targets, outputs)
        assert ours == pytest.approx(oracle(targets, outputs), **CLOSE)


@pytest.mark.parametrize(("name", "draw", "oracle"), ORACLES, ids=IDS)
def test_an_interval_is_that_of_a_loop_over_the_same_resamples(
    name: str, draw: Draw, oracle: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    metric = find_metric(name, NAMES)
    targets, outputs = draw(np.random.default_rng(3), 60)
    resamples = np.concatenate(list(draw_weights(60, 30, np.random.default_rng(0)))).astype(int)
    assert (resamples.sum(1) == 60).all()
    fast = metric.on_weights(targets, outputs)(resamples.astype(float))
    rows = [np.repeat(np.arange(60), counts) for counts in resamples]
    slow = [oracle(targets[r], outputs[r]) for r in rows]
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)
    if metric.is_share:
        return  # Wilson's interval
    interval = metric.interval(targets, outputs)
    assert interval is not None
    assert interval.low <= metric.compute(targets, outputs) <= interval.high


def test_every_metric_of_labels_and_numbers_has_an_oracle() -> None:
    tested = {name.partition(":")[0] + (":LABEL" if ":" in name else "") for name, _, _ in ORACLES}
    assert tested == set(METRICS) - {"exact_match", "perplexity"}


def enumerate_exchanges(metric: Metric, targets: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return the exact p of the permutation test, over all 2^n exchanges."""
    difference, as_large, n = metric.compute(targets, a) - metric.compute(targets, b), 0, len(targets)
    for number in range(2**n):
        swap = np.array([number >> i & 1 for i in range(n)], bool).reshape(-1, *[1] * (a.ndim - 1))
        drawn = metric.compute(targets, np.where(swap, b, a)) - metric.compute(targets, np.where(swap, a, b))
        as_large += abs(drawn) >= abs(difference) - 1e-9
    return as_large / 2**n


@pytest.mark.parametrize(
    ("name", "draw"),
    [("macro_f1", draw_classes), ("auroc", draw_two), ("jaccard", draw_sets), ("spearman", draw_numbers)],
)
def test_the_permutation_test_agrees_with_all_exchanges(name: str, draw: Draw) -> None:
    metric = find_metric(name, NAMES)
    rng = np.random.default_rng(5)
    targets, a = draw(rng, 9)
    b = a[rng.permutation(9)]
    p = metric.paired_test(targets, [a], [b], names=("a", "b")).p
    # 1,000 draws: five standard errors of a simulated share
    assert p == pytest.approx(enumerate_exchanges(metric, targets, a, b), abs=5 * 0.5 / np.sqrt(1000))


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("pearson", draw_numbers),
        ("spearman", draw_numbers),
        ("auroc", draw_two),
        ("average_precision", draw_two),
    ],
)
def test_another_scale_of_a_model_s_outputs_is_no_difference(name: str, draw: Draw) -> None:
    """Outputs of two models are exchanged: where the value has no scale, theirs may differ."""
    metric = find_metric(name, NAMES)
    targets, a = draw(np.random.default_rng(2), 80)
    b = a + np.random.default_rng(3).normal(0, 3, a.shape)
    p, other = (metric.paired_test(targets, [a], [c], names=("a", "b")).p for c in (b, b / 20 + 7))
    assert p == other < 0.05


classes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)


@settings(deadline=None, max_examples=60)
@given(classes, st.integers(0, 2**31))
def test_weights_are_repeated_rows(rows: list[tuple[int, int]], seed: int) -> None:
    targets, outputs = (np.array(column) for column in zip(*rows, strict=True))
    weights = np.random.default_rng(seed).integers(0, 4, (3, len(rows)))
    for name in ("balanced_accuracy", "macro_f1", "weighted_f1", "matthews", "quadratic_kappa", "f1:b"):
        metric = find_metric(name, ["a", "b", "c", "d"])
        fast = metric.on_weights(targets, outputs)(weights.astype(float))
        for row, value in zip(weights, fast, strict=True):
            r = np.repeat(np.arange(len(targets)), row)
            if not len(r):
                assert np.isnan(value)
            elif np.isfinite(value):
                assert value == pytest.approx(metric.compute(targets[r], outputs[r]))
            else:
                assert metric.compute(targets[r], outputs[r]) == metric.undefined


def test_a_rare_label_is_in_every_resample() -> None:
    targets = np.repeat([0, 1, 2], [80, 17, 3])
    strata = find_strata(targets)
    assert strata is not None
    assert len(np.unique(strata)) == 2  # only the rarest label is drawn apart
    for weights in draw_weights(100, 50, np.random.default_rng(0), strata):
        assert (weights[:, targets == 2].sum(1) == 3).all()
        assert weights[:, targets == 1].sum(1).std() > 0
    assert find_strata(np.repeat([0, 1], RARE)) is None
    has = np.eye(2)[targets // 2]
    interval = METRICS["auroc"].interval(targets // 2, 0.9 * has + 0.05)
    assert interval == (1.0, 1.0)  # without the strata, some resamples would have no value


def test_values_where_a_metric_has_none() -> None:
    none, both = np.zeros((2, 3), int), np.array([[0, 1, 0], [0, 0, 0]])
    assert METRICS["jaccard"].compute(none, none) == 1.0  # as in SemEval-2018 E-c
    assert METRICS["jaccard"].compute(both, none) == 0.5
    assert METRICS["micro_f1"].compute(none, none) == 0.0
    assert find_metric("f1:c", NAMES).compute(np.array([0, 1]), np.array([0, 1])) == 0.0
    same = np.ones(5)
    assert METRICS["pearson"].compute(np.arange(5.0), same) == 0.0
    assert METRICS["spearman"].compute(np.arange(5.0), same) == 0.0
    assert METRICS["r2"].compute(same, same) == 1.0
    assert METRICS["matthews"].compute(np.array([0, 1]), np.array([0, 0])) == 0.0
    assert np.isnan(METRICS["auroc"].compute(np.zeros(3, int), np.full((3, 2), 0.5)))
    assert METRICS["auroc"].interval(np.zeros(3, int), np.full((3, 2), 0.5)) is None
    with pytest.raises(ValueError, match="no examples"):
        METRICS["macro_f1"].compute(np.array([]), np.array([]))


def test_runs_without_a_defined_difference_are_not_told_apart() -> None:
    targets, a = np.zeros(30, int), np.zeros(30, int)
    b = a.copy()
    b[0] = 1  # a label that no example has is predicted once, and F1 is 0 for both
    metric = find_metric("f1:b", NAMES)
    found = metric.compare_all(targets, {"a": [a], "b": [b]})[0]
    assert (found.difference, found.p) == (0.0, 1.0)
    assert enumerate_exchanges(metric, targets[:8], a[:8], b[:8]) == 1.0
    several = metric.compare_all(targets, {"a": [a, a], "b": [b, a]})[0]
    assert several.p > 0.05
    assert np.isfinite([several.low, several.high, several.seed_variance]).all()
    one = np.full((30, 2), 0.5)  # one class alone has no area under the curve
    assert METRICS["auroc"].p_value(targets, one, one) == 1.0


def test_a_share_of_examples_with_several_labels_needs_all_of_them_right() -> None:
    targets, outputs = draw_sets(np.random.default_rng(0), 50)
    right = correct(targets, outputs)
    assert right.mean() == METRICS["subset_accuracy"].compute(targets, outputs)
    found = METRICS["subset_accuracy"].compare_all(targets, {"a": [outputs], "b": [targets]})[0]
    assert (found.a, found.test) == ("b", "McNemar")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("f1:spm", 'unknown label "spm"; did you mean "spam"'),
        ("f1:", "names a label too"),
        ("f1", "names a label too, as f1:spam does"),
        ("acuracy", 'did you mean "accuracy"'),
    ],
)
def test_a_mistaken_name_lists_the_nearest(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_metric(name, ["ham", "spam"])


def test_lower_is_better_where_values_are_errors() -> None:
    lower = {name for name, metric in METRICS.items() if not metric.higher_is_better}
    assert lower == {"log_loss", "brier", "hamming_loss", "mae", "rmse", "perplexity"}
    targets, outputs = draw_numbers(np.random.default_rng(0), 50)
    assert METRICS["mae"].compare_all(targets, {"worse": [outputs + 1], "better": [outputs]})[0].a == "better"


def test_the_macro_f1_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    truth = np.asarray([[0.35, 0.05, 0.02], [0.06, 0.3, 0.02], [0.05, 0.03, 0.12]])
    cells = np.stack(np.divmod(np.arange(9), 3))
    target = METRICS["macro_f1"].compute(
        *(np.repeat(c, np.rint(truth.ravel() * 10_000).astype(int)) for c in cells)
    )
    inside, trials = 0, 200
    for _ in range(trials):
        labels, predicted = cells[:, rng.choice(9, 300, p=truth.ravel())]
        interval = METRICS["macro_f1"].interval(labels, predicted)
        assert interval is not None
        inside += interval.low <= target <= interval.high
    assert 0.91 <= inside / trials <= 0.985
