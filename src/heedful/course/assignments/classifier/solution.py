"""A BERT classifier, masking for masked language modeling, and both tasks on one encoder."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class BertForSequenceClassification(nn.Module):
    """A linear layer on the encoder's state of the first token, [CLS]."""

    def __init__(self, encoder, num_labels=5, dropout=0.1):
        super().__init__()
        self.bert = encoder  # encoder(input_ids, attention_mask=...)[0] is [batch, tokens, hidden]
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, num_labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        """Return (loss, logits) with labels [batch], and (logits,) without; logits are [batch, num_labels]."""
        # SOLUTION: the encoder needs the mask; take the state of the first token, dropout, then the layer
        states = self.bert(input_ids, attention_mask=attention_mask)[0]  # [b, t, d]
        logits = self.classifier(self.dropout(states[:, 0]))
        if labels is None:
            return (logits,)
        return F.cross_entropy(logits, labels), logits
        # END SOLUTION


class BertForMaskedLanguageModel(nn.Module):
    """Logits over the vocabulary for every token."""

    def __init__(self, encoder):
        super().__init__()
        self.bert = encoder
        self.lm_head = nn.Linear(encoder.config.hidden_size, encoder.config.vocab_size)

    def forward(self, input_ids, attention_mask=None, labels=None):
        """Return (loss, logits) with labels [batch, tokens], -100 where nothing is predicted; (logits,) without."""
        # SOLUTION: every token has logits; the loss is the mean over the tokens with a label
        states = self.bert(input_ids, attention_mask=attention_mask)[0]
        logits = self.lm_head(states)  # [b, t, vocabulary]
        if labels is None:
            return (logits,)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100), logits
        # END SOLUTION


def mask_tokens(inputs, tokenizer, mlm_probability=0.15):
    """Return inputs and labels for masked language modeling, both [batch, tokens]; `inputs` stays as it is.

    Of the ordinary tokens a share of mlm_probability is chosen. Of these 80 % become [MASK], 10 % a random token of
    the vocabulary, 10 % stay. The labels of all other tokens are -100. The tokenizer has mask_token_id,
    get_special_tokens_mask(ids, already_has_special_tokens=True) and len().
    """
    # SOLUTION: choose positions, write the labels, and only then change the chosen tokens of a copy
    inputs, labels = inputs.clone(), inputs.clone()
    special = [
        tokenizer.get_special_tokens_mask(row.tolist(), already_has_special_tokens=True) for row in labels
    ]
    chances = torch.full(labels.shape, mlm_probability).masked_fill(torch.tensor(special).bool(), 0.0)
    chosen = torch.bernoulli(chances).bool()
    labels[~chosen] = -100
    fate = torch.rand(labels.shape)
    inputs[chosen & (fate < 0.8)] = tokenizer.mask_token_id
    replaced = chosen & (fate >= 0.8) & (fate < 0.9)
    inputs[replaced] = torch.randint(len(tokenizer), labels.shape)[replaced]
    return inputs, labels
    # END SOLUTION


class BertForCLSMLM(nn.Module):
    """Classification and masked language modeling with one encoder."""

    def __init__(self, encoder, num_labels=5, mlm_alpha=0.3):
        super().__init__()
        self.bert = encoder
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(encoder.config.hidden_size, num_labels)
        self.lm_head = nn.Linear(encoder.config.hidden_size, encoder.config.vocab_size)
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
        """Return (loss, logits) with labels, and (logits,) without.

        The loss is that of classification of `input_ids`, plus mlm_alpha times that of masked language modeling of
        `mlm_input_ids` if there are any. The two batches may have other texts and other lengths.
        """
        # SOLUTION: one forward pass per batch, both through self.bert; each loss is a mean over its own labels
        states = self.bert(input_ids, attention_mask=attention_mask)[0]
        logits = self.classifier(self.dropout(states[:, 0]))
        if labels is None:
            return (logits,)
        loss = F.cross_entropy(logits, labels)
        if mlm_input_ids is not None:
            tokens = self.lm_head(self.bert(mlm_input_ids, attention_mask=mlm_attention_mask)[0])
            loss = loss + self.mlm_alpha * F.cross_entropy(
                tokens.flatten(0, 1), mlm_labels.flatten(), ignore_index=-100
            )
        return loss, logits
        # END SOLUTION


def answer_chance_loss(labels):
    """Question 1: return the loss of a classifier that gives all of `labels` classes the same probability."""
    # SOLUTION: what is the cross-entropy of a probability of 1 / labels?
    return math.log(labels)
    # END SOLUTION


def answer_head_parameters(hidden, labels):
    """Question 2: return the number of parameters of the classification head (one linear layer with a bias)."""
    # SOLUTION: a weight per input and output, and the bias
    return hidden * labels + labels
    # END SOLUTION


def answer_masks(tokens):
    """Question 3: return how many [MASK] tokens to expect in a text of `tokens` ordinary tokens."""
    # SOLUTION: which share is chosen, and which share of those becomes [MASK]?
    return 0.15 * 0.8 * tokens
    # END SOLUTION
