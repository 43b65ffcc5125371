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
from heedful.checkpoints.hub_reader import silence_transformers
from heedful.errors import UserError
from heedful.evaluation.kind_scorer import name_set
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
from heedful.linear.folders import WORDS
from heedful.linear.model import TfidfModel
from heedful.logs import notice
from heedful.problems import find_problem_of_task
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
    targets: np.ndarray[Any, np.dtype[Any]]
    """The right answers: numbers of labels, 0 or 1 per label, or numbers; none where the run has stored no
    predictions."""
    metrics: tuple[str, ...]
    """What the models are compared by, the run's own metric first."""
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
            "kind": predictor.kind,
            "labels": predictor.labels,
            "thresholds": predictor.thresholds,
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
    rows: list[Prediction] = []
    answers: list[Any] = []
    for row in iterate_predictions(run, ("dev",)):
        answer = read_answer(row, predictor)
        if row.text is not None and answer is not None:
            rows.append(row)
            answers.append(answer)
        if len(rows) == DEV_ROWS:
            break
    results = run.read_results().splits if run.has_results else {}
    usual = find_problem_of_task(predictor.kind).metric
    metrics = [results["dev"].metric if "dev" in results else usual]
    if predictor.kind == "number":  # correlations do not see numbers that are all too large
        metrics.append("rmse")
    targets = np.array(answers, np.float64 if predictor.kind == "number" else np.int64)
    if rows:
        texts = [str(row.text) for row in rows]
        pairs = [str(row.pair) for row in rows] if rows[0].pair is not None else None
    else:
        notice(f"{run.path}: has no predictions on dev; made-up texts are measured, and no score is compared")
        texts = [SMALL] * TOGETHER
        paired = predictor.model.config.pool == "apart" or bool(reads_pairs(run.path))
        pairs = [SMALL] * TOGETHER if paired else None
    probabilities = predictor.predict_proba(texts, pairs)
    names = tuple(dict.fromkeys(metrics))
    return DevRows(texts, pairs, targets, names, network_logits(predictor, texts, pairs), probabilities)


def read_answer(row: Prediction, predictor: ClassifierPredictor) -> Any:
    """Return the right answer of a row of dev as `DevRows.targets` has it; None if it is not known."""
    if predictor.kind == "number":
        return row.value
    if predictor.kind == "labels":
        return None if row.labels is None else [int(label in row.labels) for label in predictor.labels]
    return predictor.labels.index(row.label) if row.label in predictor.labels else None


def network_logits(
    predictor: ClassifierPredictor, texts: Sequence[str], pairs: Sequence[str] | None
) -> Floats:
    rows = np.full((len(texts), max(1, len(predictor.labels))), np.nan)
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
        "kind": predictor.kind,
        "labels": predictor.labels,
        "thresholds": predictor.thresholds,
        "long_texts": predictor.long_texts,
    }
    onnx = OnnxPredictor(open_session(graph), predictor.tokenizer, facts, predictor.model.words)
    onnx.decision = predictor.decision
    return onnx


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


def compare_on_dev(predictor: OnnxPredictor, rows: DevRows) -> list[Comparison]:
    """Compare with the run's own model on dev by the paired test of each metric."""
    if len(rows.targets) < 2:
        return []
    comparisons = []
    outputs = (predictor.predict_proba(rows.texts, rows.pairs), rows.probabilities)
    for name in rows.metrics:
        metric = find_metric(name, predictor.labels)
        reads_all = metric.reads == "probabilities"
        arms = [each if reads_all else predictor.choose_answers(each) for each in outputs]
        compared = metric.paired_test(rows.targets, arms[:1], arms[1:], names=("onnx", "torch"))
        comparisons.append(replace(compared, higher_is_better=metric.higher_is_better))
    return comparisons


def find_loss(predictor: OnnxPredictor, rows: DevRows) -> str | None:
    """Return what a model loses against the run's own, in words; None if nothing is shown."""
    probabilities = predictor.predict_proba(rows.texts, rows.pairs)
    answer = find_only_answer(predictor, probabilities)
    if answer is not None and find_only_answer(predictor, rows.probabilities) is None:
        return f'collapses: it gives "{answer}" to every row of dev'
    for name, c in zip(rows.metrics, compare_on_dev(predictor, rows), strict=False):
        if c.differs and (c.difference < 0) == c.higher_is_better:
            title = find_metric(name, predictor.labels).title
            return f"loses on dev: {title} {c.value_a:.3f} against {c.value_b:.3f}, beyond chance"
    return None


def find_only_answer(predictor: OnnxPredictor, rows: Floats) -> str | None:
    """Return the answer that is given to every text, in words; None if there are several."""
    answers = predictor.choose_answers(rows)
    if not len(answers) or (answers != answers[0]).any():
        return None
    if predictor.kind == "number":
        return f"{answers[0]:.6g}"
    if predictor.kind == "labels":
        return name_set(answers[0], predictor.labels)
    return predictor.labels[int(answers[0])]


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
    onnx.decision = predictor.decision
    ours, theirs = (
        onnx.choose_answers(each) for each in (onnx.predict_proba(rows.texts, rows.pairs), rows.probabilities)
    )
    compared = None
    for c in compare_on_dev(onnx, rows)[:1]:
        title = find_metric(rows.metrics[0], onnx.labels).title
        loses = c.differs and (c.difference < 0) == c.higher_is_better
        compared = Difference(title, c.difference, c.low, c.high, c.p, c.n, shown=c.differs, loses=loses)
    return Measures(
        precision="float32",
        largest_logit_difference=difference,
        same_label=None if onnx.kind == "number" else share_of_equal(ours, theirs),
        speeds=speeds,
        size_mb={"onnx": round((folder / GRAPH).stat().st_size / 1e6, 1), "torch": weights_size(predictor)},
        difference=compared,
    )


def share_of_equal(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    equal = (ours == theirs).reshape(len(ours), -1).all(1)
    return float(equal.mean())


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
        with silence_transformers():
            call = pipeline("text-classification", model=folder, device="cpu")
    finally:
        shutil.rmtree(folder)
    limits: dict[str, Any] = {"truncation": True, "max_length": predictor.max_len}
    return lambda texts, _: call(list(texts), batch_size=len(texts), top_k=None, **limits)
