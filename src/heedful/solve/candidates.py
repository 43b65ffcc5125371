"""The candidates, from cheap to dear. Each is a run of `adapt`; to add one, add an entry to `CANDIDATES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

FEW_ROWS, FEW_LABELS = 3000, 20
"""Contrastive tuning is tried for at most this many training rows and labels; with more, a head is better."""
JOINT_ROWS = 20_000
"""Words and states are fitted together for at most this many training rows; with more, memory is short."""
SETUP_SECONDS = 4.0
"""Time of a run besides its training: loading, saving, baselines, checks."""


@dataclass(frozen=True)
class DataFacts:
    """What the plan needs to know about the data."""

    rows: Mapping[str, int]
    """Number of labeled rows per split."""
    labels: int
    """Number of labels; 1 for numbers."""
    name: str = "data"
    kind: str = "label"
    """The kind of problem: label, labels, number or ordered."""
    split_notes: tuple[str, ...] = ()
    """How rows are split by a column, in words, then warnings about it; empty for a split by content."""
    units: int | None = None
    """Number of groups or times in train that folds keep whole; None if these are rows."""
    timed: bool = False
    """Whether folds train on earlier rows than they hold out."""

    @property
    def one_label(self) -> bool:
        """Whether each text has one label, of classes with or without an order."""
        return self.kind not in ("labels", "number")

    @property
    def constant(self) -> str:
        """The baseline that reads no text, in words."""
        return {"labels": "the same labels", "number": "the mean"}.get(self.kind, "the most frequent label")

    @property
    def train(self) -> int:
        return self.rows["train"]

    @property
    def dev(self) -> int:
        return self.rows.get("dev", 0)

    @property
    def test(self) -> int:
        return self.rows.get("test", 0)


@dataclass(frozen=True)
class Speed:
    """What the encoder takes on this machine and this data, measured by the pilot; in seconds."""

    train_row: float = 0.0
    """One row in a training step."""
    forward_row: float = 0.0
    """One row in an evaluation."""
    epochs: int = 3
    """Number of epochs that `adapt` chooses for full fine-tuning."""
    batch_size: int = 16
    precision: str = "float32"
    lr: float | None = None
    """The learning rate that `adapt` chooses for full fine-tuning."""


@dataclass(frozen=True)
class Candidate:
    name: str
    """The name of its folder."""
    title: str
    """What it is, in a sentence."""
    settings: Mapping[str, Any]
    """Options of `adapt`."""
    seconds: Callable[[DataFacts, Speed], float]
    """The time that its training takes, without `setup` and without its epochs."""
    encoder: bool = True
    """Whether it needs the pretrained encoder."""
    evaluates: bool = True
    """Whether it is scored several times while it trains, so that dev selects the best of its models."""
    epoch_share: float | None = None
    """The time of an epoch relative to full fine-tuning, for a candidate whose epochs are chosen by the time
    that is left."""
    rate: float | None = None
    """Factor of the usual learning rate, for another attempt with the same method."""
    after: str = ""
    """Try it only if this candidate is not shown to be worse than the best."""
    unsuited: Callable[[DataFacts], str | None] = field(default=lambda facts: None)
    """Returns why it makes no sense for this data, or None."""
    refits: bool = False
    """Whether it can be fitted again on train and dev: it is convex, and dev has chosen nothing in it."""
    whole: bool = False
    """Whether it is tried only with all training rows and the usual number of epochs."""
    baseline: bool = False
    """Whether it reads no text: it is chosen only if nothing has a better score, and never alone."""
    setup: float = SETUP_SECONDS
    """Time of a run besides its training."""

    def epoch_seconds(self, facts: DataFacts, speed: Speed) -> float:
        return (self.epoch_share or 0.0) * epoch_seconds(facts, speed)

    def total_seconds(self, facts: DataFacts, speed: Speed) -> float:
        """The time of the whole run with the usual number of epochs."""
        epochs = speed.epochs * self.epoch_seconds(facts, speed)
        return self.setup + self.seconds(facts, speed) + epochs


def count_labels(facts: DataFacts, speed: Speed) -> float:
    return 3e-5 * sum(facts.rows.values())


def read_words(facts: DataFacts, speed: Speed) -> float:
    """About a twentieth of what the encoder takes for the same texts; more for many labels."""
    row = max(3e-4, 0.06 * speed.forward_row)
    return row * (facts.train + facts.dev) * math.sqrt(facts.labels)


def forward_once(facts: DataFacts, speed: Speed) -> float:
    return (facts.train + facts.dev) * speed.forward_row


def read_words_and_states(facts: DataFacts, speed: Speed) -> float:
    """The states may be in the cache; then it takes less. The fit grows with the labels."""
    fit = facts.train * (3e-4 + 1e-4 * facts.labels)
    return forward_once(facts, speed) + 2 * read_words(facts, speed) + fit


def epoch_seconds(facts: DataFacts, speed: Speed) -> float:
    """The time of an epoch with its share of the evaluations, which `plan.fit_length` limits."""
    return 1.15 * facts.train * speed.train_row + facts.dev * speed.forward_row


def tune_contrastively(facts: DataFacts, speed: Speed) -> float:
    """The number of steps depends on the labels alone; each of two evaluations reads all rows."""
    steps = min(200, 20 * (facts.labels + 1))
    return steps * speed.batch_size * speed.train_row + 2 * forward_once(facts, speed)


def need_rows_that_fit(facts: DataFacts) -> str | None:
    if facts.kind != "label":
        return "adds words to one label per text"
    if facts.train > JOINT_ROWS:
        return f"is for at most {JOINT_ROWS:,} training rows; there are {facts.train:,}"
    return None


def need_few_rows(facts: DataFacts) -> str | None:
    if facts.kind != "label":
        return "compares texts by one label each"
    if facts.train > FEW_ROWS:
        return f"is for few rows; there are {facts.train:,} training rows"
    return f"is for few labels; there are {facts.labels}" if facts.labels > FEW_LABELS else None


CONVEX_HEAD: dict[str, Any] = {"method": "head", "method_options": ("solver=convex",)}
WORDS_HEAD: dict[str, Any] = {"method": "head", "method_options": ("solver=convex", "words=true")}
FULL: dict[str, Any] = {"method": "full"}
TOP_LAYERS: dict[str, Any] = {"method": "top-layers", "method_options": ("layers=2",)}
CONTRASTIVE = "contrastive tuning of the encoder, then logistic regression"
CANDIDATES = (
    Candidate(
        "majority",
        "always the most frequent label",
        {"model": "majority"},
        count_labels,
        encoder=False,
        evaluates=False,
        baseline=True,
        setup=0.5,
    ),
    Candidate(
        "tfidf",
        "tf-idf with logistic regression",
        {"model": "tfidf"},
        read_words,
        encoder=False,
        evaluates=False,
        setup=1.0,
        refits=True,
    ),
    Candidate(
        "head",
        "embeddings with logistic regression",
        CONVEX_HEAD,
        forward_once,
        evaluates=False,
        refits=True,
    ),
    Candidate(
        "head-words",
        "words and embeddings with logistic regression",
        WORDS_HEAD,
        read_words_and_states,
        evaluates=False,
        refits=True,
        unsuited=need_rows_that_fit,
    ),
    Candidate(
        "contrastive", CONTRASTIVE, {"method": "contrastive"}, tune_contrastively, unsuited=need_few_rows
    ),
    Candidate("top-layers", "fine-tuning of the top two layers", TOP_LAYERS, forward_once, epoch_share=0.4),
    Candidate("full", "full fine-tuning", FULL, forward_once, epoch_share=1.0),
    Candidate(
        "full-fast",
        "full fine-tuning, twice the rate",
        FULL,
        forward_once,
        epoch_share=1.0,
        rate=2,
        after="full",
    ),
    Candidate(
        "full-slow",
        "full fine-tuning, half the rate",
        FULL,
        forward_once,
        epoch_share=1.0,
        rate=0.5,
        after="full",
    ),
)


TITLES: Mapping[str, Mapping[str, str]] = {
    "labels": {"majority": "the same labels for every text"},
    "number": {
        "majority": "always the mean",
        "tfidf": "tf-idf with ridge regression",
        "head": "embeddings with ridge regression",
    },
    "ordered": {"head": "embeddings with ordered logistic regression"},
}
"""What candidates are for other kinds of problems than single labels."""


def suit_kind(candidates: Sequence[Candidate], kind: str) -> list[Candidate]:
    """Return the candidates with their titles for a kind of problem."""
    titles = TITLES.get(kind, {})
    return [replace(c, title=titles.get(c.name, c.title)) for c in candidates]


def name_whole(name: str) -> str:
    """Return the name of a candidate's second attempt, after one that was shortened."""
    return f"{name}-whole"


def repeat_shortened(candidates: Sequence[Candidate], shortened: Collection[str]) -> list[Candidate]:
    """Return the candidates; after each that an earlier command shortened, the same one as a whole."""
    repeated = []
    for candidate in candidates:
        repeated.append(candidate)
        if candidate.name in shortened:
            title = f"{candidate.title}, not shortened"
            repeated.append(replace(candidate, name=name_whole(candidate.name), title=title, whole=True))
    return repeated
