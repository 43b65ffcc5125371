"""`heedful study`: many runs, one answer."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from heedful.cli.output import Json, console, print_json, print_table
from heedful.cli.study_attention import attention
from heedful.cli.study_compare import compare
from heedful.cli.study_knowledge import knowledge
from heedful.cli.study_labels import labels
from heedful.cli.study_optimizers import optimizers
from heedful.cli.study_overfit import overfit
from heedful.cli.study_search import search

app = App(
    name="study",
    help="Many runs, one answer: overfit, search, compare, labels, optimizers, attention, knowledge.",
)
for command in (overfit, search, compare, labels, optimizers, attention, knowledge):
    app.command(command)


@app.command
def show(folder: Path, /, *, json: Json = False) -> None:
    """Show how far a study is, and what it has found: at any time, from any terminal.

    Example: heedful study show studies/search-boolq-minilm

    Parameters
    ----------
    folder
        The study's folder.
    json
        Print one JSON object.
    """
    from heedful.cli.study_output import print_answer
    from heedful.runs.files import plain
    from heedful.runs.studies import StudyFolder
    from heedful.studies.shared.live_table import COLUMNS, headline, lines

    study = StudyFolder.open(folder)
    outcomes, answer = study.outcomes(), study.answer()
    found = lines(study, outcomes)
    if json:
        print_json(plain({"study": study.read(), "runs": found, "answer": answer}))
        return
    print_table(
        study.read().question, COLUMNS, [line.cells() for line in found], right=("epoch", "dev", "time")
    )
    console().print(headline(outcomes, None), markup=False)
    if answer is not None:
        print_answer(study, answer)


@app.command
def worker(folder: Path, /, *, threads: int | None = None, parent: int | None = None) -> None:
    """Work on a study beside others: claims its runs, one after another, until none is left.

    Any number of workers, on any machines that share the folder. A worker that is stopped (SIGTERM, SIGUSR1:
    status 75) leaves a checkpoint; the next one goes on from there.

    Example: heedful study worker studies/search-boolq-minilm --threads 4

    Parameters
    ----------
    folder
        The study's folder, which the study's own command has made.
    threads
        CPU threads of each run; by default the cores this process may use.
    parent
        Stop when this process, which started the worker, is gone.
    """
    from heedful.launch.parent import stop_with_parent
    from heedful.studies.shared import worker

    if parent is not None:
        stop_with_parent(parent)
    worker.work(folder, threads)
