"""The data of the assignments, made here: pieces of the generated world, and examples to compute by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

PEOPLE = 600
REVIEWS = {"train.csv": 600, "dev.csv": 200, "test.csv": 200}
UNLABELED = 1000
SENTENCES = 4000


def make_attention_example(folder: Path, seed: int) -> None:
    """Write q, k, v and a causal mask of small whole numbers, and the output."""
    import torch

    from heedful.attention.mask import masked_softmax

    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randint(-2, 3, (3, 2), generator=generator).float() for _ in range(3))
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    weights = masked_softmax(q @ k.T / 2**0.5, mask)
    tables = {"q": q, "k": k, "v": v, "mask": mask, "weights": weights, "output": weights @ v}
    rows = [f'"{name}": {json.dumps(round_all(table.tolist()))}' for name, table in tables.items()]
    (folder / "example.json").write_text("{\n  " + ",\n  ".join(rows) + "\n}\n", encoding="utf-8")


def round_all(rows: list[list[float]]) -> list[list[float]]:
    return [[round(x, 4) if isinstance(x, float) else x for x in row] for row in rows]


def make_reviews(folder: Path, seed: int) -> None:
    """Write reviews with stars, and reviews without."""
    from heedful.data.world.people import World
    from heedful.data.world.reviews import Reviews

    reviews = Reviews(World(seed), seed)
    numbers = iter(range(10**9))
    for name, rows in REVIEWS.items():
        with (folder / name).open("w", encoding="utf-8") as file:
            for review in (reviews.at(i) for i in islice(numbers, rows)):
                quoted = review.text.replace('"', '""')
                file.write(f'"{review.label}","{quoted}"\n')
    lines = (reviews.at(i).text + "\n" for i in islice(numbers, UNLABELED))
    (folder / "unlabeled.txt").write_text("".join(lines), encoding="utf-8")


def make_birthplaces(folder: Path, seed: int) -> None:
    """Write biographies and questions about birthplaces."""
    from heedful.data.world.files import write_birthplaces
    from heedful.data.world.people import World

    write_birthplaces(folder, World(seed), seed, PEOPLE)


def make_sentences(folder: Path, seed: int) -> None:
    """Write sentences for language models, one per line: the biographies' sentences."""
    from heedful.data.world.biographies import write_biography
    from heedful.data.world.draws import Source
    from heedful.data.world.people import World

    world, biographies = World(seed), Source(seed, "biographies")
    texts = (write_biography(person, biographies.at(person.index)) for person in world.people(0, PEOPLE))
    sentences = [part.strip() + "." for text in texts for part in text.split(". ") if part.strip()]
    sentences = [s.replace("..", ".") for s in sentences][:SENTENCES]
    cut = len(sentences) * 9 // 10
    (folder / "train.txt").write_text("\n".join(sentences[:cut]) + "\n", encoding="utf-8")
    (folder / "dev.txt").write_text("\n".join(sentences[cut:]) + "\n", encoding="utf-8")


MAKERS: dict[str, Callable[[Path, int], None]] = {
    "attention": make_attention_example,
    "reviews": make_reviews,
    "birthplaces": make_birthplaces,
    "sentences": make_sentences,
}
"""What `data = "..."` of an assignment means."""
