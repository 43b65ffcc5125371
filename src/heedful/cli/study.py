"""`heedful study`: many runs, one answer.

A study's command is generated from its class when it is called: `heedful study --help` imports no study, and
never torch.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from heedful.cli.help_format import GeneratedCommand
from heedful.cli.output import JSON_HELP, Json, console, print_json, print_table
from heedful.studies import STUDIES, describe_study

COMMAND = "command_"
"""What the parser calls a study's command in this module, before the study's name."""

app = App(name="study", help="Answer a question with many runs.")
for study_name in STUDIES:
    app.command(f"{__name__}:{COMMAND}{study_name}", name=study_name, help=describe_study(study_name))


def __getattr__(name: str) -> App:
    """Return the command of a study, which the parser looks up by name."""
    if name.startswith(COMMAND):
        return make_command(name.removeprefix(COMMAND))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def make_command(name: str) -> App:
    """Return the command of a study: its docstring is the help, its dataclasses are the options."""
    kind = STUDIES.find(name)
    groups: dict[str, Any] = {"study": kind.options}
    if kind.run_options is not None:
        groups["run"] = kind.run_options
    owner = list(groups)[-1]
    defaults = {field.name: field.default for field in fields(groups[owner])}

    def command(*arguments: str, json: bool = False, **options: Any) -> None:
        from heedful.cli.study_output import print_result
        from heedful.studies.shared.runner import run_study

        options = {group: options.get(group, make_default()) for group, make_default in groups.items()}
        # The parser leaves out arguments at their default.
        options[owner] = replace(options[owner], **dict(zip(kind.arguments, arguments, strict=False)))
        print_result(*run_study(kind, *options.values()), json=json)

    parameters = [
        parameter(argument, str, positional=True, default=defaults[argument] or MISSING)
        for argument in kind.arguments
    ]
    parameters += [
        parameter(group, Annotated[options, Parameter(name="*")], default=options())
        for group, options in groups.items()
    ]
    parameters.append(parameter("json", Json, default=False))
    text = inspect.cleandoc(kind.__doc__ or "")
    lines = [f"{name}\n    {line}" for name, line in {**kind.arguments, "json": JSON_HELP}.items()]
    command.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = "\n".join([text, "", "Parameters", "----------", *lines])
    generated = GeneratedCommand(name=name)
    generated.default(command)
    return generated


def parameter(name: str, hint: Any, *, default: Any, positional: bool = False) -> inspect.Parameter:
    """Return a parameter of a command; without a default it is required."""
    kind = inspect.Parameter.POSITIONAL_ONLY if positional else inspect.Parameter.KEYWORD_ONLY
    empty = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, kind, default=empty, annotation=hint)


@app.command
def show(folder: Path, /, *, json: Json = False) -> None:
    """Show the progress of a study and its answer so far: at any time, from any terminal.

    Example: heedful study show studies/search-boolq-minilm

    Parameters
    ----------
    folder
        The study's folder.
    """
    from heedful.cli.study_output import print_answer
    from heedful.runs.files import to_json_value
    from heedful.runs.studies import StudyFolder
    from heedful.studies.shared.live_table import COLUMNS, describe_progress, list_rows

    study = StudyFolder.open(folder)
    outcomes, answer = study.read_outcomes(), study.find_answer()
    rows = list_rows(study, outcomes)
    if json:
        print_json(to_json_value({"study": study.read(), "runs": rows, "answer": answer}))
        return
    print_table(study.read().question, COLUMNS, [row.cells() for row in rows], right=("epoch", "dev", "time"))
    console().print(describe_progress(outcomes, None), markup=False)
    if answer is not None:
        print_answer(study, answer)


@app.command
def export(folder: Path, /, *, optuna: Annotated[Path, Parameter(show_default=False)]) -> None:
    """Write the runs of a study as trials of Optuna, for optuna-dashboard.

    Example: heedful study export studies/search-boolq-minilm --optuna study.db

    Parameters
    ----------
    folder
        The study's folder.
    optuna
        The SQLite file to write; optuna-dashboard sqlite:///study.db opens it.
    """
    from heedful.studies.optuna_export import export_to_optuna

    count = export_to_optuna(folder, optuna)
    console().print(
        f"{optuna}: {count:,} trials; optuna-dashboard sqlite:///{optuna} shows them", markup=False
    )


@app.command
def worker(folder: Path, /, *, threads: int | None = None, parent: int | None = None) -> None:
    """Work on a study together with other workers: claim its runs, one after another, until none is left.

    Any number of workers may run, on any machines that share the folder. A
    worker that is stopped (SIGTERM, SIGUSR1: status 75) leaves a checkpoint, and
    the next one continues from there.

    Example: heedful study worker studies/search-boolq-minilm --threads 4

    Parameters
    ----------
    folder
        The study's folder, which the study's own command has made.
    threads
        CPU threads of each run. By default the available cores.
    parent
        Number of the process that started the worker; the worker stops when that process ends.
    """
    from heedful.studies.shared.worker import work
    from heedful.training.signals import stop_with_parent

    if parent is not None:
        stop_with_parent(parent)
    work(folder, threads)
