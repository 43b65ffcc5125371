"""Metrics: what a model is selected and compared by.

A `Metric` knows how it is computed, in which direction it is better, how far it can be trusted (its interval)
and how two models are compared by it (its paired test). Selection, early stopping, studies, checks, reports
and baselines ask the metric and never compare its name. `METRICS` lists all of them; another package adds one
through an entry point:

    [project.entry-points."heedful.metrics"]
    worst_recall = "my_package:WORST_RECALL"

where `WORST_RECALL = Metric("worst_recall", compute)` and `compute(labels, predicted)` returns a number.
A name such as `f1:spam` is a metric of one label.
"""

from heedful.evaluation.metrics.base import Metric
from heedful.evaluation.metrics.functions import (
    Array,
    accuracy,
    confusion,
    correct,
    exact_match,
    macro_f1,
    perplexity,
)
from heedful.evaluation.metrics.registry import (
    ACCURACY,
    EXACT_MATCH,
    MACRO_F1,
    METRICS,
    PERPLEXITY,
    check_metric,
    find_metric,
    list_fitting,
)

__all__ = [
    "ACCURACY",
    "EXACT_MATCH",
    "MACRO_F1",
    "METRICS",
    "PERPLEXITY",
    "Array",
    "Metric",
    "accuracy",
    "check_metric",
    "confusion",
    "correct",
    "exact_match",
    "find_metric",
    "list_fitting",
    "macro_f1",
    "perplexity",
]
