"""DistilBERT (Sanh et al. 2019)."""

from __future__ import annotations

import re

from heedful.checkpoints import bert
from heedful.checkpoints.tables import ACTIVATIONS, Family, Field, Row, fields, layers, pair, weight
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer import NO_TYPES
from heedful.text.tokenizer_forms import TokenizerForm, wordpiece

LAYER = [
    *pair("transformer.layer.{i}.attention.q_lin", "stack.layers.{i}.attn.q_proj"),
    *pair("transformer.layer.{i}.attention.k_lin", "stack.layers.{i}.attn.k_proj"),
    *pair("transformer.layer.{i}.attention.v_lin", "stack.layers.{i}.attn.v_proj"),
    *pair("transformer.layer.{i}.attention.out_lin", "stack.layers.{i}.attn.o_proj"),
    *pair("transformer.layer.{i}.sa_layer_norm", "stack.layers.{i}.attn_norm"),
    *pair("transformer.layer.{i}.ffn.lin1", "stack.layers.{i}.ff.in_proj"),
    *pair("transformer.layer.{i}.ffn.lin2", "stack.layers.{i}.ff.out_proj"),
    *pair("transformer.layer.{i}.output_layer_norm", "stack.layers.{i}.ff_norm"),
]


def rows(config: TransformerConfig) -> list[Row]:
    return [
        *weight("embeddings.word_embeddings", "embed.tokens"),
        *weight("embeddings.position_embeddings", "embed.positions"),
        *pair("embeddings.LayerNorm", "embed.norm"),
        *layers(LAYER, config.n_layers),
    ]


DISTILBERT = Family(
    name="distilbert",
    rows=rows,
    heads={
        "classify": [*pair("pre_classifier", "head.dense"), *pair("classifier", "head.out")],
        "masked": [
            *pair("vocab_transform", "head.dense"),
            *pair("vocab_layer_norm", "head.norm"),
            *pair("vocab_projector", "head.out"),
        ],
    },
    classes={
        None: "DistilBertModel", "classify": "DistilBertForSequenceClassification",
        "masked": "DistilBertForMaskedLM",
    },
    prefixes={None: "", "classify": "distilbert.", "masked": "distilbert."},
    fields=(
        *fields("vocab_size", "dim=d_model", "n_layers", "n_heads", "hidden_dim=d_ff"),
        *fields("max_position_embeddings=max_len"),
        Field("activation", "activation", "gelu", ACTIVATIONS),
        *fields("dropout", "attention_dropout", default=0.1),
        Field("seq_classif_dropout", "head_dropout", 0.2),
        Field("initializer_range", "init_std", 0.02),
        Field("tie_word_embeddings", "tie_output", True),
        Field("pad_token_id", "pad_id", 0),
        *fields("bos_token_id=bos_id", "eos_token_id=eos_id", default=None),
    ),
    fixed={
        "kind": "encoder", "norm_place": "post", "embed_norm": True, "norm_eps": 1e-12,
        "attention_output_dropout": 0.0, "classifier": "relu",
    },
    layer=re.compile(r"transformer\.layer\.\d+\."),
    ignored=re.compile(r"embeddings\.position_ids|vocab_|pre_classifier\.|classifier\.|qa_outputs\."),
    tokenizer=TokenizerForm(
        name="DistilBERT", kind="wordpiece", roles=bert.ROLES, inputs=NO_TYPES, build=wordpiece,
        frame=bert.frame, framing_roles=("cls", "sep"),
    ),
    peft_refusals={
        "prefix": "transformers' distilbert model takes no keys from outside, so peft has no prefix there"
    },
    finish_read=bert.finish_read,
)  # fmt: skip
