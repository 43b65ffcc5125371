"""Hidden claims: masking at another rate."""

from __future__ import annotations

import torch

from heedful.contracts import Claim, RefutedError, Subject

SEED = 20
"""Another number gives other inputs; `heedful course new` draws one."""
PAD, CLS, MASK, VOCABULARY, RATE = 0, 1, 2, 200, 0.4


def check_rate(subject: Subject) -> str:
    """Mask long rows at a rate of 40 %, and count."""
    tokens = torch.randint(5, VOCABULARY, (40, 60), generator=torch.Generator().manual_seed(SEED))
    tokens[:, 0] = CLS
    tokens[20:, 50:] = PAD
    inputs = {
        "tokens": tokens,
        "mask_id": MASK,
        "pad_id": PAD,
        "special_ids": [PAD, CLS, MASK],
        "vocab_size": VOCABULARY,
    }
    labels = subject.call("mask", {**inputs, "rate": RATE, "seed": SEED})["labels"]
    share = float((labels >= 0)[tokens >= 5].double().mean())
    if not RATE - 0.05 < share < RATE + 0.05:
        raise RefutedError(
            f"{share:.1%} of the tokens are chosen",
            inputs={"mlm_probability": RATE},
            got=share,
            expected=RATE,
        )
    return f"{share:.1%} of the tokens are chosen"


CLAIMS = (
    Claim(
        "another rate",
        "The share of chosen tokens is the one that is asked for.",
        check_rate,
        "mask",
        "is 0.15 written in your code?",
    ),
)
