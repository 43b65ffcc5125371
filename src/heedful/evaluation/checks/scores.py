"""Checks of a run's scores: are they those of a model that has learned, and can they be told apart?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy.typing as npt

from heedful.errors import shorten
from heedful.evaluation.checks.findings import percent, quote
from heedful.evaluation.metrics import Array, Metric
from heedful.report.formats import format_estimate, format_p
from heedful.runs.schemas import Check
from heedful.statistics.comparison import Comparison, compare
from heedful.statistics.power import standard_errors_needed
from heedful.statistics.proportions import wilson

NEARLY_ALL = 0.99
"""Predictions of one class that amount to a constant answer, as long as the labels are not so too."""
IMBALANCE = 0.9
"""With this much of one label, accuracy hardly says whether the others are ever found."""
LEFT = 0.25
"""A careful model may name a rare class seldom; a collapsed one has less than this of its share left."""
NEARLY_CONSTANT = 0.02
"""Predicted numbers whose standard deviation is below this share of that of the right ones."""
NORMAL_95 = 1.96
MOSTLY = 0.95
"""Predictions of one class that, with a score no better than the majority's, amount to the majority."""


def collapse(predicted: Mapping[str, int], labels: Mapping[str, int], accuracy: float | None = None) -> Check:
    """Does the model give one answer whatever it reads? Takes how often each label is predicted and occurs.

    With `accuracy` it also finds a model that is the majority baseline but for a few answers.
    """
    name = "collapse"
    n = sum(labels.values())
    if not n or not sum(predicted.values()):
        return Check(name, "skipped", "There are no predictions.")
    if sum(count > 0 for count in labels.values()) < 2:
        return Check(name, "skipped", "All labels are the same, so that one answer is right.")
    top = max(predicted, key=lambda label: predicted[label])
    share, true_share = predicted[top] / sum(predicted.values()), labels.get(top, 0) / n
    others, true_others = 1 - share, 1 - true_share
    unused = (
        "the model does not use its input; lower the learning rate, or train longer if its loss still falls"
    )
    if others == 0 or (share >= NEARLY_ALL and others < LEFT * true_others):
        every = "every prediction is" if others == 0 else f"{percent(share)} of predictions are"
        sentence = f"Collapsed: {every} {quote(top)}; of the labels {percent(true_share)} are, so {unused}."
        rare = true_share >= NEARLY_ALL
        return Check(name, "warning" if rare else "failed", sentence, share, NEARLY_ALL)
    majority = max(labels.values())
    if accuracy is not None and share >= MOSTLY and accuracy <= wilson(majority, n).high:
        sentence = (
            f"Nearly collapsed: {percent(share)} of predictions are {quote(top)} and accuracy "
            f"{accuracy:.3f} is no better than that of the most frequent label, {majority / n:.3f}; {unused}."
        )
        return Check(name, "warning", sentence, share, MOSTLY)
    sentence = f"The most frequent prediction, {quote(top)}, is {percent(share)} of all."
    return Check(name, "passed", sentence, share, NEARLY_ALL)


def metric_fits(metric: Metric, labels: Mapping[str, int]) -> Check:
    """Does the metric say whether the rare labels are found? Takes how often each label occurs."""
    name, n = "metric_fits", sum(labels.values())
    if not n or not metric.is_share:
        return Check(name, "skipped", f"The metric is {metric.title}, which is no share of right answers.")
    top, rarest = max(labels, key=lambda label: labels[label]), min(labels, key=lambda label: labels[label])
    share = labels[top] / n
    if share < IMBALANCE:
        sentence = f"The most frequent label is {percent(share)} of the rows, so {metric.title} says enough."
        return Check(name, "passed", sentence, share, IMBALANCE)
    sentence = (
        f"{percent(share)} of the rows are {quote(top)}, and always answering so has that {metric.title}; "
        f"whether the other labels are found is told by --metric macro_f1, f1:{shorten(rarest, 30)} or "
        f"average_precision."
    )
    return Check(name, "warning", sentence, share, IMBALANCE)


def beats_bag_of_words(metric: Metric, targets: Array, outputs: Array, of_bag: Array) -> Check:
    """Is the model better than counting words, by its metric? Takes what each of the two gives."""
    worse = (
        "a logistic regression that trains in seconds does better; look at the learning rate and at what was "
        "cut, or use the simpler model"
    )
    no_better = (
        "nothing shows that reading words in order has helped; train longer, use a larger model, or score "
        "more examples"
    )
    names = ("beats_bag_of_words", "a bag of words", metric.title, "examples")

    def compare_outputs(names: tuple[str, str]) -> Comparison:
        found = metric.paired_test(targets, [outputs], [of_bag], names=names)
        return replace(found, higher_is_better=metric.higher_is_better)

    return beats_baseline(compare_outputs, *names, worse, no_better)


def beats_constant_answer(right: npt.ArrayLike, right_of_constant: npt.ArrayLike, constant: str) -> Check:
    """Is the model better than one answer to every question? Takes 1 or 0 for each question, of both."""
    baseline, cure = (
        f"always answering {quote(constant)}",
        "pretrain it on text that holds the answers, or longer",
    )
    advice = f"nothing shows that the model knows any answer; {cure}"
    names = ("beats_constant_answer", baseline, "exact match", "questions")

    def compare_right(names: tuple[str, str]) -> Comparison:
        return compare(right, right_of_constant, names=names)

    return beats_baseline(compare_right, *names, advice, advice)


def beats_baseline(
    compare_both: Callable[[tuple[str, str]], Comparison],
    name: str,
    baseline: str,
    metric: str,
    unit: str,
    if_worse: str,
    if_no_better: str,
) -> Check:
    """Compare a model with a baseline on the same examples; the last two arguments are advice."""
    try:
        c = compare_both(("the model", baseline))
    except ValueError:
        return Check(name, "skipped", f"There are too few {unit} that both were scored on.")
    numbers = (
        f"{metric} {c.value_a:.3f} against {c.value_b:.3f}, difference {c.difference:+.3f} "
        f"(95 % interval {c.low:+.3f} to {c.high:+.3f}, p {format_p(c.p)}, {c.n:,} {unit})"
    )
    if c.differs and (c.difference > 0) == c.higher_is_better:
        return Check(name, "passed", f"Better than {baseline}: {numbers}.", c.difference, 0.0)
    if c.differs:
        return Check(name, "failed", f"Worse than {baseline}: {numbers}; {if_worse}.", c.difference, 0.0)
    sentence = f"No better than {baseline}: {numbers}; {if_no_better}."
    return Check(name, "warning", sentence, c.difference, 0.0)


def evaluation_size(n: int, value: float, reference: float, against: str = "the best baseline") -> Check:
    """Is an evaluation set of `n` examples large enough to tell `value` from `reference`, both shares?

    Without the answers themselves the two are taken to err independently; in truth they often err on the
    same examples, which makes a difference easier to tell.
    """
    name = "evaluation_size"
    difference = abs(value - reference)
    if n < 1:
        return Check(name, "skipped", "There are no examples.")
    if difference < 0.5 / n:
        sentence = f"The score equals that of {against}: there is no difference to tell."
        return Check(name, "skipped", sentence, 0.0)
    variance = value * (1 - reference) + reference * (1 - value) - difference**2
    detectable = standard_errors_needed() * math.sqrt(variance / n)
    numbers = f"{value:.3f} and {reference:.3f} of {against} differ by {difference:.3f}"
    if difference >= detectable:
        sentence = f"{n:,} examples are enough: {numbers}, and {detectable:.3f} or more would be found."
        return Check(name, "passed", sentence, difference, detectable)
    needed = math.ceil(variance * (standard_errors_needed() / difference) ** 2)
    sentence = (
        f"{n:,} examples are too few to tell the difference: {numbers}, but only {detectable:.3f} or more "
        f"would be found four times in five; do not call it better or worse; about {format_estimate(needed)} "
        f"examples would tell."
    )
    return Check(name, "warning", sentence, difference, detectable)


def compare_with_constant(
    metric: Metric, targets: Array, outputs: Array, constant: Array, title: str
) -> tuple[Check, Check]:
    """Is the model better than one answer to everything, and are there enough examples to tell?"""
    names = ("beats_constant_answer", "evaluation_size")
    if len(targets) < 2:
        few = "There are too few examples."
        return Check(names[0], "skipped", few), Check(names[1], "skipped", few)
    c = metric.paired_test(targets, [outputs], [constant], names=("the model", title))
    gain = metric.improvement(c.value_b, c.value_a)
    numbers = (
        f"{metric.title} {c.value_a:.3f} against {c.value_b:.3f}, difference {c.difference:+.3f} "
        f"(95 % interval {c.low:+.3f} to {c.high:+.3f}, p {format_p(c.p)}, {c.n:,} examples)"
    )
    advice = "nothing shows that the model reads its input; train longer, or at another learning rate"
    if c.differs and gain > 0:
        beats = Check(names[0], "passed", f"Better than {title}: {numbers}.", gain, 0.0)
    elif c.differs:
        beats = Check(names[0], "failed", f"Worse than {title}: {numbers}; {advice}.", gain, 0.0)
    else:
        beats = Check(names[0], "warning", f"No better than {title}: {numbers}; {advice}.", gain, 0.0)
    error = (c.high - c.low) / (2 * NORMAL_95)
    detectable = standard_errors_needed() * error
    if not math.isfinite(detectable) or not gain:
        return beats, Check(names[1], "skipped", "There is no difference to tell.", 0.0)
    found = f"{metric.title} differs by {abs(gain):.3f} from that of {title}"
    if abs(gain) >= detectable:
        sentence = f"{c.n:,} examples are enough: {found}, and {detectable:.3f} or more would be found."
        return beats, Check(names[1], "passed", sentence, abs(gain), detectable)
    needed = math.ceil(c.n * (detectable / abs(gain)) ** 2)
    sentence = (
        f"{c.n:,} examples are too few to tell the difference: {found}, but only {detectable:.3f} or more "
        f"would be found four times in five; about {format_estimate(needed)} examples would tell."
    )
    return beats, Check(names[1], "warning", sentence, abs(gain), detectable)


def constant_numbers(predicted: Array, truth: Array) -> Check:
    """Does the model give nearly the same number whatever it reads?"""
    name = "collapse"
    if len(truth) < 2 or not truth.std():
        return Check(name, "skipped", "All numbers are the same, so that one answer is right.")
    share = float(predicted.std() / truth.std())
    deviations = f"{predicted.std():.3g}, the numbers one of {truth.std():.3g}"
    spread = f"predictions have a standard deviation of {deviations}"
    if share < NEARLY_CONSTANT:
        sentence = (
            f"Collapsed: every prediction is about {predicted.mean():.3g} ({spread}), so the model does not "
            f"use its input; lower the learning rate, or train longer if its loss still falls."
        )
        return Check(name, "failed", sentence, share, NEARLY_CONSTANT)
    return Check(name, "passed", f"Predictions vary: {spread}.", share, NEARLY_CONSTANT)
