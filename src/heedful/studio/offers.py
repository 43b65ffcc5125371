"""Which models a page can offer: runs, studies and exports in the folder, and installed models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.inference.ensemble import ENSEMBLE_FACTS
from heedful.inference.onnx.predictor import ONNX_FACTS
from heedful.linear.folders import FACTS
from heedful.paths import expand_path
from heedful.runs.directory import BEST, CHOSEN, CONFIG, STUDY, follow_choice
from heedful.runs.json_files import read_json
from heedful.runs.toml import read_toml
from heedful.studio.folder import StudioFolder
from heedful.text.model_folders import minilm_folder

DEEPEST = 6
"""How many folders below the studio's folder runs are looked for."""
SKIPPED = {BEST, "checkpoints", "leases", "logs", "jobs", "node_modules", "__pycache__"}
LINEAR, ONNX, ENSEMBLE, ADAPTED = FACTS, ONNX_FACTS, ENSEMBLE_FACTS, "heedful.json"
FORMS = {LINEAR: "linear", ONNX: "onnx", ENSEMBLE: "ensemble", ADAPTED: "network"}
CONFIG_JSON = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")


@dataclass(frozen=True)
class Offer:
    """A model that a page can use, by the name that `ModelStore` takes."""

    name: str
    kind: str
    """run, study (its best run), solve (its chosen run), export (a folder without a run) or named."""
    form: str
    """network, linear, onnx or ensemble."""
    family: str
    """bert, gpt2, t5, ... of a network; "" if that is not known."""
    task: str = ""
    command: str = ""
    """Of a run: adapt or pretrain."""
    labels: tuple[str, ...] = ()
    """The classes it tells apart; none for a language model, an encoder alone or a number per text."""
    head: str = ""
    """classify, causal, masked or text2text; "" for an encoder alone."""
    attention: str = ""
    """The mechanism of its attention."""
    layers: int | None = None
    heads: int | None = None
    max_len: int | None = None


def iterate_folders(folder: StudioFolder) -> Iterator[Path]:
    """Yield the folders below the studio's folder in which runs, studies and exports may be, sorted."""
    pending = [(folder.root, 0)]
    while pending:
        path, depth = pending.pop()
        yield path
        if depth == DEEPEST:
            continue
        try:
            with os.scandir(path) as entries:
                below = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and not entry.name.startswith(".")
                    and entry.name not in SKIPPED
                )
        except OSError:
            continue
        pending.extend((path / name, depth + 1) for name in reversed(below))


def list_offers(folder: StudioFolder) -> list[dict[str, Any]]:
    """Return every model of the folder that can be loaded, and the installed ones, as JSON objects."""
    offers = [offer for path in iterate_folders(folder) if (offer := describe(folder, path)) is not None]
    return [asdict(offer) for offer in [*offers, *named_offers()]]


def describe(folder: StudioFolder, path: Path) -> Offer | None:
    """Return what a folder offers; None if it has no model that can be loaded."""
    try:
        if (path / STUDY).is_file() or (path / CHOSEN).is_file():
            chosen = follow_choice(path)
            kind = "study" if (path / STUDY).is_file() else "solve"
            return describe_run(folder.name(path), kind, chosen)
        if (path / CONFIG).is_file():
            return describe_run(folder.name(path), "run", path)
        if path != folder.root and any((path / name).is_file() for name in (*FORMS, CONFIG_JSON)):
            return describe_model(folder.name(path), "export", path)
    except (UserError, OSError, KeyError, TypeError, ValueError):
        return None
    return None


def describe_run(name: str, kind: str, run: Path) -> Offer | None:
    if not (run / BEST).is_dir():
        return None
    config = read_toml(run / CONFIG)
    command = str(config.get("command", ""))
    options = config.get(command, {})
    task = str(options.get("task") or options.get("corpus") or options.get("data") or "")
    return describe_model(name, kind, run / BEST, task=task, command=command, options=options, run=run)


def describe_model(
    name: str,
    kind: str,
    folder: Path,
    *,
    task: str = "",
    command: str = "",
    options: dict[str, Any] | None = None,
    run: Path | None = None,
) -> Offer | None:
    """Return what the files of a model say about it."""
    options = options or {}
    labels = read_labels(folder, run)
    facts: dict[str, Any] = {"task": task, "command": command}
    for file, form in FORMS.items():
        if (folder / file).is_file() and form != "network":
            return Offer(name, kind, form, "", labels=labels, head="classify", **facts)
    if (folder / ADAPTED).is_file():  # an adapter: the sizes are those of its base
        base = find_base(str(options.get("model", "")))
        offer = describe_model(name, kind, base) if base is not None else None
        head = str(read_json(folder / ADAPTED).get("head") or "classify")
        shape = {} if offer is None else shape_of(offer)
        shape["max_len"] = options.get("max_len") or shape.get("max_len")
        family = offer.family if offer is not None else ""
        return Offer(name, kind, "network", family, labels=labels, head=head, **facts, **shape)
    if not (folder / CONFIG_JSON).is_file() or not any((folder / file).is_file() for file in WEIGHTS):
        return None
    config = read_json(folder / CONFIG_JSON)
    family, head, sizes = read_architecture(config)
    if options.get("max_len"):
        sizes["max_len"] = options["max_len"]
    return Offer(name, kind, "network", family, labels=labels, head=head, **facts, **sizes)


def shape_of(offer: Offer) -> dict[str, Any]:
    return {key: getattr(offer, key) for key in ("attention", "layers", "heads", "max_len")}


def read_architecture(config: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the family, the head and the sizes that a config.json declares."""
    own = config.get("heedful")
    if config.get("model_type") == "heedful" and isinstance(own, dict):
        head = str(config.get("head") or "")
        sizes = {"layers": own.get("n_layers"), "heads": own.get("n_heads"), "max_len": own.get("max_len")}
        return (
            str(own.get("family") or "heedful"),
            head,
            {"attention": own.get("attention", "softmax"), **sizes},
        )
    names = {
        "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
        "max_len": ("max_position_embeddings", "n_positions", "n_ctx"),
    }
    sizes = {key: next((config[one] for one in also if one in config), None) for key, also in names.items()}
    architecture = str((config.get("architectures") or [""])[0])
    return str(config.get("model_type", "")), find_head(architecture), {"attention": "softmax", **sizes}


def find_head(architecture: str) -> str:
    endings = {
        "ForSequenceClassification": "classify",
        "ForMaskedLM": "masked",
        "LMHeadModel": "causal",
        "ForCausalLM": "causal",
        "ForConditionalGeneration": "text2text",
    }
    return next((head for ending, head in endings.items() if architecture.endswith(ending)), "")


def read_labels(folder: Path, run: Path | None) -> tuple[str, ...]:
    """Return the classes of a model, from its run's results or the facts beside its weights."""
    if run is not None and (run / "results.json").is_file():
        return tuple(map(str, read_json(run / "results.json").get("labels") or ()))
    for name in (*FORMS, CONFIG_JSON):
        if not (folder / name).is_file():
            continue
        facts = read_json(folder / name)
        if isinstance(facts.get("labels"), list):
            return tuple(map(str, facts["labels"]))
        if isinstance(names := facts.get("id2label"), dict) and find_head(
            str((facts.get("architectures") or [""])[0])
        ):
            return tuple(str(names[key]) for key in sorted(names, key=int))
    return ()


def find_base(name: str) -> Path | None:
    """Return the folder of an adapter's base model, if it is on this machine."""
    if name == "minilm":
        try:
            return minilm_folder()
        except UserError:
            return None
    models = os.environ.get("HEEDFUL_MODELS")
    places = [expand_path(name), *([expand_path(models) / name] if models else [])]
    folder = next((place for place in places if place.is_dir()), None)
    return folder / BEST if folder is not None and (folder / CONFIG).is_file() else folder


def named_offers() -> list[Offer]:
    """Return `minilm`, if it is installed, and the models below $HEEDFUL_MODELS."""
    offers = []
    names = ["minilm"]
    if models := os.environ.get("HEEDFUL_MODELS"):
        root = expand_path(models)
        names += sorted(one.parent.relative_to(root).as_posix() for one in root.glob(f"*/{CONFIG_JSON}"))
        names += sorted(one.parent.relative_to(root).as_posix() for one in root.glob(f"*/*/{CONFIG_JSON}"))
    for name in names:
        base = find_base(name)
        try:
            offer = None if base is None else describe_model(name, "named", base)
        except (UserError, OSError, KeyError, TypeError, ValueError):
            offer = None
        if offer is not None:
            offers.append(offer)
    return offers
