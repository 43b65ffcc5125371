"""Export of a finished run to a folder that transformers or peft can load."""

from __future__ import annotations

import shutil
from pathlib import Path

from heedful import checkpoints
from heedful.checkpoints import Form
from heedful.checkpoints.files import LEGACY_PATTERNS, MODULES, read_model_json
from heedful.checkpoints.schemas import AdapterFacts, PeftFacts
from heedful.errors import UserError
from heedful.inference.decisions import read_decision
from heedful.inference.ensemble import holds_ensemble
from heedful.inference.loading import (
    ADAPTER,
    EXPORTED,
    find_facts,
    load_run,
    read_run_facts,
    reads_pairs,
)
from heedful.inference.networks import load_language_model
from heedful.linear.folders import holds_linear
from heedful.methods.adapters import PEFT_FACTS
from heedful.runs.directory import Run
from heedful.runs.files import new_folder, write_json
from heedful.runs.json_files import read_json_object
from heedful.text.model_folders import find_folder

EXPORTED_OPTIONS = (
    "task", "kind", "objective", "max_len", "long_texts", "attention", "label_words", "labels", "text_column",
    "pair_column", "label_column",
)  # fmt: skip


def export_run(path: str | Path, folder: Path, *, merge: bool) -> Form:
    """Write a run's best model for transformers, sentence-transformers or peft if possible, else for heedful.

    What is returned is the form that it has.
    """
    run = Run.open(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UserError(f"{folder}: is not an empty folder; choose another")
    if holds_linear(run.best):
        return export_copy(run, folder, "a linear model of words", merge=merge)
    if holds_ensemble(run.best):
        return export_copy(run, folder, "an average of models", merge=merge)
    pretrained = run.read_config().get("command") == "pretrain"
    model = load_language_model(run) if pretrained else load_run(path, device="cpu").model
    adapter, form = (run.best / ADAPTER).is_file(), checkpoints.find_form(model)
    if merge and getattr(model, "words", None) is not None:
        raise UserError("--merge: a plain model has no place for words; export without it")
    # Older versions wrote models that pool the mean in heedful's own form.
    older = form.loads_with == "sentence-transformers" and not adapter and not (run.best / MODULES).is_file()
    if merge or older:
        if adapter:
            model.method.merge(model)
        max_len = None if pretrained else int(run.read_config()["adapt"]["max_len"])
        checkpoints.export(model, folder, tokenizer=run.best, max_len=max_len)
        if (decision := read_decision(run.best)) is not None:
            decision.save(folder)
        return form
    with new_folder(folder) as new:
        shutil.copytree(run.best, new, dirs_exist_ok=True)
        if (new / PEFT_FACTS).is_file():
            facts = read_model_json(new / PEFT_FACTS, PeftFacts)
            facts["base_model_name_or_path"] = base_for_peft(str(facts.get("base_model_name_or_path")))
            write_json(new / PEFT_FACTS, facts)
        if adapter:
            describe_run(run, new / ADAPTER)
    if not adapter:
        return form
    reason = read_model_json(run.best / ADAPTER, AdapterFacts).get("why_not_peft")
    return Form("peft" if reason is None else "heedful", reason)


def export_copy(run: Run, folder: Path, what: str, *, merge: bool) -> Form:
    """Copy the folder of a model that only heedful loads; its files are JSON, TOML and safetensors."""
    if merge:
        raise UserError(f"--merge is for adapters; {what} has no base model")
    with new_folder(folder) as new:
        shutil.copytree(run.best, new, dirs_exist_ok=True)
        describe_run(run, find_facts(new))
    return Form("heedful", f"{what} has no class in transformers")


def describe_run(run: Run, file: Path) -> None:
    """Add to an adapter what `heedful predict` needs besides the weights, and where its base model is.

    A model without a base model has the same facts, and its own name in place of it.
    """
    _, config = read_run_facts(run.path)
    options = {name: config[name] for name in EXPORTED_OPTIONS if config.get(name) is not None}
    base = base_for_peft(str(config["model"])) if file.name == ADAPTER else str(config["model"])
    about = {**options, "model": base, "pairs": reads_pairs(run.path)}
    write_json(file, {**read_json_object(file), "base": base, EXPORTED: about})


def base_for_peft(name: str) -> str:
    """Return the name by which peft finds a base model: the absolute path of a folder, or a Hub id."""
    try:
        folder = find_folder(name, LEGACY_PATTERNS)
    except UserError:
        return name
    return name if "snapshots" in folder.parts else str(folder.absolute())
