"""Mistakes in GPT blocks and models."""

from __future__ import annotations

from heedful.course.bugs import Bug

GPT = """
import math
import torch
from torch import nn
from torch.nn import functional as F

class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop = nn.Dropout(config.attn_pdrop)
        self.register_buffer("mask", torch.tril(torch.ones(config.block_size, config.block_size)))
        self.n_head = config.n_head

    def forward(self, x):
        b, t, d = x.shape
        k, q, v = (f(x).view(b, t, self.n_head, d // self.n_head).transpose(1, 2)
                   for f in (self.key, self.query, self.value))
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        att = self.attn_drop(F.softmax(att, dim=-1))
        return self.proj((att @ v).transpose(1, 2).contiguous().view(b, t, d))

class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln1 = nn.LayerNorm(config.n_embd)
        self.ln2 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.out = nn.Linear(4 * config.n_embd, config.n_embd)
        self.drop = nn.Dropout(config.resid_pdrop)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        x = x + self.drop(self.out(F.gelu(self.fc(self.ln2(x)))))
        return x

class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tok_emb = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, config.block_size, config.n_embd))
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        b, t = idx.shape
        x = self.tok_emb(idx) + self.pos_emb[:, :t, :]
        for block in self.blocks:
            x = block(x)
        x = self.ln_f(x)
        logits = self.head(x)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-100)
        return logits, loss
"""
"""In the form of minGPT; `targets` are the next tokens."""
LOSS = "loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-100)"
HEAD = "        logits = self.head(x)\n"
SHIFTED = "loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1), ignore_index=-100)"
LABELS = GPT.replace("targets", "labels").replace(LOSS.replace("targets", "labels"), SHIFTED)
"""In the form of transformers: `labels` are the ids themselves, and the model shifts them."""
FF = "x = x + self.drop(self.out(F.gelu(self.fc(self.ln2(x)))))"
ATTENTION = "x = x + self.attn(self.ln1(x))"
MASKED = 'att = att.masked_fill(self.mask[:t, :t] == 0, float("-inf"))'

BUGS = (
    Bug("labels not shifted", "The loss asks each position for the token that it was given, not for the next one.",
        "labels are the ids themselves here: which logits belong to which label?", LABELS,
        ((SHIFTED, LOSS.replace("targets", "labels")),)),
    Bug("labels shifted twice", "targets are the next tokens already, and the model shifts them once more.",
        "What is targets[:, 0], and which logits predict it?", GPT,
        ((LOSS, "loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), targets[:, 1:].reshape(-1), ignore_index=-100)"),)),
    Bug("labels shifted the wrong way", "The loss asks each position for the token before it.",
        "Does position t predict t + 1 or t - 1?", LABELS,
        ((SHIFTED, "loss = F.cross_entropy(logits[:, 1:].reshape(-1, logits.size(-1)), labels[:, :-1].reshape(-1), ignore_index=-100)"),)),
    Bug("softmax before the loss", "F.cross_entropy gets probabilities, but it takes logits and does the softmax itself.",
        "What does the documentation of F.cross_entropy say about its first argument?", GPT,
        ((LOSS, LOSS.replace("logits.reshape(-1, logits.size(-1))", "logits.reshape(-1, logits.size(-1)).softmax(-1)")),)),
    Bug("loss summed over tokens", "The loss is the sum over tokens instead of their mean.",
        "How does your loss change if the batch has twice as many rows?", GPT,
        ((LOSS, LOSS.replace("ignore_index=-100", 'ignore_index=-100, reduction="sum"')),)),
    Bug("loss of the last token only", "Only the last position is in the loss.", "How many predictions does a row of t tokens have?", GPT,
        ((LOSS, "loss = F.cross_entropy(logits[:, -1], targets[:, -1], ignore_index=-100)"),)),
    Bug("positions missing", "The embeddings of the positions are never added.", "What tells the model which token was first?", GPT,
        (("self.tok_emb(idx) + self.pos_emb[:, :t, :]", "self.tok_emb(idx)"),)),
    Bug("one position for all", "Every token gets the embedding of the first position.", "Which rows of the position table does your slice have?",
        GPT, (("self.pos_emb[:, :t, :]", "self.pos_emb[:, :1, :]"),)),
    Bug("positions of the end", "The last rows of the position table are used instead of the first.",
        "Which position does the first token of a short text have?", GPT, (("self.pos_emb[:, :t, :]", "self.pos_emb[:, -t:, :]"),)),
    Bug("one block many times", "[Block(config)] * n is one block n times, with one set of parameters.",
        "How many times is Block(config) called?", GPT,
        (("nn.ModuleList([Block(config) for _ in range(config.n_layer)])", "nn.ModuleList([Block(config)] * config.n_layer)"),)),
    Bug("only the last block counts", "Each block gets the embeddings instead of the output of the block before.",
        "What is the input of the second block?", GPT,
        (("        for block in self.blocks:\n            x = block(x)\n", "        e = x\n        for block in self.blocks:\n            x = block(e)\n"),)),
    Bug("last norm missing", "The norm after the last block is never applied.", "Which layer of __init__ does forward not use?", GPT,
        (("        x = self.ln_f(x)\n", ""),)),
    Bug("mask off by one", "Each token also sees the one after it.", "What is the diagonal argument of tril and triu?", GPT,
        (("torch.tril(torch.ones(config.block_size, config.block_size))", "torch.tril(torch.ones(config.block_size, config.block_size), diagonal=1)"),)),
    Bug("mask missing", "No mask is applied, so that every token sees the whole text.", "Where is the future hidden?", GPT, ((MASKED, "pass"),)),
    Bug("residual connection missing", "The output of attention replaces its input instead of being added to it.",
        "What is added to what in a block?", GPT, ((ATTENTION, "x = self.attn(self.ln1(x))"),)),
    Bug("residual connection missing", "The output of the feed-forward replaces its input instead of being added to it.",
        "What is added to what in a block?", GPT, ((FF, FF.replace("x = x + ", "x = ")),)),
    Bug("residual from the normed input", "The norm replaces x, so that the sum begins from the normed input.",
        "Which x belongs to the residual sum: before or after the norm?", GPT,
        ((ATTENTION, "x = self.ln1(x)\n        x = x + self.attn(x)"),)),
    Bug("one norm used twice", "The first norm is used in both places, and the second never.", "Which layer of __init__ does forward not use?", GPT,
        ((FF, FF.replace("ln2", "ln1")),)),
    Bug("norm missing", "The feed-forward gets x without a norm.", "How many norms has a block?", GPT, ((FF, FF.replace("self.ln2(x)", "x")),)),
    Bug("norm missing", "Attention gets x without a norm.", "How many norms has a block?", GPT, ((ATTENTION, "x = x + self.attn(x)"),)),
    Bug("activation missing", "There is nothing between the two layers of the feed-forward, so that they are one.",
        "What is the product of two matrices?", GPT, ((FF, FF.replace("F.gelu(self.fc(self.ln2(x)))", "self.fc(self.ln2(x))")),)),
    Bug("activation at the end", "The activation comes after both layers of the feed-forward instead of between them.",
        "What is between the two layers?", GPT, ((FF, "x = x + F.gelu(self.out(self.fc(self.ln2(x))))"),)),
    Bug("feed-forward missing", "The block has attention alone.", "What are the two parts of a block?", GPT, ((f"        {FF}\n", ""),)),
    Bug("dropout left on", "Dropout is active in evaluation mode: F.dropout is on unless it is told the mode.",
        "What is the default of the argument training of F.dropout?", GPT, ((FF, FF.replace("self.drop(", "F.dropout(")),)),
)  # fmt: skip
