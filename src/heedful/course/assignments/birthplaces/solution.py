"""Span corruption, a learning rate schedule, and what pretraining has to beat."""

import math
import random
from collections import Counter

import torch
from torch.utils.data import Dataset


class CharCorruptionDataset(Dataset):
    """Documents, one per line, corrupted in another way every time one is read."""

    def __init__(self, data, block_size):
        self.MASK_CHAR = "\u2047"  # the double question mark, for mask
        self.PAD_CHAR = "\u25a1"  # the empty square, for padding
        characters = [self.PAD_CHAR, self.MASK_CHAR, *sorted(set(data) - {self.PAD_CHAR, self.MASK_CHAR})]
        self.stoi = {character: i for i, character in enumerate(characters)}
        self.itos = dict(enumerate(characters))
        self.vocab_size, self.block_size = len(characters), block_size
        self.data = data.split("\n")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        """Return x and y, tensors of block_size - 1 ids each.

        The document is cut to a random length from 4 to 7/8 of the block. A span of it, a quarter long on average and
        at a random place, moves to the end: prefix MASK suffix MASK span, then padding up to block_size. x is all but
        the last character of that, y all but the first.
        """
        # SOLUTION: draw the length, then the span's length, then its beginning; cut, join, fill up, shift
        document = self.data[idx]
        document = document[: random.randint(4, int(self.block_size * 7 / 8))]
        n = len(document)
        length = random.randint(1, n // 2 - 1) if n > 3 else 1
        start = random.randint(0, n - length)
        prefix, span, suffix = document[:start], document[start : start + length], document[start + length :]
        whole = prefix + self.MASK_CHAR + suffix + self.MASK_CHAR + span
        ids = [self.stoi[c] for c in whole.ljust(self.block_size, self.PAD_CHAR)]
        return torch.tensor(ids[:-1], dtype=torch.long), torch.tensor(ids[1:], dtype=torch.long)
        # END SOLUTION


def get_lr(step, warmup_steps, max_steps, max_lr):
    """Return the learning rate of a step, counted from 0.

    It rises linearly and reaches `max_lr` with the last step of the warm-up, number warmup_steps - 1. Then it falls
    along half a cosine to 0 at step `max_steps`, and stays 0.
    """
    # SOLUTION: three cases; what does a cosine do after half a turn?
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    progress = min(1.0, (step - warmup_steps) / (max_steps - warmup_steps))
    return max_lr * (1 + math.cos(math.pi * progress)) / 2
    # END SOLUTION


def london_baseline(path, answer="London"):
    """Return (total, correct): the questions of a file, and how many of them `answer` answers.

    A line is a question, a tab and a place. A file without places has no score: (0, 0).
    """
    # SOLUTION: compare whole places; a blank line at the end is no question
    total = correct = 0
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if not line:
                continue
            _, tab, place = line.partition("\t")
            if not tab:
                return 0, 0
            total += 1
            correct += place == answer
    return total, correct
    # END SOLUTION


def answer_constant(train, dev):
    """Question 1: return the accuracy on dev of always giving the most frequent answer of train.

    Both are lists of places. Of equally frequent ones the first in the alphabet is taken.
    """
    # SOLUTION: count in train, compare in dev
    counts = Counter(train)
    place = min(counts, key=lambda name: (-counts[name], name))
    return dev.count(place) / len(dev)
    # END SOLUTION


def answer_parameters(vocabulary, block, layers, width):
    """Question 2: return the number of parameters of the GPT of the course.

    Embeddings of tokens and of positions; layers with attention (four linear layers with biases), two layer norms and
    two linear layers with biases of inner width 4 * width; a last layer norm; a head without bias, not tied.
    """
    # SOLUTION: add up one layer first; a linear layer has in * out + out, a layer norm 2 * width
    layer = (
        4 * (width * width + width)
        + 2 * 2 * width
        + (4 * width * width + 4 * width)
        + (4 * width * width + width)
    )
    return vocabulary * width + block * width + layers * layer + 2 * width + width * vocabulary
    # END SOLUTION
