"""Checks of a model without data."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from heedful import checkpoints
from heedful.errors import UserError
from heedful.evaluation import checks
from heedful.inference.networks import shipped_tokenizer
from heedful.models import EncoderDecoder, Model
from heedful.runs.schemas import Check
from heedful.text import load as load_tokenizer

PROBE_ROWS, PROBE_LENGTH = 4, 16
"""Rows and tokens of the random text."""


def check_model(name: str) -> list[Check]:
    """Check that a model is causal, fits its tokenizer, and computes the same when loaded again."""
    model = checkpoints.load(name)
    return [checks.causality(model), check_tokenizer(model, name), check_saving(model)]


def check_tokenizer(model: Model, name: str) -> Check:
    """Check that the tokenizer beside the weights belongs to them."""
    if model.report.folder is None:
        return Check("tokenizer_fits", "skipped", "A model from nothing has no tokenizer of its own.")
    try:
        tokenizer = load_tokenizer(name)
    except UserError as error:
        return Check("tokenizer_fits", "skipped", f"There is no tokenizer to look at: {error}.")
    shipped = shipped_tokenizer(model, name, None, tokenizer)
    return checks.tokenizer_fits(tokenizer, model.config, pretrained=True, shipped=shipped)


def check_saving(model: Model) -> Check:
    """Check that the model, saved and loaded again, gives the same states on random text."""
    random = torch.Generator().manual_seed(0)
    length = min(PROBE_LENGTH, model.config.max_len)
    ids = torch.randint(model.config.vocab_size, (PROBE_ROWS, length), generator=random)
    with tempfile.TemporaryDirectory() as folder:
        reloaded = checkpoints.load(checkpoints.save(model, Path(folder) / "saved"))
    with torch.inference_mode():
        return checks.reload(last_states(model, ids), last_states(reloaded, ids))


def last_states(model: Model, ids: Tensor) -> Tensor:
    states: Tensor = model.decode(ids, model.encode(ids)) if isinstance(model, EncoderDecoder) else model(ids)
    return states
