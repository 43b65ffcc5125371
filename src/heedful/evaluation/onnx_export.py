"""Exporting a run to ONNX, after it was measured that the graph computes what the run's model computes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful import __version__, checkpoints
from heedful.errors import UserError
from heedful.evaluation.metrics import find_metric
from heedful.inference.export import EXPORTED_OPTIONS
from heedful.inference.loading import iterate_predictions, load_run, read_run_facts, reads_pairs
from heedful.inference.network_predictors import ClassifierPredictor
from heedful.inference.onnx import quantize
from heedful.inference.onnx.card import write_card
from heedful.inference.onnx.graph import require_classifier, require_onnx, write_graph
from heedful.inference.onnx.measures import Difference, Measures, Speeds
from heedful.inference.onnx.predictor import (
    FORMAT,
    GRAPH,
    ONNX_FACTS,
    OnnxPredictor,
    encode_batches,
    open_session,
)
from heedful.inference.onnx.speed import SINGLE, TOGETHER, Labels, measure_latency, measure_memory
from heedful.inference.predictor import Floats
from heedful.linear.model import WORDS, TfidfModel
from heedful.logs import notice
from heedful.runs.directory import Run
from heedful.runs.files import new_folder, to_json_value, write_json
from heedful.runs.schemas import Prediction
from heedful.statistics.comparison import Comparison

DEV_ROWS = 2000
"""The largest number of dev rows that the models are compared on."""
SENSITIVITY_ROWS = 64
MOST_FLOAT32 = 0.5
"""The largest share of the parts of a model that stay float32; with more, int8 buys little."""
SMALL = " ".join(["a text of some words to measure with"] * 2)


@dataclass(frozen=True)
class DevRows:
    """Labeled texts, and what the run's own model gives to them."""

    texts: list[str]
    pairs: list[str] | None
    targets: np.ndarray[Any, np.dtype[np.int64]]
    """The number of the right label; none where the run has stored no predictions."""
    metric: str
    logits: Floats
    probabilities: Floats


def export_onnx(path: str | Path, folder: Path, *, int8: bool = False, accept_loss: bool = False) -> Measures:
    """Write the best model of a run as an ONNX folder, and return what was measured of it.

    An int8 model that loses on dev beyond chance keeps its most sensitive parts in float32, and is refused
    if that does not help, unless `accept_loss`.
    """
    require_onnx()
    run = Run.open(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UserError(f"{folder}: is not an empty folder; choose another")
    predictor = require_classifier(load_run(path, device="cpu"), str(path))
    rows = read_dev_rows(run, predictor)
    with new_folder(folder) as new:
        graph = new / GRAPH
        write_facts(run, predictor, new)
        difference = write_graph(predictor.model, predictor.tokenizer.pad_id or 0, graph)
        parts: tuple[str, ...] = ()
        if int8:
            whole = graph.rename(new / "float32.onnx")
            parts, reduced = quantize_carefully(whole, graph, predictor, rows, accept_loss=accept_loss)
            whole.unlink()
            facts = {"precision": "int8", "float32_parts": parts, "reduce_range": reduced}
            add_facts(new, **facts)
            difference = float(np.abs(graph_logits(new / GRAPH, predictor, rows) - rows.logits).max())
        measures = measure(run, predictor, new, rows, difference)
        measures = replace(measures, precision="int8" if int8 else "float32", float32_parts=parts)
        add_facts(new, measured=to_json_value(measures))
        write_card(new, run, measures)
    return measures


def write_facts(run: Run, predictor: ClassifierPredictor, folder: Path) -> None:
    """Write the tokenizer, the words of the head and the description of the model."""
    _, config = read_run_facts(run.path)
    predictor.tokenizer.save(folder)
    words: TfidfModel | None = predictor.model.words
    if words is not None:
        words.save(folder / WORDS)
    if predictor.decision is not None:
        predictor.decision.save(folder)
    options = {name: config[name] for name in EXPORTED_OPTIONS if config.get(name) is not None}
    write_json(
        folder / ONNX_FACTS,
        {
            "format": FORMAT,
            "heedful_version": __version__,
            "precision": "float32",
            "labels": predictor.labels,
            "max_len": predictor.max_len,
            "long_texts": predictor.long_texts,
            "pad_id": predictor.tokenizer.pad_id or 0,
            "run": {**options, "model": str(config["model"]), "pairs": reads_pairs(run.path)},
        },
    )


def add_facts(folder: Path, **facts: Any) -> None:
    from heedful.runs.json_files import read_json

    write_json(folder / ONNX_FACTS, {**read_json(folder / ONNX_FACTS), **facts})


def read_dev_rows(run: Run, predictor: ClassifierPredictor) -> DevRows:
    """Return the dev rows that the run has stored, with the outputs of its model now."""
    numbers = {label: number for number, label in enumerate(predictor.labels)}
    rows: list[Prediction] = []
    for row in iterate_predictions(run, ("dev",)):
        if row.text is not None and row.label in numbers:
            rows.append(row)
        if len(rows) == DEV_ROWS:
            break
    results = run.read_results().splits if run.has_results else {}
    metric = results["dev"].metric if "dev" in results else "accuracy"
    targets = np.array([numbers[str(row.label)] for row in rows], np.int64)
    if rows:
        texts = [str(row.text) for row in rows]
        pairs = [str(row.pair) for row in rows] if rows[0].pair is not None else None
    else:
        notice(f"{run.path}: has no predictions on dev; made-up texts are measured, and no score is compared")
        texts, pairs = [SMALL] * TOGETHER, None
    probabilities = predictor.predict_proba(texts, pairs)
    return DevRows(texts, pairs, targets, metric, network_logits(predictor, texts, pairs), probabilities)


def network_logits(
    predictor: ClassifierPredictor, texts: Sequence[str], pairs: Sequence[str] | None
) -> Floats:
    rows = np.full((len(texts), len(predictor.labels)), np.nan)
    typed = predictor.model.config.n_types > 1
    limits: dict[str, Any] = {"max_len": predictor.max_len, "long_texts": predictor.long_texts}
    with torch.inference_mode():
        for batch in encode_batches(predictor.tokenizer, texts, pairs, **limits):
            tensors = {"ids": torch.from_numpy(batch.ids), "mask": torch.from_numpy(batch.mask)}
            if typed:
                tensors["types"] = torch.from_numpy(batch.types)
            rows[batch.rows] = predictor.logits(tensors).double().numpy()
    return rows


def load_graph(graph: Path, predictor: ClassifierPredictor) -> OnnxPredictor:
    facts = {
        "max_len": predictor.max_len,
        "labels": predictor.labels,
        "long_texts": predictor.long_texts,
    }
    return OnnxPredictor(open_session(graph), predictor.tokenizer, facts, predictor.model.words)


def graph_logits(graph: Path, predictor: ClassifierPredictor, rows: DevRows) -> Floats:
    return load_graph(graph, predictor).chunk_logits(rows.texts, rows.pairs)


def quantize_carefully(
    source: Path, target: Path, predictor: ClassifierPredictor, rows: DevRows, *, accept_loss: bool
) -> tuple[tuple[str, ...], bool]:
    """Write an int8 graph that loses nothing beyond chance on dev; return its float32 parts and bits.

    Seven bits for weights, or eight: whichever gives logits that are nearer to those of float32.
    """
    if not len(rows.targets) and not accept_loss:
        raise UserError(
            "--int8: this run has no predictions on dev, on which a loss would show; "
            "--accept-loss writes the model unchecked"
        )
    errors = {}
    for reduced in (False, True):
        quantize.quantize_graph(source, target, reduce_range=reduced)
        errors[reduced] = float(np.abs(graph_logits(target, predictor, rows) - rows.logits).mean())
    reduced = errors[True] < errors[False]
    if not reduced:
        quantize.quantize_graph(source, target, reduce_range=False)
    reason = find_loss(load_graph(target, predictor), rows)
    if reason is None or accept_loss:
        return (), reduced
    notice(f"int8 {reason}; looking for the parts that have to stay float32")
    ordered = order_by_sensitivity(source, target, predictor, rows, reduced)
    for count in range(1, int(len(ordered) * MOST_FLOAT32) + 1):
        kept = tuple(ordered[:count])
        quantize.quantize_graph(source, target, float32_parts=kept, reduce_range=reduced)
        reason = find_loss(load_graph(target, predictor), rows)
        if reason is None:
            return kept, reduced
    raise UserError(
        f"--int8: the model {reason}, even with half of its parts in float32; "
        "export it without --int8, or accept the loss with --int8 --accept-loss"
    )


def order_by_sensitivity(
    source: Path, target: Path, predictor: ClassifierPredictor, rows: DevRows, reduced: bool
) -> list[str]:
    """Return the parts of a model, first that which changes the logits most when it alone is int8."""
    some = replace(
        rows,
        texts=rows.texts[:SENSITIVITY_ROWS],
        pairs=None if rows.pairs is None else rows.pairs[:SENSITIVITY_ROWS],
        logits=rows.logits[:SENSITIVITY_ROWS],
    )
    parts, errors = list(quantize.list_parts(source)), {}
    for part in parts:
        others = [other for other in parts if other != part]
        quantize.quantize_graph(source, target, float32_parts=others, reduce_range=reduced)
        errors[part] = float(np.abs(graph_logits(target, predictor, some) - some.logits).mean())
    return sorted(parts, key=lambda part: -errors[part])


def compare_on_dev(predictor: OnnxPredictor, rows: DevRows) -> Comparison | None:
    """Compare with the run's own model on dev by the paired test of the run's metric."""
    if len(rows.targets) < 2:
        return None
    metric = find_metric(rows.metric, predictor.labels)
    outputs = (predictor.predict_proba(rows.texts, rows.pairs), rows.probabilities)
    arms = [metric.pick_outputs(each) for each in outputs]
    names = ("onnx", "torch")
    compared = metric.paired_test(rows.targets, arms[:1], arms[1:], names=names)
    return replace(compared, higher_is_better=metric.higher_is_better)


def find_loss(predictor: OnnxPredictor, rows: DevRows) -> str | None:
    """Return what a model loses against the run's own, in words; None if nothing is shown."""
    predicted = predictor.predict_proba(rows.texts, rows.pairs).argmax(1)
    if len(set(predicted.tolist())) == 1 < len(set(rows.probabilities.argmax(1).tolist())):
        return f'collapses: it gives "{predictor.labels[predicted[0]]}" to every row of dev'
    c = compare_on_dev(predictor, rows)
    if c is None or not c.differs or (c.difference > 0) == c.higher_is_better:
        return None
    title = find_metric(rows.metric, predictor.labels).title
    return f"loses on dev: {title} {c.value_a:.3f} against {c.value_b:.3f}, beyond chance"


def measure(
    run: Run, predictor: ClassifierPredictor, folder: Path, rows: DevRows, difference: float
) -> Measures:
    """Measure the model in a folder beside the run's own, and beside transformers' pipeline if it is here."""
    onnx = OnnxPredictor.load(folder)
    models: dict[str, Labels] = {"onnx": onnx.predict_proba, "torch": predictor.predict_proba}
    pipeline = make_pipeline(run, predictor) if rows.pairs is None else None
    if pipeline is not None:
        models["pipeline"] = pipeline
    single = measure_latency(models, rows.texts, rows.pairs, SINGLE)
    together = measure_latency(models, rows.texts, rows.pairs, TOGETHER)
    some = rows.texts[:TOGETHER], None if rows.pairs is None else rows.pairs[:TOGETHER]
    memory = {"onnx": measure_memory(folder, *some), "torch": measure_memory(run.path, *some)}
    speeds = {name: Speeds(single[name], together[name], memory.get(name)) for name in models}
    labels = onnx.predict_proba(rows.texts, rows.pairs).argmax(1)
    c = compare_on_dev(onnx, rows)
    compared = None
    if c is not None:
        title = find_metric(rows.metric, onnx.labels).title
        loses = c.differs and (c.difference < 0) == c.higher_is_better
        compared = Difference(title, c.difference, c.low, c.high, c.p, c.n, shown=c.differs, loses=loses)
    return Measures(
        precision="float32",
        largest_logit_difference=difference,
        same_label=float(np.mean(labels == rows.probabilities.argmax(1))),
        speeds=speeds,
        size_mb={"onnx": round((folder / GRAPH).stat().st_size / 1e6, 1), "torch": weights_size(predictor)},
        difference=compared,
    )


def weights_size(predictor: ClassifierPredictor) -> float:
    """Return the size of a network's weights in MB, those of an adapter's base model included."""
    return round(sum(p.numel() * p.element_size() for p in predictor.model.parameters()) / 1e6, 1)


def make_pipeline(run: Run, predictor: ClassifierPredictor) -> Labels | None:
    """Return transformers' pipeline of the same model; None where it does not have it."""
    import importlib.util
    import tempfile

    merged = predictor.model.method is None
    if importlib.util.find_spec("transformers") is None or not merged or predictor.model.words is not None:
        return None
    if checkpoints.find_form(predictor.model).loads_with != "transformers":
        return None
    from transformers import pipeline

    folder = tempfile.mkdtemp()
    try:
        checkpoints.export(predictor.model, folder, tokenizer=run.best)
        call = pipeline("text-classification", model=folder, device="cpu")
    finally:
        shutil.rmtree(folder)
    limits: dict[str, Any] = {"truncation": True, "max_length": predictor.max_len}
    return lambda texts, _: call(list(texts), batch_size=len(texts), top_k=None, **limits)
