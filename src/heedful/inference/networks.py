"""Loading the network of a run, a folder or the Hub, ready to label or to write text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful import checkpoints, methods
from heedful.checkpoints.files import read_model_json
from heedful.checkpoints.schemas import LoadableAdapter
from heedful.errors import UserError
from heedful.inference.devices import find_device
from heedful.inference.loading import ADAPTER, load_run
from heedful.inference.network_predictors import (
    AnswerPredictor,
    ClassifierPredictor,
    LabelWordPredictor,
    NetworkPredictor,
)
from heedful.linear.folders import WORDS, holds_linear
from heedful.models import PRESETS, Classifier, LanguageModel, Model
from heedful.objectives.registry import OBJECTIVES
from heedful.paths import expand_path
from heedful.problems import find_problem
from heedful.runs.directory import CONFIG, Run
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer

if TYPE_CHECKING:
    from heedful.inference.writer import Writer

LANGUAGE_HEADS = {"decoder": "causal", "encoder": "masked", "encoder_decoder": "text2text"}
"""The head with which each kind of model predicts tokens."""


def make_predictor(folder: Path, config: Mapping[str, Any], device: str) -> NetworkPredictor:
    model = load_best_model(folder, config).to(find_device(device))
    if not isinstance(config.get("max_len"), int):
        raise UserError(f"{folder.parent}: its configuration has no max_len, which a network needs")
    tokenizer, max_len = load_tokenizer(folder), int(config["max_len"])
    if isinstance(model, Classifier):
        return ClassifierPredictor(model, tokenizer, max_len, model.labels)
    if generates_text(config):
        return AnswerPredictor(model, tokenizer, max_len)
    from heedful.objectives.text2text import parse_words

    labels = list(config["labels"])
    words = parse_words(config.get("label_words", ()), labels)
    return LabelWordPredictor(model, tokenizer, max_len, labels, words)


def load_best_model(folder: Path, config: Mapping[str, Any]) -> Classifier | LanguageModel:
    """Load the model in best/: a whole model, or a base model with its adapter."""
    if (folder / ADAPTER).is_file():
        facts = read_model_json(folder / ADAPTER, LoadableAdapter)
        model = checkpoints.load_to_use(
            str(config["model"]),
            head=facts["head"],
            n_classes=len(facts["labels"] or ()) or None,
            attention=config.get("attention"),
            head_form=facts["head_form"] or "family",
            **({"pool": facts["pool"]} if (facts.get("pool") or "first") != "first" else {}),
        )
        methods.read_adapter(folder, model)
    else:
        objective = OBJECTIVES.find(str(config.get("objective")))
        model = checkpoints.load_to_use(folder, objective.find_head(folder))
    if not isinstance(model, Classifier | LanguageModel):
        raise UserError(f"{folder}: holds a model without a head, which gives no answers")
    if holds_linear(folder / WORDS) and isinstance(model, Classifier):
        from heedful.linear.model import TfidfModel

        model.words = TfidfModel.load(folder / WORDS)
    return model.eval()


def load_language_model(run: Run) -> LanguageModel:
    model = checkpoints.load_to_use(run.path, LANGUAGE_HEADS[checkpoints.kind_of(run.path)])
    assert isinstance(model, LanguageModel)
    return model


def load_best_of(run: Run) -> Classifier | LanguageModel:
    config = run.read_config()
    if config.get("command") == "pretrain":
        return load_language_model(run)
    if "adapt" not in config:
        raise UserError(f"{run.path / CONFIG}: is of no run of adapt or pretrain")
    return load_best_model(run.best, config["adapt"])


def load_writer(name: str | Path, *, device: str = "auto") -> Writer:
    """Load a language model with its tokenizer, ready to write text: a run's best model, or one by name."""
    from heedful.inference.writer import Writer

    folder = expand_path(name)
    if (folder / CONFIG).is_file():
        config = Run.open(folder).read_config()
        if config.get("command") == "adapt" and not generates_text(config["adapt"]):
            raise UserError(f"{folder}: is a run that labels texts and writes none; heedful predict labels")
        if config.get("command") == "adapt":
            predictor = load_run(folder, device=device)
            assert isinstance(predictor, NetworkPredictor)
            assert isinstance(predictor.model, LanguageModel)
            return Writer(predictor.model, predictor.tokenizer)
    elif str(name) in PRESETS and not folder.is_dir():
        raise UserError(f"{name}: starts from nothing and has nothing to say; heedful pretrain it first")
    model = checkpoints.load_to_use(name, generating_head(name))
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
    return find_problem(OBJECTIVES.find(str(config.get("objective"))).problem).generates_text


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
