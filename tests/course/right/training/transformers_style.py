import numpy as np
import torch


def lr_lambda(current_step, num_warmup_steps, num_training_steps):
    """Multiples of the learning rate."""
    if current_step < num_warmup_steps:
        return float(current_step) / float(max(1, num_warmup_steps))
    return max(
        0.0, float(num_training_steps - current_step) / float(max(1, num_training_steps - num_warmup_steps))
    )


def evaluate(model, loader):
    """Batches are dictionaries; percent."""
    model.eval()
    hits = []
    for batch in loader:
        with torch.no_grad():
            logits = model(input_ids=batch["input_ids"])
        hits += (logits.argmax(dim=-1) == batch["labels"]).tolist()
    return {"accuracy": 100.0 * np.mean(hits)}


def train(model, loader, optimizer, epochs):
    for _ in range(epochs):
        model.train()
        for batch in loader:
            loss, _ = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def choose_best(val_acc, test_acc):
    i = int(np.argmax(val_acc))
    return {"val": val_acc[i], "test": test_acc[i]}
