"""The rows that a model was trained on, and which of them are the nearest to a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.data import Split, Task, cache
from heedful.data.features import load_or_compute
from heedful.data.splits import Example, sample
from heedful.errors import UserError
from heedful.inference.loading import read_run_facts
from heedful.inference.predictor import EnsemblePredictor, Floats, LinearPredictor, Predictor
from heedful.linear.tfidf import TfidfFeatures, fit_tfidf
from heedful.options.configuration import check_table
from heedful.options.training import AdaptOptions
from heedful.studio.model_store import find_version

if TYPE_CHECKING:
    from heedful.inference.network_predictors import NetworkPredictor
    from heedful.studio.worker import Report

MOST_READ, MOST_WEIGHED = 2_000, 20_000
"""The most training rows that a network reads, or whose words are weighed; of more a sample is compared."""
SEED = 0

Encode = Callable[[Sequence[str], Sequence[str] | None], Any]


@dataclass(frozen=True)
class Neighbor:
    """A row of training data, and how near it is to a text."""

    text: str
    pair: str | None
    answer: str
    similarity: float
    """The cosine of the two texts' vectors."""
    same: bool
    """Whether it is the same text."""


@dataclass(frozen=True)
class TrainingRows:
    """The training rows of a model with a vector of length 1 each [n, d], which may be sparse."""

    rows: Split
    answers: tuple[str, ...]
    vectors: Any
    encode: Encode
    how: str
    """What the vectors are, in words."""

    def nearest(self, text: str, pair: str | None, count: int) -> list[Neighbor]:
        """Return the rows whose vectors have the largest cosine with that of a text."""
        vector = self.encode([text], None if pair is None else [pair])
        product = self.vectors @ vector.T
        cosines = np.asarray(product.todense() if hasattr(product, "todense") else product).ravel()
        best = np.argsort(-cosines, kind="stable")[:count]
        found = [(self.rows[int(i)], self.answers[int(i)], float(cosines[i])) for i in best]
        return [
            Neighbor(row.text, row.pair, answer, cosine, (row.text, row.pair) == (text, pair))
            for row, answer, cosine in found
        ]


def load_task_of(folder: Path) -> Task:
    """Load the task that a model was trained on, from the options of its run."""
    _, config = read_run_facts(folder)
    if not config.get("task"):
        raise UserError("no run of heedful made this model, so that its training data is not known")
    from heedful.training.run_task import load_run_task

    names = {field.name for field in fields(AdaptOptions)}
    table = {name: value for name, value in config.items() if name in names}
    try:
        return load_run_task(AdaptOptions(**check_table(AdaptOptions, table, str(folder))))
    except (UserError, OSError) as error:
        raise UserError(f"the training data is not here any more: {error}") from None


def index_rows(folder: Path, predictor: Predictor, report: Report) -> TrainingRows:
    """Read the training rows of a model and compute their vectors.

    A linear model's are its own tf-idf features, a network's the pooled states of its body, and those of
    another model tf-idf features of the rows.
    """
    report(-1, "reading the training data")
    task = load_task_of(folder)
    if isinstance(predictor, EnsemblePredictor):
        linear = [one for one in predictor.model if isinstance(one, LinearPredictor)]
        predictor = linear[0] if linear else predictor.model[int(np.argmax(predictor.weights))]
    network = reads_tokens(predictor)
    split = take_rows(task.splits["train"], MOST_READ if network else MOST_WEIGHED)
    answers = tuple(write_row_answer(task, row) for row in split)
    if network:
        return index_states(as_network(predictor), folder, task, split, answers, report)
    report(-1, "weighing words")
    texts, pairs = list(split.texts), None if split.pairs is None else list(split.pairs)
    if isinstance(predictor, LinearPredictor):
        features, how = predictor.model.features, "the words of the linear model"
        vectors = features.transform(texts, pairs)
    else:
        features, vectors = fit_tfidf(texts, pairs, max(1, len(predictor.labels)))
        how = "words (tf-idf)"
    return TrainingRows(split, answers, scale_rows(vectors), encode_words(features), how)


def encode_words(features: TfidfFeatures) -> Encode:
    return lambda texts, pairs: scale_rows(features.transform(texts, pairs))


def reads_tokens(predictor: Predictor) -> bool:
    return predictor.tokenizer is not None and hasattr(predictor.model, "body")


def as_network(predictor: Any) -> NetworkPredictor:
    network: NetworkPredictor = predictor
    return network


def take_rows(train: Split, most: int) -> Split:
    return train if len(train) <= most else sample(train, most, SEED)


def write_row_answer(task: Task, row: Example) -> str:
    """Return what a row was labeled with, as a text."""
    if row.answer is not None:
        return row.answer
    if row.target is None:
        return ""
    if task.kind == "labels":
        return "|".join(name for name, one in zip(task.label_names, row.target, strict=True) if one)
    return f"{float(row.target):g}" if task.kind == "number" else task.label_names[int(row.target)]


def scale_rows(vectors: Any) -> Any:
    """Return sparse rows divided by their lengths."""
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(1)).ravel())
    return vectors.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()


def index_states(
    network: NetworkPredictor, folder: Path, task: Task, rows: Split, answers: tuple[str, ...], report: Report
) -> TrainingRows:
    """Compute the pooled states of the rows; they are kept in the cache.

    States of one network have a large part in common, which is subtracted.
    """
    texts, pairs = list(rows.texts), None if rows.pairs is None else list(rows.pairs)
    width = pool_texts(network, texts[:1], None if pairs is None else pairs[:1]).shape[1]

    def fill(states: Any) -> None:
        states[:] = pool_texts(network, texts, pairs, report)

    key = cache.digest("training rows", str(folder), find_version(folder), task.fingerprint, MOST_READ)
    states = np.asarray(load_or_compute(key, (len(rows), width), "float32", fill, in_memory=True).states)
    center = states.mean(0)

    def encode(texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        return unit_rows(pool_texts(network, texts, pairs) - center)

    return TrainingRows(rows, answers, unit_rows(states - center), encode, "pooled states of the network")


def unit_rows(states: Any) -> Floats:
    return np.asarray(states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-12), np.float64)


def pool_texts(
    network: NetworkPredictor, texts: Sequence[str], pairs: Sequence[str] | None, report: Report | None = None
) -> Any:
    """Return one state of the network's body per text [n, d]."""
    import torch

    from heedful.data.batches import collate
    from heedful.models import EncoderDecoder
    from heedful.objectives.base import iterate_by_length

    limits: dict[str, Any] = {"max_len": network.max_len, "long_texts": network.long_texts}
    second = None if pairs is None else list(pairs)
    encoded = network.tokenizer.encode_batch(list(texts), second, **limits)
    body = network.model.eval().body
    typed, pad_id = body.config.n_types > 1, network.tokenizer.pad_id or 0
    states: list[Any] = [None] * len(texts)
    done = 0
    with torch.inference_mode():
        for batch in iterate_by_length(np.array([len(one.ids) for one in encoded])):
            ids = [np.array(encoded[i].ids) for i in batch]
            types = [np.array(encoded[i].types) for i in batch] if typed else None
            tensors = collate(ids, pad_id=pad_id, types=types).tensors()
            if isinstance(body, EncoderDecoder):
                mask = tensors["mask"].float()
                read = body.encode(tensors["ids"], tensors["mask"])
                pooled = torch.einsum("btd,bt->bd", read, mask / mask.sum(1, keepdim=True))
            else:
                pooled = body.pooled(tensors["ids"], tensors["mask"], tensors.get("types"))
            for i, state in zip(batch, pooled.float().numpy(), strict=True):
                states[i] = state
            done += len(batch)
            if report is not None:
                report(done / len(texts), f"reading {len(texts):,} training texts")
    return np.stack(states)
