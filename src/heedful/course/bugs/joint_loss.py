"""Mistakes in joint losses."""

from __future__ import annotations

from heedful.course.bugs import Bug

FUNCTION = """
import torch
from torch.nn import functional as F

def joint_loss(cls_logits, labels, mlm_logits, mlm_labels, alpha=0.3):
    cls_loss = F.cross_entropy(cls_logits, labels)
    mlm_loss = F.cross_entropy(mlm_logits.reshape(-1, mlm_logits.size(-1)), mlm_labels.reshape(-1), ignore_index=-100)
    return cls_loss + alpha * mlm_loss
"""
MODEL = """
import torch
from torch import nn
from torch.nn import functional as F

class BertForCLSMLM(nn.Module):
    def __init__(self, encoder, num_labels=5, mlm_alpha=0.3):
        super().__init__()
        self.bert = encoder
        self.other = self.bert
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(encoder.config.hidden_size, num_labels)
        self.lm_head = nn.Linear(encoder.config.hidden_size, encoder.config.vocab_size)
        self.mlm_alpha = mlm_alpha

    def forward(self, input_ids, attention_mask=None, labels=None, mlm_input_ids=None, mlm_attention_mask=None, mlm_labels=None):
        states = self.bert(input_ids, attention_mask=attention_mask)[0]
        logits = self.classifier(self.dropout(states[:, 0]))
        if labels is None:
            return (logits,)
        loss = F.cross_entropy(logits, labels)
        if mlm_input_ids is not None:
            masked = self.other(mlm_input_ids, attention_mask=mlm_attention_mask)[0]
            scores = self.lm_head(masked)
            mlm_loss = F.cross_entropy(scores.flatten(0, 1), mlm_labels.flatten(), ignore_index=-100)
            loss = loss + self.mlm_alpha * mlm_loss
        return loss, logits
"""
CE = "mlm_loss = F.cross_entropy(mlm_logits.reshape(-1, mlm_logits.size(-1)), mlm_labels.reshape(-1), ignore_index=-100)"
SUM = "return cls_loss + alpha * mlm_loss"
MLM = "mlm_loss = F.cross_entropy(scores.flatten(0, 1), mlm_labels.flatten(), ignore_index=-100)"
TOTAL = "loss = loss + self.mlm_alpha * mlm_loss"
SWAPPED = (
    "Classification is multiplied by alpha instead of masked language modeling.",
    "What is left with alpha = 0?",
)
FORGOTTEN = ("Both losses are added without alpha.", "What does alpha do in your code?")
CONVEX = ("The losses are weighted by 1 - alpha and alpha; the sum that is asked for keeps classification whole.",
          "Which weight has classification in the formula?")  # fmt: skip
EVERYWHERE = (
    "Tokens without a label are in the loss, with some word as their label.",
    "Which labels has F.cross_entropy to ignore?",
)

BUGS = (
    Bug("alpha on the wrong loss", *SWAPPED, FUNCTION, ((SUM, "return alpha * cls_loss + mlm_loss"),)),
    Bug("alpha missing", *FORGOTTEN, FUNCTION, ((SUM, "return cls_loss + mlm_loss"),)),
    Bug("weights that sum to 1", *CONVEX, FUNCTION, ((SUM, "return (1 - alpha) * cls_loss + alpha * mlm_loss"),)),
    Bug("loss on all tokens", *EVERYWHERE, FUNCTION, ((CE, CE.replace("mlm_labels.reshape(-1), ignore_index=-100", "mlm_labels.reshape(-1).clamp(min=0)")),)),
    Bug("mean over all positions", "The summed loss of masked tokens is divided by the number of positions.",
        "How many tokens have a label?", FUNCTION, ((CE, CE[:-1] + ', reduction="sum") / mlm_labels.numel()'),)),
    Bug("masked loss summed", "The loss of masked tokens is a sum instead of a mean.", "What if the batch has twice as many masked texts?",
        FUNCTION, ((CE, CE[:-1] + ', reduction="sum")'),)),
    Bug("one mean over the count of the other", "The summed loss of masked tokens is divided by the number of texts with a class.",
        "Over which number is each mean?", FUNCTION, ((CE, CE[:-1] + ', reduction="sum") / len(labels)'),)),
    Bug("masked loss without gradient", "The loss of masked tokens is a plain number, through which no gradient flows.",
        "What do .item() and .detach() do?", FUNCTION, ((SUM, "return cls_loss + alpha * mlm_loss.item()"),)),
    Bug("masked labels shifted", "The labels of masked tokens are shifted by one, as for a model of the next token.",
        "Is the token to predict at its own place?", FUNCTION,
        ((CE, "mlm_loss = F.cross_entropy(mlm_logits[:, :-1].reshape(-1, mlm_logits.size(-1)), mlm_labels[:, 1:].reshape(-1), ignore_index=-100)"),)),
    Bug("softmax before the loss", "F.cross_entropy gets probabilities, but it takes logits and does the softmax itself.",
        "What does the documentation of F.cross_entropy say about its first argument?", FUNCTION,
        (("F.cross_entropy(cls_logits, labels)", "F.cross_entropy(cls_logits.softmax(-1), labels)"),)),
    Bug("two encoders", "The head of masked tokens has an encoder of its own, so that the tasks share nothing.",
        "Which parameters do both losses reach?", MODEL,
        (("self.other = self.bert", "import copy\n        self.other = copy.deepcopy(self.bert)"),)),
    Bug("classifier reads masked text", "The classifier gets the states of the masked texts.",
        "Is anything hidden in the text that is classified at test time?", MODEL,
        (("        states = self.bert(input_ids, attention_mask=attention_mask)[0]",
          "        source = input_ids if mlm_input_ids is None else mlm_input_ids\n        states = self.bert(source, attention_mask=None if mlm_input_ids is not None else attention_mask)[0]"),)),
    Bug("alpha on the wrong loss", *SWAPPED, MODEL, ((TOTAL, "loss = self.mlm_alpha * loss + mlm_loss"),)),
    Bug("alpha missing", *FORGOTTEN, MODEL, ((TOTAL, "loss = loss + mlm_loss"),)),
    Bug("weights that sum to 1", *CONVEX, MODEL, ((TOTAL, "loss = (1 - self.mlm_alpha) * loss + self.mlm_alpha * mlm_loss"),)),
    Bug("loss on all tokens", *EVERYWHERE, MODEL, ((MLM, MLM.replace("mlm_labels.flatten(), ignore_index=-100", "mlm_labels.flatten().clamp(min=0)")),)),
    Bug("masked loss never added", "The loss of masked tokens is computed and thrown away.", "What is the loss that you return?", MODEL, ((TOTAL, "pass"),)),
)  # fmt: skip
