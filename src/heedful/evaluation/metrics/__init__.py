"""Metrics: what a model is selected and compared by.

A `Metric` knows how it is computed, in which direction it is better, how far it can be trusted (its interval)
and how two models are compared by it (its paired test). Selection, early stopping, studies, checks, reports
and baselines ask the metric and never compare its name. `METRICS` lists all of them; another package adds one
through an entry point:

    [project.entry-points."heedful.metrics"]
    balanced_accuracy = "my_package:BALANCED_ACCURACY"

where `BALANCED_ACCURACY = Metric("balanced_accuracy", compute)` and `compute(labels, predicted)`
returns a number.
"""

from heedful.evaluation.metrics.base import Metric
from heedful.evaluation.metrics.functions import (
    Array,
    accuracy,
    confusion,
    correct,
    exact_match,
    label_macro_f1,
    label_macro_f1_interval,
    macro_f1,
    perplexity,
    share_interval,
    share_test,
    text_perplexity,
    text_perplexity_interval,
)
from heedful.plugins import Registry

__all__ = [
    "ACCURACY",
    "EXACT_MATCH",
    "MACRO_F1",
    "METRICS",
    "PERPLEXITY",
    "Array",
    "Metric",
    "accuracy",
    "confusion",
    "correct",
    "exact_match",
    "macro_f1",
    "perplexity",
]

ACCURACY = Metric("accuracy", accuracy, interval=share_interval, paired_test=share_test, is_share=True)
EXACT_MATCH = Metric(
    "exact_match", exact_match, interval=share_interval, paired_test=share_test, is_share=True
)
MACRO_F1 = Metric("macro_f1", label_macro_f1, interval=label_macro_f1_interval, title="macro F1")
PERPLEXITY = Metric(
    "perplexity",
    text_perplexity,
    higher_is_better=False,
    interval=text_perplexity_interval,
    reads="losses",
    unit="tokens",
)
METRICS: Registry[Metric] = Registry(
    "metric",
    {name: f"{__name__}:{name.upper()}" for name in ("accuracy", "exact_match", "macro_f1", "perplexity")},
)
