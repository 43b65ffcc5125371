"""Writing models as Hub folders: for transformers, sentence-transformers, or in a form of our own.

A model has the form of a transformers class if one computes the same. An encoder that pools the mean of its
states has none; it becomes a sentence-transformers folder, with its head beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from heedful import __version__
from heedful.checkpoints import sentence_transformers_form as sentence_form
from heedful.checkpoints.files import write_folder
from heedful.checkpoints.reader import (
    OWN,
    TRAINED_LENGTH,
    describe_answers,
    family_of,
    head_of,
    own_tensors,
)
from heedful.errors import UserError
from heedful.models import Classifier, Model


@dataclass(frozen=True)
class Form:
    """The form in which a model is written."""

    loads_with: Literal["transformers", "sentence-transformers", "peft", "heedful"]
    why: str | None = None
    """Why it is not in the form of a transformers class or a peft adapter, if it is not."""


ORDINAL = "no other library has a head with ordered thresholds between classes"
PAIRS = "no other library has a head on a comparison of two texts"


def find_form(model: Model) -> Form:
    """Return the form in which `save` writes a model."""
    reason, family = find_export_obstacle(model), family_of(model)
    if reason is None:
        return Form("transformers")
    if model.config.pool == "apart":
        return Form("heedful", PAIRS)
    if model.config.pool != "mean":
        return Form("heedful", reason)
    obstacle = sentence_form.why_not_sentence_transformers(model, family)
    return Form("sentence-transformers", reason) if obstacle is None else Form("heedful", obstacle)


def find_export_obstacle(model: Model) -> str | None:
    """Return why transformers has no class that computes this model; None if it has one."""
    config, head, family = model.config, head_of(model), family_of(model)
    if family is None:
        return "it is of a form that transformers has no class for"
    if head not in family.classes:
        return f"transformers' {family.name} has no {head} head"
    classifies = isinstance(model, Classifier)
    if classifies and model.form == "ordinal":
        return ORDINAL
    if classifies and model.form == "linear" and family.fixed.get("classifier") != "linear":
        return f"transformers' {family.classes[head]} has another head than one linear layer"
    unlike = family.why_not(config)
    if unlike is None and classifies and head in family.pooled and not config.pooler:
        return f"transformers' {family.classes[head]} has a pooler, and would draw one at random"
    return unlike


def export(
    model: Model, folder: str | Path, *, tokenizer: str | Path | None = None, max_len: int | None = None
) -> Path:
    """Write a folder that `AutoModel...from_pretrained` loads, tokenizer files included.

    The tokenizer's files are copied from `tokenizer`, or from where the model was loaded. An encoder that
    pools the mean of its states becomes a folder for `SentenceTransformer`, as in `save`.
    A model that neither has a class for is refused, with the reason; `save` writes any model.
    """
    form = find_form(model)
    if form.loads_with == "heedful":
        raise UserError(f"this model cannot be exported for transformers: {form.why}")
    return write_model(model, Path(folder), tokenizer, max_len)


def save(
    model: Model, folder: str | Path, *, tokenizer: str | Path | None = None, max_len: int | None = None
) -> Path:
    """Write a folder that `load` reads back, in a transformers class's form where there is one.

    An encoder that pools the mean of its states becomes a sentence-transformers folder, whose embeddings are
    what the head reads; the head is beside it. `max_len` is the length at which that folder truncates texts.
    """
    return write_model(model, Path(folder), tokenizer, max_len)


def write_model(model: Model, folder: Path, tokenizer: str | Path | None, max_len: int | None) -> Path:
    method = getattr(model, "method", None)
    if method is not None and method.added:
        raise UserError(f"{method.name} is attached to this model; merge it first, or write its adapter")
    report = getattr(model, "report", None)
    source = Path(tokenizer) if tokenizer is not None else (report.folder if report is not None else None)
    form = find_form(model)
    files, parts = {}, {}
    if form.loads_with == "heedful":
        config, tensors = to_own_form(model)
    elif form.loads_with == "transformers":
        config, tensors = to_transformers(model, head_of(model))
    else:
        config, tensors = to_transformers(model, None)
        config |= sentence_form.describe_section(model)
        family = family_of(model)
        assert family is not None
        files = sentence_form.describe_modules(model, family, max_len)
        parts = sentence_form.head_tensors(model)
    if getattr(model, "trained_length", None) is not None:
        config[TRAINED_LENGTH] = model.trained_length
    config |= describe_answers(model)
    files |= {
        "config.json": json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        "README.md": write_card(model, form, report.source if report is not None else "nothing"),
    }
    write_folder(folder, files, {"": tensors, **parts}, source)
    return folder


def to_transformers(model: Model, head: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the model as transformers' class with this head holds it, or the body alone without one."""
    config, family = model.config, family_of(model)
    assert family is not None
    prefix, body_prefix = family.prefixes[head], "" if head_of(model) is None else "body."
    ours = own_tensors(model)
    body = {name.removeprefix(body_prefix): t for name, t in ours.items() if name.startswith(body_prefix)}
    tensors = {prefix + row.theirs: row.write(body) for row in family.rows(config)}
    for row in family.heads.get(head or "", []):
        if all(name in ours for name in row.ours):  # a tied output is the embedding, written already
            tensors[row.theirs] = row.write(ours)
    theirs = family.write_config(config)
    theirs["architectures"] = [family.classes[head]]
    if isinstance(model, Classifier) and head is not None:
        theirs["id2label"] = {str(i): label for i, label in enumerate(model.labels)}
        theirs["label2id"] = {label: i for i, label in enumerate(model.labels)}
    return theirs, tensors


def to_own_form(model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    config: dict[str, Any] = {
        "model_type": OWN,
        "heedful_version": __version__,
        "head": head_of(model),
        "heedful": model.config.to_dict(),
    }
    family = family_of(model)
    if family is not None:
        config |= family.own_facts()
    if isinstance(model, Classifier):
        config |= {"head_form": model.form, "labels": model.labels}
    return config, own_tensors(model)


def write_card(model: Model, form: Form, source: str) -> str:
    config, head, family = model.config, head_of(model), family_of(model)
    count = sum(p.numel() for p in model.parameters())
    about = ""
    if form.loads_with == "transformers" and family is not None:
        name = family.classes[head]
        use = f"from transformers import {name}\nmodel = {name}.from_pretrained(FOLDER)"
    elif form.loads_with == "sentence-transformers":
        about = "\nA sentence-transformers folder: an embedding is the mean of the states of a text."
        about += " A pair of texts is a tuple."
        about += " The classifier's head reads it, and is in `head/`." if head else ""
        use = sentence_form.write_example(model)
    else:
        about = f"\nIn heedful's own form: {form.why}."
        use = f"import heedful\nmodel = heedful.models.load(FOLDER, head={head!r})"
    return (
        f"# {config.family} {config.kind.replace('_', '-')}, {count:,} parameters\n\n"
        f"{config.n_layers} layers, {config.d_model} wide, {config.n_heads} heads, "
        f"{config.attention} attention, vocabulary of {config.vocab_size:,}. "
        f"Made from `{source}` with heedful {__version__}.{about}\n\n```python\n{use}\n```\n"
    )
