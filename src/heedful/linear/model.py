"""A linear model on tf-idf features, as a model that is saved, loaded and predicts.

It is a multinomial logistic regression for one label per text, a logistic regression per label for several,
and a ridge regression for numbers. Ordered classes have the multinomial one, which ignores their order: words
of the middle classes, such as "okay", lie on no line between those of the ends.

Its folder has linear.json (the labels and the terms) and model.safetensors (weights). Predicting needs numpy
and scipy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from safetensors.numpy import save as to_bytes

from heedful.errors import UserError, shorten
from heedful.linear.folders import FACTS, WEIGHTS
from heedful.linear.label_sets import NO_ROWS, fit_label_sets
from heedful.linear.logistic import LinearFit, fit_logistic
from heedful.linear.ridge import fit_ridge
from heedful.linear.solver import Floats
from heedful.linear.tfidf import CHUNK, Analyzer, Block, TfidfFeatures, fit_tfidf
from heedful.runs.files import write_bytes, write_json
from heedful.runs.json_files import check_regular, decode_record, read_json_object
from heedful.runs.memory import require_memory
from heedful.statistics.links import activate

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind

FORMAT = 1


@dataclass(frozen=True)
class StoredBlock:
    analyzer: Analyzer
    terms: tuple[str, ...]


@dataclass(frozen=True)
class LinearFacts:
    """linear.json, as far as the model needs it."""

    labels: tuple[str, ...]
    strength: float
    blocks: tuple[StoredBlock, ...]
    pair_blocks: tuple[StoredBlock, ...]
    kind: Literal["classify", "ordered", "labels", "number"] = "classify"
    thresholds: tuple[float, ...] | None = None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of the weights."""
        sides = (("blocks", self.blocks), ("pair_blocks", self.pair_blocks))
        widths = {f"{name}.{i}.idf": len(block.terms) for name, side in sides for i, block in enumerate(side)}
        outputs = max(1, len(self.labels))
        return {
            **{name: (width,) for name, width in widths.items()},
            "weight": (outputs, sum(widths.values())),
            "bias": (outputs,),
        }


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int, ...]], where: str
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the arrays of a safetensors file, which have these shapes and are finite numbers."""
    check_regular(path)
    require_memory(path.stat().st_size, f"{path}: reading it")
    try:
        tensors = load_file(path)
    except Exception as error:  # the library has a class of its own, and numpy raises others
        raise UserError(f"{path}: is damaged or not safetensors ({shorten(str(error))})") from None
    for name, shape in shapes.items():
        if name not in tensors or tensors[name].shape != shape or tensors[name].dtype.kind != "f":
            has = f"has shape {tensors[name].shape}" if name in tensors else "is missing"
            raise UserError(f'{path}: "{shorten(name)}" {has}; {where} calls for numbers of shape {shape}')
        if not np.isfinite(tensors[name]).all():
            raise UserError(f'{path}: "{shorten(name)}" holds numbers that are not finite')
    return {name: np.asarray(tensors[name], np.float64) for name in shapes}


@dataclass(frozen=True)
class TfidfModel:
    labels: tuple[str, ...]
    """Their names; empty for numbers."""
    features: TfidfFeatures
    linear: LinearFit
    kind: Kind = "classify"
    """The kind of answers: classify, ordered, labels or number."""
    thresholds: tuple[float, ...] | None = None
    """With several labels per text, the probability from which each is predicted; None for 0.5."""

    in_own_unit = True
    """Numbers are in their own unit, as those of a network are after its training."""

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        targets: npt.NDArray[Any],
        label_names: Sequence[str],
        *,
        kind: Kind = "classify",
        **options: Any,
    ) -> TfidfModel:
        """Fit the features and the weights.

        `targets` has the number of each row's label, one 0 or 1 per label, or numbers; the options are those
        of `fit_logistic`, `fit_label_sets` or `fit_ridge`.
        """
        n_outputs = max(1, len(label_names))
        features, matrix = fit_tfidf(texts, pairs, n_outputs)
        if kind == "labels":
            linear = fit_label_sets(matrix, targets, **options)
        elif kind == "number":
            linear = fit_ridge(matrix, targets, **options)
        else:
            linear = fit_logistic(matrix, targets, n_outputs, **options)
        return cls(tuple(label_names), features, linear, kind)

    @classmethod
    def from_shares(
        cls, targets: npt.NDArray[Any], label_names: Sequence[str], kind: Kind = "classify"
    ) -> TfidfModel:
        """Return a model without terms: the shares of the labels, or the mean number, for every text."""
        if kind == "number":
            bias = np.array([float(targets.mean())])
        elif kind == "labels":
            present = np.clip(targets.sum(0, dtype=np.int64), NO_ROWS, len(targets) - NO_ROWS)
            bias = np.log(present / (len(targets) - present))
        else:
            counts = np.maximum(np.bincount(targets, minlength=len(label_names)), NO_ROWS)
            bias = np.log(counts / counts.sum())
        shares = LinearFit(np.zeros((len(bias), 0)), bias, 1.0)
        return cls(tuple(label_names), TfidfFeatures(()), shares, kind)

    @property
    def reads_pairs(self) -> bool:
        return bool(self.features.pair_blocks)

    def logits(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Floats:
        """Return the scores of the labels `[n, labels]`, or numbers `[n, 1]`."""
        parts: list[Floats] = [np.empty((0, len(self.linear.bias)))]
        for start in range(0, len(texts), CHUNK):
            chunk = slice(start, start + CHUNK)
            matrix = self.features.transform(texts[chunk], None if pairs is None else pairs[chunk])
            parts.append(self.linear.apply(matrix))
        return np.concatenate(parts)

    def probabilities(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each label `[n, labels]`, or numbers `[n]`."""
        return self.apply_link(self.logits(texts, pairs))

    def apply_link(self, logits: Floats) -> npt.NDArray[np.float64]:
        return activate(logits, self.kind)

    def add_logits(
        self, outputs: Floats, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> npt.NDArray[np.float64]:
        """Return the probabilities or numbers after this model's scores are added to those of another one."""
        own = self.logits(texts, pairs)
        if self.kind == "number":
            return np.asarray(outputs + own[:, 0], np.float64)
        smallest = np.finfo(np.float64).tiny
        logits = np.log(np.maximum(outputs, smallest))
        if self.kind == "labels":
            logits = logits - np.log(np.maximum(1 - outputs, smallest))
        return self.apply_link(logits + own)

    def save(self, folder: Path, **facts: Any) -> None:
        """Write the model; `facts` are further entries of its JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        blocks = {"blocks": self.features.blocks, "pair_blocks": self.features.pair_blocks}
        described = {
            name: [{"analyzer": block.analyzer, "terms": block.terms} for block in side]
            for name, side in blocks.items()
        }
        tensors: dict[str, Floats] = {
            f"{name}.{i}.idf": block.idf for name, side in blocks.items() for i, block in enumerate(side)
        }
        tensors |= {"weight": self.linear.weight, "bias": self.linear.bias}
        write_bytes(folder / WEIGHTS, to_bytes(tensors))
        about: dict[str, Any] = {"format": FORMAT, "labels": self.labels, "strength": self.linear.strength}
        if self.kind != "classify":
            about["kind"] = self.kind
        if self.thresholds is not None:
            about["thresholds"] = self.thresholds
        write_json(folder / FACTS, {**about, **facts, **described})

    @classmethod
    def load(cls, folder: Path | str) -> TfidfModel:
        folder = Path(folder)
        stored = read_json_object(folder / FACTS)
        if stored.get("format") != FORMAT:
            raise UserError(f"{folder / FACTS}: was written by another version of heedful; fit it again")
        facts = decode_record(LinearFacts, stored, str(folder / FACTS))
        tensors = read_arrays(folder / WEIGHTS, facts.shapes(), str(folder / FACTS))
        sides = [
            tuple(
                Block(block.analyzer, block.terms, tensors[f"{name}.{i}.idf"]) for i, block in enumerate(side)
            )
            for name, side in (("blocks", facts.blocks), ("pair_blocks", facts.pair_blocks))
        ]
        linear = LinearFit(tensors["weight"], tensors["bias"], facts.strength)
        return cls(facts.labels, TfidfFeatures(*sides), linear, facts.kind, facts.thresholds)
