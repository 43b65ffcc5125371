"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

import math

import torch

from heedful.contracts.suites.answers import claim_number

SEED = 20
"""Another number gives other weights; `heedful course new` draws one."""
WEIGHTS = [torch.rand(n, n, generator=torch.Generator().manual_seed(SEED + n)).softmax(-1) for n in (3, 6)]


def perplexity(losses: list[float], tokens: list[int]) -> float:
    return math.exp(sum(x * n for x, n in zip(losses, tokens, strict=True)) / sum(tokens))


CLAIMS = (
    claim_number(
        "question 1",
        "The perplexity is the exponential of the mean loss of all tokens.",
        "answer_perplexity",
        [{"losses": [4.0, 2.0], "tokens": [100, 300]}, {"losses": [3.0, 3.0, 6.0], "tokens": [10, 10, 1]}],
        perplexity,
    ),
    claim_number(
        "question 2",
        "A model that knows nothing has the size of its vocabulary as perplexity.",
        "answer_uniform",
        [{"vocabulary": n} for n in (2, 5000)],
        lambda vocabulary: float(vocabulary),
    ),
    claim_number(
        "question 3",
        "Bits per character do not depend on the tokens.",
        "answer_bits_per_character",
        [
            {"loss": 3.0, "tokens": 1000, "characters": 4500},
            {"loss": 1.2, "tokens": 4500, "characters": 4500},
        ],
        lambda loss, tokens, characters: loss * tokens / characters / math.log(2),
    ),
    claim_number(
        "question 4",
        "The largest weight above the diagonal is found.",
        "answer_future",
        [{"weights": w} for w in (*WEIGHTS, WEIGHTS[0].tril())],
        lambda weights: float(weights.triu(1).max()),
    ),
)
