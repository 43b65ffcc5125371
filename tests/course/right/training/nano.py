import math

import torch
from torch.nn import functional as F


def get_lr(it, warmup_iters=10, lr_decay_iters=100, learning_rate=0.5, min_lr=0.05):
    """nanoGPT's."""
    if it < warmup_iters:
        return learning_rate * it / warmup_iters
    if it > lr_decay_iters:
        return min_lr
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def language_model_loss(logits, input_ids, attention_mask):
    """A mask instead of the padding's id; logarithms by hand."""
    nll = -logits[:, :-1].log_softmax(-1).gather(-1, input_ids[:, 1:, None]).squeeze(-1)
    mask = attention_mask[:, 1:].float()
    return (nll * mask).sum() / mask.sum()


def evaluate(model, dataloader, criterion, device):
    """Loss and accuracy; the mode is put back."""
    was = model.training
    model.eval()
    loss, logits, gold = 0.0, [], []
    with torch.inference_mode():
        for x, y in dataloader:
            out = model(x.to(device))
            loss += criterion(out, y.to(device)).item() * len(y)
            logits.append(out)
            gold.append(y)
    model.train(was)
    gold = torch.cat(gold)
    return loss / len(gold), (torch.cat(logits).argmax(1) == gold).float().mean().item()


def train_one_epoch(model, train_loader, optimizer, criterion):
    model.train()
    total = 0
    for inputs, labels in train_loader:
        loss = criterion(model(inputs), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        optimizer.step()
        model.zero_grad(set_to_none=True)
        total += loss.item()
    return total


def select_best(history):
    return max(history, key=lambda row: row["dev_accuracy"])
