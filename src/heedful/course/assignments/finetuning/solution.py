"""Parameter-efficient fine-tuning, and an honest search."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    """A frozen linear layer with a learned change of low rank beside it: W x + b + alpha / rank B A x."""

    def __init__(self, linear, rank=8, alpha=16):
        super().__init__()
        self.linear = linear
        # SOLUTION: freeze the layer; which of A and B has to begin at zero, and which must not?
        for parameter in linear.parameters():
            parameter.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(rank, linear.in_features))
        self.lora_B = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.merged = False
        # END SOLUTION

    def forward(self, x):
        """Return what the layer gives, and the change unless it is merged."""
        # SOLUTION: multiply by A first: the product B A is as large as W
        if self.merged:
            return self.linear(x)
        return self.linear(x) + self.scaling * ((x @ self.lora_A.T) @ self.lora_B.T)
        # END SOLUTION

    def merge(self):
        """Add the change to the layer's weight, so that it costs nothing any more."""
        # SOLUTION: the change of the weight is alpha / rank B A
        self.linear.weight.data += self.scaling * (self.lora_B @ self.lora_A)
        self.merged = True
        # END SOLUTION

    def unmerge(self):
        """Undo merge."""
        # SOLUTION: subtract what merge has added
        self.linear.weight.data -= self.scaling * (self.lora_B @ self.lora_A)
        self.merged = False
        # END SOLUTION


class Adapter(nn.Module):
    """A bottleneck with a residual sum (Houlsby et al. 2019); a new one changes nothing."""

    def __init__(self, d_model, bottleneck):
        super().__init__()
        self.down = nn.Linear(d_model, bottleneck)
        self.up = nn.Linear(bottleneck, d_model)
        # SOLUTION: which layer has to begin at zero, so that a new adapter changes nothing?
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        # END SOLUTION

    def forward(self, x):
        """x is [batch, tokens, d_model], and so is the result."""
        # SOLUTION: down, an activation, up, and the sum with x
        return x + self.up(torch.relu(self.down(x)))
        # END SOLUTION


def train_epoch(model, loader, optimizer):
    """Train for one epoch: a step per batch (x, y) of the loader, by cross-entropy; model(x) gives logits."""
    # SOLUTION: the right mode; per batch the gradients of this batch alone, and a step
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    # END SOLUTION


def evaluate(model, loader):
    """Return the accuracy of the model on all examples of the loader."""
    # SOLUTION: the right mode, no gradients, and a mean over examples instead of batches
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += int((model(x).argmax(-1) == y).sum())
            total += len(y)
    return right / total
    # END SOLUTION


def select_best(dev_scores, test_scores):
    """Return the number of the epoch to keep, from 0, and the test score to report; higher is better."""
    # SOLUTION: which of both lists may be looked at to choose?
    best = max(range(len(dev_scores)), key=lambda i: dev_scores[i])
    return best, test_scores[best]
    # END SOLUTION


def answer_lora_parameters(layers, width, rank):
    """Question 1: return how many parameters learn, if LoRA is on the query and value projections of all layers.

    All projections are width x width.
    """
    # SOLUTION: A and B of one projection have rank * width each
    return layers * 2 * 2 * rank * width
    # END SOLUTION


def answer_draw_rate(low, high, u):
    """Question 2: return a learning rate from low to high for a uniform number u from 0 to 1, for a random search.

    Every factor of ten is to be equally likely.
    """
    # SOLUTION: of what has to be drawn uniformly?
    return low * (high / low) ** u
    # END SOLUTION


def answer_half_width(accuracy, n):
    """Question 3: return half of the width of a 95 % interval of an accuracy on n examples (normal approximation)."""
    # SOLUTION: the standard error of a share, times 1.96
    return 1.96 * math.sqrt(accuracy * (1 - accuracy) / n)
    # END SOLUTION
