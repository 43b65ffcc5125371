from torch import nn
from torch.nn import functional as F


class BertForSequenceClassification(nn.Module):
    def __init__(self, encoder, num_labels=5):
        super().__init__()
        self.bert, self.dropout = encoder, nn.Dropout(0.1)
        self.classifier = nn.Linear(encoder.config.d_model, num_labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.classifier(self.dropout(self.bert(input_ids, attention_mask)[:, 0]))
        return (logits,) if labels is None else (F.cross_entropy(logits, labels), logits)


class BertForMaskedLanguageModel(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        d = encoder.config.d_model
        self.bert, self.transform = encoder, nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))
        self.bias = nn.Parameter(encoder.embed.tokens.weight.new_zeros(encoder.config.vocab_size))

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = F.linear(
            self.transform(self.bert(input_ids, attention_mask)), self.bert.embed.tokens.weight, self.bias
        )
        if labels is None:
            return (logits,)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100), logits


class BertForCLSMLM(nn.Module):
    """The course's class made of both others."""

    def __init__(self, encoder, num_labels=5, mlm_alpha=0.3):
        super().__init__()
        self.cls = BertForSequenceClassification(encoder, num_labels)
        self.mlm = BertForMaskedLanguageModel(self.cls.bert)
        self.mlm_alpha = mlm_alpha

    def forward(
        self,
        input_ids,
        attention_mask=None,
        labels=None,
        mlm_input_ids=None,
        mlm_attention_mask=None,
        mlm_labels=None,
    ):
        outputs = self.cls(input_ids, attention_mask, labels)
        if labels is None or mlm_input_ids is None:
            return outputs
        masked = self.mlm(mlm_input_ids, mlm_attention_mask, mlm_labels)
        return outputs[0] + self.mlm_alpha * masked[0], outputs[1]
