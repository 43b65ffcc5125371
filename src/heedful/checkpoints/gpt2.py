"""GPT-2 (Radford et al. 2019). Its linear layers are stored transposed, with q, k and v in one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenizers import processors

from heedful.checkpoints.tables import ACTIVATIONS, Family, Field, Row, fields, layers, pair, weight
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer import NO_TYPES
from heedful.text.tokenizer_forms import SpecialToken, TokenizerForm, byte_level

QKV = ("stack.layers.{i}.attn.q_proj", "stack.layers.{i}.attn.k_proj", "stack.layers.{i}.attn.v_proj")
LAYER = [
    *pair("h.{i}.ln_1", "stack.layers.{i}.attn_norm"),
    *pair("h.{i}.attn.c_attn", *QKV, transpose=True),
    *pair("h.{i}.attn.c_proj", "stack.layers.{i}.attn.o_proj", transpose=True),
    *pair("h.{i}.ln_2", "stack.layers.{i}.ff_norm"),
    *pair("h.{i}.mlp.c_fc", "stack.layers.{i}.ff.in_proj", transpose=True),
    *pair("h.{i}.mlp.c_proj", "stack.layers.{i}.ff.out_proj", transpose=True),
]


def rows(config: TransformerConfig) -> list[Row]:
    return [
        *weight("wte", "embed.tokens"),
        *weight("wpe", "embed.positions"),
        *layers(LAYER, config.n_layers),
        *pair("ln_f", "stack.norm"),
    ]


def finish_read(ours: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """The feed-forward is four times as wide as the model unless the file says otherwise."""
    ours["d_ff"] = ours["d_ff"] or 4 * ours["d_model"]


def frame(token: SpecialToken) -> processors.PostProcessor:
    return processors.TemplateProcessing(single=["$A:0"], pair=["$A:0", "$B:1"], special_tokens=[])


GPT2 = Family(
    name="gpt2",
    rows=rows,
    heads={"classify": weight("score", "head.out"), "causal": weight("lm_head", "head.out")},
    classes={None: "GPT2Model", "classify": "GPT2ForSequenceClassification", "causal": "GPT2LMHeadModel"},
    prefixes={None: "", "classify": "transformer.", "causal": "transformer."},
    fields=(
        *fields("vocab_size", "n_embd=d_model", "n_layer=n_layers", "n_head=n_heads"),
        Field("n_inner", "d_ff", None),
        Field("n_positions", "max_len"),
        Field("layer_norm_epsilon", "norm_eps", 1e-5),
        Field("activation_function", "activation", "gelu_new", ACTIVATIONS),
        *fields("resid_pdrop=dropout", "embd_pdrop=embed_dropout", default=0.1),
        *fields("attn_pdrop=attention_dropout", default=0.1),
        Field("initializer_range", "init_std", 0.02),
        Field("tie_word_embeddings", "tie_output", True),
        *fields("pad_token_id=pad_id", "bos_token_id=bos_id", "eos_token_id=eos_id", default=None),
    ),
    fixed={"kind": "decoder", "head_dropout": 0.0, "classifier": "unbiased"},
    refused={
        "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "add_cross_attention": False,
    },
    layer=re.compile(r"h\.\d+\."),
    ignored=re.compile(r"h\.\d+\.attn\.(bias|masked_bias)$|lm_head\.|score\.|multiple_choice_head\."),
    tokenizer=TokenizerForm(
        name="GPT-2", kind="bpe", roles=dict.fromkeys(("unk", "bos", "eos"), "<|endoftext|>"),
        inputs=NO_TYPES, build=byte_level, frame=frame, shared_by=("gptneo", "gptj"), default="always",
    ),
    peft_refusals={"prompt": "peft's GPT-2 pools the last position after a prompt, even if it is padding"},
    finish_read=finish_read,
)  # fmt: skip
