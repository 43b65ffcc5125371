"""`heedful check`: check a run or a model."""

from __future__ import annotations

from rich.text import Text

from heedful.cli.output import Json, console, print_json, print_table
from heedful.errors import one_line

STYLES = {"failed": "bold red", "warning": "yellow", "passed": "green", "skipped": "dim"}
STATUS_FAILED = 1


def command(what: str, /, *, json: Json = False) -> int:
    """Check a run, an export or a model, and say what is wrong with it.

    For a run, the checks that it made when it ended are shown; causality, the
    tokenizer and the saved weights are checked again. For a model, the checks
    are whether the future reaches the past, whether its tokenizer fits, and
    whether it is the same after saving. What heedful export wrote is checked
    for whether a text gets the same answer alone as beside longer ones. The
    exit status is 1 if a check failed.

    Examples:
      heedful check runs/sst2
      heedful check reviews-onnx
      heedful check minilm --json

    Parameters
    ----------
    what
        Folder of a run, a study, what solve or export wrote, or a model: a folder in Hub form, minilm, a
        preset, or a Hub id.
    json
        Print one JSON object.
    """
    from heedful.evaluation.checks import summarize
    from heedful.evaluation.folder_checks import check_folder
    from heedful.evaluation.model_checks import check_model
    from heedful.inference.loading import is_export, is_foreign
    from heedful.runs.directory import CONFIG, follow_choice
    from heedful.runs.files import to_json_value
    from heedful.runs.schemas import Checks
    from heedful.training.rescore import check_run

    if (follow_choice(what) / CONFIG).is_file():
        checks, again = check_run(what)
    else:
        export = is_export(what) and not is_foreign(what)
        checks = check_folder(what) if export else check_model(what)
        again = {check.name for check in checks}
    worst = Checks(tuple(checks)).worst()
    if json:
        rows = [{**to_json_value(check), "again": check.name in again} for check in checks]
        print_json({"of": what, "worst": worst, "checks": rows})
    else:
        table = []
        for check in checks:
            status = Text(check.status, style=STYLES[check.status])
            when = "now" if check.name in again else "by the run"
            table.append((check.name.replace("_", " "), status, when, one_line(check.message)))
        print_table(what, ("check", "status", "checked", "result"), table)
        console().print(f"checks: {one_line(summarize(checks))}", markup=False)
    return STATUS_FAILED if worst == "failed" else 0
