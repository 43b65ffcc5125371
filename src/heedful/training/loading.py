"""A finished run, ready to use: its best model and tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful import checkpoints, methods
from heedful.data.batches import collate
from heedful.errors import UserError, shorten
from heedful.evaluation.generation import generate
from heedful.evaluation.writing import Writer
from heedful.models import PRESETS, Classifier, LanguageModel, Model
from heedful.objectives import LabelWords, parse_words
from heedful.objectives.base import in_length_order
from heedful.objectives.questions import Form
from heedful.runs.directory import CONFIG, Run
from heedful.runs.files import read_json
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer
from heedful.text.model_folders import best_of_run
from heedful.training.devices import find_device

ADAPTER = "heedful.json"
EXPORTED = "run"
"""What an exported adapter tells of its run."""
CHUNK = 1024
"""Texts that are encoded and sorted by length together."""


@dataclass(frozen=True)
class Answer:
    """What a model says about one text."""

    label: str
    confidence: float
    probabilities: dict[str, float]


@dataclass
class Adapted:
    """A model adapted to a task. `predict` takes texts, or pairs of texts; of questions it gives answers."""

    model: Classifier | LanguageModel
    tokenizer: Tokenizer
    max_len: int
    labels: list[str]
    words: LabelWords | None = None
    """Of a text-to-text model: what it writes for each label."""
    form: Form | None = None
    """Of a model that answers in free text: how it is asked. Such a model has no labels."""

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> list[Answer]:
        """The most probable label of each text, or the answer to each question, with its probability."""
        if isinstance(texts, str):
            raise UserError("predict takes a list of texts, not a single one")
        if pairs is not None and len(pairs) != len(texts):
            raise UserError(f"there are {len(texts)} texts but {len(pairs)} second texts")
        found: list[Answer] = []
        for start in range(0, len(texts), CHUNK):
            second = None if pairs is None else pairs[start : start + CHUNK]
            found += self.chunk(texts[start : start + CHUNK], second)
        return found

    def chunk(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Iterator[Answer]:
        """Some texts, in length order, given back in theirs."""
        if self.form is not None:
            questions = self.form.questions(texts, pairs).ids
            for text, sure in zip(*self.form.ask(self.model, questions, generate), strict=True):
                yield Answer(text, float(sure), {text: float(sure)})
            return
        device = next(self.model.parameters()).device
        encoded = self.tokenizer.encode_batch(
            list(texts), None if pairs is None else list(pairs), max_len=self.max_len
        )
        for text, one in zip(texts, encoded, strict=True):
            if not one.ids:
                raise UserError(f'the text "{shorten(text)}" has no tokens: there is nothing to label')
        rows = np.empty((len(texts), len(self.labels)))
        typed = self.model.config.n_types > 1
        with torch.inference_mode():
            for batch in in_length_order(np.array([len(e.ids) for e in encoded])):
                part = collate(
                    [np.array(encoded[i].ids) for i in batch],
                    pad_id=self.tokenizer.pad_id or 0,
                    types=[np.array(encoded[i].types) for i in batch] if typed else None,
                )
                t = {name: tensor.to(device) for name, tensor in part.tensors().items()}
                self.model.eval()
                if self.words is not None:
                    logits = self.words.scores(self.model, t["ids"], t["mask"])
                else:
                    logits = self.model(t["ids"], t["mask"], t.get("types"))
                rows[batch] = logits.cpu().double().softmax(1).numpy()
        for row in rows:
            best = int(row.argmax())
            yield Answer(
                self.labels[best], float(row[best]), dict(zip(self.labels, row.tolist(), strict=True))
            )


def load_run(path: str | Path, *, device: str = "auto") -> Adapted:
    """Load the best model of a finished run, ready to `predict`; `device` is auto, cpu, cuda, cuda:1 or mps.

    So is an adapter that `heedful export` wrote, as long as its base is there. It computes in float32,
    whatever it was trained in: that works on every machine.
    """
    folder, config = told(path)
    model = load_best(folder, config).to(find_device(device))
    tokenizer, max_len = load_tokenizer(folder), int(config["max_len"])
    if isinstance(model, Classifier):
        return Adapted(model, tokenizer, max_len, model.labels)
    if config["objective"] == "answer":
        whole = model.config.kind == "encoder_decoder"
        return Adapted(model, tokenizer, max_len, [], form=Form(tokenizer, max_len, whole))
    labels = list(config["labels"])
    words = parse_words(config.get("label_words", ()), labels)
    return Adapted(model, tokenizer, max_len, labels, LabelWords(labels, tokenizer, words))


def told(path: str | Path) -> tuple[Path, dict[str, Any]]:
    """Where a run's or an exported adapter's weights are, and what it was told, with its `labels`."""
    place = Path(path).expanduser()
    if (place / ADAPTER).is_file() and not (place / CONFIG).is_file():
        facts = read_json(place / ADAPTER)
        if not isinstance(facts.get(EXPORTED), dict):
            raise UserError(f"{place}: does not say what it was trained for; heedful export writes that")
        return place, facts[EXPORTED]
    run = Run.open(path)
    best_of_run(run.path)  # says why there is none
    config = run.config().get("adapt")
    if not isinstance(config, dict):
        raise UserError(f"{run.path}: is not a run of adapt")
    labels = run.results().labels if run.finished else None
    return run.best, {**config, "labels": list(labels or ())}


def load_writer(name: str | Path, *, device: str = "auto") -> Writer:
    """Load a language model with its tokenizer, ready to `write`: a run's best model, or one by name."""
    place = Path(name).expanduser()
    if (place / CONFIG).is_file():
        config = Run.open(place).config()
        if config.get("command") == "adapt" and config["adapt"]["objective"] != "answer":
            raise UserError(f"{place}: is a run that labels texts and writes none; heedful predict labels")
        if config.get("command") == "adapt":
            adapted = load_run(place, device=device)
            assert isinstance(adapted.model, LanguageModel)
            return Writer(adapted.model, adapted.tokenizer)
    elif str(name) in PRESETS and not place.is_dir():
        raise UserError(f"{name}: starts from nothing and has nothing to say; heedful pretrain it first")
    model = checkpoints.load(name, head=writing_head(name))
    assert isinstance(model, LanguageModel)
    if any(part.startswith("head.") for part in model.report.new):
        raise UserError(f"{name}: its weights have no output layer for text")
    return Writer(model.to(find_device(device)), load_tokenizer(name))


def shipped_tokenizer(model: Model, name: str, chosen: str | None, used: Tokenizer) -> Tokenizer | None:
    """The tokenizer beside a pretrained model's weights, where they are known to have been trained with it.

    That is so where another one was `chosen` to stand in for it, and where heedful made the model in a run;
    of any other folder it is only the tokenizer that somebody put there. A model from nothing has none.
    """
    folder: Path | None = model.report.folder
    if folder is None:
        return None
    if chosen is not None:
        return load_tokenizer(name)
    return used if (folder.parent / CONFIG).is_file() else None


def writing_head(model: str | Path) -> str:
    """The head that writes text on this kind of model."""
    kind = checkpoints.kind_of(model)
    if kind == "encoder":
        raise UserError(
            f"{model}: is an encoder, which reads text and writes none; "
            "a decoder or an encoder-decoder is needed"
        )
    return "causal" if kind == "decoder" else "text2text"


def load_best(folder: Path, config: Mapping[str, Any]) -> Classifier | LanguageModel:
    """The model in best/: whole, or its base with the adapter."""
    if (folder / ADAPTER).is_file():
        facts = read_json(folder / ADAPTER)
        head = str(facts["head"])
        model = checkpoints.load(
            str(config["model"]),
            head=head,
            n_classes=len(facts["labels"] or ()) or None,
            attention=config.get("attention"),
            head_form=facts["head_form"] or "family",
            **({"pool": facts["pool"]} if facts.get("pool", "first") != "first" else {}),
        )
        methods.read_adapter(folder, model)
    else:
        writes = config["objective"] in ("answer", "text2text")
        model = checkpoints.load(folder, head=writing_head(folder) if writes else "classify")
    assert isinstance(model, Classifier | LanguageModel)
    return model.eval()
