import torch


def nucleus_sampling(model, tokens, n, p=0.9, temp=1.0, greedy=False):
    """One row at a time, a list of new tokens alone, probabilities instead of logits."""
    tokens, new = tokens.tolist(), []
    with torch.no_grad():
        for _ in range(n):
            logits = model(torch.tensor([(tokens + new)[-model.block_size :]]))
            probs = (logits[0, -1] / temp).softmax(-1)
            if greedy:
                new.append(int(probs.argmax()))
                continue
            order = sorted(range(len(probs)), key=lambda i: -probs[i])
            kept, mass = [], 0.0
            for i in order:
                kept.append(i)
                mass += float(probs[i])
                if mass >= p:
                    break
            weights = probs[kept] / probs[kept].sum()
            new.append(kept[int(torch.multinomial(weights, 1))])
    return new
