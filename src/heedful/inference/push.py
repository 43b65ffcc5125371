"""Uploading the best model of a run to the Hub, with a card and never with data."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.inference.export import export_run
from heedful.inference.model_card import write_model_card
from heedful.inference.onnx.predictor import holds_onnx
from heedful.runs.directory import Run
from heedful.runs.files import write_text

NAME = re.compile(r"[\w.-]+/[\w.-]+")
CODE = re.compile(r"```python\n.*?```", re.DOTALL)


@dataclass(frozen=True)
class Upload:
    """What is uploaded: the files, each with its size in bytes."""

    name: str
    files: Sequence[tuple[str, int]]
    loads_with: str
    private: bool


def push_run(
    path: str | Path,
    name: str,
    announce: Callable[[Upload], None],
    *,
    merge: bool = False,
    private: bool = True,
    dry_run: bool = False,
) -> str | None:
    """Upload the best model of a run as a repository of the Hub; return its address, None for a dry run.

    The files are those of `heedful export` and a card. `announce` is told of them before anything is sent.
    """
    if NAME.fullmatch(name) is None:
        raise UserError(f'"{name}": a repository is called owner/name')
    run = Run.open(path)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        loads_with = export_run(path, folder, merge=merge).loads_with
        write_text(folder / "README.md", write_model_card(run, loads_with, find_usage(folder)))
        files = [
            (file.relative_to(folder).as_posix(), file.stat().st_size)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        ]
        announce(Upload(name, files, loads_with, private))
        return None if dry_run else upload(folder, name, private=private)


def find_usage(folder: Path) -> str:
    """Return the code in the README of an export, which says how its form is used."""
    readme = folder / "README.md"
    found = CODE.search(readme.read_text("utf-8")) if readme.is_file() and not holds_onnx(folder) else None
    return found[0] if found else '```\nheedful predict FOLDER "a text"\n```'


def upload(folder: Path, name: str, *, private: bool) -> str:
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload with heedful")
    except Exception as error:  # of the library, of its HTTP client, or of the network
        reason = one_line(str(error).strip().partition("\n")[0]) or type(error).__name__
        raise UserError(f"{name}: the Hub refused the upload: {reason}; hf auth login logs in") from None
    return str(address)
