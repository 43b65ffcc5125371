"""A tiny pretrained BERT, a tiny task, and runs on them, each made once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = ["lovely", "fine", "warm", "clean", "kind", "quick", "fresh", "bright"]
BAD = ["awful", "rude", "cold", "dirty", "slow", "stale", "dark", "broken"]
PLAIN = ["the", "room", "was", "and", "staff", "food", "we", "our", "table", "night", "very", "again"]
OPTIONS: dict[str, Any] = {
    "epochs": 2, "lr": 0.01, "batch_size": 16, "max_len": 32, "threads": 1, "precision": "float32",
    "head_start": "random",
}  # fmt: skip
METHOD_OPTIONS = {"lora": {"rank": 2}, "prompt": {"length": 4}, "prefix": {"length": 3}}


def sentence(draw: random.Random, words: list[str]) -> str:
    chosen = draw.choices(PLAIN, k=draw.randint(3, 9)) + draw.choices(words, k=2)
    draw.shuffle(chosen)
    return " ".join(chosen)


def write_task(path: Path, rows: int = 240) -> Path:
    draw = random.Random(0)
    lines = ["text,label"]
    for i in range(rows):
        lines.append(f"{sentence(draw, BAD if i % 2 else GOOD)} {i},{'bad' if i % 2 else 'good'}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of reviews with two labels, which two words decide."""
    return write_task(tmp_path_factory.mktemp("task") / "reviews.csv")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory, tiny_task: Path) -> Path:
    """A folder in Hub form: one layer, 32 wide, with a tokenizer of its own."""
    import torch

    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    folder = tmp_path_factory.mktemp("models")
    texts = [line.rpartition(",")[0] for line in tiny_task.read_text().splitlines()[1:]]
    tokenizer = text.train(texts, kind="wordpiece", vocab_size=300, sentinels=0)
    tokenizer.save(folder / "tokenizer")
    sizes = {"d_model": 32, "d_ff": 64, "d_head": 16, "max_len": 64, "n_layers": 1}
    config = PRESETS["bert-tiny"].config.replace(vocab_size=tokenizer.vocab_size, **sizes)
    torch.manual_seed(0)
    model = models.build(config, None)
    return checkpoints.export(model, folder / "tiny-bert", tokenizer=folder / "tokenizer")


@pytest.fixture(scope="session")
def run_of(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, tiny_task: Path
) -> Callable[[str], Path]:
    """The finished run of a method, made when first asked for. Nobody may write into it."""
    import heedful

    folder, made = tmp_path_factory.mktemp("runs"), dict[str, Path]()

    def find(method: str) -> Path:
        if method not in made:
            options = {**OPTIONS, "method_options": METHOD_OPTIONS.get(method, {})}
            done = heedful.adapt(tiny_bert, tiny_task, method=method, out=folder / method, **options)
            made[method] = done.folder
        return made[method]

    return find
