"""A finished run as a folder for the tools that people already have."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from heedful import checkpoints
from heedful.checkpoints.files import LEGACY_PATTERNS, read_json
from heedful.errors import UserError
from heedful.methods.adapters import PEFT_FACTS
from heedful.runs.directory import Run
from heedful.runs.files import new_folder, write_json
from heedful.text.model_folders import find_folder
from heedful.training.evaluating import reads_pairs
from heedful.training.loading import ADAPTER, EXPORTED, load_run, told
from heedful.training.rescoring import load_language

KEPT = (
    "task", "objective", "max_len", "attention", "label_words", "labels", "text_column", "pair_column",
    "label_column",
)  # fmt: skip


@dataclass(frozen=True)
class Exported:
    """What stands in the new folder."""

    loads_with: str
    """transformers, peft or heedful."""
    why: str | None = None
    """Why it is in heedful's own form."""


def export_run(path: str | Path, folder: Path, *, merge: bool) -> Exported:
    """Write a run's best model: as transformers or peft load it where they can, else as heedful does."""
    run = Run.open(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UserError(f"{folder}: is not an empty folder; choose another")
    pretrained = run.config().get("command") == "pretrain"
    model = load_language(run) if pretrained else load_run(path, device="cpu").model
    adapter = (run.best / ADAPTER).is_file()
    if merge:
        if adapter:
            model.method.merge(model)
        checkpoints.export(model, folder, tokenizer=run.best)
        return Exported("transformers")
    with new_folder(folder) as new:
        shutil.copytree(run.best, new, dirs_exist_ok=True)
        if (new / PEFT_FACTS).is_file():
            facts = read_json(new / PEFT_FACTS)
            facts["base_model_name_or_path"] = base_for_peft(str(facts["base_model_name_or_path"]))
            write_json(new / PEFT_FACTS, facts)
        if adapter:
            tell_of_run(run, new / ADAPTER)
    if not adapter:
        reason = checkpoints.why_not(model)
        return Exported("transformers" if reason is None else "heedful", reason)
    reason = read_json(run.best / ADAPTER).get("why_not_peft")
    return Exported("peft" if reason is None else "heedful", reason)


def tell_of_run(run: Run, file: Path) -> None:
    """Add what `heedful predict` needs besides the weights, and where the base is, from any folder."""
    _, config = told(run.path)
    kept = {name: config[name] for name in KEPT if config.get(name) is not None}
    base = base_for_peft(str(config["model"]))
    about = {**kept, "model": base, "pairs": reads_pairs(run.path)}
    write_json(file, {**read_json(file), "base": base, EXPORTED: about})


def base_for_peft(name: str) -> str:
    """A base's name as peft finds it: a folder by its whole path, a model of the Hub by its id."""
    try:
        folder = find_folder(name, LEGACY_PATTERNS)
    except UserError:
        return name
    return name if "snapshots" in folder.parts else str(folder.absolute())
