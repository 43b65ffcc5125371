"""`heedful data make world`: generate a consistent world, in the form of the named tasks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Flag, Json, console, print_facts, print_json
from heedful.errors import one_line
from heedful.options.types import Count, Positive


def command(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    people: Positive = 2000,
    seed: Count = 0,
    name_signal: float = 0.0,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Generate an invented but consistent world: data for every task, without a download.

    DIR/birthplaces contains biographies (wiki.txt) and questions about
    birthplaces; birth_unseen.tsv asks about people without a biography. DIR/boolq
    contains yes/no questions with passages, DIR/reviews reviews with 1 to 5
    stars, DIR/sentiment positive and negative sentences, DIR/messages letters to
    the desks of a newspaper. DIR/world.json states the best possible results. The
    default world needs no command: use it by name, as world/birthplaces,
    world/boolq, world/messages, world/reviews or world/sentiment.

    Examples:
      heedful data make world my-world
      heedful data make world big --people 1000000 --seed 7
      heedful data make world hints --name-signal 0.8

    Parameters
    ----------
    folder
        A new folder for the world.
    people
        Number of people with a biography; a million take about a minute.
    seed
        Seed of the world; the same seed gives the same bytes.
    name_signal
        From 0 (names and birthplaces are independent) to 1 (surnames hint at the country).
    overwrite
        Replace the world in DIR.
    """
    from heedful.data.world import make_world

    facts = make_world(folder, people=people, seed=seed, name_signal=name_signal, overwrite=overwrite)
    if json:
        print_json({"folder": str(folder), **facts})
        return
    for task, task_facts in facts["tasks"].items():
        rows = ", ".join(f"{name} {n:,}" for name, n in task_facts["rows"].items())
        shown = {"rows": rows, f"best possible {task_facts['metric']}": f"{task_facts['best_possible']:.3f}"}
        if task == "birthplaces":
            shown["always the same answer"] = (
                f"{task_facts['constant_answer_on_dev']:.3f} ({task_facts['constant_answer']})"
            )
            shown["best possible, unseen people"] = f"{task_facts['best_possible_on_unseen']:.3f}"
        print_facts(f"{folder / task}", shown)
    look = shlex.join(["heedful", "data", "show", "world/boolq", "--data-dir", str(folder / "boolq")])
    console().print(f"Look at one: {one_line(look)}", markup=False, soft_wrap=True)
