"""The records in the files of a run directory, which `heedful.runs.directory` reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from heedful.display import render_table
from heedful.errors import shorten

Number = Annotated[int, Meta(ge=0)]
"""How many there are of something."""
Duration = Annotated[float, Meta(ge=0, le=1e12)]
LOWER_IS_BETTER = ("perplexity", "log_loss", "brier", "hamming_loss", "mae", "rmse")
SHARES = ("accuracy", "exact_match", "subset_accuracy")
"""The metrics of this package of each sort, for runs whose results do not say how to read their values: those
of older versions, and those that have none yet."""


@dataclass(frozen=True)
class OtherMetric:
    """The value of a metric that did not select the model."""

    value: float | None
    ci95: tuple[float | None, float | None] | None = None
    higher_is_better: bool = True
    title: str | None = None
    """The name in sentences and tables."""


@dataclass(frozen=True)
class SplitResult:
    """How a run did on one split. A number that is not finite (a perplexity that overflowed) is None."""

    metric: str
    """The name of the metric: accuracy, exact_match, perplexity, ..."""
    value: float | None
    n: Number
    """Number of examples (perplexity: tokens) behind `value`."""
    ci95: tuple[float | None, float | None] | None = None
    """A 95 % interval of `value`: see `heedful.statistics.intervals`."""
    loss: float | None = None
    macro_f1: float | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    """Counts: one row per true label, one column per predicted label, in the order of `Results.labels`."""
    predicted_counts: Mapping[str, int] | None = None
    baselines: Mapping[str, float] | None = None
    """The same metric for chance, the training data's most frequent label, and a bag of words; for a language
    model, for a unigram, a bigram and a trigram of the training text."""
    texts: int | None = None
    """For a language model: the number of texts."""
    mean_sentence_perplexity: float | None = None
    """Mean of the perplexities of the single texts, where `value` is that of the corpus."""
    bits_per_character: float | None = None
    bits_per_byte: float | None = None
    """These two can be compared between vocabularies; perplexities cannot."""
    baseline_bits_per_character: Mapping[str, float] | None = None
    """Bits per character of the baselines of a language model."""
    unknown_rate: float | None = None
    """Share of tokens that the vocabulary lacks; they are easy to predict and carry no information."""
    other_metrics: Mapping[str, OtherMetric] | None = None
    """Further metrics by name: those of the kind of problem, and with several labels the F1 of each
    (`f1:LABEL`) and the value with thresholds of 0.5 (`NAME_at_half`)."""
    of: int | None = None
    """Number of examples in the whole split, where only `n` of them are scored (--dev-rows)."""
    higher_is_better: bool | None = None
    """The direction of the metric. Always set: if it is not given, from the metric's name, see `SHARES`."""
    is_share: bool | None = None
    """Whether the value is the share of examples that are right. Always set, too."""
    unit: str | None = None
    """What `n` counts: examples or tokens. Always set, too."""
    title: str | None = None
    """The metric's name in sentences. Always set, too."""
    threshold: float | None = None
    """The probability from which the second of two labels is predicted, if it is not 0.5."""
    value_at_half: float | None = None
    """With such a threshold: the value at 0.5."""

    def __post_init__(self) -> None:
        defaults = {
            "higher_is_better": self.metric not in LOWER_IS_BETTER,
            "is_share": self.metric in SHARES,
            "unit": "tokens" if self.metric == "perplexity" else "examples",
            "title": self.metric.replace("_", " "),
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def sort_key(self) -> tuple[float, float]:
        """Return a key by which a better result is larger; of equal values, that with the lower loss is."""
        value = self.value or 0.0
        return (value if self.higher_is_better else -value, -(self.loss or 0.0))


@dataclass(frozen=True)
class SentenceResult:
    """The scores of a language model on one text."""

    text: str
    tokens: int
    loss: float
    """Per predicted token, in nats."""
    perplexity: float | None
    unknown: int
    """Number of tokens that the vocabulary lacks."""


@dataclass(frozen=True)
class TextSample:
    """A text that a language model has continued."""

    prompt: str
    """The first tokens of a text of dev."""
    text: str
    """What the model has written after it."""


@dataclass(frozen=True)
class Results:
    """results.json: the results of a run."""

    task: str
    model: str
    method: str
    head: str | None
    seed: int
    splits: Mapping[str, SplitResult]
    trainable_parameters: Number
    total_parameters: Number
    seconds: Duration
    examples_per_second: float | None = None
    tokens_per_second: float | None = None
    memory_gb: float | None = None
    """Peak memory of the process."""
    objective: str | None = None
    labels: tuple[str, ...] | None = None
    bag_of_words_rows: int | None = None
    """Number of training rows that the bag of words was fitted to, if it was not all of them."""
    thresholds: Mapping[str, float] | None = None
    """With several labels per text: the probability from which each is predicted, tuned on dev."""
    best_step: int | None = None
    best_epoch: float | None = None
    steps: int | None = None
    epochs: float | None = None
    """Number of epochs that were trained."""
    sentences: tuple[SentenceResult, ...] | None = None
    samples: tuple[TextSample, ...] | None = None
    """For a causal language model: a few texts that it has written."""
    formula: str | None = None
    """Number of parameters that the method trains, as a function of the model's width d."""
    note: str | None = None
    """The remark of `--note`."""
    loads_with: str | None = None
    """What best/ is a folder for: transformers, sentence-transformers, peft or heedful alone."""

    def find_contradiction(self) -> str | None:
        """Return in words which parts do not fit together; None for what a run writes."""
        for split, result in self.splits.items():
            rows = result.confusion
            if rows is None:
                continue
            if any(len(row) != len(rows) for row in rows) or any(n < 0 for row in rows for n in row):
                return f'the confusion of "{shorten(split)}" is no square of counts'
            if self.labels is not None and len(rows) != len(self.labels):
                return (
                    f'the confusion of "{shorten(split)}" has {len(rows)} rows for {len(self.labels)} labels'
                )
        return None

    def _repr_html_(self) -> str:
        columns = ("split", "rows", "metric", "value", "low", "high", "most frequent label", "bag of words")
        rows = tuple(
            (name, r.n, r.metric, r.value, *(r.ci95 or (None, None)), *simple_scores(r))
            for name, r in self.splits.items()
        )
        return render_table(columns, rows, f"{self.model} on {self.task}, {self.method}")


def simple_scores(result: SplitResult) -> tuple[float | None, ...]:
    """Return the scores of the baselines that most runs have, None where there is none."""
    baselines = result.baselines or {}
    return tuple(baselines.get(name) for name in ("majority", "bag_of_words"))


@dataclass(frozen=True)
class Check:
    """One entry of checks.json: the result of one check of a run."""

    name: str
    status: Literal["passed", "warning", "failed", "skipped"]
    message: str
    """One sentence in plain words."""
    value: float | None = None
    limit: float | None = None


FINDINGS = {
    "collapse": "one answer to nearly everything",
    "causality": "sees what comes later",
    "reload": "other answers when loaded again",
    "same_alone": "other answers beside other texts",
    "tokenizer_fits": "tokenizer does not fit",
    "labels_everywhere": "labels missing in a split",
    "shared_texts": "texts in several splits",
    "warmup": "long warm-up",
    "beats_bag_of_words": "not shown to beat a bag of words",
    "beats_constant_answer": "not shown to beat one answer to everything",
    "beats_ngrams": "not shown to beat counting tokens",
    "metric_fits": "accuracy says little here",
    "evaluation_size": "few examples to score on",
    "still_improving": "still improving when it stopped",
    "dev_falls_while_train_rises": "dev falls while train rises",
    "truncation": "texts cut off",
    "unknown_tokens": "unknown tokens",
    "shared_parts": "parts of pairs in several splits",
}
"""What a check found, in a few words. The most severe finding comes first: it invalidates the result."""


def summarize_check(check: str) -> str:
    return FINDINGS.get(check, check.replace("_", " "))


@dataclass(frozen=True)
class Checks:
    """checks.json."""

    checks: tuple[Check, ...]

    def _repr_html_(self) -> str:
        rows = tuple((c.name.replace("_", " "), c.status, c.message) for c in self.checks)
        return render_table(("check", "status", "result"), rows)

    def worst(self) -> str:
        order = ("failed", "warning", "passed", "skipped")
        return min((check.status for check in self.checks), key=order.index, default="passed")


@dataclass(frozen=True)
class Environment:
    """env.json: a run's machine, packages and reasons for settings. It has no environment variables."""

    created: str
    python: str
    platform: str
    machine: str
    cpu: str
    cores: int
    threads: int | None
    memory_gb: float | None
    host: str
    packages: Mapping[str, str]
    device: str | None = None
    precision: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The settings that the user did not give, each with the reason for its value in config.toml."""


@dataclass(frozen=True)
class Metrics:
    """A row of metrics.jsonl. It contains only what is reproducible bit for bit: no times, no speeds."""

    step: Number
    epoch: Duration
    split: str
    """train (while training, averaged since the last row), train_eval (in evaluation mode), dev or test."""
    loss: float | None = None
    value: float | None = None
    """The run's metric."""
    n: int | None = None
    lr: float | None = None
    losses: Mapping[str, float] | None = None
    """The terms of a loss that is a sum, by objective."""


@dataclass(frozen=True)
class Timing:
    """A row of timing.jsonl: times and speeds, which differ from run to run."""

    step: Number
    seconds: Duration
    """Seconds since the start, without the time between a stop and its resumption."""
    examples_per_second: float | None = None
    tokens_per_second: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Prediction:
    """A row of predictions_{split}.jsonl, or of bag_of_words_{split}.jsonl, which has no texts."""

    id: str
    label: str | None
    predicted: str
    probabilities: Mapping[str, float] = field(default_factory=dict)
    text: str | None = None
    pair: str | None = None
    loss: float | None = None
    """For a language model, which predicts no label: the summed loss of the text."""
    labels: tuple[str, ...] | None = None
    """With any number of labels per text: the right ones, where `label` is None."""
    predicted_labels: tuple[str, ...] | None = None
    value: float | None = None
    """With a number per text: the right one, where `label` is None."""
    predicted_value: float | None = None
    tokens: int | None = None
    """For a language model: the number of predicted tokens."""
