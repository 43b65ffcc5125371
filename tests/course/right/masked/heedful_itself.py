import numpy as np

from heedful.data.corruption import masked


def mask_tokens(tokens, special_ids, mask_id, vocab_size, rate):
    """The package's own masking."""
    generator = np.random.default_rng(np.random.randint(2**31))
    return masked.mask_tokens(
        tokens.numpy(),
        special_ids=special_ids,
        mask_id=mask_id,
        vocab_size=vocab_size,
        rate=rate,
        generator=generator,
    )
