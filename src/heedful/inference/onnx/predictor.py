"""Labels texts with an exported folder. Needs onnxruntime, tokenizers and numpy, and never imports torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from heedful.errors import UserError, shorten
from heedful.inference.predictor import Floats, Predictor
from heedful.linear.folders import WORDS, holds_linear
from heedful.options.types import LongTexts
from heedful.runs.environment import usable_cores
from heedful.runs.json_files import check_facts, check_regular, read_json_object
from heedful.statistics.links import activate
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from heedful.linear.model import TfidfModel

GRAPH, ONNX_FACTS = "model.onnx", "onnx.json"
FORMAT = 1
IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
BATCH_TOKENS, BATCH_TEXTS = 1024, 64
"""Limits of a batch: larger ones do not fit in the cache of a processor, and are slower."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OnnxFacts:
    """onnx.json, as far as predicting needs it."""

    max_len: Annotated[int, Meta(ge=1, le=10**9)]
    labels: list[str]
    long_texts: LongTexts
    kind: Literal["classify", "ordered", "labels", "number"] = "classify"
    thresholds: list[float] | None = None


@dataclass(frozen=True)
class Batch:
    """Padded texts of similar length, as arrays [b, t], and where they are among all texts."""

    rows: Ints
    ids: Ints
    mask: Ints
    types: Ints

    def inputs(self) -> dict[str, Ints]:
        return {IDS: self.ids, MASK: self.mask, TYPES: self.types}


def holds_onnx(folder: Path) -> bool:
    return (folder / ONNX_FACTS).is_file()


def open_session(graph: Path, threads: int | None = None) -> InferenceSession:
    """Load a graph; `threads` is by default $OMP_NUM_THREADS, or the number of cores."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError(f'{graph.parent}: is an ONNX model; pip install "heedful[onnx]" runs it') from None
    check_regular(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or default_threads()
    options.log_severity_level = 3  # warnings are about how a graph could be optimized further
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class per cause, with no public base
        raise UserError(f"{graph}: ONNX Runtime cannot load it: {shorten(str(error), 200)}") from None


def default_threads() -> int:
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return int(stated) if stated.isdigit() and int(stated) else usable_cores()


def read_onnx_facts(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = read_json_object(folder / ONNX_FACTS)
    if facts.get("format") != FORMAT:
        raise UserError(f"{folder / ONNX_FACTS}: was written by another version of heedful; export it again")
    facts = check_facts(OnnxFacts, facts, str(folder / ONNX_FACTS))
    count, kind, thresholds = len(facts["labels"]), facts.get("kind", "classify"), facts.get("thresholds")
    if bool(count) == (kind == "number") or (thresholds is not None and len(thresholds) != count):
        raise UserError(f"{folder / ONNX_FACTS}: labels and thresholds do not fit the kind {kind}")
    return facts


class OnnxPredictor(Predictor):
    """A classifier in a folder that `heedful export --onnx` wrote."""

    tokenizer: Tokenizer
    max_len: int

    def __init__(
        self,
        session: InferenceSession,
        tokenizer: Tokenizer,
        facts: Mapping[str, Any],
        words: TfidfModel | None = None,
    ) -> None:
        super().__init__(session, tokenizer, int(facts["max_len"]), facts["labels"])
        self.added, self.long_texts = words, facts["long_texts"]
        self.kind, self.thresholds = facts.get("kind", "classify"), facts.get("thresholds")
        self.inputs = {one.name for one in session.get_inputs()}

    @classmethod
    def load(cls, folder: Path, *, threads: int | None = None) -> OnnxPredictor:
        words = None
        if holds_linear(folder / WORDS):
            from heedful.linear.model import TfidfModel

            words = TfidfModel.load(folder / WORDS)
        session = open_session(folder / GRAPH, threads)
        return cls(session, load_tokenizer(folder), read_onnx_facts(folder), words)

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        rows = activate(self.chunk_logits(texts, pairs), self.kind)
        return rows if self.added is None else self.added.add_logits(rows, texts, pairs)

    def chunk_logits(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        """Return the logits of the graph, without those of words."""
        rows = np.full((len(texts), max(1, len(self.labels))), np.nan)
        for batch in encode_batches(
            self.tokenizer, texts, pairs, max_len=self.max_len, long_texts=self.long_texts
        ):
            rows[batch.rows] = self.compute_logits(batch)
        return rows

    def compute_logits(self, batch: Batch) -> npt.NDArray[np.float32]:
        fed = {name: array for name, array in batch.inputs().items() if name in self.inputs}
        try:
            logits: npt.NDArray[np.float32] = self.model.run(None, fed)[0]
        except Exception as error:  # onnxruntime has a class per cause, with no public base
            raise UserError(f"ONNX Runtime cannot compute the graph: {shorten(str(error), 200)}") from None
        outputs = max(1, len(self.labels))
        if logits.shape != (len(batch.rows), outputs):
            raise UserError(
                f"the graph gives scores of shape {logits.shape} for {len(batch.rows)} texts of "
                f"{outputs} labels"
            )
        return logits


def encode_batches(
    tokenizer: Tokenizer, texts: Sequence[str], pairs: Sequence[str] | None, **limits: Any
) -> Iterator[Batch]:
    """Yield all texts in batches of similar length, the longest first; `limits` as in `encode_batch`."""
    encoded = tokenizer.encode_batch(list(texts), None if pairs is None else list(pairs), **limits)
    for text, one in zip(texts, encoded, strict=True):
        if not one.ids:
            raise UserError(f'the text "{shorten(text)}" has no tokens: there is nothing to label')
    lengths = np.array([len(one.ids) for one in encoded], np.int64)
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        rows = order[start : start + max(1, min(BATCH_TEXTS, BATCH_TOKENS // longest))]
        start += len(rows)
        yield pad_rows([encoded[i].ids for i in rows], [encoded[i].types for i in rows], rows, tokenizer)


def pad_rows(ids: Sequence[list[int]], types: Sequence[list[int]], rows: Ints, tokenizer: Tokenizer) -> Batch:
    shape = (len(ids), max(map(len, ids)))
    padded = np.full(shape, tokenizer.pad_id or 0, np.int64)
    mask, kinds = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, (one, its_types) in enumerate(zip(ids, types, strict=True)):
        padded[row, : len(one)], mask[row, : len(one)], kinds[row, : len(one)] = one, 1, its_types
    return Batch(rows, padded, mask, kinds)
