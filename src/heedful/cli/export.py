"""`heedful export`: write a run or a model as a folder for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import Flag, Json, console, print_json, print_table
from heedful.errors import UserError
from heedful.options.types import ClassCount

if TYPE_CHECKING:
    from heedful.inference.onnx.measures import Measures


def command(
    what: str,
    folder: Path,
    /,
    *,
    merge: Flag = False,
    onnx: Flag = False,
    int8: Flag = False,
    accept_loss: Flag = False,
    head: str | None = None,
    n_classes: ClassCount | None = None,
    json: Json = False,
) -> None:
    """Write the best model of a run, or a model, as a folder that transformers loads, with its tokenizer.

    A model that pools the mean of its states becomes a folder that
    sentence-transformers loads, with its head in head/ (README.md there shows its use).
    An adapter becomes a folder that peft loads, or one that only Heedful loads
    if peft has no such adapter. --merge merges lora, bitfit or head into the
    base model, so that the result loads without peft.

    With --onnx, the folder is for ONNX Runtime: it is quicker on a processor and
    needs no torch. Its speed, its memory and its labels on dev are measured beside
    the run's own model. --int8 makes it smaller and quicker still; a model that
    loses beyond chance by that is refused.

    Examples:
      heedful export runs/sst2 my-sst2
      heedful export runs/sst2-lora my-sst2 --merge
      heedful export runs/sst2 sst2-onnx --onnx --int8
      heedful export tinybert fresh-tinybert --head masked

    Parameters
    ----------
    what
        Folder of a run, or a model: a folder in Hub form, minilm, a preset, or a Hub id.
    folder
        Folder to write, which must be empty or absent.
    merge
        For a run: write one plain model instead of an adapter.
    onnx
        For a run: write a graph for ONNX Runtime.
    int8
        With --onnx: weights of 8 bits; parts of the model that lose by that stay float32.
    accept_loss
        With --int8: write the model even if it loses beyond chance.
    head
        For a model: add a head: classify, masked, causal or text2text.
    n_classes
        For a model: number of classes of the head. By default the checkpoint's own number, or 2.
    """
    from heedful.runs.directory import CONFIG, follow_choice

    if (int8 and not onnx) or (accept_loss and not int8):
        raise UserError("--int8 belongs to --onnx, and --accept-loss to --int8")
    if onnx:
        if merge or head is not None or n_classes is not None:
            raise UserError("--onnx merges adapters itself and keeps the head; leave the other options away")
        from heedful.evaluation.onnx_export import export_onnx

        print_onnx(folder, export_onnx(what, folder, int8=int8, accept_loss=accept_loss), json=json)
        return
    if (follow_choice(what) / CONFIG).is_file():
        if head is not None or n_classes is not None:
            raise UserError("--head and --n-classes are for models; a run has its head")
        from heedful.inference.export import export_run

        done = export_run(what, folder, merge=merge)
        print_export(folder, json, {"loads_with": done.loads_with, "why_not": done.why})
        return
    if merge:
        raise UserError(f"{what}: is not a run; --merge merges what a run learned into its base model")
    from heedful.checkpoints import export as write
    from heedful.checkpoints import load

    loaded = load(what, head=head, n_classes=n_classes)
    write(loaded, folder)
    print_export(folder, json, {"loads_with": "transformers", "why_not": None, "new": loaded.report.new})


def print_onnx(folder: Path, measures: Measures, *, json: bool) -> None:
    from heedful.runs.files import to_json_value

    if json:
        facts = {"folder": str(folder), "loads_with": "onnxruntime", "sentence": measures.sentence()}
        print_json({**facts, **to_json_value(measures)})
        return
    columns, rows = measures.table()
    print_table("speed on this machine, texts one by one and 32 at a time", columns, rows, right=columns[1:])
    for line in (*measures.lines(), measures.sentence(), f"{folder}: loads with onnxruntime"):
        console().print(line, markup=False)


def print_export(folder: Path, json: bool, facts: dict[str, object]) -> None:
    files = sorted(p.name for p in folder.iterdir())
    if json:
        print_json({"folder": str(folder), "files": files, **facts})
        return
    console().print(f"{folder}: {', '.join(files)}", markup=False)
    why = f"; {facts['why_not']}" if facts["why_not"] else ""
    head = ", its head is in head/" if (folder / "head").is_dir() else ""
    console().print(f"loads with {facts['loads_with']}{head}{why}", markup=False)
