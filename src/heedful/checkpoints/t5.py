"""T5 (Raffel et al. 2020), 1.0 (ReLU, tied and scaled output) and 1.1 (gated GELU, output of its own)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenizers import processors

from heedful.checkpoints.tables import Family, Field, Row, fields, layers, pair, weight
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer import NO_TYPES
from heedful.text.tokenizer_forms import SpecialToken, TokenizerForm, sentencepiece_vocabulary

FEED_FORWARDS = {"relu": "relu", "gated-gelu": "gated_gelu"}


def attention(theirs: str, ours: str) -> list[Row]:
    return [row for part in "qkvo" for row in weight(f"{theirs}.{part}", f"{ours}.{part}_proj")]


def feed_forward(theirs: str, ours: str, gated: bool) -> list[Row]:
    """Return the rows of two layers, or three when gated; the first goes through the non-linearity."""
    gate = weight(f"{theirs}.wi_0", f"{ours}.gate_proj") if gated else []
    inner = weight(f"{theirs}.wi_1" if gated else f"{theirs}.wi", f"{ours}.in_proj")
    return [*gate, *inner, *weight(f"{theirs}.wo", f"{ours}.out_proj")]


def stack(side: str, n_layers: int, gated: bool) -> list[Row]:
    """Return the rows of one side: self-attention, in the decoder cross-attention, feed-forward, norms."""
    theirs, ours = side + ".block.{i}.layer.", side + ".layers.{i}."
    last = 2 if side == "decoder" else 1
    layer = [
        *attention(theirs + "0.SelfAttention", ours + "attn"),
        *weight(theirs + "0.layer_norm", ours + "attn_norm"),
    ]
    if side == "decoder":
        layer += attention(theirs + "1.EncDecAttention", ours + "cross")
        layer += weight(theirs + "1.layer_norm", ours + "cross_norm")
    layer += feed_forward(f"{theirs}{last}.DenseReluDense", ours + "ff", gated)
    layer += weight(f"{theirs}{last}.layer_norm", ours + "ff_norm")
    bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias"
    return [
        *layers(layer, n_layers),
        *weight(bias, f"{side}.relative.table"),
        *weight(f"{side}.final_layer_norm", f"{side}.norm"),
    ]


def rows(config: TransformerConfig) -> list[Row]:
    gated = config.activation == "gated_gelu"
    return [
        *weight("shared", "embed.tokens"),
        *stack("encoder", config.n_layers, gated),
        *stack("decoder", config.n_decoder_layers, gated),
    ]


def finish_read(ours: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """One dropout everywhere. 1.0 scales its output, 1.1 does not; older files say so by the tying."""
    for name in ("embed_dropout", "attention_dropout", "ff_dropout", "final_dropout"):
        ours[name] = ours["dropout"]
    ours["n_decoder_layers"] = ours["n_decoder_layers"] or ours["n_layers"]
    scaled = theirs.get("scale_decoder_outputs", ours["tie_output"])
    ours["output_scale"] = ours["d_model"] ** -0.5 if scaled else 1.0


def finish_write(theirs: dict[str, Any], config: TransformerConfig) -> None:
    """Older and newer transformers read the scaling from different fields."""
    theirs["is_encoder_decoder"] = True
    theirs["scale_decoder_outputs"] = config.output_scale != 1.0


def frame(token: SpecialToken) -> processors.PostProcessor:
    """Frame as `a </s> b </s>`."""
    eos = token("eos")
    single = ["$A:0", f"{eos[0]}:0"]
    both = [*single, "$B:0", f"{eos[0]}:0"]
    return processors.TemplateProcessing(single=single, pair=both, special_tokens=[eos])


T5 = Family(
    name="t5",
    rows=rows,
    heads={
        "classify": [
            *pair("classification_head.dense", "head.dense"),
            *pair("classification_head.out_proj", "head.out"),
        ],
        "text2text": weight("lm_head", "head.out"),
    },
    classes={
        None: "T5Model", "classify": "T5ForSequenceClassification", "text2text": "T5ForConditionalGeneration",
    },
    prefixes={None: "", "classify": "transformer.", "text2text": ""},
    fields=(
        *fields("vocab_size", "d_model", "d_kv=d_head", "d_ff", "num_layers=n_layers", "num_heads=n_heads"),
        Field("num_decoder_layers", "n_decoder_layers", None),
        Field("n_positions", "max_len", 512),
        Field("relative_attention_num_buckets", "relative_buckets", 32),
        Field("relative_attention_max_distance", "relative_max_distance", 128),
        Field("feed_forward_proj", "activation", "relu", FEED_FORWARDS),
        Field("layer_norm_epsilon", "norm_eps", 1e-6),
        Field("dropout_rate", "dropout", 0.1),
        Field("classifier_dropout", "head_dropout", 0.0),
        Field("tie_word_embeddings", "tie_output", True),
        Field("pad_token_id", "pad_id", 0),
        Field("bos_token_id", "bos_id", None),
        Field("eos_token_id", "eos_id", 1),
        Field("decoder_start_token_id", "start_id", 0),
    ),
    fixed={
        "kind": "encoder_decoder", "position": "relative", "norm": "rms", "bias": False, "scale": 1.0,
        "classifier": "tanh",
    },
    layer=re.compile(r"(en|de)coder\.block\.\d+\."),
    ignored=re.compile(
        r"(en|de)coder\.embed_tokens\.|lm_head\.|classification_head\."
        r"|decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\."
    ),
    fallbacks={"shared.weight": "encoder.embed_tokens.weight"},
    output="lm_head.weight",
    tokenizer=TokenizerForm(
        name="T5", kind="unigram", roles={"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}, inputs=NO_TYPES,
        build=sentencepiece_vocabulary, frame=frame, framing_roles=("eos",),
        shared_by=("mt5", "umt5", "longt5"), default="always",
    ),
    peft_refusals={
        "prefix": "transformers' t5 encoder takes no keys from outside, so peft has no prefix there",
        "prompt": "transformers' T5 classifier takes no embedded text, so peft has no prompt there",
    },
    finish_read=finish_read,
    finish_write=finish_write,
)  # fmt: skip
