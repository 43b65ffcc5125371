"""Reading and writing the files of a Hub folder. No pickle is ever executed."""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.checkpoints.schemas import ModelFacts, ShardIndex
from heedful.errors import UserError, shorten
from heedful.runs.files import new_folder
from heedful.runs.json_files import check_facts, check_regular, read_json_object
from heedful.runs.memory import require_memory
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


def read_model_json(path: Path, schema: type[Any] = ModelFacts) -> dict[str, Any]:
    """Return the object of a JSON file of a model's folder, whose fields are as the schema says."""
    if not os.path.lexists(path):
        raise UserError(f"{path}: there is no such file; a model's folder has config.json and its weights")
    return check_facts(schema, read_json_object(path), str(path))


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all tensors of a folder as float32 (integers unchanged), safetensors before older forms."""
    for name in WEIGHTS:
        path = folder / name
        if not os.path.lexists(path):
            continue
        shards = shard_files(path) if name.endswith(".index.json") else [path]
        sizes = [measure_file(shard) for shard in shards]
        require_memory(sum(sizes), f"{path}: reading it")
        return {name: tensor for shard in shards for name, tensor in read_file(shard).items()}
    raise UserError(f"{folder}: has no weights; looked for {', '.join(WEIGHTS)}")


def shard_files(index: Path) -> list[Path]:
    """Return the files an index names; a name that leads out of the folder is refused."""
    names = sorted(set(read_model_json(index, ShardIndex)["weight_map"].values()))
    for name in names:
        if Path(name).name != name:
            raise UserError(f'{index}: "{shorten(name)}" is not a plain file name')
        if not os.path.lexists(index.parent / name):
            raise UserError(f"{index.parent / name}: is missing; {index.name} names it")
    return [index.parent / name for name in names]


def read_file(path: Path) -> dict[str, Tensor]:
    require_memory(measure_file(path), f"{path}: reading it")
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError, RuntimeError, TypeError, OverflowError) as error:
            raise UserError(f"{path}: is damaged or not safetensors ({shorten(str(error))})") from None
    else:
        tensors = read_pickle(path)
    return {name: to_plain(tensor, name, path) for name, tensor in tensors.items()}


def to_plain(tensor: Tensor, name: str, path: Path) -> Tensor:
    """Return a tensor as float32 (integers unchanged); one that is no plain array of numbers is refused."""
    kind = str(tensor.layout).removeprefix("torch.")
    if tensor.device.type != "cpu":
        kind = tensor.device.type
    elif tensor.is_quantized:
        kind = "quantized"
    elif tensor.is_complex():
        kind = "complex"
    elif kind == "strided" and tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes():
        return tensor.float() if tensor.is_floating_point() else tensor
    elif kind == "strided":
        kind = "expanded"
    raise UserError(f'{path}: "{shorten(name)}" is a tensor of another form ({kind}); plain arrays are read')


def measure_file(path: Path) -> int:
    """Return the size of a file of tensors; of a compressed one, what it holds."""
    check_regular(path)
    size = path.stat().st_size
    if path.suffix != ".safetensors" and zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                size = max(size, sum(entry.file_size for entry in archive.infolist()))
        except Exception:
            return size  # torch says what is wrong with it
    return size


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a file of torch.save with tensors only: anything else in it is refused, never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols; what matters is refused below
            tensors: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, AttributeError, ImportError):
        raise UserError(
            f"{path}: holds something other than tensors; it was not loaded, since it could run code"
        ) from None
    except Exception as error:  # its reader raises whatever the damage leads to
        raise UserError(f"{path}: is damaged ({shorten(str(error))})") from None
    if not isinstance(tensors, dict):
        raise UserError(f"{path}: is not a dictionary of tensors")
    for name in tensors:
        if not isinstance(name, str):
            raise UserError(f"{path}: a tensor is called {shorten(repr(name))}, which is no text")
    return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}


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
