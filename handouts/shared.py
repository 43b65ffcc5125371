"""What every handout needs: a model or its named stand-in, data or the world, where things are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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


def find_model(name: str) -> str:
    """The model, or what HEEDFUL_STAND_IN names when it cannot be reached; never another one silently."""
    from heedful.models import PRESETS
    from heedful.text.places import TOKENIZER_FILES, find_folder

    if name in PRESETS:
        return name
    try:
        find_folder(name, (*TOKENIZER_FILES, "*.safetensors", "pytorch_model.bin"), PRESETS)
    except UserError:
        stand_in = os.environ.get("HEEDFUL_STAND_IN")
        if not stand_in:
            raise
        print(f"STAND-IN: {name} cannot be reached; {stand_in} takes its place in everything below")
        return stand_in
    return name


def find_data(folder: str | Path | None, name: str, needed: str = "train*") -> tuple[str, Path | None]:
    """A named task and its folder; without data the world's of the same kind, and a line says so."""
    given = [Path(folder)] if folder else []
    home = os.environ.get("HEEDFUL_DATA")
    given += [Path(home) / name] if home else []
    for place in given:
        if place.is_dir() and any(place.glob(needed)):
            return name, place
    if folder:
        raise UserError(f"{folder}: has no {needed} file; without the option the generated world is used")
    world = {"boolq": "world/boolq", "yelp": "world/reviews", "sst2": "world/sentiment"}.get(
        name, f"world/{name}"
    )
    print(f"no data for {name} (its folder, or $HEEDFUL_DATA/{name}): using {world}, which is generated")
    return world, None


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


def show(folder: Path) -> None:
    """The last lines: the run or study, its figures and its report."""
    report, figures = folder / "report.html", folder / "figures"
    heedful("report", str(folder), "--out", str(report), "--figures", str(figures))
    print(f"run directory: {folder}\nfigures: {figures}\nreport: {report}")
