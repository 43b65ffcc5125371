"""A run examines itself: each check is a function that takes what it needs and returns one `Check`.

A finding is one sentence in parts divided by semicolons: what was found; why it matters; what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.evaluation.checks.curves import dev_falls_while_train_rises, still_improving, warmup
from heedful.evaluation.checks.findings import summarize
from heedful.evaluation.checks.language import beats_ngrams
from heedful.evaluation.checks.scores import (
    beats_bag_of_words,
    beats_constant_answer,
    collapse,
    evaluation_size,
    metric_fits,
)
from heedful.evaluation.checks.splits import labels_everywhere, shared_parts, shared_texts
from heedful.evaluation.checks.tokens import tokenizer_fits, truncation, unknown_tokens
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.evaluation.checks.outputs import causality, reload
else:
    __getattr__ = lazy_attributes(__name__, {"heedful.evaluation.checks.outputs": "causality reload"})

__all__ = [
    "beats_bag_of_words",
    "beats_constant_answer",
    "beats_ngrams",
    "causality",
    "collapse",
    "dev_falls_while_train_rises",
    "evaluation_size",
    "labels_everywhere",
    "metric_fits",
    "reload",
    "shared_parts",
    "shared_texts",
    "still_improving",
    "summarize",
    "tokenizer_fits",
    "truncation",
    "unknown_tokens",
    "warmup",
]
