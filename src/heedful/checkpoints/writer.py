"""Writing models as Hub folders: in a transformers class's form where one computes the same, else in ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful import __version__
from heedful.checkpoints.files import write_folder
from heedful.checkpoints.reader import OWN, TRAINED_LENGTH, family_of, head_of, own_tensors
from heedful.errors import UserError
from heedful.models import Classifier, Model


def find_export_obstacle(model: Model) -> str | None:
    """Return why transformers has no class that computes this model; None if it has one."""
    config, head, family = model.config, head_of(model), family_of(model)
    if family is None:
        return "it is of a form that transformers has no class for"
    if head not in family.classes:
        return f"transformers' {family.name} has no {head} head"
    classifies = isinstance(model, Classifier)
    if classifies and model.form == "linear" and family.fixed.get("classifier") != "linear":
        return f"transformers' {family.classes[head]} has another head than one linear layer"
    unlike = family.why_not(config)
    if unlike is None and classifies and head in family.pooled and not config.pooler:
        return f"transformers' {family.classes[head]} has a pooler, and would draw one at random"
    return unlike


def export(model: Model, folder: str | Path, *, tokenizer: str | Path | None = None) -> Path:
    """Write a folder that `AutoModel...from_pretrained` loads, tokenizer files included.

    The tokenizer's files are copied from `tokenizer`, or from where the model was loaded.
    A model that transformers has no class for is refused, with the reason; `save` writes any model.
    """
    reason = find_export_obstacle(model)
    if reason is not None:
        raise UserError(f"this model cannot be exported for transformers: {reason}")
    return write_model(model, Path(folder), tokenizer)


def save(model: Model, folder: str | Path, *, tokenizer: str | Path | None = None) -> Path:
    """Write a folder that `load` reads back, in a transformers class's form where there is one."""
    return write_model(model, Path(folder), tokenizer)


def write_model(model: Model, folder: Path, tokenizer: str | Path | None) -> Path:
    method = getattr(model, "method", None)
    if method is not None and method.added:
        raise UserError(f"{method.name} is attached to this model; merge it first, or write its adapter")
    report = getattr(model, "report", None)
    source = Path(tokenizer) if tokenizer is not None else (report.folder if report is not None else None)
    reason = find_export_obstacle(model)
    config, tensors = to_transformers(model) if reason is None else to_own_form(model)
    if getattr(model, "trained_length", None) is not None:
        config[TRAINED_LENGTH] = model.trained_length
    files = {
        "config.json": json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        "README.md": write_card(model, reason, report.source if report is not None else "nothing"),
    }
    write_folder(folder, files, tensors, source)
    return folder


def to_transformers(model: Model) -> tuple[dict[str, Any], dict[str, Tensor]]:
    config, head, family = model.config, head_of(model), family_of(model)
    assert family is not None
    prefix, body_prefix = family.prefixes[head], "" if head is None else "body."
    ours = own_tensors(model)
    body = {name.removeprefix(body_prefix): t for name, t in ours.items() if name.startswith(body_prefix)}
    tensors = {prefix + row.theirs: row.write(body) for row in family.rows(config)}
    for row in family.heads.get(head or "", []):
        if all(name in ours for name in row.ours):  # a tied output is the embedding, written already
            tensors[row.theirs] = row.write(ours)
    theirs = family.write_config(config)
    theirs["architectures"] = [family.classes[head]]
    if isinstance(model, Classifier):
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


def write_card(model: Model, reason: str | None, source: str) -> str:
    config, head, family = model.config, head_of(model), family_of(model)
    count = sum(p.numel() for p in model.parameters())
    if reason is None and family is not None:
        name = family.classes[head]
        use = f"from transformers import {name}\nmodel = {name}.from_pretrained(FOLDER)"
    else:
        use = f"import heedful\nmodel = heedful.models.load(FOLDER, head={head!r})"
    own_form = f"\nIn heedful's own form: {reason}." if reason else ""
    return (
        f"# {config.family} {config.kind.replace('_', '-')}, {count:,} parameters\n\n"
        f"{config.n_layers} layers, {config.d_model} wide, {config.n_heads} heads, "
        f"{config.attention} attention, vocabulary of {config.vocab_size:,}. "
        f"Made from `{source}` with heedful {__version__}.{own_form}\n\n```python\n{use}\n```\n"
    )
