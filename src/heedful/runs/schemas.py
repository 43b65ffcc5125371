"""What stands in a run directory's files. `heedful.runs.directory` reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SPLITS = ("train", "dev", "test")
LOWER_IS_BETTER, SHARES = ("perplexity",), ("accuracy", "exact_match")
"""Metrics of runs whose results do not say how to read their values: older versions wrote none but these."""


@dataclass(frozen=True)
class SplitResult:
    """How a run did on one split. A number that is not finite (a perplexity that overflowed) is None."""

    metric: str
    """The name of the metric: accuracy, exact_match, perplexity, ..."""
    value: float | None
    n: int
    """How many examples (perplexity: tokens) `value` is taken over."""
    ci95: tuple[float | None, float | None] | None = None
    """A 95 % interval of `value`: see `heedful.statistics.intervals`."""
    loss: float | None = None
    macro_f1: float | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    """Counts: a row for each true label, a column for each predicted one, ordered as `Results.labels`."""
    predicted_counts: Mapping[str, int] | None = None
    baselines: Mapping[str, float] | None = None
    """The same metric for chance, the training data's most frequent label, and a bag of words."""
    texts: int | None = None
    """Of a language model: how many texts the tokens are of."""
    mean_sentence_perplexity: float | None = None
    """The mean of the texts' own perplexities, where `value` is the corpus's."""
    bits_per_character: float | None = None
    bits_per_byte: float | None = None
    """These two can be compared between vocabularies, perplexities cannot."""
    unknown_rate: float | None = None
    """Share of the tokens that the vocabulary lacks: each is easy to predict, and says nothing."""
    of: int | None = None
    """How many the whole split has, where `n` of them were drawn (--dev-rows)."""
    higher_is_better: bool | None = None
    """The direction of the metric. Always set: if it is not given, from the metric's name, see `SHARES`."""
    is_share: bool | None = None
    """Whether the value is the share of examples that are right. Always set, too."""
    unit: str | None = None
    """What `n` counts: examples or tokens. Always set, too."""

    def __post_init__(self) -> None:
        defaults = {
            "higher_is_better": self.metric not in LOWER_IS_BETTER,
            "is_share": self.metric in SHARES,
            "unit": "tokens" if self.metric in LOWER_IS_BETTER else "examples",
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
    """How a language model predicts one given text."""

    text: str
    tokens: int
    loss: float
    """A predicted token, in nats."""
    perplexity: float | None
    unknown: int
    """Tokens that the vocabulary lacks."""


@dataclass(frozen=True)
class Results:
    """results.json: the outcome of a run."""

    task: str
    model: str
    method: str
    head: str | None
    seed: int
    splits: Mapping[str, SplitResult]
    trainable_parameters: int
    total_parameters: int
    seconds: float
    examples_per_second: float | None = None
    tokens_per_second: float | None = None
    memory_gb: float | None = None
    """The process's peak."""
    objective: str | None = None
    labels: tuple[str, ...] | None = None
    best_step: int | None = None
    best_epoch: float | None = None
    steps: int | None = None
    epochs: float | None = None
    """How far the run went."""
    sentences: tuple[SentenceResult, ...] | None = None
    formula: str | None = None
    """The number of parameters that the method trains, as a function of the model's width d."""
    note: str | None = None
    """What `--note` said, as that the model stands in for another one."""


@dataclass(frozen=True)
class Check:
    """One entry of checks.json: what a run found when it examined itself."""

    name: str
    status: Literal["passed", "warning", "failed", "skipped"]
    found: str
    """One sentence in plain words."""
    value: float | None = None
    limit: float | None = None


FINDINGS = {
    "collapse": "one answer to nearly everything",
    "causality": "sees what comes later",
    "reload": "other answers when loaded again",
    "tokenizer_fits": "tokenizer does not fit",
    "labels_everywhere": "labels missing in a split",
    "shared_texts": "texts in several splits",
    "warmup": "long warm-up",
    "beats_bag_of_words": "not shown to beat a bag of words",
    "beats_constant_answer": "not shown to beat one answer to everything",
    "evaluation_size": "few examples to score on",
    "truncation": "texts cut off",
    "shared_parts": "parts of pairs in several splits",
}
"""What a check that found something means, in short; its own name may say the opposite."""


def in_short(check: str) -> str:
    """Say what a check of this name found, where it found something."""
    return FINDINGS.get(check, check.replace("_", " "))


@dataclass(frozen=True)
class Checks:
    """checks.json."""

    checks: tuple[Check, ...]

    def worst(self) -> str:
        """Give the most serious status among the checks."""
        order = ("failed", "warning", "passed", "skipped")
        return min((check.status for check in self.checks), key=order.index, default="passed")


@dataclass(frozen=True)
class Environment:
    """env.json: where a run was made. Nothing of the process's environment variables is in it."""

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


@dataclass(frozen=True)
class Metrics:
    """A row of metrics.jsonl. Only what the same run gives again, bit for bit: no times, no rates."""

    step: int
    epoch: float
    split: str
    """train (while training, averaged since the last row), train_eval (in evaluation mode), dev or test."""
    loss: float | None = None
    value: float | None = None
    """The run's metric."""
    n: int | None = None
    lr: float | None = None
    losses: Mapping[str, float] | None = None
    """The parts of a loss that is a sum, by objective."""


@dataclass(frozen=True)
class Timing:
    """A row of timing.jsonl: what differs from run to run."""

    step: int
    seconds: float
    """Since the run's first start, pauses between a stop and its resumption not counted."""
    examples_per_second: float | None = None
    tokens_per_second: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Prediction:
    """A row of predictions_{split}.jsonl."""

    id: str
    label: str | None
    predicted: str
    probabilities: Mapping[str, float] = field(default_factory=dict)
    text: str | None = None
    pair: str | None = None
    loss: float | None = None
    """Of a language model, which predicts no label: the text's summed loss."""
    tokens: int | None = None
    """Over so many predicted tokens."""
