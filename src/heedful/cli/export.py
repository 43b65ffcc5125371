"""`heedful export`: a run or a model as a folder for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json
from heedful.errors import UserError


def export(
    what: str,
    folder: Path,
    /,
    *,
    merge: Annotated[bool, Parameter(negative=())] = False,
    head: str | None = None,
    n_classes: int | None = None,
    json: Json = False,
) -> None:
    """Write a run's best model, or a model, as a folder that transformers loads, its tokenizer included.

    A run that learnt an adapter becomes a folder that peft loads, or one that heedful loads, with the reason;
    --merge folds lora, bitfit or head into the base, for transformers alone.

    Examples:

        heedful export runs/sst2 my-sst2

        heedful export runs/sst2-lora my-sst2 --merge

        heedful export tinybert fresh-tinybert --head masked

    Parameters
    ----------
    what
        A run's folder; or a model: a folder in Hub form, minilm, a preset (heedful list models), or a Hub id.
    folder
        Where to write; must be empty or absent.
    merge
        A run: one plain model instead of an adapter.
    head
        A model: put a head on it: classify, masked, causal or text2text.
    n_classes
        A model: classes of the head; by default the checkpoint's own number, else 2.
    json
        Print one JSON object.
    """
    from heedful.runs.directory import CONFIG

    if (Path(what) / CONFIG).is_file():
        if head is not None or n_classes is not None:
            raise UserError("--head and --n-classes are for models; a run has its head")
        from heedful.inference.export import export_run

        done = export_run(what, folder, merge=merge)
        tell(folder, json, {"loads_with": done.loads_with, "why_not": done.why})
        return
    if merge:
        raise UserError(f"{what}: is not a run; --merge folds what a run learnt into its base")
    from heedful.checkpoints import export as write
    from heedful.checkpoints import load

    loaded = load(what, head=head, n_classes=n_classes)
    write(loaded, folder)
    tell(folder, json, {"loads_with": "transformers", "why_not": None, "new": loaded.report.new})


def tell(folder: Path, json: bool, facts: dict[str, object]) -> None:
    """Say what was written, and who can read it."""
    files = sorted(p.name for p in folder.iterdir())
    if json:
        print_json({"folder": str(folder), "files": files, **facts})
        return
    console().print(f"{folder}: {', '.join(files)}", markup=False)
    why = f"; {facts['why_not']}" if facts["why_not"] else ""
    console().print(f"loads with {facts['loads_with']}{why}", markup=False)
