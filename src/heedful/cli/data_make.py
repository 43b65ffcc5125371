"""`heedful data make world`: an invented but consistent world, in the forms of the named tasks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Flag, Json, console, print_facts, print_json
from heedful.errors import one_line


def world(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    people: int = 2000,
    seed: int = 0,
    name_signal: float = 0.0,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Make an invented but consistent world: data for every task, no download.

    DIR/birthplaces has biographies (wiki.txt) and questions about birth places,
    birth_unseen.tsv those about people without a biography; DIR/boolq yes/no
    questions with passages; DIR/reviews reviews with 1 to 5 stars;
    DIR/sentiment positive and negative sentences. DIR/world.json says what the
    best possible results are. The default world needs no making: use it by
    name, as world/birthplaces, world/boolq, world/reviews or world/sentiment.

    Examples:
      heedful data make world my-world
      heedful data make world big --people 1000000 --seed 7
      heedful data make world hints --name-signal 0.8

    Parameters
    ----------
    folder
        A new folder for the world.
    people
        People with a biography; a million take about a minute.
    seed
        The same seed gives the same bytes.
    name_signal
        From 0 (names and birth places independent) to 1 (surnames hint at the country).
    overwrite
        Make a world in DIR anew.
    json
        Print one JSON object.
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
