"""Mistakes in training habits."""

from __future__ import annotations

from heedful.course.bugs import Bug

SCHEDULE = """
import math

def get_lr(step, warmup_steps, max_steps, max_lr, min_lr=0.0):
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / (max_steps - warmup_steps)
    progress = min(progress, 1.0)
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * progress))
"""
LINEAR = """
def lr_lambda(step, num_warmup_steps, num_training_steps):
    if step < num_warmup_steps:
        return step / num_warmup_steps
    return max(0.0, (num_training_steps - step) / (num_training_steps - num_warmup_steps))
"""
LOSS = """
from torch.nn import functional as F

def lm_loss(logits, tokens, pad_id=0):
    predicted, target = logits[:, :-1], tokens[:, 1:]
    return F.cross_entropy(predicted.reshape(-1, predicted.size(-1)), target.reshape(-1), ignore_index=pad_id)
"""
EVALUATE = """
import torch

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(-1) == y).sum().item()
        total += len(y)
    return right / total
"""
TRAIN = """
from torch.nn import functional as F

def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
SELECT = """
def select_best(dev_scores, test_scores):
    best = max(range(len(dev_scores)), key=lambda i: dev_scores[i])
    return best, test_scores[best]
"""
CLAMP = "    progress = min(progress, 1.0)\n"
PAIR = "predicted, target = logits[:, :-1], tokens[:, 1:]"
BEST = "best = max(range(len(dev_scores)), key=lambda i: dev_scores[i])"
STEPS = ("        optimizer.zero_grad()\n        loss = F.cross_entropy(model(x), y)\n        loss.backward()\n        optimizer.step()\n")  # fmt: skip
RISES = "learning rate rises again"

BUGS = (
    Bug(RISES, "Beyond the planned last step the cosine goes up again.", "What is the progress after the last planned step?", SCHEDULE, ((CLAMP, ""),)),
    Bug(RISES, "The cosine goes through a whole period, and comes back to its peak at the end.", "What is cos(2 pi)?", SCHEDULE,
        (("math.cos(math.pi * progress)", "math.cos(2 * math.pi * progress)"),)),
    Bug(RISES, "The progress begins anew after the planned end.", "What does % do?", SCHEDULE, ((CLAMP, "    progress = progress % 1.0\n"),)),
    Bug("learning rate below zero", "Beyond the planned last step the line goes below 0.", "What is the rate after the last planned step?", LINEAR,
        (("max(0.0, (num_training_steps - step) / (num_training_steps - num_warmup_steps))", "(num_training_steps - step) / (num_training_steps - num_warmup_steps)"),)),
    Bug("warm-up missing", "The first step has the full learning rate.", "What happens in the first steps?", SCHEDULE,
        (("return max_lr * (step + 1) / warmup_steps", "return max_lr"),)),
    Bug("warm-up falls", "The learning rate falls during warm-up instead of rising.", "Which rate has the first step?", SCHEDULE,
        (("return max_lr * (step + 1) / warmup_steps", "return max_lr * (warmup_steps - step) / warmup_steps"),)),
    Bug("decay counts the warm-up", "The decay is computed from step 0, so that the peak is never reached.", "Which rate has the step after warm-up?", LINEAR,
        (("return step / num_warmup_steps", "return step / num_warmup_steps * (num_training_steps - step) / num_training_steps"),
         ("(num_training_steps - step) / (num_training_steps - num_warmup_steps)", "(num_training_steps - step) / num_training_steps"))),
    Bug("labels not shifted", "Each position is asked for the token that it was given.", "Which logits predict tokens[:, 1]?", LOSS,
        ((PAIR, "predicted, target = logits, tokens"),)),
    Bug("labels shifted the wrong way", "Each position is asked for the token before it.", "Which logits predict tokens[:, 1]?", LOSS,
        ((PAIR, "predicted, target = logits[:, 1:], tokens[:, :-1]"),)),
    Bug("loss on padding", "The padding is in the loss, as if it had to be predicted.", "Which tokens should the model learn to give?", LOSS,
        ((", ignore_index=pad_id)", ")"),)),
    Bug("mean over padding too", "Padding is left out of the sum, but counts in the mean.", "How many real tokens are there?", LOSS,
        ((", ignore_index=pad_id)", ', ignore_index=pad_id, reduction="sum") / target.numel()'),)),
    Bug("dropout left on", "The model is scored in training mode.", "Which mode has the model after an epoch of training?", EVALUATE, (("    model.eval()\n", ""),)),
    Bug("gradients on in evaluation", "The graph of every batch is built for gradients that nobody needs.", "What does torch.no_grad do?", EVALUATE,
        (("@torch.no_grad()\n", ""),)),
    Bug("mean over batches", "The mean of the batches' scores counts the small last batch as much as the others.", "How many examples has the last batch?", EVALUATE,
        (("right += (model(x).argmax(-1) == y).sum().item()\n        total += len(y)", "right += (model(x).argmax(-1) == y).float().mean().item()\n        total += 1"),)),
    Bug("only the last batch scored", "The counts begin anew with each batch.", "Where are the counts set to 0?", EVALUATE,
        (("        right += (model(x).argmax(-1) == y).sum().item()\n        total += len(y)", "        right = (model(x).argmax(-1) == y).sum().item()\n        total = len(y)"),)),
    Bug("gradients accumulate", "The gradients of all batches so far are used in every step.", "What does backward do with gradients that are there already?", TRAIN,
        (("        optimizer.zero_grad()\n", ""),)),
    Bug("step before backward", "The step is taken before the gradients of the batch are there.", "Which gradients does step use?", TRAIN,
        ((STEPS, "        loss = F.cross_entropy(model(x), y)\n        optimizer.step()\n        optimizer.zero_grad()\n        loss.backward()\n"),)),
    Bug("gradients thrown away", "The gradients are set to zero between backward and step.", "Which gradients does step use?", TRAIN,
        ((STEPS, "        loss = F.cross_entropy(model(x), y)\n        loss.backward()\n        optimizer.zero_grad()\n        optimizer.step()\n"),)),
    Bug("training in evaluation mode", "The model stays in the mode in which the evaluation left it.", "Which mode has the model after it was scored?", TRAIN,
        (("    model.train()\n", ""),)),
    Bug("one step per epoch", "The step is outside the loop over the batches.", "How many steps has an epoch?", TRAIN,
        (("        optimizer.zero_grad()\n        loss", "        loss"), ("        optimizer.step()\n", "    optimizer.step()\n"))),
    Bug("test used for selection", "The epoch that is best on test is chosen.", "Which scores may you look at before the end?", SELECT,
        ((BEST, "best = max(range(len(dev_scores)), key=lambda i: test_scores[i])"),)),
    Bug("test used for selection", "The largest test score of all epochs is reported.", "Of which epoch is the score that you report?", SELECT,
        (("test_scores[best]", "max(test_scores)"),)),
    Bug("last epoch instead of the best", "The last epoch is chosen, whatever dev says.", "What are the dev scores for?", SELECT,
        ((BEST, "best = len(dev_scores) - 1"),)),
    Bug("lowest score chosen", "The epoch with the lowest dev score is chosen.", "Is a higher score better?", SELECT,
        ((BEST, BEST.replace("max(", "min(")),)),
)  # fmt: skip
