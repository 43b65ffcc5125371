"""Tiny random models of transformers, one maker a family, and inputs with padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import Tensor

VOCAB = 60
SIZES = {"num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}


@dataclass(frozen=True)
class Oracle:
    """A family (or a variant of one): how to make its configuration, and its classes."""

    name: str
    config: type
    values: dict[str, Any]
    classes: dict[str | None, type]
    types: bool = False

    def make(self, head: str | None, n_classes: int = 3) -> Any:
        """A model with random weights, biases and norms included, in evaluation mode."""
        torch.manual_seed(len(self.name))
        config = self.config(**self.values, num_labels=n_classes)
        model = self.classes[head](config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
            if "t5" in self.name:  # its embeddings start with deviation 1, which makes logits of size 10
                model.get_input_embeddings().weight.mul_(0.2)
        return model


BERT = Oracle(
    "bert", hf.BertConfig,
    {"vocab_size": VOCAB, "max_position_embeddings": 32, "hidden_act": "gelu_new", **SIZES},
    {None: hf.BertModel, "classify": hf.BertForSequenceClassification, "masked": hf.BertForMaskedLM}, types=True,
)  # fmt: skip
ROBERTA = Oracle(
    "roberta", hf.RobertaConfig,
    {"vocab_size": VOCAB, "max_position_embeddings": 34, "type_vocab_size": 1, **SIZES},
    {None: hf.RobertaModel, "classify": hf.RobertaForSequenceClassification, "masked": hf.RobertaForMaskedLM},
)  # fmt: skip
DISTILBERT = Oracle(
    "distilbert", hf.DistilBertConfig,
    {"vocab_size": VOCAB, "max_position_embeddings": 32, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40},
    {None: hf.DistilBertModel, "classify": hf.DistilBertForSequenceClassification, "masked": hf.DistilBertForMaskedLM},
)  # fmt: skip
GPT2 = Oracle(
    "gpt2", hf.GPT2Config,
    {"vocab_size": VOCAB, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 3, "pad_token_id": 0,
     "bos_token_id": 1, "eos_token_id": 1},
    {None: hf.GPT2Model, "classify": hf.GPT2ForSequenceClassification, "causal": hf.GPT2LMHeadModel},
)  # fmt: skip
T5_CLASSES = {
    None: hf.T5Model,
    "classify": hf.T5ForSequenceClassification,
    "text2text": hf.T5ForConditionalGeneration,
}
T5_SIZES = {
    "vocab_size": VOCAB,
    "d_model": 24,
    "d_kv": 10,
    "d_ff": 40,
    "num_heads": 3,
    "decoder_start_token_id": 0,
}
T5 = Oracle("t5", hf.T5Config, {**T5_SIZES, "num_layers": 2, "num_decoder_layers": 3}, T5_CLASSES)
T5_11 = Oracle(
    "t5-1.1", hf.T5Config,
    {**T5_SIZES, "num_layers": 2, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, T5_CLASSES,
)  # fmt: skip
ORACLES = (BERT, ROBERTA, DISTILBERT, GPT2, T5, T5_11)
CASES = [(oracle, head) for oracle in ORACLES for head in oracle.classes]
IDS = [f"{oracle.name}-{head or 'body'}" for oracle, head in CASES]


def batch(oracle: Oracle, lengths: tuple[int, ...] = (9, 4, 1, 7)) -> dict[str, Tensor]:
    """Ids with right padding; each text ends with the end-of-text id 1."""
    generator = torch.Generator().manual_seed(5)
    pad = oracle.values.get("pad_token_id", 1 if oracle.name == "roberta" else 0)
    ids = torch.randint(4, VOCAB, (len(lengths), max(lengths)), generator=generator)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length - 1] = 1 if pad != 1 else 2
        ids[row, length:] = pad
        mask[row, :length] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    if oracle.types:
        inputs["token_type_ids"] = torch.randint(0, 2, ids.shape, generator=generator) * mask
    return inputs


def theirs(model: Any, inputs: dict[str, Tensor], head: str | None) -> Tensor:
    """Their last hidden states or logits."""
    more = {}
    if model.config.is_encoder_decoder and head != "classify":
        more["decoder_input_ids"] = model._shift_right(inputs["input_ids"])
    with torch.no_grad():
        out = model(**inputs, **more)
    result: Tensor = out.last_hidden_state if head is None else out.logits
    return result
