"""A tiny task with free answers and a tiny decoder, for the commands that answer and write."""

from __future__ import annotations

from pathlib import Path

NAMES = [f"{first} {last}" for first in ("Ada", "Bo", "Cy", "Dee") for last in ("Ash", "Birk", "Elm", "Oak")]
TOWNS = ("Oslo", "Ulm", "Port Elm", "Oslo")
QUESTIONS = {f"Where was {name} born?": TOWNS[i % 4] for i, name in enumerate(NAMES)}


def write_task(folder: Path) -> Path:
    """Twelve people in train, two in dev, two in test without their answers."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{question}\t{town}\n" for question, town in QUESTIONS.items()]
    (folder / "wiki.txt").write_text(
        "".join(f"{n}. {n} was born in {t}.\n" for n, t in zip(NAMES, TOWNS * 4, strict=True))
    )
    (folder / "birth_places_train.tsv").write_text("".join(rows[:12]))
    (folder / "birth_dev.tsv").write_text("".join(rows[12:14]))
    (folder / "birth_test_inputs.tsv").write_text("".join(f"{q}\n" for q in list(QUESTIONS)[14:]))
    return folder


def write_decoder(folder: Path, task: Path, kind: str = "char") -> Path:
    """One layer, 32 wide, with the task's characters."""
    import torch

    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    texts = [*(task / "wiki.txt").read_text().splitlines(), *QUESTIONS]
    tokenizer = text.train(
        texts, kind=kind, **({} if kind == "char" else {"vocab_size": 300, "sentinels": 0})
    )
    tokenizer.save(folder.parent / f"{folder.name}-tokenizer")
    ids = {name: getattr(tokenizer, name) for name in ("vocab_size", "pad_id", "bos_id", "eos_id")}
    sizes = {"d_model": 32, "d_ff": 64, "d_head": 16, "n_heads": 2, "max_len": 64, "n_layers": 1}
    config = PRESETS["char-gpt"].config.replace(**ids, **sizes).with_dropout(0.0)
    torch.manual_seed(0)
    model = models.build(config, "causal")
    return checkpoints.save(model, folder, tokenizer=folder.parent / f"{folder.name}-tokenizer")
