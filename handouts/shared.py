"""Functions that all handouts share: find models (or a named stand-in), data and devices; show results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import UserError
from heedful.logs import print_messages

AS_IN_TRANSFORMERS = {"pool": "family", "head_start": "random"}
"""Options of `heedful adapt` that make a classifier start as the course's own scripts start it."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Report a user's mistake in one line and exit with its status."""
    try:
        with print_messages():
            yield
    except UserError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.status)


def find_models(names: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the models, with missing ones replaced once by HEEDFUL_STAND_IN, and a note that says so."""
    missing: dict[str, UserError] = {}
    for name in names:
        try:
            find_model_folder(name)
        except UserError as error:
            missing[name] = error
    stand_in = os.environ.get("HEEDFUL_STAND_IN")
    if not missing:
        return list(names), None
    if not stand_in:
        raise next(iter(missing.values()))
    if find_model_folder(stand_in) is None:
        raise UserError(f"HEEDFUL_STAND_IN={stand_in}: has random weights; name a pretrained model")
    note = f"{Path(stand_in).name} stands in for {', '.join(missing)}"
    print(f"STAND-IN: {note}, which cannot be reached", flush=True)
    return list(dict.fromkeys(stand_in if name in missing else name for name in names)), note


def find_model(name: str) -> tuple[str, str | None]:
    """Return one model, and the note if it is a stand-in."""
    (model,), note = find_models([name])
    return model, note


def find_model_folder(name: str) -> Path | None:
    """Return the folder of a pretrained model; None for a preset with random weights."""
    from heedful.models import PRESETS
    from heedful.text.model_folders import TOKENIZER_FILES, find_folder

    if name in PRESETS and not Path(name).is_dir():
        return None
    return find_folder(name, (*TOKENIZER_FILES, "*.safetensors", "pytorch_model.bin"), PRESETS)


def find_data(folder: str | Path | None, name: str, needed: str = "train*") -> tuple[str, Path | None]:
    """Return a task and its folder; without data, a generated task of the same kind, and print a notice."""
    home = os.environ.get("HEEDFUL_DATA")
    data_dir = Path(folder) if folder else Path(home) / name if home else None
    if data_dir is not None and data_dir.is_dir() and any(data_dir.glob(needed)):
        return name, data_dir
    if folder:
        raise UserError(f"{folder}: has no {needed} file; omit the option to use generated data")
    world = {"yelp": "world/reviews", "sst2": "world/sentiment"}.get(name, f"world/{name}")
    print(f"no data for {name} (its folder, or $HEEDFUL_DATA/{name}): using {world}, which is generated")
    return world, None


def find_file(path: Path | None, folder: Path | None) -> Path | None:
    """Return a file; a name without a folder is also looked for in the data folder."""
    if path is None or path.is_file():
        return path
    if folder is not None and path.name == str(path) and (folder / path).is_file():
        return folder / path
    raise UserError(f"{path}: there is no such file")


def find_device(name: str) -> str:
    """Return the device; the CPU, with a notice, if CUDA is not available."""
    import torch

    if name.startswith("cuda") and not torch.cuda.is_available():
        print("no CUDA here: using the CPU")
        return "cpu"
    return name


def heedful(*words: str) -> None:
    """Run a heedful command; exit with its status if it fails."""
    from heedful.cli import main

    status = main(words)
    if status:
        sys.exit(status)


def show_counts(folder: Path) -> None:
    """Print the trained parameters of each method of a study, as a formula and a number."""
    from heedful.runs import Run

    results = [Run.open(file.parent).read_results() for file in sorted(folder.glob("runs/*/results.json"))]
    for line in dict.fromkeys(f"{Path(r.model).name} {r.method}: {r.formula}" for r in results):
        print(f"trained parameters, {line}")


def show(folder: Path) -> None:
    """Write the report and figures of a run or study, and print where they are."""
    report, figures = folder / "report.html", folder / "figures"
    heedful("report", str(folder), "--out", str(report), "--figures", str(figures))
    print(f"run directory: {folder}\nfigures: {figures}\nreport: {report}")
