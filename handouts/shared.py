"""What every handout needs: a model or its named stand-in, data or the world, where things are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import UserError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A person's mistake ends the command with one line and status 2."""
    try:
        yield
    except UserError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(error.status)


def find_models(names: Sequence[str]) -> tuple[list[str], str | None]:
    """The models, and a note on those for which HEEDFUL_STAND_IN stands in, once; never another silently."""
    missing: dict[str, UserError] = {}
    for name in names:
        try:
            look_for(name)
        except UserError as error:
            missing[name] = error
    stand_in = os.environ.get("HEEDFUL_STAND_IN")
    if not missing:
        return list(names), None
    if not stand_in:
        raise next(iter(missing.values()))
    if look_for(stand_in) is None:
        raise UserError(f"HEEDFUL_STAND_IN={stand_in}: has random weights, which stand in for nothing")
    note = f"{Path(stand_in).name} stands in for {', '.join(missing)}"
    print(f"STAND-IN: {note}, which cannot be reached", flush=True)
    return list(dict.fromkeys(stand_in if name in missing else name for name in names)), note


def find_model(name: str) -> tuple[str, str | None]:
    """One model, and the note on it if it is a stand-in."""
    (found,), note = find_models([name])
    return found, note


def look_for(name: str) -> Path | None:
    """The folder of a model that can be reached; None for one from nothing."""
    from heedful.models import PRESETS
    from heedful.text.model_folders import TOKENIZER_FILES, find_folder

    if name in PRESETS and not Path(name).is_dir():
        return None
    return find_folder(name, (*TOKENIZER_FILES, "*.safetensors", "pytorch_model.bin"), PRESETS)


def find_data(folder: str | Path | None, name: str, needed: str = "train*") -> tuple[str, Path | None]:
    """A named task and its folder; without data the world's of the same kind, and a line says so."""
    home = os.environ.get("HEEDFUL_DATA")
    place = Path(folder) if folder else Path(home) / name if home else None
    if place is not None and place.is_dir() and any(place.glob(needed)):
        return name, place
    if folder:
        raise UserError(f"{folder}: has no {needed} file; without the option the generated world is used")
    world = {"yelp": "world/reviews", "sst2": "world/sentiment"}.get(name, f"world/{name}")
    print(f"no data for {name} (its folder, or $HEEDFUL_DATA/{name}): using {world}, which is generated")
    return world, None


def beside(path: Path | None, folder: Path | None) -> Path | None:
    """A file; a name alone that is not here may stand in the data's folder."""
    if path is None or path.is_file():
        return path
    if folder is not None and path.name == str(path) and (folder / path).is_file():
        return folder / path
    raise UserError(f"{path}: there is no such file")


def find_device(name: str) -> str:
    """The device, or the CPU with a notice where there is no such device."""
    import torch

    if name.startswith("cuda") and not torch.cuda.is_available():
        print("no CUDA here: using the CPU")
        return "cpu"
    return name


def heedful(*words: str) -> None:
    """A heedful command; what it does not like ends this one too."""
    from heedful.cli import main

    status = main(words)
    if status:
        sys.exit(status)


def show_counts(folder: Path) -> None:
    """What each method of a study trains, as a number and as a formula."""
    from heedful.runs import Run

    found = [Run.open(file.parent).results() for file in sorted(folder.glob("runs/*/results.json"))]
    for line in dict.fromkeys(f"{Path(r.model).name} {r.method}: {r.formula}" for r in found):
        print(f"trained parameters, {line}")


def show(folder: Path) -> None:
    """The last lines: the run or study, its figures and its report."""
    report, figures = folder / "report.html", folder / "figures"
    heedful("report", str(folder), "--out", str(report), "--figures", str(figures))
    print(f"run directory: {folder}\nfigures: {figures}\nreport: {report}")
