from torch import nn
from torch.nn import functional as F


class BertForSequenceClassification(nn.Module):
    """An encoder that returns states as they are, and a boolean mask."""

    def __init__(self, bert, num_labels=5):
        super().__init__()
        self.bert = bert
        self.out = nn.Linear(bert.config.d_model, num_labels)

    def forward(self, input_ids, mask=None, labels=None):
        states = self.bert(input_ids, None if mask is None else mask > 0)
        logits = self.out(F.dropout(states[:, 0, :], 0.1, self.training))
        return (logits,) if labels is None else (F.cross_entropy(logits, labels), logits)


class BertForMLM(nn.Module):
    """Only the labeled positions go through the head for the loss."""

    def __init__(self, encoder):
        super().__init__()
        d = encoder.config.d_model
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))
        self.bias = nn.Parameter(encoder.embed.tokens.weight.new_zeros(encoder.config.vocab_size))

    def forward(self, input_ids, attention_mask=None, labels=None):
        states = self.encoder(input_ids, attention_mask)
        logits = self.head(states) @ self.encoder.embed.tokens.weight.T + self.bias
        if labels is None:
            return logits
        chosen = labels != -100
        return logits, F.cross_entropy(logits[chosen], labels[chosen])
