import random


def mask_tokens(tokens, tokenizer):
    """One row as a list, one token at a time; the label of the others is -1."""
    inputs, labels = [], []
    for token in tokens:
        token = int(token)
        if token in tokenizer.all_special_ids or random.random() >= 0.15:
            inputs.append(token)
            labels.append(-1)
            continue
        labels.append(token)
        fate = random.random()
        if fate < 0.8:
            inputs.append(tokenizer.mask_token_id)
        elif fate < 0.9:
            inputs.append(random.randrange(len(tokenizer)))
        else:
            inputs.append(token)
    return inputs, labels
