"""The model that pretraining begins with: a preset with other sizes, or what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful import checkpoints
from heedful.errors import UserError
from heedful.models import PRESETS, LanguageModel, Model, TransformerConfig
from heedful.models.heads import with_article
from heedful.options.training import PretrainOptions
from heedful.options.values import parse_assignments, type_hints
from heedful.text import Tokenizer

HEADS = {
    "causal": {"decoder": "causal"},
    "masked": {"encoder": "masked"},
    "span": {"decoder": "causal", "encoder_decoder": "text2text"},
}
"""The head that an objective needs on each kind of model."""
IDS = ("vocab_size", "pad_id", "bos_id", "eos_id")
"""What a model from nothing takes from its tokenizer."""


def refuse_more_tokens(tokenizer: Tokenizer, model: Model) -> None:
    """Refuse a tokenizer some of whose tokens the model has no embedding for."""
    rows = model.config.vocab_size
    if tokenizer.vocab_size > rows:
        raise UserError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens and the model embeddings of {rows:,}: "
            "they do not belong together"
        )


def from_nothing(model: str) -> bool:
    """Whether a model is a preset."""
    return model in PRESETS and not Path(model).is_dir()


def family_of(model: str) -> str | None:
    """The family of a preset; None for what is gone on with."""
    return PRESETS[model].config.family if from_nothing(model) else None


def model_changes(options: PretrainOptions) -> dict[str, Any]:
    """What `--model-options`, `--projections` and `--dropout` say, by the declared types."""
    found = read_model_options(options.model, options.model_options)
    if options.projections is not None:
        found["projections"] = options.projections
    if options.dropout is not None:
        found["dropout"] = options.dropout
    return found


def read_model_options(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return what `--model-options` say about a model that is trained from nothing."""
    if texts and not from_nothing(model):
        raise UserError(f"--model-options are for models from nothing; {model} is as its weights are")
    for name in (text.partition("=")[0] for text in texts):
        if name in IDS or name in ("attention", "attention_options", "kind", "family"):
            owner = "--attention" if name.startswith("attention") else "the preset or the tokenizer"
            raise UserError(f"--model-options {name}: {owner} decides it")
    return parse_assignments(texts, type_hints(TransformerConfig), "--model-options", "a model")


def settled_changes(model: str, changes: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """Of a model from nothing: what was asked for, what follows from it, and the tokenizer's ids."""
    preset, found = PRESETS[model].config, dict(changes)
    if "d_model" in found or "n_heads" in found:
        found.setdefault("d_head", 0)
    if "d_model" in found:
        found.setdefault("d_ff", preset.d_ff * found["d_model"] // preset.d_model)
    found |= {name: getattr(tokenizer, name) for name in IDS}
    if preset.start_id is not None:
        found["start_id"] = tokenizer.pad_id
    return found


def make_model(options: PretrainOptions, tokenizer: Tokenizer) -> LanguageModel:
    """Build a preset with the tokenizer's vocabulary, or load what is gone on with."""
    o, changes, kind = options, model_changes(options), checkpoints.kind_of(options.model)
    if from_nothing(o.model):
        if o.block is not None:
            changes.setdefault("max_len", max(PRESETS[o.model].config.max_len, o.block))
        changes = settled_changes(o.model, changes, tokenizer)
    if kind not in HEADS[o.objective]:
        able = " or ".join(map(with_article, HEADS[o.objective]))
        raise UserError(f"--objective {o.objective} trains {able}; {o.model} is {with_article(kind)}")
    model = checkpoints.load(o.model, head=HEADS[o.objective][kind], attention=o.attention, **changes)
    assert isinstance(model, LanguageModel)
    return model
