"""Checkpoints of a run in progress: written whole or not at all, checked when read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.errors import UserError, shorten
from heedful.logs import warn
from heedful.runs.checksums import find_damage, seal
from heedful.runs.directory import Run
from heedful.runs.files import WriteError, new_folder, remove_temporary, temporary_path, write_json
from heedful.runs.json_files import check_facts, check_regular, read_json, read_json_object
from heedful.runs.memory import require_memory

NAME = re.compile(r"step-(\d+)")
WEIGHTS = "weights.pt"
KEEP_LAST = 2
VERDICT = ("best_step", "best_value", "best_loss", "evaluations_since_best", "stopped_early")


@dataclass
class TrainingState:
    """Everything about a run in progress that is not a tensor."""

    step: int = 0
    data: int = 0
    """Fingerprint of the batches, so that a resume on other data is refused."""
    metrics_bytes: int = 0
    timing_bytes: int = 0
    seconds: float = 0.0
    examples: int = 0
    tokens: int = 0
    best_step: int = -1
    best_value: float = float("-inf")
    best_loss: float = float("inf")
    evaluations_since_best: int = 0
    running_loss: dict[str, float] = field(default_factory=dict)
    running_weight: dict[str, float] = field(default_factory=dict)
    running_count: dict[str, int] = field(default_factory=dict)
    running_right: int = 0
    stopped_early: bool = False
    processes: int = 1
    """The number of processes that made the last step."""
    warmup: int = 0
    """Steps of warm-up, which a branch of this run shares."""
    pinned: int = -1
    """The step at which a schedule with a stable part begins to decay: from here a longer run can go on."""

    @property
    def verdict(self) -> tuple[Any, ...]:
        """The decisions of the last evaluation, which all processes share."""
        return tuple(getattr(self, name) for name in VERDICT)

    @verdict.setter
    def verdict(self, values: tuple[Any, ...]) -> None:
        for name, value in zip(VERDICT, values, strict=True):
            setattr(self, name, value)


def checkpoint_folder(run: Run, step: int) -> Path:
    return run.checkpoints / f"step-{step:08d}"


def save(run: Run, progress: TrainingState, weights: dict[str, Tensor], optimizer: dict[str, Any]) -> None:
    """Write the checkpoint of a step, then remove those that are no longer needed."""
    folder = checkpoint_folder(run, progress.step)
    run.checkpoints.mkdir(exist_ok=True)
    with new_folder(folder) as new:
        try:
            torch.save(weights, new / WEIGHTS)
            torch.save(optimizer, new / "optimizer.pt")
        except RuntimeError as error:  # how torch says that the disk is full
            full = shutil.disk_usage(folder.parent).free < 2**20
            why = "No space left on device" if full else str(error).splitlines()[0]
            message = f"{folder}: cannot be written ({why}); the checkpoints before it are intact"
            raise WriteError(message) from None
        write_json(new / "progress.json", to_json(progress))
        seal(new)
    last = {*steps(run)[-KEEP_LAST:], progress.pinned}
    keep = {*last, *(best_step_of(run, step) for step in last)}
    for step in steps(run):
        if step not in keep:
            remove_checkpoint(run, step)


def best_step_of(run: Run, step: int) -> int:
    """Return the step of the best weights that a checkpoint refers to, or -1."""
    with suppress(UserError, KeyError, TypeError, ValueError):
        return int(read_json(checkpoint_folder(run, step) / "progress.json")["best_step"])
    return -1


def remove_checkpoint(run: Run, step: int) -> None:
    """Remove a checkpoint; a kill in between leaves no half of it under its name."""
    folder = checkpoint_folder(run, step)
    with suppress(OSError):
        shutil.rmtree(folder.rename(temporary_path(folder)), ignore_errors=True)


def to_json(progress: TrainingState) -> dict[str, Any]:
    """As JSON: infinities are words there."""
    return {
        k: str(v) if isinstance(v, float) and abs(v) == float("inf") else v
        for k, v in asdict(progress).items()
    }


def steps(run: Run) -> list[int]:
    if not run.checkpoints.is_dir():
        return []
    return sorted(int(m[1]) for p in run.checkpoints.iterdir() if (m := NAME.fullmatch(p.name)))


def load_latest(run: Run) -> tuple[TrainingState, dict[str, Tensor], dict[str, Any]] | None:
    """Return the newest intact checkpoint whose best weights are intact too; report the others."""
    if not run.checkpoints.is_dir():
        return None
    remove_temporary(run.checkpoints)
    for step in reversed(steps(run)):
        folder = checkpoint_folder(run, step)
        wrong, best = find_damage(folder), best_step_of(run, step)
        if wrong is None and best not in (-1, step):
            wrong = find_damage(checkpoint_folder(run, best))
        if wrong is None:
            return read_checkpoint(folder)
        earlier = any(s < step for s in steps(run))
        instead = "using the checkpoint before it" if earlier else "starting from the beginning"
        warn(f"{folder}: {wrong}; {instead}")
        remove_checkpoint(run, step)
    return None


def load_weights(run: Run, step: int) -> dict[str, Tensor]:
    """Read and check the weights of a step alone: the optimizer's state is twice as large."""
    folder = checkpoint_folder(run, step)
    wrong = find_damage(folder, [WEIGHTS])
    if wrong is not None:
        raise UserError(f"{folder}: {wrong}")
    return load_tensors(folder / WEIGHTS)


def copy_weights(weights: Mapping[str, Tensor], parameters: Mapping[str, Tensor]) -> None:
    """Copy the weights of a checkpoint into the parameters of these names."""
    with torch.no_grad():
        for name, parameter in parameters.items():
            stored = weights.get(name)
            if not isinstance(stored, Tensor) or stored.shape != parameter.shape:
                raise UserError(
                    f'the checkpoint does not fit the model: "{name}" is missing or of another shape'
                )
            parameter.copy_(stored)


def read_checkpoint(folder: Path) -> tuple[TrainingState, dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint: tensors and plain values only; nothing is executed."""
    path = folder / "progress.json"
    stored = read_json_object(path)
    for name in ("best_value", "best_loss"):
        if stored.get(name) in ("inf", "-inf"):
            stored[name] = float(stored[name])
    check_facts(TrainingState, stored, str(path))
    if unknown := [name for name in stored if name not in TrainingState.__dataclass_fields__]:
        raise UserError(
            f'{path}: field "{shorten(unknown[0])}" is not known; it is of another version of heedful'
        )
    file = folder / "optimizer.pt"
    file = file if file.is_file() else folder / "optimiser.pt"  # the name that older versions wrote
    return TrainingState(**stored), load_tensors(folder / WEIGHTS), load_tensors(file)


def load_tensors(path: Path) -> dict[str, Any]:
    """Read a file of `torch.save`, in which anything but tensors and plain values is refused."""
    check_regular(path)
    require_memory(path.stat().st_size, f"{path}: reading it")
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its reader raises whatever the damage leads to
        raise UserError(f"{path}: is damaged ({shorten(str(error))})") from None
    if not isinstance(stored, dict):
        raise UserError(f"{path}: is damaged (it holds no dictionary)")
    return stored
