"""Reading and writing the files of a Hub folder. No pickle is ever executed."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import UserError, shorten
from heedful.runs.files import new_folder
from heedful.runs.json_files import read_json_object
from heedful.text.model_folders import TOKENIZER_FILES

WEIGHTS = (
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
)  # fmt: skip
MODULES = "modules.json"
"""What a folder is known by to be one of sentence-transformers."""
POOLING = "1_Pooling/config.json"
"""Where a sentence-transformers folder declares what it makes of the states."""
HEAD_LABELS = "head/labels.json"
"""Where such a folder has the labels of the head that lies beside it, if heedful wrote it."""
PATTERNS = (
    "config.json", POOLING, HEAD_LABELS, "*.safetensors", "*.safetensors.index.json", *TOKENIZER_FILES,
)  # fmt: skip
LEGACY_PATTERNS = (*PATTERNS, "pytorch_model*.bin", "pytorch_model.bin.index.json")


def read_model_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; a model's folder has config.json and its weights")
    return read_json_object(path)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all tensors of a folder as float32 (integers unchanged), safetensors before older forms."""
    for name in WEIGHTS:
        path = folder / name
        if not path.is_file():
            continue
        shards = shard_files(path) if name.endswith(".index.json") else [path]
        return {name: tensor for shard in shards for name, tensor in read_file(shard).items()}
    raise UserError(f"{folder}: has no weights; looked for {', '.join(WEIGHTS)}")


def shard_files(index: Path) -> list[Path]:
    """Return the files an index names; a name that leads out of the folder is refused."""
    weight_map = read_model_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: has no weight_map")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name:
            raise UserError(f'{index}: "{shorten(name)}" is not a plain file name')
        if not (index.parent / name).is_file():
            raise UserError(f"{index.parent / name}: is missing; {index.name} names it")
    return [index.parent / name for name in names]


def read_file(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{path}: is damaged or not safetensors ({shorten(str(error))})") from None
    else:
        tensors = read_pickle(path)
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
        if isinstance(tensor, Tensor)
    }


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a file of torch.save with tensors only: anything else in it is refused, never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols; what matters is refused below
            tensors: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UserError(
            f"{path}: holds something other than tensors; it was not loaded, since it could run code"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        raise UserError(f"{path}: is damaged ({shorten(str(error))})") from None
    if not isinstance(tensors, dict):
        raise UserError(f"{path}: is not a dictionary of tensors")
    return tensors


def write_folder(
    folder: Path,
    files: Mapping[str, str],
    tensors: Mapping[str, Mapping[str, Tensor]],
    tokenizer: Path | None,
) -> None:
    """Write a whole folder beside its final path, then move it there: nobody ever sees half of it.

    `tensors` are those of each subfolder, by its name; "" is the folder itself.
    """
    folder = folder.absolute()
    if folder.is_file():
        raise UserError(f"{folder}: is a file")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: is not empty; choose another folder")
    with new_folder(folder) as new:
        for name, text in files.items():
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_text(text, encoding="utf-8")
        for part, group in tensors.items():
            weights = {name: tensor.detach().contiguous() for name, tensor in group.items()}
            save_file(weights, new / part / "model.safetensors", {"format": "pt"})
        for name in TOKENIZER_FILES:
            if tokenizer is not None and name not in files and (tokenizer / name).is_file():
                shutil.copyfile(tokenizer / name, new / name)
