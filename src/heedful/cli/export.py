"""`heedful export`: a model as a folder that transformers loads."""

from __future__ import annotations

from pathlib import Path

from heedful.cli.output import Json, console, print_json


def export(
    model: str, folder: Path, /, *, head: str | None = None, n_classes: int | None = None, json: Json = False
) -> None:
    """Write a model as a folder that transformers loads, its tokenizer included.

    Examples:

        heedful export minilm my-minilm

        heedful export tinybert fresh-tinybert --head masked

    Parameters
    ----------
    model
        A folder in Hub form, minilm, a preset (heedful list models), or a Hub id.
    folder
        Where to write; must be empty or absent.
    head
        Put a head on it: classify, masked, causal or text2text.
    n_classes
        Classes of the head; by default the checkpoint's own number, else 2.
    json
        Print one JSON object.
    """
    from heedful.checkpoints import export as write
    from heedful.checkpoints import load

    loaded = load(model, head=head, n_classes=n_classes)
    write(loaded, folder)
    files = sorted(p.name for p in folder.iterdir())
    if json:
        print_json({"folder": str(folder), "files": files, "new": loaded.report.new})
        return
    console().print(f"{folder}: {', '.join(files)}", markup=False)
