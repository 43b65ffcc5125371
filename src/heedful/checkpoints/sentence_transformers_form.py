"""Encoders that pool the mean as sentence-transformers folders: the embeddings are what the head reads.

    config.json, model.safetensors   the body, in the form of transformers' class without a head
    modules.json, 1_Pooling/, ...    what sentence-transformers makes of the body's states
    head/                            the classifier's last layer, as a Dense module, and its labels.json
    head_dense/                      the layer before it, where the family's head has one

The head is not in modules.json, so that the folder's embeddings are those that the head reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful import __version__
from heedful.checkpoints.files import HEAD_LABELS, MODULES, POOLING, read_file
from heedful.checkpoints.schemas import SentenceSection
from heedful.checkpoints.tables import Family
from heedful.errors import UserError
from heedful.models import Classifier, Encoder, Model, TransformerConfig
from heedful.models.heads import DenseHead
from heedful.runs.json_files import check_facts, read_json

SECTION = "heedful"
"""The key of config.json for what transformers' configuration has no words for."""
HEAD, HEAD_DENSE = "head", "head_dense"
LAYERS = {HEAD_DENSE: "head.dense", HEAD: "head.out"}
"""The folder of each layer of a head, in the order in which they are applied, and its name here."""
ACTIVATIONS = {"relu": "torch.nn.modules.activation.ReLU", "tanh": "torch.nn.modules.activation.Tanh"}
IDENTITY = "torch.nn.modules.linear.Identity"


def why_not_sentence_transformers(model: Model, family: Family | None) -> str | None:
    """Return why a sentence-transformers folder cannot hold this model; None if it can."""
    if family is None:
        return "it is of a form that transformers has no class for"
    if isinstance(model, Classifier) and model.form == "ordinal":
        return "no other library has a head with ordered thresholds between classes"
    if model.config.pool != "mean" or not isinstance(model, Classifier | Encoder):
        return "it does not pool the mean of an encoder's states"
    return family.why_not(model.config.replace(pool="first"))


def describe_modules(model: Model, family: Family, max_len: int | None) -> dict[str, str]:
    """Return the files that sentence-transformers reads beside those of the body."""
    d = model.config.d_model
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (path, name) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])
    ]
    body: dict[str, Any] = {"max_seq_length": max_len or model.config.max_len, "do_lower_case": False}
    if None in family.pooled:
        body["model_args"] = {"add_pooling_layer": False}  # else it would be drawn at random, and not used
    pooling = {
        "word_embedding_dimension": d,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    files: dict[str, Any] = {
        MODULES: modules,
        "sentence_bert_config.json": body,
        "config_sentence_transformers.json": {"__version__": {"heedful": __version__}, "prompts": {}},
        POOLING: pooling,
    }
    if isinstance(model, Classifier):
        files[HEAD_LABELS] = model.labels
        for folder, layer in head_layers(model).items():
            last = folder == HEAD
            files[f"{folder}/config.json"] = {
                "in_features": layer.in_features,
                "out_features": layer.out_features,
                "bias": layer.bias is not None,
                "activation_function": IDENTITY if last else ACTIVATIONS[model.config.classifier],
            }
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in files.items()}


def head_layers(model: Classifier) -> dict[str, Any]:
    """Return the linear layers of a head by their folders."""
    dense = {HEAD_DENSE: model.head.dense} if isinstance(model.head, DenseHead) else {}
    return {**dense, HEAD: model.head.out}


def head_tensors(model: Model) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each layer of the head by its folder, named as in a Dense module."""
    layers = head_layers(model) if isinstance(model, Classifier) else {}
    return {
        folder: {f"linear.{name}": tensor for name, tensor in layer.named_parameters()}
        for folder, layer in layers.items()
    }


def describe_section(model: Model) -> dict[str, Any]:
    """Return the section of config.json from which `read_section` restores the model's form."""
    form = {"head_form": model.form} if isinstance(model, Classifier) else {}
    return {SECTION: {"version": __version__, "pool": model.config.pool, **form}}


def read_section(theirs: Mapping[str, Any]) -> dict[str, Any]:
    section = theirs.get(SECTION)
    return check_facts(SentenceSection, section, "config.json: heedful") if isinstance(section, dict) else {}


def restore_pool(config: TransformerConfig, theirs: Mapping[str, Any]) -> TransformerConfig:
    """Return a configuration that pools as the section of config.json says, if there is one."""
    pool = read_section(theirs).get("pool")
    return config if pool is None else config.replace(pool=pool)


def read_head(folder: Path) -> tuple[dict[str, Tensor], list[str]]:
    """Return the tensors of a folder's head under our names, and its labels."""
    labels = read_json(folder / HEAD_LABELS) if (folder / HEAD_LABELS).is_file() else None
    if not isinstance(labels, list):
        raise UserError(f"{folder / HEAD_LABELS}: is missing or not a list; config.json calls for a head")
    tensors: dict[str, Tensor] = {}
    for part, ours in LAYERS.items():
        path = folder / part / "model.safetensors"
        if path.is_file():
            for name, tensor in read_file(path).items():
                tensors[f"{ours}.{name.removeprefix('linear.')}"] = tensor
    return tensors, [str(label) for label in labels]


def write_example(model: Model) -> str:
    """Return code that labels a text with sentence-transformers and numpy."""
    encode = "from sentence_transformers import SentenceTransformer\n\n"
    encode += 'states = SentenceTransformer(FOLDER).encode(["a text"])'
    if not isinstance(model, Classifier):
        return encode
    lines = ["import json", "from pathlib import Path", "import numpy as np"]
    lines += ["from safetensors.numpy import load_file", encode]
    bias = ' + layer["linear.bias"]'
    for folder, layer in head_layers(model).items():
        lines.append(f'layer = load_file(f"{{FOLDER}}/{folder}/model.safetensors")')
        line = f'states @ layer["linear.weight"].T{bias if layer.bias is not None else ""}'
        relu = model.config.classifier == "relu"
        activated = f"np.maximum({line}, 0)" if relu else f"np.tanh({line})"
        lines.append(f"logits = {line}" if folder == HEAD else f"states = {activated}")
    lines.append("probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)")
    lines.append(f'labels = json.loads(Path(FOLDER, "{HEAD_LABELS}").read_text(encoding="utf-8"))')
    lines.append("print(labels[probabilities[0].argmax()], probabilities[0].max())")
    return "\n".join(lines)
