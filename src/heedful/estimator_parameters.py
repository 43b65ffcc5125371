"""The parameters of the estimators: the options of `heedful adapt`, as scikit-learn wants them.

The constructor is written by `python scripts/write_api.py` from the dataclass of the options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sklearn.base import BaseEstimator

from heedful.options.keywords import Signature
from heedful.options.training import AdaptOptions

DECIDED = (
    "task text_column pair_column label_column group time data_dir split resume overwrite "
    "score_dev score_test train_rows balanced dev_rows fold with_dev kind answer_loss"
)
"""Options of `heedful adapt` that `fit` decides, or that have no meaning for X and y."""
PARAMETERS = Signature("TextClassifier", (AdaptOptions,), ("model", "method"), tuple(DECIDED.split()))


class AdaptParameters(BaseEstimator):  # type: ignore[misc]
    """One attribute per parameter, none of which `fit` changes."""

    # <parameters: written by scripts/write_api.py>
    def __init__(
        self,
        model: str | os.PathLike[str] = "minilm",
        method: str = "full",
        *,
        dev_share: float = 0.1,
        minutes: float = 10.0,
        kind: str | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        token_budget: int | None = None,
        accumulate: int = 1,
        optimizer: str = "adamw",
        schedule: str = "linear",
        warmup: float | None = None,
        weight_decay: float = 0.01,
        clip: float = 1.0,
        eval_every: int | None = None,
        patience: int | None = None,
        metric: str | None = None,
        select: Literal["best", "last"] = "best",
        train_eval_rows: int = 2000,
        seed: int = 0,
        device: str = "auto",
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        threads: int | None = None,
        processes: int | None = None,
        tensorboard: bool = False,
        track: Sequence[str] = (),
        note: str | None = None,
        out: str | os.PathLike[str] | None = None,
        objective: str = "auto",
        head: Literal["auto", "linear", "family"] = "auto",
        head_start: Literal["auto", "fitted", "random"] = "auto",
        pool: Literal["first", "mean", "apart", "family"] | None = None,
        max_len: int | None = None,
        long_texts: Literal["cut", "head-tail"] = "cut",
        label_smoothing: float = 0.0,
        class_weights: Literal["auto", "none", "balanced"] = "auto",
        expect_shares: str | None = None,
        threshold: float | None = None,
        dropout: float | None = None,
        attention: str | None = None,
        tokenizer: str | None = None,
        model_options: Sequence[str] | Mapping[str, Any] = (),
        method_options: Sequence[str] | Mapping[str, Any] = (),
        label_words: Sequence[str] = (),
        unlabeled: str | os.PathLike[str] | None = None,
        mlm_weight: float = 0.3,
        mlm_first: int = 0,
        mlm_rate: float = 0.15,
        split_seed: int = 0,
        strict: bool = False,
        cache_features: bool = True,
    ) -> None:
        self.model = model
        self.method = method
        self.dev_share = dev_share
        self.minutes = minutes
        self.kind = kind
        self.lr = lr
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.token_budget = token_budget
        self.accumulate = accumulate
        self.optimizer = optimizer
        self.schedule = schedule
        self.warmup = warmup
        self.weight_decay = weight_decay
        self.clip = clip
        self.eval_every = eval_every
        self.patience = patience
        self.metric = metric
        self.select = select
        self.train_eval_rows = train_eval_rows
        self.seed = seed
        self.device = device
        self.precision = precision
        self.threads = threads
        self.processes = processes
        self.tensorboard = tensorboard
        self.track = track
        self.note = note
        self.out = out
        self.objective = objective
        self.head = head
        self.head_start = head_start
        self.pool = pool
        self.max_len = max_len
        self.long_texts = long_texts
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights
        self.expect_shares = expect_shares
        self.threshold = threshold
        self.dropout = dropout
        self.attention = attention
        self.tokenizer = tokenizer
        self.model_options = model_options
        self.method_options = method_options
        self.label_words = label_words
        self.unlabeled = unlabeled
        self.mlm_weight = mlm_weight
        self.mlm_first = mlm_first
        self.mlm_rate = mlm_rate
        self.split_seed = split_seed
        self.strict = strict
        self.cache_features = cache_features

    # </parameters>
