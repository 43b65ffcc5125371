"""A tiny pretrained model and a tiny task, for tests that train."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from heedful import checkpoints, models
from heedful.text import train

GOOD = ["fine", "lovely", "bright", "warm", "clever", "kind"]
BAD = ["poor", "ugly", "dull", "cold", "silly", "rude"]
PLAIN = [
    "the",
    "a",
    "film",
    "plot",
    "actor",
    "scene",
    "and",
    "was",
    "with",
    "very",
    "rather",
    "quite",
    "music",
    "end",
    "start",
    "long",
    "short",
]


def sentence(rng: random.Random, good: bool) -> str:
    """Plain words with some that give the label away."""
    words = rng.choices(PLAIN, k=rng.randint(2, 9)) + rng.choices(GOOD if good else BAD, k=rng.randint(1, 2))
    rng.shuffle(words)
    return " ".join(words)


def make_task(folder: Path, rows: int = 60, *, dev: bool = True, seed: int = 0) -> Path:
    """A folder with train.csv, dev.csv and test.csv."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", rows), ("dev", rows // 2), ("test", rows // 3)):
        if name != "dev" or dev:
            lines = [f"{sentence(rng, bool(i % 2))},{'yes' if i % 2 else 'no'}" for i in range(count)]
            (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines, ""]), encoding="utf-8")
    return folder


def make_kind(folder: Path, kind: str, rows: int = 60) -> Path:
    """Texts with good and bad words: which of them occur, how many more good ones, or that in classes."""
    rng = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", rows), ("dev", rows // 2), ("test", rows // 3)):
        lines = ["text,good,bad" if kind == "labels" else "text,score"]
        for _ in range(count):
            good, bad = rng.randint(0, 3), rng.randint(0, 3)
            words = rng.choices(PLAIN, k=4) + rng.choices(GOOD, k=good) + rng.choices(BAD, k=bad)
            rng.shuffle(words)
            difference = max(-1, min(1, good - bad))
            answer = {
                "labels": f"{int(good > 0)},{int(bad > 0)}",
                "number": f"{10 + 1.25 * (good - bad):.2f}",
                "ordered": f"{difference + 2}",
            }[kind]
            lines.append(f"{' '.join(words)},{answer}")
        (folder / f"{split}.csv").write_text("\n".join([*lines, ""]), "utf-8")
    return folder


def make_model(
    folder: Path, *, d_model: int = 16, dropout: float = 0.1, words: int = 0, max_len: int = 64
) -> Path:
    """A BERT of two layers with its tokenizer; `words` more that occur in no text."""
    rng = random.Random(1)
    texts = [sentence(rng, bool(i % 2)) for i in range(200)] + [f"unseen{i} " * 3 for i in range(words)]
    tokenizer = train(texts, kind="wordpiece", vocab_size=200 + 8 * words)
    torch.manual_seed(0)
    config = models.PRESETS["bert-tiny"].config.replace(
        vocab_size=tokenizer.vocab_size, d_model=d_model, n_layers=2, n_heads=2, d_ff=2 * d_model, max_len=max_len,
        d_head=d_model // 2, dropout=dropout, attention_dropout=dropout, embed_dropout=dropout,
        pad_id=tokenizer.pad_id,
    )  # fmt: skip
    body = models.build(config)
    tokenizer.save(folder.parent / f"{folder.name}-tokenizer")
    return checkpoints.save(body, folder, tokenizer=folder.parent / f"{folder.name}-tokenizer")
