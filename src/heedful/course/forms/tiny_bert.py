"""A tiny BERT that is given to students' classes as their encoder, in the forms that they expect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.suites.transformer import SIZES, Convention, draw_model, run_model

BERT = Convention("after")
THEIR_CONFIG = {
    "vocab_size": SIZES["vocabulary"],
    "hidden_size": SIZES["width"],
    "num_hidden_layers": SIZES["layers"],
    "num_attention_heads": SIZES["heads"],
    "intermediate_size": SIZES["inner"],
    "max_position_embeddings": SIZES["length"],
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "num_labels": SIZES["labels"],
    "layer_norm_eps": 1e-5,
}
"""The configuration of the tiny BERT as transformers has it."""
THEIR_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "ff_in": "intermediate.dense",
    "ff_out": "output.dense",
    "norm2": "output.LayerNorm",
}
THEIR_NAMES = {
    "embeddings.word_embeddings.weight": "tokens",
    "embeddings.position_embeddings.weight": "positions",
    "embeddings.token_type_embeddings.weight": "types",
    "embeddings.LayerNorm.weight": "embed_norm_weight",
    "embeddings.LayerNorm.bias": "embed_norm_bias",
    "pooler.dense.weight": "pool_weight",
    "pooler.dense.bias": "pool_bias",
} | {
    f"encoder.layer.{layer}.{theirs}.{kind}": f"layer{layer}.{ours}_{kind}"
    for layer in range(SIZES["layers"])
    for ours, theirs in THEIR_PARTS.items()
    for kind in ("weight", "bias")
}
"""The role of each parameter of transformers' BertModel."""
ENCODER_ROLES = tuple(role for role in THEIR_NAMES.values() if not role.startswith("pool"))


class Output(tuple):  # type: ignore[type-arg]
    """What a model of transformers returns: a tuple with names."""

    last_hidden_state: Tensor
    pooler_output: Tensor


class TinyBert(nn.Module):
    """A BERT of the suite's sizes; `style` says what a call returns: `tensor` or `transformers`."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.style = style
        names = [*ENCODER_ROLES, "pool_weight", "pool_bias"]
        drawn = draw_model()
        self.roles = nn.ParameterDict({name.replace(".", "_at_"): drawn[name] for name in names})
        self.config = SimpleNamespace(**THEIR_CONFIG, d_model=SIZES["width"], dim=SIZES["width"])
        table = nn.Embedding(SIZES["vocabulary"], SIZES["width"])
        table.weight = self.roles["tokens"]
        self.embeddings = nn.Module()
        self.embeddings.word_embeddings = table
        self.embed = nn.Module()
        self.embed.tokens = table

    def get_input_embeddings(self) -> nn.Module:
        """Return the token embeddings."""
        table: nn.Module = self.embeddings.get_submodule("word_embeddings")
        return table

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Any = None, **_: Any
    ) -> Any:
        """Return the last states, and what is pooled of [CLS]."""
        parameters = {name.replace("_at_", "."): p for name, p in self.roles.items()}
        real = None if attention_mask is None else attention_mask.bool()
        states = run_model(input_ids, parameters, BERT, causal=False, real=real)
        if self.style == "tensor":
            return states
        pooled = torch.tanh(states[:, 0] @ parameters["pool_weight"].T + parameters["pool_bias"])
        output = Output((states, pooled))
        output.last_hidden_state, output.pooler_output = states, pooled
        return output

    def fill(self, values: Mapping[str, Tensor]) -> None:
        """Copy values by their roles."""
        for name, parameter in self.roles.items():
            parameter.data.copy_(values[name.replace("_at_", ".")])


def find_encoder(module: nn.Module) -> nn.Module | None:
    """Return the BERT within a student's model: ours, or that of transformers; None if it has neither."""
    for part in module.modules():
        theirs = type(part).__name__ in ("BertModel", "TinyBert")
        if theirs and re.match(r"transformers|heedful", type(part).__module__):
            return part
    return None


def fill_encoder(encoder: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Copy values into our BERT or into that of transformers."""
    if isinstance(encoder, TinyBert):
        encoder.fill(values)
        return
    for name, parameter in encoder.named_parameters():
        parameter.data.copy_(values[THEIR_NAMES[name]])


def make_their_config() -> Any:
    """Return transformers' configuration of the tiny BERT."""
    import transformers

    config: Any = transformers.BertConfig
    return config(**THEIR_CONFIG, attn_implementation="eager")


def save_their_model(folder: Path) -> Path:
    """Write the tiny BERT as a folder that `from_pretrained` reads."""
    import transformers
    from transformers.utils import logging

    bars: Any = logging.disable_progress_bar
    bars()
    model: Any = transformers.BertModel
    model(make_their_config()).save_pretrained(folder)
    return folder
