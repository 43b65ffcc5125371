"""Mistakes in span corruption of characters."""

from __future__ import annotations

from heedful.course.bugs import Bug

DATASET = """
import random
import torch
from torch.utils.data import Dataset

class CharCorruptionDataset(Dataset):
    def __init__(self, data, block_size):
        self.MASK_CHAR = "\\u2047"
        self.PAD_CHAR = "\\u25A1"
        chars = sorted(set(data))
        chars.insert(0, self.MASK_CHAR)
        chars.insert(0, self.PAD_CHAR)
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.itos = {i: ch for i, ch in enumerate(chars)}
        self.vocab_size, self.block_size = len(chars), block_size
        self.data = data.split("\\n")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        document = self.data[idx]
        longest = int(self.block_size * 7 / 8)
        document = document[:random.randint(4, longest)]
        n = len(document)
        span = random.randint(1, n // 2 - 1) if n > 3 else 1
        start = random.randint(0, n - span)
        prefix, content, suffix = document[:start], document[start:start + span], document[start + span:]
        whole = prefix + self.MASK_CHAR + suffix + self.MASK_CHAR + content
        whole = whole + self.PAD_CHAR * (self.block_size - len(whole))
        x, y = whole[:-1], whole[1:]
        return (torch.tensor([self.stoi[c] for c in x], dtype=torch.long),
                torch.tensor([self.stoi[c] for c in y], dtype=torch.long))
"""
WHOLE = "whole = prefix + self.MASK_CHAR + suffix + self.MASK_CHAR + content"
CUT = "document = document[:random.randint(4, longest)]"
SPAN = "span = random.randint(1, n // 2 - 1) if n > 3 else 1"
START = "start = random.randint(0, n - span)"
PAIR = "x, y = whole[:-1], whole[1:]"

BUGS = (
    Bug("sentinel missing", "The second mask is missing: nothing says where the suffix ends and the span begins.",
        "How would a model know that the span comes now?", DATASET, ((WHOLE, "whole = prefix + self.MASK_CHAR + suffix + content"),)),
    Bug("first sentinel missing", "The first mask is missing: nothing marks the place of the span.",
        "What stands in the place of the span?", DATASET, ((WHOLE, "whole = prefix + suffix + self.MASK_CHAR + content"),)),
    Bug("span not hidden", "The span also stays in its place, where the model can copy it.",
        "Is the content anywhere in your row before the second mask?", DATASET,
        ((WHOLE, "whole = prefix + self.MASK_CHAR + content + suffix + self.MASK_CHAR + content"),)),
    Bug("span never given", "The row ends after the suffix: the model is never asked for the span.",
        "What has to come after the second mask?", DATASET, ((WHOLE, "whole = prefix + self.MASK_CHAR + suffix + self.MASK_CHAR"),)),
    Bug("suffix lost", "The part of the document after the span is dropped.",
        "Which three pieces has the document?", DATASET, ((WHOLE, "whole = prefix + self.MASK_CHAR + self.MASK_CHAR + content"),)),
    Bug("a mask for every character", "Each hidden character has a mask of its own, which gives the length away.",
        "How many masks does one span have?", DATASET,
        ((WHOLE, "whole = prefix + self.MASK_CHAR * span + suffix + self.MASK_CHAR + content"),)),
    Bug("labels not shifted", "x and y are the same characters: each position is asked for itself.",
        "Which character must the model give at position 0?", DATASET, ((PAIR, "x, y = whole[:-1], whole[:-1]"),)),
    Bug("labels shifted the wrong way", "x is one character ahead of y, so that the model repeats the past.",
        "Which of x and y begins with the first character?", DATASET, ((PAIR, "x, y = whole[1:], whole[:-1]"),)),
    Bug("length not random", "Documents are always cut to 7/8 of the block.", "What is drawn first, for every document?",
        DATASET, ((CUT, "document = document[:longest]"),)),
    Bug("document not cut", "Documents are cut to the whole block or more, not to 7/8 of it.",
        "How much room do the masks and the span need?", DATASET,
        ((CUT, "document = document[:random.randint(4, self.block_size - 2)]"),)),
    Bug("span always a quarter", "The span is exactly a quarter of the document every time.",
        "A quarter on average: between which lengths can you draw?", DATASET, ((SPAN, "span = max(1, n // 4)"),)),
    Bug("span too long", "The span is half of the document on average.", "What is the mean of what you draw?", DATASET,
        ((SPAN, "span = random.randint(1, n - 1)"),)),
    Bug("span too short", "The span is an eighth of the document on average.", "What is the mean of what you draw?", DATASET,
        ((SPAN, "span = random.randint(1, max(1, n // 4))"),)),
    Bug("span always in the middle", "The span is always in the middle of the document.", "From where to where can a span begin?",
        DATASET, ((START, "start = (n - span) // 2"),)),
    Bug("span always at the end", "The span is always the end of the document, so that there is no suffix.",
        "From where to where can a span begin?", DATASET, ((START, "start = n - span"),)),
    Bug("padding before the span", "The padding is between the suffix and the second mask instead of at the end.",
        "Where in the row does the padding belong?", DATASET,
        ((WHOLE, "whole = prefix + self.MASK_CHAR + suffix + self.PAD_CHAR * (self.block_size - n - 2) + self.MASK_CHAR + content"),)),
    Bug("no padding", "The row is not padded, so that rows of a batch have other lengths.",
        "How long must every row be?", DATASET, (("self.PAD_CHAR * (self.block_size - len(whole))", '""'),)),
    Bug("the same span every time", "A seed (or the index) fixes what is drawn: one document gives one row forever.",
        "What is different in the second epoch?", DATASET,
        (("document = self.data[idx]\n", "document = self.data[idx]\n        random.seed(idx)\n"),)),
)  # fmt: skip
