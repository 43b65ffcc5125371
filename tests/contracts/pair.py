"""Training runs without dropout, in float64: made in one process, or as one of two.

python pair.py RANK PORT PLACES OUT     trains every case as one of two processes
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.runs.directory import Run

ADAPT: dict[str, dict[str, Any]] = {
    # 61 rows: the last batch of an epoch has one, and the second process nothing to do.
    "full": {"class_weights": "balanced", "accumulate": 3, "clip": 0.1},
    "lora": {"method": "lora", "optimizer": "sgd", "lr": 0.05},
    "head": {"method": "head", "patience": 1, "lr": 0.5, "epochs": 6},
    # Four parts of which, in an epoch's last step, the first alone has a labeled row.
    "joint": {"objective": "joint", "mlm_first": 3, "batch_size": 6, "accumulate": 4, "optimizer": "muon"},
}
PRETRAIN: dict[str, dict[str, Any]] = {
    "masked": {"model": "bert-tiny", "objective": "masked", "tokenizer": "wordpiece", "optimizer": "muon"},
    "causal": {"model": "char-gpt", "token_budget": 100, "eval_every": 5},
    "span": {"model": "char-gpt", "objective": "span", "weight_decay": 0.1},
}
SIZES = ("n_layers=1", "d_model=16", "n_heads=2", "max_len=64")


def make(name: str, places: Path, out: Path) -> Any:
    """The loop of a case."""
    import numpy as np
    import torch

    from heedful.attention.dropout import Dropout
    from heedful.options.training import AdaptOptions, PretrainOptions
    from heedful.training.build import build_adapt, build_pretrain
    from heedful.training.loop import Loop

    same: dict[str, Any] = {
        "epochs": 2,
        "batch_size": 12,
        "dropout": 0.0,
        "precision": "float32",
        "threads": 1,
    }
    if name in ADAPT:
        given = {"max_len": 32, "lr": 1e-3, **same, **ADAPT[name]}
        job: Any = build_adapt(AdaptOptions(model=str(places / "model"), task=str(places / "task"), **given))
    else:
        given = {"lr": 1e-3, "block": 32, "model_options": SIZES, **same, "batch_size": 4, **PRETRAIN[name]}
        job = build_pretrain(PretrainOptions(corpus=str(places / "text.txt"), **given))
    for module in job.model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    job.model.double()
    if name == "head":
        job.objective.features = {
            split: replace(own, states=own.states.astype(np.float64))
            for split, own in job.objective.features.items()
        }
    run = Run(out)
    with suppress(FileExistsError):
        out.mkdir()
    torch.manual_seed(0)
    if name in PRETRAIN:
        return job.make_loop(run, job.options)
    return Loop(job.model, job.trainable_parameters(), job.objective, job.options, given["lr"], run)


def train(names: Sequence[str], places: Path, out: Path) -> None:
    """Train, and leave a run directory a case."""
    for name in names:
        make(name, places, out / name).train()


if __name__ == "__main__":
    rank, port = int(sys.argv[1]), sys.argv[2]
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCH_CPP_LOG_LEVEL": "ERROR"}
    from heedful.training.ranks import Ranks, join_processes

    with join_processes(Ranks(rank, 2, rank, 2), "cpu"):
        train([*ADAPT, *PRETRAIN], Path(sys.argv[3]), Path(sys.argv[4]))
