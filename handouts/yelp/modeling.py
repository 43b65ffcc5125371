"""The course's three classes on Heedful's encoder, with the same forward signatures.

`encoder` is a model returned by `heedful.models.load`, or a name or folder to load. The classifier is dropout
and a linear layer on the state of [CLS], without BERT's pooler.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import heedful
from heedful.attention.dropout import Dropout


def load_encoder(encoder: Any) -> nn.Module:
    """Return an encoder without a head; a name or folder is loaded."""
    module: nn.Module = heedful.models.load(encoder) if isinstance(encoder, str) else encoder
    return module


class BertForSequenceClassification(nn.Module):
    """Predict a label for each text."""

    def __init__(self, encoder: Any = "minilm", num_labels: int = 5, dropout: float = 0.1) -> None:
        super().__init__()
        self.bert = load_encoder(encoder)
        self.dropout = Dropout(dropout)
        self.classifier = nn.Linear(self.bert.config.d_model, num_labels)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Return (loss, logits [b, num_labels]) if labels are given, else (logits,)."""
        mask = None if attention_mask is None else attention_mask.bool()
        states = self.bert(input_ids, mask)  # [b, t, d]
        logits = self.classifier(self.dropout(states[:, 0]))
        return (logits,) if labels is None else (F.cross_entropy(logits, labels), logits)


class BertForMaskedLanguageModel(nn.Module):
    """Predict hidden tokens, with the token embeddings as output layer; labels of -100 are ignored."""

    def __init__(self, encoder: Any = "minilm") -> None:
        super().__init__()
        self.bert = load_encoder(encoder)
        d = self.bert.config.d_model
        self.transform = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))
        self.bias = nn.Parameter(torch.zeros(self.bert.config.vocab_size))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Return (loss, logits [b, t, vocab_size]) if labels are given, else (logits,)."""
        mask = None if attention_mask is None else attention_mask.bool()
        states = self.transform(self.bert(input_ids, mask))
        logits = F.linear(states, self.bert.embed.tokens.weight, self.bias)
        if labels is None:
            return (logits,)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100), logits


class BertForCLSMLM(nn.Module):
    """Train both on one encoder: loss = classification + mlm_alpha x masked language modeling."""

    def __init__(self, encoder: Any = "minilm", num_labels: int = 5, mlm_alpha: float = 0.3) -> None:
        super().__init__()
        self.mlm_alpha = mlm_alpha
        self.cls = BertForSequenceClassification(encoder, num_labels)
        self.mlm = BertForMaskedLanguageModel(self.cls.bert)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        mlm_input_ids: Tensor | None = None,
        mlm_attention_mask: Tensor | None = None,
        mlm_labels: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """Return (loss, logits) if labels are given, else (logits,); masked text is optional."""
        outputs = self.cls(input_ids, attention_mask, labels)
        if labels is None or mlm_input_ids is None:
            return outputs
        masked = self.mlm(mlm_input_ids, mlm_attention_mask, mlm_labels)
        return outputs[0] + self.mlm_alpha * masked[0], outputs[1]
