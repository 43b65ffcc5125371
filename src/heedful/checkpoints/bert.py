"""BERT (Devlin et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenizers import processors

from heedful.checkpoints.tables import ACTIVATIONS, Family, Field, Row, fields, layers, pair, weight
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer import WITH_TYPES
from heedful.text.tokenizer_forms import SpecialToken, TokenizerForm, wordpiece

LAYER = [
    *pair("encoder.layer.{i}.attention.self.query", "stack.layers.{i}.attn.q_proj"),
    *pair("encoder.layer.{i}.attention.self.key", "stack.layers.{i}.attn.k_proj"),
    *pair("encoder.layer.{i}.attention.self.value", "stack.layers.{i}.attn.v_proj"),
    *pair("encoder.layer.{i}.attention.output.dense", "stack.layers.{i}.attn.o_proj"),
    *pair("encoder.layer.{i}.attention.output.LayerNorm", "stack.layers.{i}.attn_norm"),
    *pair("encoder.layer.{i}.intermediate.dense", "stack.layers.{i}.ff.in_proj"),
    *pair("encoder.layer.{i}.output.dense", "stack.layers.{i}.ff.out_proj"),
    *pair("encoder.layer.{i}.output.LayerNorm", "stack.layers.{i}.ff_norm"),
]


def rows(config: TransformerConfig) -> list[Row]:
    return [
        *weight("embeddings.word_embeddings", "embed.tokens"),
        *weight("embeddings.position_embeddings", "embed.positions"),
        *(weight("embeddings.token_type_embeddings", "embed.types") if config.n_types else ()),
        *pair("embeddings.LayerNorm", "embed.norm"),
        *layers(LAYER, config.n_layers),
        *(pair("pooler.dense", "pooler") if config.pooler else ()),
    ]


FIELDS = (
    *fields("vocab_size", "hidden_size=d_model", "num_hidden_layers=n_layers", "num_attention_heads=n_heads"),
    *fields("intermediate_size=d_ff", "max_position_embeddings=max_len"),
    Field("type_vocab_size", "n_types", 2),
    Field("layer_norm_eps", "norm_eps", 1e-12),
    Field("hidden_act", "activation", "gelu", ACTIVATIONS),
    *fields("hidden_dropout_prob=dropout", "attention_probs_dropout_prob=attention_dropout", default=0.1),
    Field("classifier_dropout", "head_dropout", None),
    Field("initializer_range", "init_std", 0.02),
    Field("tie_word_embeddings", "tie_output", True),
    *fields("bos_token_id=bos_id", "eos_token_id=eos_id", default=None),
)
FIXED = {"kind": "encoder", "norm_place": "post", "embed_norm": True, "pooler": True}
REFUSED = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}


def finish_read(ours: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """Embeddings and layers share one dropout, which is also the classifier's default."""
    ours["embed_dropout"] = ours["dropout"]
    if ours["head_dropout"] is None:
        ours["head_dropout"] = ours["dropout"]


ROLES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def frame(token: SpecialToken) -> processors.PostProcessor:
    """Frame as `[CLS] a [SEP] b [SEP]`, the second text with token type 1."""
    cls, sep = token("cls"), token("sep")
    single = [f"{cls[0]}:0", "$A:0", f"{sep[0]}:0"]
    both = [*single, "$B:1", f"{sep[0]}:1"]
    return processors.TemplateProcessing(single=single, pair=both, special_tokens=[cls, sep])


BERT = Family(
    name="bert",
    rows=rows,
    heads={
        "classify": pair("classifier", "head.out"),
        "masked": [
            *pair("cls.predictions.transform.dense", "head.dense"),
            *pair("cls.predictions.transform.LayerNorm", "head.norm"),
            *weight("cls.predictions.decoder", "head.out"),
            Row("cls.predictions.bias", ("head.out.bias",)),
        ],
    },
    classes={None: "BertModel", "classify": "BertForSequenceClassification", "masked": "BertForMaskedLM"},
    prefixes={None: "", "classify": "bert.", "masked": "bert."},
    fields=(*FIELDS, Field("pad_token_id", "pad_id", 0)),
    fixed={**FIXED, "classifier": "linear"},
    refused=REFUSED,
    layer=re.compile(r"encoder\.layer\.\d+\."),
    ignored=re.compile(r"embeddings\.position_ids|cls\.(seq_relationship|predictions)\.|pooler\.|classifier\.|qa_outputs\."),
    fallbacks={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    pooled=frozenset({None, "classify"}),
    tokenizer=TokenizerForm(
        name="BERT", kind="wordpiece", roles=ROLES, inputs=WITH_TYPES, build=wordpiece, frame=frame,
        framing_roles=("cls", "sep"), shared_by=("electra", "mobilebert", "convbert"), default="always",
    ),
    finish_read=finish_read,
)  # fmt: skip
