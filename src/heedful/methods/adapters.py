"""Folders with what a method learned: in peft's format where it can express it, else in our own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heedful import __version__
from heedful.checkpoints.files import read_file, read_model_json
from heedful.checkpoints.reader import describe_answers, read_answers
from heedful.checkpoints.schemas import AdapterFacts, PeftFacts
from heedful.errors import UserError
from heedful.methods.base import Method, Trainee
from heedful.methods.peft import from_peft, to_peft, why_not_peft
from heedful.methods.registry import make
from heedful.models import Classifier
from heedful.runs import new_folder, write_json
from heedful.runs.old_names import update_names

FACTS = "heedful.json"
OWN_WEIGHTS = "adapter.safetensors"
PEFT_FACTS, PEFT_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def write_adapter(model: Trainee, method: Method, folder: str | Path, base_name: str) -> str | None:
    """Write adapter and head, and the base's name and fingerprint.

    The folder is one that peft loads, or else ours; what is returned is why it is not peft's.
    """
    method.check_attached(model)
    target = Path(folder)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UserError(f"{target}: is not an empty folder; choose another")
    reason = why_not_peft(model, method)
    facts = {
        "heedful_version": __version__,
        "method": method.name,
        "options": method.options(),
        "base": base_name,
        "base_fingerprint": fingerprint(model, method),
        "head": model.kind,
        "head_form": getattr(model, "form", None),
        "pool": model.config.pool,
        "labels": getattr(model, "labels", None),
        **describe_answers(model),
        "why_not_peft": reason,
    }
    with new_folder(target) as new:
        write_json(new / FACTS, facts)
        if reason is None:
            theirs, tensors = to_peft(model, method, base_name)
            write_json(new / PEFT_FACTS, theirs)
        else:
            tensors = method.state(model) | random_buffers(model)
        weights = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        save_file(weights, new / (PEFT_WEIGHTS if reason is None else OWN_WEIGHTS), {"format": "pt"})
        (new / "README.md").write_text(write_card(facts, method.formula(model)), encoding="utf-8")
    return reason


def read_adapter(folder: str | Path, model: Trainee) -> Method:
    """Attach the method that a folder holds to a model just loaded, with what it learned.

    The folder is one that `write_adapter` or peft wrote, for the same base.
    """
    source = Path(folder)
    ours, peft = source / FACTS, source / PEFT_FACTS
    if not ours.is_file() and not peft.is_file():
        raise UserError(f"{source}: holds no adapter; it has neither {FACTS} nor {PEFT_FACTS}")
    facts: dict[str, Any] = update_names(read_model_json(ours, AdapterFacts)) if ours.is_file() else {}
    if peft.is_file():
        method_of_peft, state = from_peft(
            model, read_model_json(peft, PeftFacts), read_file(source / PEFT_WEIGHTS), source
        )
    else:
        state = read_file(source / OWN_WEIGHTS)
    pool = facts.get("pool") or "first"
    if pool != model.config.pool:
        raise UserError(f'{source}: was trained with pool "{pool}"; load its base with pool="{pool}"')
    options = facts.get("options")
    if not isinstance(options, dict) and not peft.is_file():
        raise UserError(f"{ours}: names no options of a method, and there is no {PEFT_FACTS}")
    method = make(str(facts.get("method")), **options) if isinstance(options, dict) else method_of_peft
    method.attach(model)
    expected = facts.get("base_fingerprint")
    if expected is not None and expected != fingerprint(model, method):
        raise UserError(f"{source}: was trained on {facts.get('base')}, whose weights are not this model's")
    for name, buffer in random_buffers(model).items():
        if name in state:
            buffer.copy_(state.pop(name))
    method.load_state(model, state)
    labels = facts.get("labels")
    if isinstance(labels, list) and len(labels) == getattr(model, "n_classes", None):
        model.labels = [str(label) for label in labels]
    if isinstance(model, Classifier):
        read_answers(model, facts)
    return method


def random_buffers(model: Trainee) -> dict[str, Tensor]:
    """Return what the attention drew at random and did not learn, such as a Performer's directions."""
    kept = model.state_dict().keys()
    return {name: b for name, b in model.named_buffers() if ".mechanism." in name and name in kept}


def fingerprint(model: Trainee, method: Method) -> str:
    """Return a checksum of all weights that the method leaves unchanged: of the base it was learned on."""
    trained = method.trainable(model)
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        if name not in trained:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def write_card(facts: dict[str, Any], formula: str) -> str:
    peft = facts["why_not_peft"] is None
    form = "In peft's format." if peft else f"In heedful's own form: {facts['why_not_peft']}."
    how = "`heedful.load(FOLDER)` in Python and `heedful predict FOLDER TEXT` load it"
    how += ", and so does peft's `PeftModel.from_pretrained(base, FOLDER)`." if peft else "."
    library = "library_name: peft\n" if peft else ""
    return (
        f"---\nbase_model: {json.dumps(facts['base'])}\n{library}---\n# {facts['method']} adapter\n\n"
        f"{formula} parameters, trained with heedful {facts['heedful_version']}. {form}\n\n{how}\n"
    )
