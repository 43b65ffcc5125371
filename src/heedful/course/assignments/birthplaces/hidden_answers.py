"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

from collections import Counter

from heedful.contracts.suites.answers import claim_number

TRAIN = ["Rome", "London", "Paris", "London", "Oslo", "Rome", "Rome", "London"]


def constant(train: list[str], dev: list[str]) -> float:
    counts = Counter(train)
    return dev.count(min(counts, key=lambda name: (-counts[name], name))) / len(dev)


CLAIMS = (
    claim_number(
        "question 1",
        "The accuracy of a constant answer, chosen on train, is counted on dev.",
        "answer_constant",
        [
            {"train": TRAIN, "dev": ["London", "Rome", "Rome", "Bern"]},
            {"train": ["A", "B", "B"], "dev": ["A", "A", "B"]},
        ],
        constant,
    ),
    claim_number(
        "question 2",
        "All parameters of the model are counted.",
        "answer_parameters",
        [
            {"vocabulary": 256, "block": 128, "layers": 4, "width": 256},
            {"vocabulary": 50, "block": 16, "layers": 1, "width": 8},
        ],
        lambda vocabulary, block, layers, width: (
            2 * vocabulary * width + block * width + layers * (12 * width**2 + 13 * width) + 2 * width
        ),
    ),
)
