"""Loading the model of a finished run, an exported folder or the Hub, ready to label or to write text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful import checkpoints, methods
from heedful.errors import UserError
from heedful.inference.devices import find_device
from heedful.inference.predictor import AnswerPredictor, ClassifierPredictor, LabelWordPredictor, Predictor
from heedful.inference.writer import Writer
from heedful.models import PRESETS, Classifier, LanguageModel, Model
from heedful.objectives import parse_words
from heedful.objectives.registry import OBJECTIVES
from heedful.problems import find_problem
from heedful.runs.directory import CONFIG, Run
from heedful.runs.json_files import decode_record, parse_row, read_json
from heedful.runs.old_names import update_names
from heedful.runs.schemas import Prediction
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer
from heedful.text.model_folders import best_of_run

ADAPTER = "heedful.json"
EXPORTED = "run"
"""The key under which an exported adapter describes its run."""
LANGUAGE_HEADS = {"decoder": "causal", "encoder": "masked", "encoder_decoder": "text2text"}
"""The head with which each kind of model predicts tokens."""


def load_run(path: str | Path, *, device: str = "auto") -> Predictor:
    """Load the best model of a finished run, or an adapter that `heedful export` wrote, ready to `predict`.

    An adapter needs its base model. `device` is auto, cpu, cuda, cuda:1 or mps. The model computes in
    float32, whatever it was trained in, because that works on every machine.
    """
    folder, config = read_run_facts(path)
    predictor = make_predictor(folder, config, device)
    predictor.config, predictor.long_texts = config, config.get("long_texts", "cut")
    predictor.run = Path(path).expanduser()
    return predictor


def make_predictor(folder: Path, config: Mapping[str, Any], device: str) -> Predictor:
    model = load_best_model(folder, config).to(find_device(device))
    tokenizer, max_len = load_tokenizer(folder), int(config["max_len"])
    if isinstance(model, Classifier):
        return ClassifierPredictor(model, tokenizer, max_len, model.labels)
    if generates_text(config):
        return AnswerPredictor(model, tokenizer, max_len)
    labels = list(config["labels"])
    words = parse_words(config.get("label_words", ()), labels)
    return LabelWordPredictor(model, tokenizer, max_len, labels, words)


def read_run_facts(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the weights of a run or an exported adapter, and its options with its `labels`."""
    folder = Path(path).expanduser()
    if (folder / ADAPTER).is_file() and not (folder / CONFIG).is_file():
        facts = update_names(read_json(folder / ADAPTER))
        if not isinstance(facts.get(EXPORTED), dict):
            raise UserError(f"{folder}: does not say what it was trained for; heedful export writes that")
        return folder, facts[EXPORTED]
    run = Run.open(path)
    best_of_run(run.path)  # raises where there is no best model, and says why
    config = run.read_config().get("adapt")
    if not isinstance(config, dict):
        raise UserError(f"{run.path}: is not a run of adapt")
    labels = run.read_results().labels if run.has_results else None
    return run.best, {**config, "labels": list(labels or ())}


def load_best_model(folder: Path, config: Mapping[str, Any]) -> Classifier | LanguageModel:
    """Load the model in best/: a whole model, or a base model with its adapter."""
    if (folder / ADAPTER).is_file():
        facts = read_json(folder / ADAPTER)
        model = checkpoints.load(
            str(config["model"]),
            head=str(facts["head"]),
            n_classes=len(facts["labels"] or ()) or None,
            attention=config.get("attention"),
            head_form=facts["head_form"] or "family",
            **({"pool": facts["pool"]} if facts.get("pool", "first") != "first" else {}),
        )
        methods.read_adapter(folder, model)
    else:
        objective = OBJECTIVES.find(config["objective"])
        model = checkpoints.load(folder, head=objective.find_head(folder))
    assert isinstance(model, Classifier | LanguageModel)
    return model.eval()


def load_language_model(run: Run) -> LanguageModel:
    model = checkpoints.load(run.path, head=LANGUAGE_HEADS[checkpoints.kind_of(run.path)])
    assert isinstance(model, LanguageModel)
    return model


def load_best_of(run: Run) -> Classifier | LanguageModel:
    config = run.read_config()
    if config["command"] == "pretrain":
        return load_language_model(run)
    return load_best_model(run.best, config["adapt"])


def load_writer(name: str | Path, *, device: str = "auto") -> Writer:
    """Load a language model with its tokenizer, ready to write text: a run's best model, or one by name."""
    folder = Path(name).expanduser()
    if (folder / CONFIG).is_file():
        config = Run.open(folder).read_config()
        if config.get("command") == "adapt" and not generates_text(config["adapt"]):
            raise UserError(f"{folder}: is a run that labels texts and writes none; heedful predict labels")
        if config.get("command") == "adapt":
            predictor = load_run(folder, device=device)
            assert isinstance(predictor.model, LanguageModel)
            return Writer(predictor.model, predictor.tokenizer)
    elif str(name) in PRESETS and not folder.is_dir():
        raise UserError(f"{name}: starts from nothing and has nothing to say; heedful pretrain it first")
    model = checkpoints.load(name, head=generating_head(name))
    assert isinstance(model, LanguageModel)
    if model.trained_length is None:
        model.trained_length = trained_length(folder)
    if any(part.startswith("head.") for part in model.report.new):
        raise UserError(f"{name}: its weights have no output layer for text")
    return Writer(model.to(find_device(device)), load_tokenizer(name))


def trained_length(folder: Path) -> int | None:
    """Return the length of the rows that a run trained a new model on; older runs have it nowhere else."""
    if not (folder / CONFIG).is_file():
        return None
    options = Run.open(folder).read_config().get("pretrain", {})
    block, preset = options.get("block"), options.get("model") in PRESETS
    return block if preset and isinstance(block, int) else None


def generates_text(config: Mapping[str, Any]) -> bool:
    """Whether the model of a run of `adapt` writes free text, from the run's options."""
    return find_problem(OBJECTIVES.find(config["objective"]).problem).generates_text


def generating_head(model: str | Path) -> str:
    """Return the head with which this kind of model generates text."""
    kind = checkpoints.kind_of(model)
    if kind == "encoder":
        raise UserError(
            f"{model}: is an encoder, which reads text and writes none; "
            "a decoder or an encoder-decoder is needed"
        )
    return LANGUAGE_HEADS[kind]


def shipped_tokenizer(model: Model, name: str, chosen: str | None, used: Tokenizer) -> Tokenizer | None:
    """Return the tokenizer that a pretrained model is known to have been trained with, or None.

    It is known where another tokenizer was `chosen` instead of it, and where heedful trained the model in a
    run. In any other folder it is only the tokenizer that somebody put there. A model that starts from random
    weights has none.
    """
    folder: Path | None = model.report.folder
    if folder is None:
        return None
    if chosen is not None:
        return load_tokenizer(name)
    return used if (folder.parent / CONFIG).is_file() else None


def iterate_predictions(run: Run) -> Iterator[Prediction]:
    """Yield the run's stored predictions of dev, or else of test, in constant memory."""
    for split in ("dev", "test"):
        path = run.path / f"predictions_{split}.jsonl"
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    where = f"{path} line {number}"
                    yield decode_record(Prediction, parse_row(line, where), where)
            return


def reads_pairs(path: str | Path) -> bool | None:
    """Whether a run's texts come in pairs; None where it has stored no predictions."""
    first = next(iterate_predictions(Run.open(path)), None)
    return None if first is None else first.pair is not None
