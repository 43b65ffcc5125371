import numpy as np


def mask_tokens(tokens, mask_id, vocab_size, special_ids):
    """A fixed number of tokens in each row, as BERT's own code: 15 % rounded."""
    tokens = np.array(tokens)
    inputs, labels = tokens.copy(), np.full(tokens.shape, -100)
    for row in range(len(tokens)):
        candidates = np.flatnonzero(~np.isin(tokens[row], special_ids))
        number = int(np.floor(0.15 * len(candidates) + np.random.rand()))
        for at in np.random.permutation(candidates)[:number]:
            labels[row, at] = tokens[row, at]
            inputs[row, at] = np.random.choice(
                [mask_id, np.random.randint(5, vocab_size), tokens[row, at]], p=[0.8, 0.1, 0.1]
            )
    return inputs, labels
