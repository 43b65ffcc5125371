"""Export of a finished run to a folder that transformers or peft can load."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from heedful import checkpoints
from heedful.checkpoints.files import LEGACY_PATTERNS, read_model_json
from heedful.errors import UserError
from heedful.inference.loading import (
    ADAPTER,
    EXPORTED,
    load_language_model,
    load_run,
    read_run_facts,
    reads_pairs,
)
from heedful.methods.adapters import PEFT_FACTS
from heedful.runs.directory import Run
from heedful.runs.files import new_folder, write_json
from heedful.text.model_folders import find_folder

EXPORTED_OPTIONS = (
    "task", "objective", "max_len", "long_texts", "attention", "label_words", "labels", "text_column",
    "pair_column", "label_column",
)  # fmt: skip


@dataclass(frozen=True)
class Exported:
    loads_with: str
    """transformers, peft or heedful."""
    why: str | None = None
    """Why it is in heedful's own form, if it is."""


def export_run(path: str | Path, folder: Path, *, merge: bool) -> Exported:
    """Write a run's best model in the form of transformers or peft if possible, else in heedful's own."""
    run = Run.open(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UserError(f"{folder}: is not an empty folder; choose another")
    pretrained = run.read_config().get("command") == "pretrain"
    model = load_language_model(run) if pretrained else load_run(path, device="cpu").model
    adapter = (run.best / ADAPTER).is_file()
    if merge:
        if adapter:
            model.method.merge(model)
        checkpoints.export(model, folder, tokenizer=run.best)
        return Exported("transformers")
    with new_folder(folder) as new:
        shutil.copytree(run.best, new, dirs_exist_ok=True)
        if (new / PEFT_FACTS).is_file():
            facts = read_model_json(new / PEFT_FACTS)
            facts["base_model_name_or_path"] = base_for_peft(str(facts["base_model_name_or_path"]))
            write_json(new / PEFT_FACTS, facts)
        if adapter:
            describe_run(run, new / ADAPTER)
    if not adapter:
        reason = checkpoints.find_export_obstacle(model)
        return Exported("transformers" if reason is None else "heedful", reason)
    reason = read_model_json(run.best / ADAPTER).get("why_not_peft")
    return Exported("peft" if reason is None else "heedful", reason)


def describe_run(run: Run, file: Path) -> None:
    """Add to an adapter what `heedful predict` needs besides the weights, and where its base model is."""
    _, config = read_run_facts(run.path)
    options = {name: config[name] for name in EXPORTED_OPTIONS if config.get(name) is not None}
    base = base_for_peft(str(config["model"]))
    about = {**options, "model": base, "pairs": reads_pairs(run.path)}
    write_json(file, {**read_model_json(file), "base": base, EXPORTED: about})


def base_for_peft(name: str) -> str:
    """Return the name by which peft finds a base model: the absolute path of a folder, or a Hub id."""
    try:
        folder = find_folder(name, LEGACY_PATTERNS)
    except UserError:
        return name
    return name if "snapshots" in folder.parts else str(folder.absolute())
