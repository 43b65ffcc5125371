"""The model that a run starts with: a preset with random weights, or the weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful import checkpoints
from heedful.errors import UserError
from heedful.models import PRESETS, LanguageModel, Model, TransformerConfig
from heedful.models.heads import with_article
from heedful.objectives.registry import find_objective
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.options.values import parse_assignments, type_hints
from heedful.text import Tokenizer

IDS = ("vocab_size", "pad_id", "bos_id", "eos_id")
"""Options that a model from scratch takes from its tokenizer."""


def check_vocabulary(tokenizer: Tokenizer, model: Model) -> None:
    """Refuse a tokenizer with tokens that the model has no embedding for."""
    rows = model.config.vocab_size
    if tokenizer.vocab_size > rows:
        raise UserError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens and the model embeddings of {rows:,}: "
            "they do not belong together"
        )


def starts_from_scratch(model: str) -> bool:
    """Whether a model is a preset, which starts with random weights."""
    return model in PRESETS and not Path(model).is_dir()


def preset_family(model: str) -> str | None:
    """Return the family of a preset, or None for a model that has weights."""
    return PRESETS[model].config.family if starts_from_scratch(model) else None


def pretraining_changes(options: PretrainOptions) -> dict[str, Any]:
    """Return what `--model-options`, `--projections` and `--dropout` change in the model's configuration."""
    changes = parse_model_options(options.model, options.model_options)
    if options.projections is not None:
        changes["projections"] = options.projections
    if options.dropout is not None:
        changes["dropout"] = options.dropout
    return changes


def parse_model_options(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return what `--model-options` change in the configuration of a model from scratch."""
    if texts and not starts_from_scratch(model):
        raise UserError(f"--model-options are for models from nothing; {model} is as its weights are")
    for name in (text.partition("=")[0] for text in texts):
        if name in IDS or name in ("attention", "attention_options", "kind", "family"):
            owner = "--attention" if name.startswith("attention") else "the preset or the tokenizer"
            raise UserError(f"--model-options {name}: {owner} decides it")
    return parse_assignments(texts, type_hints(TransformerConfig), "--model-options", "a model")


def complete_changes(model: str, changes: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """Add the sizes that follow from others, and the tokenizer's ids, to the changes of a preset."""
    preset, changes = PRESETS[model].config, dict(changes)
    if "d_model" in changes or "n_heads" in changes:
        changes.setdefault("d_head", 0)
    if "d_model" in changes:
        changes.setdefault("d_ff", preset.d_ff * changes["d_model"] // preset.d_model)
    changes |= {name: getattr(tokenizer, name) for name in IDS}
    if preset.start_id is not None:
        changes["start_id"] = tokenizer.pad_id
    return changes


def build_language_model(options: PretrainOptions, tokenizer: Tokenizer) -> LanguageModel:
    """Build a preset with the tokenizer's vocabulary, or load the model whose training goes on."""
    name, changes = options.model, pretraining_changes(options)
    if starts_from_scratch(name):
        if options.block is not None:
            changes.setdefault("max_len", max(PRESETS[name].config.max_len, options.block))
        changes = complete_changes(name, changes, tokenizer)
    head = find_objective(options.objective, "pretrain").find_head(name)
    model = checkpoints.load(name, head=head, attention=options.attention, **changes)
    assert isinstance(model, LanguageModel)
    check_vocabulary(tokenizer, model)
    return model


def adaptation_changes(options: AdaptOptions, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return what the options change in the configuration of the model that is adapted."""
    changes = parse_model_options(options.model, options.model_options)
    if options.dropout is not None:
        changes["dropout"] = options.dropout
    if options.pool not in (None, "family"):
        kind = checkpoints.kind_of(options.model)
        if kind != "encoder":
            raise UserError(f"--pool is for encoders; {options.model} is {with_article(kind)}")
        changes["pool"] = options.pool
    if starts_from_scratch(options.model):
        changes = complete_changes(options.model, changes, tokenizer)
    return changes
