"""`heedful data make world`: an invented but consistent world, in the forms of the named tasks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_facts, print_json
from heedful.errors import one_line


def world(
    folder: Annotated[Path, Parameter(name="DIR", help="A new folder for the world.")],
    /,
    *,
    people: Annotated[int, Parameter(help="People with a biography; a million take about a minute.")] = 2000,
    seed: Annotated[int, Parameter(help="The same seed gives the same bytes.")] = 0,
    name_signal: Annotated[
        float,
        Parameter(help="From 0 (names and birth places independent) to 1 (surnames hint at the country)."),
    ] = 0.0,
    overwrite: Annotated[bool, Parameter(help="Make a world in DIR anew.", negative=())] = False,
    json: Json = False,
) -> None:
    """Make an invented but consistent world: data for every task, with no download.

    DIR/birthplaces holds biographies (wiki.txt) and questions about birth places, birth_unseen.tsv those
    about people without a biography; DIR/boolq yes/no questions with passages; DIR/reviews reviews with 1 to
    5 stars; DIR/sentiment positive and negative sentences. DIR/world.json says what the best possible results
    are. The default world needs no making: use it by name, as world/birthplaces, world/boolq, world/reviews
    or world/sentiment.

    Examples:
      heedful data make world my-world
      heedful data make world big --people 1000000 --seed 7
      heedful data make world hints --name-signal 0.8
    """
    from heedful.data.world import make_world

    facts = make_world(folder, people=people, seed=seed, name_signal=name_signal, overwrite=overwrite)
    if json:
        print_json({"folder": str(folder), **facts})
        return
    for task, known in facts["tasks"].items():
        rows = ", ".join(f"{name} {n:,}" for name, n in known["rows"].items())
        told = {"rows": rows, f"best possible {known['metric']}": f"{known['best_possible']:.3f}"}
        if task == "birthplaces":
            told["always the same answer"] = (
                f"{known['constant_answer_on_dev']:.3f} ({known['constant_answer']})"
            )
            told["best possible, unseen people"] = f"{known['best_possible_on_unseen']:.3f}"
        print_facts(f"{folder / task}", told)
    look = shlex.join(["heedful", "data", "show", "world/boolq", "--data-dir", str(folder / "boolq")])
    console().print(f"Look at one: {one_line(look)}", markup=False, soft_wrap=True)
