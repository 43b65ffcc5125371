"""Mistakes in BERT blocks, classifiers and masked language models."""

from __future__ import annotations

from heedful.course.bugs import Bug

BLOCK = """
import math
import torch
from torch import nn
from torch.nn import functional as F

class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.hidden_size
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.dense = nn.Linear(d, d)
        self.norm1 = nn.LayerNorm(d)
        self.inner = nn.Linear(d, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, d)
        self.norm2 = nn.LayerNorm(d)
        self.heads, self.dropout = config.num_attention_heads, nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x, attention_mask=None):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.heads, d // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        weights = self.dropout(scores.softmax(-1))
        y = self.dense((weights @ v).transpose(1, 2).reshape(b, t, d))
        x = self.norm1(x + self.dropout(y))
        y = self.outer(F.gelu(self.inner(x)))
        return self.norm2(x + self.dropout(y))
"""
CLASSIFIER = """
import torch
from torch import nn
from torch.nn import functional as F

class BertForSequenceClassification(nn.Module):
    def __init__(self, encoder, num_labels=5, dropout=0.1):
        super().__init__()
        self.bert = encoder
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.config.hidden_size, num_labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        states = self.bert(input_ids, attention_mask=attention_mask)[0]
        pooled = self.dropout(states[:, 0])
        logits = self.classifier(pooled)
        if labels is None:
            return (logits,)
        loss = F.cross_entropy(logits, labels)
        return loss, logits
"""
MASKED = """
import torch
from torch import nn
from torch.nn import functional as F

class BertForMaskedLanguageModel(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.bert = encoder
        d = encoder.config.hidden_size
        self.transform = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)
        self.bias = nn.Parameter(torch.zeros(encoder.config.vocab_size))

    def forward(self, input_ids, attention_mask=None, labels=None):
        states = self.bert(input_ids, attention_mask=attention_mask)[0]
        states = self.norm(F.gelu(self.transform(states)))
        logits = F.linear(states, self.bert.get_input_embeddings().weight, self.bias)
        if labels is None:
            return (logits,)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)
        return loss, logits
"""
POOLED = "pooled = self.dropout(states[:, 0])"
MEAN_HINT = "Which rows are padding, and how many real tokens has each text?"
CE = "loss = F.cross_entropy(logits, labels)"
MLM = "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)"
CALL = "states = self.bert(input_ids, attention_mask=attention_mask)[0]"
DROPPED = "Dropout is active in evaluation mode: F.dropout is on unless it is told the mode."
DROPPED_HINT = "What is the default of the argument training of F.dropout?"
IGNORED = (
    "The attention mask is an argument, but does not reach the encoder.",
    "Who has to know which tokens are padding?",
)
DETACHED = (
    "The encoder runs without gradients, so that only the head learns.",
    "Which parameters does the loss reach?",
)

BUGS = (
    Bug("pooled padding", "The mean over all positions includes those of padding.", MEAN_HINT, CLASSIFIER,
        ((POOLED, "pooled = self.dropout(states.mean(1))"),)),
    Bug("pooled padding", "Padding is left out of the sum, but the sum is divided by the whole length.", MEAN_HINT, CLASSIFIER,
        ((POOLED, "m = torch.ones_like(input_ids) if attention_mask is None else attention_mask\n"
          "        pooled = self.dropout((states * m[..., None]).sum(1) / states.size(1))"),)),
    Bug("pooled padding", "The largest value over all positions may be that of padding.", MEAN_HINT, CLASSIFIER,
        ((POOLED, "pooled = self.dropout(states.max(1).values)"),)),
    Bug("last position pooled", "The state at the last position is used, which is padding for most texts.",
        "Which position has [CLS]?", CLASSIFIER, ((POOLED, "pooled = self.dropout(states[:, -1])"),)),
    Bug("second token pooled", "The state of the token after [CLS] is used.", "Which index has the first token?", CLASSIFIER,
        ((POOLED, "pooled = self.dropout(states[:, 1])"),)),
    Bug("attention mask ignored", *IGNORED, CLASSIFIER, ((CALL, "states = self.bert(input_ids)[0]"),)),
    Bug("encoder without gradients", *DETACHED, CLASSIFIER,
        ((CALL, "with torch.no_grad():\n            states = self.bert(input_ids, attention_mask=attention_mask)[0]"),)),
    Bug("softmax before the loss", "F.cross_entropy gets probabilities, but it takes logits and does the softmax itself.",
        "What does the documentation of F.cross_entropy say about its first argument?", CLASSIFIER,
        ((CE, "loss = F.cross_entropy(logits.softmax(-1), labels)"),)),
    Bug("logits are probabilities", "A softmax is applied to what is returned as logits, and the loss applies another.",
        "Are your logits between 0 and 1?", CLASSIFIER, (("logits = self.classifier(pooled)", "logits = self.classifier(pooled).softmax(-1)"),)),
    Bug("ReLU on the logits", "An activation after the last layer keeps logits from being negative.",
        "Which values may a logit have?", CLASSIFIER, (("logits = self.classifier(pooled)", "logits = F.relu(self.classifier(pooled))"),)),
    Bug("squared error for classes", "The loss is the squared error to one-hot labels instead of the cross-entropy.",
        "Which loss belongs to logits of classes?", CLASSIFIER, ((CE, "loss = F.mse_loss(logits, F.one_hot(labels, logits.size(-1)).float())"),)),
    Bug("dropout left on", DROPPED, DROPPED_HINT, CLASSIFIER, ((POOLED, "pooled = F.dropout(states[:, 0], 0.1)"),)),
    Bug("loss on all tokens", "Positions without a label are in the loss with some class instead of being left out.",
        "Which labels has F.cross_entropy to ignore?", MASKED,
        ((MLM, "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.clamp(min=0).view(-1))"),)),
    Bug("loss on all tokens", "The loss compares with the input ids, at every position.", "What are the labels for?", MASKED,
        ((MLM, "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), input_ids.view(-1))"),)),
    Bug("masked labels shifted", "The labels are shifted by one token, as for a model of the next token.",
        "Is the token to predict at its own place or at the one before?", MASKED,
        ((MLM, "loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1), ignore_index=-100)"),)),
    Bug("mean over all positions", "The summed loss is divided by the number of positions instead of labels.",
        "How many tokens have a label?", MASKED,
        ((MLM, "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100, reduction=\"sum\") / labels.numel()"),)),
    Bug("attention mask ignored", *IGNORED, MASKED, ((CALL, "states = self.bert(input_ids)[0]"),)),
    Bug("encoder without gradients", *DETACHED, MASKED,
        ((CALL, "states = self.bert(input_ids, attention_mask=attention_mask)[0].detach()"),)),
    Bug("transform missing", "The layer before the output is never applied.", "Which layer of __init__ does forward not use?", MASKED,
        (("states = self.norm(F.gelu(self.transform(states)))", "states = self.norm(states)"),)),
    Bug("activation missing", "There is no activation after the layer before the output.", "What is the product of two matrices?", MASKED,
        (("F.gelu(self.transform(states))", "self.transform(states)"),)),
    Bug("mask ignored", "The mask is an argument of the block, but no line applies it to the scores.",
        "masked_fill returns a new tensor; masked_fill_ changes its own.", BLOCK,
        (("            scores = scores.masked_fill(", "            scores.masked_fill("),)),
    Bug("masked scores are zero", "Scores of padding are set to 0 instead of minus infinity, and exp(0) is 1.",
        "What does the softmax do with a score of 0?", BLOCK, (('float("-inf")', "0.0"),)),
    Bug("scaled by the whole width", "The scores are divided by the root of the whole width, not of one head's.",
        "How many products does the score of one head sum?", BLOCK, (("math.sqrt(d // self.heads)", "math.sqrt(d)"),)),
    Bug("heads split along the wrong axis", "view(b, heads, t, d / heads) cuts the text into pieces instead of the width.",
        "Which dimension has to be cut before the transpose?", BLOCK,
        (("f(x).view(b, t, self.heads, d // self.heads).transpose(1, 2)", "f(x).view(b, self.heads, t, d // self.heads)"),)),
    Bug("heads joined without a transpose", "The heads are put side by side without transposing back, which mixes positions.",
        "Which shape has weights @ v, and which does reshape need?", BLOCK, (("(weights @ v).transpose(1, 2).reshape", "(weights @ v).reshape"),)),
    Bug("residual connection missing", "The output of attention replaces its input instead of being added to it.",
        "What is added to what in a block?", BLOCK, (("x = self.norm1(x + self.dropout(y))", "x = self.norm1(self.dropout(y))"),)),
    Bug("residual connection missing", "The output of the feed-forward replaces its input instead of being added to it.",
        "What is added to what in a block?", BLOCK, (("return self.norm2(x + self.dropout(y))", "return self.norm2(self.dropout(y))"),)),
    Bug("norm of the output alone", "The norm is applied to the output of attention before the sum, not to the sum.",
        "What does BERT's norm get: the sum, or one of its parts?", BLOCK, (("x = self.norm1(x + self.dropout(y))", "x = x + self.norm1(self.dropout(y))"),)),
    Bug("activation missing", "There is nothing between the two layers of the feed-forward, so that they are one.",
        "What is the product of two matrices?", BLOCK, (("F.gelu(self.inner(x))", "self.inner(x)"),)),
    Bug("one norm used twice", "The first norm is used in both places, and the second never.",
        "Which layer of __init__ does forward not use?", BLOCK, (("return self.norm2(", "return self.norm1("),)),
    Bug("dropout left on", DROPPED, DROPPED_HINT, BLOCK, (("weights = self.dropout(scores.softmax(-1))", "weights = F.dropout(scores.softmax(-1), 0.1)"),)),
)  # fmt: skip
