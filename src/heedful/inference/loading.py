"""Loading the model of a finished run or an exported folder, ready to label text.

A linear model is loaded without importing torch, and so are an ONNX model and averages of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.inference.decisions import read_decision
from heedful.inference.ensemble import ENSEMBLE_FACTS, holds_ensemble, read_thresholds, read_weights
from heedful.inference.onnx.predictor import ONNX_FACTS, OnnxPredictor, holds_onnx
from heedful.inference.predictor import EnsemblePredictor, LinearPredictor, Predictor
from heedful.linear.folders import FACTS, holds_linear
from heedful.logs import notice
from heedful.options.configuration import check_stored_options
from heedful.options.training import AdaptOptions
from heedful.paths import expand_path
from heedful.runs.directory import BEST, CONFIG, Run, follow_choice, name_before_refit
from heedful.runs.json_files import check_facts, iterate_rows, read_json_object
from heedful.runs.old_names import update_names
from heedful.runs.schemas import Prediction
from heedful.text.model_folders import best_of_run


@dataclass(frozen=True)
class RunFacts:
    """What a model is loaded with, beside the options of its run."""

    task: str
    labels: list[str] = field(default_factory=list)
    pairs: bool | None = None


ADAPTER = "heedful.json"
EXPORTED = "run"
"""The key under which an exported adapter describes its run."""


def load_with_held_out_rows(path: str | Path, *, device: str = "auto") -> Predictor:
    """Load a run for a promise about its errors: for a model that was fitted again on dev, the one before."""
    run = follow_choice(path)
    before = name_before_refit(run)
    if before != run and (before / BEST).is_dir():
        notice(f"{run.name} has seen dev; the answers are those of {before.name}, as it was before")
        return load_run(before, device=device)
    return load_run(path, device=device)


def load_run(path: str | Path, *, device: str = "auto") -> Predictor:
    """Load the best model of a finished run, or a folder that `heedful export` wrote, ready to `predict`.

    An adapter needs its base model. `device` is auto, cpu, cuda, cuda:1 or mps. The model computes in
    float32, whatever it was trained in, because that works on every machine.
    """
    if is_foreign(path):
        from heedful.inference.classifier_folders import load_classifier

        return load_classifier(str(path), device)
    folder, config = read_run_facts(path)
    predictor: Predictor
    if holds_linear(folder):
        from heedful.linear.model import TfidfModel

        predictor = LinearPredictor(TfidfModel.load(folder))
    elif holds_onnx(folder):
        predictor = OnnxPredictor.load(folder)
    elif holds_ensemble(folder):
        weights = read_weights(folder)
        members = [load_run(member, device=device) for member in weights]
        predictor = EnsemblePredictor(members, list(weights.values()), read_thresholds(folder))
    else:
        from heedful.inference.networks import make_predictor

        predictor = make_predictor(folder, config, device)
    if config.get("kind") == "ordered" and predictor.kind == "classify":  # read like labels without an order
        predictor.kind = "ordered"
    predictor.config, predictor.long_texts = config, config.get("long_texts", "cut")
    predictor.run, predictor.decision = expand_path(path), read_decision(folder)
    return predictor


def is_foreign(path: str | Path) -> bool:
    """Whether a path names a classifier of transformers, with no run and no facts of an export beside it."""
    folder = follow_choice(expand_path(path))
    if (folder / CONFIG).is_file() or find_facts(folder).is_file():
        return False
    from heedful.inference.classifier_folders import names_classifier

    return names_classifier(path)


def is_export(path: str | Path) -> bool:
    """Whether a path names a model without a run: what `heedful export` wrote, or a classifier."""
    folder = follow_choice(expand_path(path))
    return not (folder / CONFIG).is_file() and (find_facts(folder).is_file() or is_foreign(path))


def needs_torch(path: str | Path) -> bool:
    """Whether loading a folder imports torch: an ONNX model and a linear model alone are read without."""
    folder = follow_choice(expand_path(path))
    return not any(holds(place) for place in (folder, folder / BEST) for holds in (holds_onnx, holds_linear))


def read_run_facts(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the weights of a run or an exported adapter, and its options with its `labels`."""
    folder = expand_path(path)
    if is_foreign(path):
        return folder, {"task": ""}
    file = find_facts(folder)
    if file.is_file() and not (folder / CONFIG).is_file():
        facts = update_names(read_json_object(file))
        if not isinstance(facts.get(EXPORTED), dict):
            raise UserError(f"{folder}: does not say what it was trained for; heedful export writes that")
        return folder, check_run_facts(facts[EXPORTED], f"{file}: {EXPORTED}")
    run = Run.open(path)
    best_of_run(run.path)  # raises where there is no best model, and says why
    config = run.read_config().get("adapt")
    if not isinstance(config, dict):
        raise UserError(f"{run.path}: is not a run of adapt")
    labels = run.read_results().labels if run.has_results else None
    facts = {**config, "labels": list(labels or ())}
    return run.best, check_run_facts(facts, f"{run.path / CONFIG} [adapt]")


def check_run_facts(facts: dict[str, Any], where: str) -> dict[str, Any]:
    """Return what is known of a run, if it has what a model is loaded with, each of its type."""
    check_stored_options(AdaptOptions, facts, where)
    check_facts(RunFacts, facts, where)
    return facts


def find_facts(folder: Path) -> Path:
    """Return the file that describes the model in a folder, which an export adds its run to."""
    if holds_linear(folder):
        return folder / FACTS
    if holds_onnx(folder):
        return folder / ONNX_FACTS
    return folder / (ENSEMBLE_FACTS if holds_ensemble(folder) else ADAPTER)


def iterate_predictions(run: Run, splits: Sequence[str] = ("dev", "test")) -> Iterator[Prediction]:
    """Yield the run's stored predictions of the first of these splits that has any, in constant memory."""
    for split in splits:
        path = run.path / f"predictions_{split}.jsonl"
        if path.is_file():
            yield from iterate_rows(Prediction, path)
            return


def reads_pairs(path: str | Path) -> bool | None:
    """Whether a run's texts come in pairs; None where it has stored no predictions."""
    first = next(iterate_predictions(Run.open(path)), None)
    return None if first is None else first.pair is not None
