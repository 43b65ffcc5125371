"""A generated world: invented but consistent data, so that everything runs without a download.

It has people with names, births, trades and relations, and their biographies; yes/no questions with passages;
reviews with stars; sentences with a sentiment; letters to the desks of a newspaper. Most tasks have the form
of a named one, and each has a known best result. A seed always gives the same bytes; they change only with
`VERSION`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from heedful.data import cache
from heedful.data.names import WORLD_FACTS
from heedful.data.world.files import (
    Facts,
    write_birthplaces,
    write_boolq,
    write_facts,
    write_messages,
    write_reviews,
    write_sentiment,
)
from heedful.data.world.people import STRANGERS, World
from heedful.errors import UserError, shorten, unknown
from heedful.paths import expand_path
from heedful.runs.files import new_folder

VERSION = 1
PEOPLE = 2000
FEWEST_PEOPLE, MOST_PEOPLE = 20, STRANGERS - 100_000
FACTS = WORLD_FACTS

__all__ = ["FACTS", "PEOPLE", "TASKS", "VERSION", "World", "make_task_folder", "make_world"]

Writer = Callable[[Path, World, int], Facts]
TASKS: dict[str, Writer] = {
    "birthplaces": partial(write_birthplaces, people=PEOPLE),
    "boolq": write_boolq,
    "messages": write_messages,
    "reviews": write_reviews,
    "sentiment": write_sentiment,
}


def make_world(
    folder: Path, *, people: int = PEOPLE, seed: int = 0, name_signal: float = 0.0, overwrite: bool = False
) -> Facts:
    """Generate a world in `folder`, one subfolder per task, atomically; return the content of `world.json`.

    `name_signal` is the probability that a person was born in the country that the surname's ending suggests.
    """
    refuse_impossible(people, seed, name_signal)
    folder = expand_path(folder)
    check_target_folder(folder, overwrite)
    world = World(seed, name_signal)
    facts = describe_world(seed, people, name_signal)
    writers: dict[str, Writer] = {**TASKS, "birthplaces": partial(write_birthplaces, people=people)}
    with new_folder(folder) as new:
        for task, write in writers.items():
            (new / task).mkdir()
            facts["tasks"][task] = write(new / task, world, seed)
        write_facts(new / FACTS, facts)
        check_target_folder(folder, overwrite)
    return facts


def check_target_folder(folder: Path, overwrite: bool) -> None:
    """Refuse to overwrite anything but an empty folder, or an older world if asked to."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder}: is not a folder; give a new one")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / FACTS).is_file():
        raise UserError(f"{folder}: is not empty and holds no world; give a new folder")
    if not overwrite:
        raise UserError(f"{folder}: holds a world already; --overwrite replaces it")
    others = sorted(path.name for path in folder.iterdir() if path.name not in (FACTS, "birthplaces", *TASKS))
    if others:
        raise UserError(
            f"{folder}: holds {shorten(others[0], 40)} beside a world; move it, or give a new folder"
        )


def make_task_folder(name: str, seed: int = 0, *, people: int = PEOPLE, name_signal: float = 0.0) -> Path:
    """Return the folder of a generated task, such as `world/boolq`, written on first use and cached.

    `people` and `name_signal` concern `birthplaces` alone.
    """
    task = name.removeprefix("world/")
    if task not in TASKS:
        raise unknown("world task", name, (f"world/{task}" for task in TASKS))
    refuse_impossible(people, seed, name_signal)
    writers: dict[str, Writer] = {**TASKS, "birthplaces": partial(write_birthplaces, people=people)}

    def fill(folder: Path) -> None:
        facts = describe_world(seed, people, name_signal)
        facts["tasks"][task] = writers[task](folder, World(seed, name_signal), seed)
        write_facts(folder / FACTS, facts)

    default = people == PEOPLE and not name_signal
    which = "" if default else f"-p{people}-n{name_signal:g}"
    return cache.build_once("world", f"v{VERSION}-s{seed}{which}/{task}", fill)


def refuse_impossible(people: int, seed: int, name_signal: float) -> None:
    if not FEWEST_PEOPLE <= people <= MOST_PEOPLE:
        raise UserError(f"--people is {people}; a world has from {FEWEST_PEOPLE} to {MOST_PEOPLE:,} people")
    if seed < 0:
        raise UserError(f"--seed is {seed}; it must be a whole number, 0 or more")
    if not 0 <= name_signal <= 1:
        raise UserError(f"--name-signal is {name_signal}; it must be a probability, from 0 to 1")


def describe_world(seed: int, people: int, name_signal: float) -> Facts:
    return {"version": VERSION, "seed": seed, "people": people, "name_signal": name_signal, "tasks": {}}
