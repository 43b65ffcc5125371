"""The kinds of files that somebody can hand us: where each is, how it is spoiled, and which commands read it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rules import Spoil, replace_kind, spoil_bytes, spoil_json, spoil_rows, spoil_table, spoil_toml

TEXT = "a fine film with a poor plot"


@dataclass(frozen=True)
class Kind:
    """`calls` are commands with {folder} for the copy that has the spoiled file; `count` is for make test-long."""

    folder: str
    file: str
    spoil: Spoil
    calls: tuple[tuple[str, ...], ...]
    count: int = 22

    @property
    def name(self) -> str:
        return f"{self.folder}/{self.file}"


INSPECT = (("python", "load", "{folder}"),)
PREDICT = (("predict", "{folder}", TEXT),)
REPORT = (("report", "{folder}", "--out", "{folder}/report.html"),)
TOKENIZE = (("python", "tokenize", "{folder}", TEXT),)
KINDS = (
    Kind("bert", "config.json", spoil_json, INSPECT, 45),
    Kind("full/best", "config.json", spoil_json, (("python", "load", "{folder}", "classify"),), 25),
    Kind("bert", "model.safetensors", spoil_bytes, INSPECT),
    Kind("shards", "model.safetensors.index.json", spoil_json, INSPECT),
    Kind("binary", "pytorch_model.bin", spoil_bytes, INSPECT, 30),
    Kind("bert", "tokenizer.json", spoil_json, TOKENIZE, 30),
    Kind("bert", "tokenizer_config.json", spoil_json, TOKENIZE),
    Kind("bert", "special_tokens_map.json", spoil_json, TOKENIZE),
    Kind("lora", "best/heedful.json", spoil_json, PREDICT, 25),
    Kind("lora", "best/adapter_config.json", spoil_json, PREDICT, 25),
    Kind("lora", "best/adapter_model.safetensors", spoil_bytes, PREDICT, 20),
    Kind("tfidf", "best/linear.json", spoil_json, PREDICT, 25),
    Kind("tfidf", "best/model.safetensors", spoil_bytes, PREDICT, 20),
    Kind("full", "config.toml", spoil_toml, (("python", "config", "{folder}"), *PREDICT), 30),
    Kind("full", "results.json", spoil_json, REPORT, 18),
    Kind("full", "checks.json", spoil_json, REPORT, 10),
    Kind("full", "env.json", spoil_json, REPORT, 10),
    Kind("full", "metrics.jsonl", spoil_rows, REPORT, 10),
    Kind("full", "timing.jsonl", spoil_rows, REPORT, 10),
    Kind("full", "predictions_dev.jsonl", spoil_rows, REPORT, 10),
    Kind("pretrain", "results.json", spoil_json, REPORT, 10),
    Kind("search", "study.json", spoil_json, REPORT, 10),
    Kind("search", "answer.json", spoil_json, REPORT, 10),
    Kind("half-full", "checkpoints/{step}/progress.json", spoil_json, (("python", "checkpoint", "{folder}"),)),
    Kind("half-full", "checkpoints/{step}/weights.pt", spoil_bytes, (("python", "checkpoint", "{folder}"),), 15),
    Kind("ensemble", "best/ensemble.json", spoil_json, (("python", "ensemble", "{folder}"),)),
    Kind("task", "train.csv", spoil_table, (("data", "show", "{folder}"),), 25),
    Kind("rows", "rows.jsonl", spoil_rows, (("data", "show", "{folder}/rows.jsonl"),)),
    Kind("rows", "rows.parquet", spoil_bytes, (("data", "show", "{folder}/rows.parquet"),), 15),
    Kind("recipe", "recipe.toml", spoil_toml, (("python", "recipe", "{folder}/recipe.toml"),)),
)  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """One spoiled copy of a folder, and the commands that read it."""

    name: str
    calls: list[list[str]]


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder with hard links: only the spoiled file is written."""
    shutil.copytree(source, target, copy_function=os.link)


def make_attack(kind: Kind, number: int, material: Path, scratch: Path) -> Attack:
    """Make attack `number` of a kind; the same number makes the same attack."""
    rng = random.Random(f"{kind.name} {number}")
    target = scratch / f"{kind.name.replace('/', '-').replace('{step}', 'step')}-{number}"
    copy_folder(material / kind.folder, target)
    file = target / kind.file
    if "{step}" in kind.file:
        step = sorted(entry.name for entry in (target / "checkpoints").iterdir())[-1]
        file = target / kind.file.format(step=step)
    if rng.random() < 0.12:
        about = replace_kind(rng, file)
    else:
        content = file.read_bytes()
        file.unlink()  # it is a link to the good one
        file.write_bytes(kind.spoil(rng, content))
        about = kind.spoil.__name__
    calls = [
        [part.format(folder=target) if "{folder}" in part else part for part in call] for call in kind.calls
    ]
    return Attack(f"{kind.name} {number} ({about})", calls)


def make_attacks(kind: Kind, numbers: range, material: Path, scratch: Path) -> Iterator[Attack]:
    for number in numbers:
        yield make_attack(kind, number, material, scratch)
