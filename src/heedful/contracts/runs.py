"""Contracts of whole runs, on a tiny model and a tiny task: resuming, and training in several processes."""

from __future__ import annotations

import json
import math
import random
import signal
from dataclasses import replace
from pathlib import Path

import torch

from heedful import checkpoints
from heedful.contracts.claims import BrokenContractError, require
from heedful.launch.processes import launch_training
from heedful.models import PRESETS, build
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics
from heedful.text import train as train_tokenizer
from heedful.training import checkpoint
from heedful.training.build import build_job
from heedful.training.signals import StoppedError, StopSignals
from heedful.training.train import train_job, train_run

WORDS = {"yes": ["fine", "lovely", "bright", "warm"], "no": ["poor", "ugly", "dull", "cold"]}
PLAIN = ["the", "film", "plot", "actor", "scene", "was", "with", "very", "rather", "music", "end"]
ROUNDING = 1e-4
"""Largest relative difference of losses in float32 that are sums in another order."""


def draw_sentence(rng: random.Random, label: str) -> str:
    words = rng.choices(PLAIN, k=rng.randint(2, 9)) + rng.choices(WORDS[label], k=2)
    rng.shuffle(words)
    return " ".join(words)


def make_tiny_run(folder: Path, device: str = "cpu", dropout: float = 0.1) -> AdaptOptions:
    """Write a tiny model and a tiny task, and return the options of a run on them that takes a second."""
    rng = random.Random(0)
    texts: list[str] = []
    (folder / "task").mkdir(parents=True)
    for split, rows in (("train", 48), ("dev", 16), ("test", 16)):
        labels = ["yes" if i % 2 else "no" for i in range(rows)]
        sentences = [draw_sentence(rng, label) for label in labels]
        lines = [f"{text},{label}" for text, label in zip(sentences, labels, strict=True)]
        (folder / "task" / f"{split}.csv").write_text("\n".join(["text,label", *lines, ""]), encoding="utf-8")
        texts += sentences
    tokenizer = train_tokenizer(texts, kind="wordpiece", vocab_size=200)
    tokenizer.save(folder / "tokenizer")
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_head": 8, "d_ff": 32, "max_len": 64}
    dropouts = dict.fromkeys(("dropout", "attention_dropout", "embed_dropout", "head_dropout"), dropout)
    config = PRESETS["bert-tiny"].config.replace(
        vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id, **sizes, **dropouts
    )
    torch.manual_seed(0)
    checkpoints.save(build(config), folder / "model", tokenizer=folder / "tokenizer")
    return AdaptOptions(
        model=str(folder / "model"), task=str(folder / "task"), epochs=2, batch_size=8, lr=5e-3, max_len=32,
        eval_every=3, device=device, precision="float32", threads=1, warmup=0.06, pool="first",
        class_weights="none", head_start="random",
    )  # fmt: skip


def check_resume(folder: Path, device: str = "cpu") -> str:
    """A run that is stopped and resumed ends with the bits of one that never stopped, on a CPU.

    On a GPU sums may be in another order each time; there the losses agree to rounding at least.
    """
    options = make_tiny_run(folder, device)
    whole = replace(options, out=folder / "whole")
    train_run(whole)
    stopped = replace(options, out=folder / "stopped", resume=True)
    stop = StopSignals(silent=True)

    def ask_to_stop(row: Metrics) -> None:
        stop.asked = signal.SIGTERM

    try:
        train_job(build_job(replace(stopped, processes=1)), stop, on_row=ask_to_stop)
    except StoppedError:
        pass
    else:
        raise BrokenContractError("a run that was asked to stop did not")
    train_run(stopped)
    differing = compare_bits(folder / "whole", folder / "stopped")
    if differing and torch.device(device).type != "cpu":
        compare_losses(folder / "whole", folder / "stopped")
        return f"the losses agree to rounding; {', '.join(differing)} differ in their bits"
    require(not differing, f"{', '.join(differing)}: not the bits of a run that never stopped")
    return "a stopped and resumed run has the bits of one that never stopped"


def check_processes(folder: Path, number: int, device: str = "cpu") -> str:
    """Several processes train what one trains, to rounding."""
    options = make_tiny_run(folder, device, dropout=0.0)
    train_run(replace(options, out=folder / "one", device="cpu" if device == "cpu" else f"{device}:0"))
    launch_training(replace(options, out=folder / "several", processes=number))
    compare_losses(folder / "one", folder / "several")
    return f"{number} processes train what one trains, to rounding"


def compare_bits(a: Path, b: Path) -> list[str]:
    """Return the files of two runs that differ, among those that may not."""
    names = ["metrics.jsonl", "predictions_dev.jsonl", "predictions_test.jsonl"]
    names += sorted(str(file.relative_to(a)) for file in (a / "best").rglob("*") if file.is_file())
    steps = [max(checkpoint.steps(Run(folder)), default=None) for folder in (a, b)]
    require(steps[0] is not None and steps[0] == steps[1], f"the last checkpoints are of steps {steps}")
    last = checkpoint.checkpoint_folder(Run(a), steps[0] or 0).relative_to(a)
    names += [str(last / "weights.pt"), str(last / "optimizer.pt")]
    return [name for name in names if not same_file(a / name, b / name)]


def same_file(a: Path, b: Path) -> bool:
    return b.is_file() and file_checksum(a) == file_checksum(b)


def compare_losses(a: Path, b: Path) -> None:
    rows = [[json.loads(line) for line in (run / "metrics.jsonl").open(encoding="utf-8")] for run in (a, b)]
    places = [[(row["step"], row["split"]) for row in each] for each in rows]
    require(places[0] == places[1], "the two runs were not scored at the same steps")
    for first, second in zip(*rows, strict=True):
        agree = math.isclose(first["loss"], second["loss"], rel_tol=ROUNDING)
        where = f"{first['split']} at step {first['step']}"
        require(agree, f"the loss on {where} is {second['loss']:.6g} instead of {first['loss']:.6g}")
