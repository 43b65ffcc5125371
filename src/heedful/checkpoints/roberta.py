"""RoBERTa (Liu et al. 2019): BERT's layers with other positions, heads and tokenizer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenizers import processors

from heedful.checkpoints import bert
from heedful.checkpoints.tables import Family, Field, Row, pair, weight
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer import NO_TYPES
from heedful.text.tokenizer_forms import SpecialToken, TokenizerForm, byte_level

ROLES = {
    "pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"
}  # fmt: skip


def finish_read(ours: dict[str, Any], theirs: Mapping[str, Any]) -> None:
    """RoBERTa's first position is row pad_id + 1 of the table."""
    bert.finish_read(ours, theirs)
    ours["position_offset"] = ours["pad_id"] + 1
    ours["max_len"] -= ours["position_offset"]


def finish_write(theirs: dict[str, Any], config: TransformerConfig) -> None:
    theirs["max_position_embeddings"] = config.max_len + config.position_offset


def frame(token: SpecialToken) -> processors.PostProcessor:
    """Frame as `<s> a </s></s> b </s>`, all of token type 0."""
    return processors.RobertaProcessing(token("sep"), token("cls"), trim_offsets=True, add_prefix_space=False)


ROBERTA = Family(
    name="roberta",
    rows=bert.rows,
    heads={
        "classify": [*pair("classifier.dense", "head.dense"), *pair("classifier.out_proj", "head.out")],
        "masked": [
            *pair("lm_head.dense", "head.dense"),
            *pair("lm_head.layer_norm", "head.norm"),
            *weight("lm_head.decoder", "head.out"),
            Row("lm_head.bias", ("head.out.bias",)),
        ],
    },
    classes={
        None: "RobertaModel", "classify": "RobertaForSequenceClassification", "masked": "RobertaForMaskedLM",
    },
    prefixes={None: "", "classify": "roberta.", "masked": "roberta."},
    fields=(*bert.FIELDS, Field("pad_token_id", "pad_id", 1)),
    fixed={**bert.FIXED, "classifier": "tanh"},
    refused=bert.REFUSED,
    layer=re.compile(r"encoder\.layer\.\d+\."),
    ignored=re.compile(r"embeddings\.position_ids|lm_head\.|pooler\.|classifier\.|qa_outputs\."),
    fallbacks={"lm_head.bias": "lm_head.decoder.bias"},
    pooled=frozenset({None}),
    tokenizer=TokenizerForm(
        name="RoBERTa", kind="bpe", roles=ROLES, inputs=NO_TYPES, build=byte_level, frame=frame,
        framing_roles=("cls", "sep"), shared_by=("longformer", "bart"), default="special tokens",
        mask_takes_space=True,
    ),
    finish_read=finish_read,
    finish_write=finish_write,
)  # fmt: skip
