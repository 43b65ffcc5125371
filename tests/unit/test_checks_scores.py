"""The checks of scores, curves and warm-up, and the last line of a run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation import checks
from heedful.evaluation.checks.findings import SEVERITY, percent
from heedful.evaluation.metrics import ACCURACY, METRICS, PERPLEXITY
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.runs.schemas import Check, Metrics
from heedful.training.self_check import suggest_longer


def test_every_prediction_of_one_class_is_a_collapse() -> None:
    check = checks.collapse({"true": 3270, "false": 0}, {"true": 2033, "false": 1237})
    assert check.status == "failed"
    assert checks.summarize([check]) == 'collapsed: every prediction is "true"'


@pytest.mark.parametrize(
    ("predicted", "labels", "accuracy", "status"),
    [
        ({"a": 995, "b": 5}, {"a": 500, "b": 500}, 0.503, "failed"),
        ({"a": 980, "b": 20}, {"a": 620, "b": 380}, 0.625, "warning"),
        ({"a": 980, "b": 20}, {"a": 620, "b": 380}, None, "passed"),
        ({"a": 600, "b": 400}, {"a": 620, "b": 380}, 0.62, "passed"),  # bad, but it uses its input
        ({"a": 991, "b": 9}, {"a": 980, "b": 20}, 0.989, "passed"),  # careful with a rare class
        ({"a": 960, "b": 40}, {"a": 955, "b": 45}, 0.99, "passed"),  # as uneven as the labels, and right
        ({"a": 1000}, {"a": 995, "b": 5}, 0.995, "warning"),  # the labels hardly ask for more
        ({"a": 1000}, {"a": 1000, "b": 0}, 1.0, "skipped"),
        ({}, {"a": 1}, None, "skipped"),
        ({"c": 10}, {"a": 5, "b": 5}, 0.0, "failed"),  # onto a class that never occurs
    ],
)
def test_collapse_knows_a_constant_answer_from_an_uneven_task(
    predicted: dict[str, int], labels: dict[str, int], accuracy: float | None, status: str
) -> None:
    check = checks.collapse(predicted, labels, accuracy)
    assert check.status == status, check.message


def answers(n: int, accuracy: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(n) < accuracy


def beats(model: np.ndarray, bag: np.ndarray) -> Check:
    return checks.beats_bag_of_words(ACCURACY, np.ones(len(model), int), model.astype(int), bag.astype(int))


def test_better_equal_and_worse_than_a_bag_of_words_are_told_apart() -> None:
    bag = answers(1000, 0.8, 0)
    assert beats(answers(1000, 0.9, 1), bag).status == "passed"
    equal = beats(answers(1000, 0.8, 2), bag)
    assert equal.status == "warning"
    assert checks.summarize([equal]).startswith("no better than a bag of words")
    worse = beats(answers(1000, 0.6, 3), bag)
    assert worse.status == "failed"
    assert worse.message.startswith("Worse than a bag of words")
    assert worse.value is not None
    assert worse.value < 0


def test_a_lower_loss_is_better_than_a_bag_of_words() -> None:
    labels = np.arange(400) % 2
    sure, unsure = (np.where(np.eye(2)[labels] == 1, p, 1 - p) for p in (0.9, 0.6))
    metric = METRICS["log_loss"]
    assert checks.beats_bag_of_words(metric, labels, sure, unsure).status == "passed"
    worse = checks.beats_bag_of_words(metric, labels, unsure, sure)
    assert worse.status == "failed"
    assert "log loss 0.511 against 0.105" in worse.message


def test_accuracy_of_uneven_labels_names_better_metrics() -> None:
    check = checks.metric_fits(ACCURACY, {"ham": 95, "spam": 5})
    assert check.status == "warning"
    assert '95 % of the rows are "ham"' in check.message
    assert "--metric macro_f1, f1:spam or average_precision" in check.message
    assert checks.metric_fits(ACCURACY, {"ham": 80, "spam": 20}).status == "passed"
    assert checks.metric_fits(METRICS["macro_f1"], {"ham": 95, "spam": 5}).status == "skipped"


def test_a_few_examples_more_are_not_called_better() -> None:
    bag = np.array([1] * 50 + [0] * 50)
    model = bag.copy()
    model[50:54] = 1
    assert beats(model, bag).status == "warning"
    model[50:60] = 1
    assert beats(model, bag).status == "passed"
    assert beats(np.array([1]), np.array([0])).status == "skipped"


def test_a_small_evaluation_set_says_how_many_examples_would_tell() -> None:
    small = checks.evaluation_size(500, 0.62, 0.60, "the majority")
    assert small.status == "warning"
    assert "about 9,300 examples" in small.message
    enough = checks.evaluation_size(9400, 0.62, 0.60)
    assert enough.status == "passed"
    assert checks.evaluation_size(500, 0.9, 0.6).status == "passed"
    assert checks.evaluation_size(500, 0.6, 0.6).status == "skipped"
    assert checks.evaluation_size(500, 0.60, 0.62).status == "warning"  # worse is a difference too


def test_the_number_of_examples_needed_finds_the_difference_four_times_in_five() -> None:
    rng = np.random.default_rng(0)
    n = 9300
    right = (
        rng.random((400, 2, n // 4)) < np.array([0.64, 0.60])[:, None]
    )  # twice the difference, a fourth of n
    each = right[:, 0].astype(float) - right[:, 1]
    z = each.mean(1) / (each.std(1) / np.sqrt(n // 4))
    assert 0.74 < np.mean(z > 1.96) < 0.86


@pytest.mark.parametrize(
    ("warm", "total", "status"),
    [(0, 100, "passed"), (6, 100, "passed"), (51, 100, "warning"), (100, 100, "failed"), (500, 100, "failed"),
     (5, 0, "skipped")],
)  # fmt: skip
def test_a_warm_up_that_eats_the_run_is_reported(warm: int, total: int, status: str) -> None:
    assert checks.warmup(warm, total).status == status


def curve(
    train: list[float], dev: list[float], n: int | None = 1000, split: str = "train_eval"
) -> list[Metrics]:
    rows = []
    for epoch, (on_train, on_dev) in enumerate(zip(train, dev, strict=True), 1):
        rows.append(Metrics(10 * epoch, epoch, split, value=on_train, n=n))
        rows.append(Metrics(10 * epoch, epoch, "dev", value=on_dev, n=n))
    return rows


def test_overfitting_is_a_fall_of_dev_beyond_chance_while_train_rises() -> None:
    def status(*arguments: object, **options: object) -> str:
        return checks.dev_falls_while_train_rises(curve(*arguments, **options)).status  # type: ignore[arg-type]

    assert status([0.8, 0.9, 0.99], [0.85, 0.88, 0.84]) == "warning"
    assert status([0.8, 0.9, 0.99], [0.85, 0.88, 0.84], split="train") == "warning"
    assert status([0.8, 0.9, 0.99], [0.85, 0.88, 0.875]) == "passed"  # within a standard error
    assert status([0.8, 0.9, 0.99], [0.85, 0.88, 0.84], n=50) == "passed"
    assert status([0.8, 0.9, 0.99], [0.85, 0.88, 0.84], n=None) == "warning"
    assert status([0.8, 0.9, 0.5], [0.85, 0.88, 0.5]) == "passed"  # train came apart as well
    assert status([0.8, 0.9], [1.0, 0.9]) == "warning"  # a perfect score has a standard error too
    assert status([0.8], [0.8]) == "skipped"


def test_of_perplexity_lower_is_better() -> None:
    rows = curve([60, 40, 20], [80, 70, 90])
    assert checks.dev_falls_while_train_rises(rows, PERPLEXITY).status == "warning"
    assert (
        checks.dev_falls_while_train_rises(curve([60, 40, 20], [80, 70, 60]), PERPLEXITY).status == "passed"
    )


def test_values_that_are_missing_or_not_finite_are_left_out() -> None:
    rows = [Metrics(5, 0.5, "dev", value=None), Metrics(6, 0.6, "dev", value=float("nan"))]
    assert checks.dev_falls_while_train_rises(rows).status == "skipped"
    assert checks.dev_falls_while_train_rises(rows + curve([0.8, 0.9], [0.9, 0.8])).status == "warning"


def dev_curve(values: list[float], losses: list[float] | None = None, n: int = 1000) -> list[Metrics]:
    return [
        Metrics(10 * epoch, epoch, "dev", loss, value, n)
        for epoch, (value, loss) in enumerate(zip(values, losses or [None] * len(values), strict=True), 1)  # type: ignore[list-item]
    ]


@pytest.mark.parametrize(
    ("values", "losses", "status"),
    [
        ([0.40, 0.50, 0.554], None, "warning"),
        ([0.40, 0.50, 0.554], [1.5, 1.3, 1.2], "warning"),
        ([0.40, 0.50, 0.554], [1.5, 1.1, 1.2], "passed"),  # its loss already rises
        ([0.40, 0.56, 0.554], None, "passed"),
        ([0.90, 0.90, 0.905], None, "passed"),  # within a standard error
        (
            [0.2, 0.4, 0.6, 0.8, 0.91, 0.91, 0.911, 0.912, 0.913, 0.914],
            None,
            "passed",
        ),  # since half of the run
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], None, "warning"),
        ([0.5], None, "skipped"),
    ],
)
def test_a_run_that_stopped_while_it_improved_is_found(
    values: list[float], losses: list[float] | None, status: str
) -> None:
    check = checks.still_improving(dev_curve(values, losses), ACCURACY, "--epochs 6")
    assert check.status == status
    assert check.message.endswith("try --epochs 6.") == (status == "warning")


def test_a_perplexity_that_still_falls_is_found() -> None:
    assert checks.still_improving(dev_curve([60, 40, 20]), PERPLEXITY, "--steps 20").status == "warning"
    assert checks.still_improving(dev_curve([60, 20.2, 20.1, 20]), PERPLEXITY, "").status == "passed"
    # Few examples tell less.
    assert checks.still_improving(dev_curve([0.5, 0.55], n=50), ACCURACY, "").status == "passed"


@pytest.mark.parametrize(
    ("options", "longer"),
    [
        (AdaptOptions(epochs=3), "--epochs 6"),
        (AdaptOptions(steps=50), "--steps 100"),
        (PretrainOptions(steps=700, budget_min=1.5), "--budget-min 3"),
    ],
)
def test_the_advice_names_the_option_that_decided_the_length(options: LoopOptions, longer: str) -> None:
    assert suggest_longer(options, 3.0) == longer


def test_the_last_line_tells_the_gravest_finding_and_names_the_others() -> None:
    found = [
        Check("truncation", "warning", "50 % of rows are cut; it matters; do something."),
        Check("beats_bag_of_words", "failed", "Worse than a bag of words: much; why; what."),
        Check("collapse", "failed", 'Collapsed: every prediction is "a; b"; of the labels 2 % are.'),
        Check("warmup", "passed", "There is no warm-up."),
    ]
    assert checks.summarize(found) == (
        'collapsed: every prediction is "a; b" (also: not shown to beat a bag of words, texts cut off)'
    )
    assert checks.summarize(found[:1]) == "50 % of rows are cut"
    assert checks.summarize(found[3:]) == "1 check passed"
    assert checks.summarize([]) == "nothing was checked"


def test_a_warning_never_hides_a_failure() -> None:
    found = [Check("collapse", "warning", "Nearly."), Check("shared_parts", "failed", "Shared.")]
    assert checks.summarize(found) == "shared (also: one answer to nearly everything)"


@given(st.text(), st.text(min_size=1))
def test_a_label_from_data_never_breaks_the_line(label: str, other: str) -> None:
    check = checks.collapse({label: 10}, {label: 5, label + other: 5})
    assert check.status == "failed"
    assert check.message.isprintable()
    assert checks.summarize([check]).startswith("collapsed: every prediction is")


@given(st.floats(0, 1))
def test_only_a_whole_is_written_as_100_percent_and_only_nothing_as_0(share: float) -> None:
    assert (percent(share) == "100 %") == (share == 1)
    assert (percent(share) == "0 %") == (share == 0)


def test_every_check_has_a_severity() -> None:
    of_folders = {"same_alone"}
    assert set(SEVERITY) == set(checks.__all__) - {"summarize"} | of_folders


def test_checks_of_scores_and_data_never_import_torch() -> None:
    code = "import sys, heedful.evaluation.checks; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
