"""`heedful course new` and `heedful course starter`: write an assignment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_facts, print_json
from heedful.errors import one_line
from heedful.options.types import Count


def new(
    name: str,
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    seed: Count | None = None,
    json: Json = False,
) -> None:
    """Write an assignment: what students get, and what the teacher keeps.

    DIR/starter is for students: instructions, code with the solutions taken out,
    public checks, generated data and a Makefile. The rest is for the teacher: the
    solution, hidden checks, a rubric with points, and a Makefile that makes the
    starter again when the solution was changed. The assignments are

      attention     attention by hand, with questions whose answers are tested
      classifier    a BERT classifier, masking, and both losses together
      birthplaces   span corruption, and what pretraining has to beat
      variants      other attention, a GPT block, and perplexity
      finetuning    LoRA, a schedule, and an honest search

    Examples:
      heedful course new attention a1
      heedful course new birthplaces a3 --seed 7

    Parameters
    ----------
    name
        attention, classifier, birthplaces, variants or finetuning.
    folder
        A new folder.
    seed
        Seed of the data and of the hidden inputs; by default drawn at random.
    json
        Print one JSON object.
    """
    from heedful.course.new import STARTER, write_assignment

    assignment = write_assignment(name, folder, seed=seed)
    written = sum(each.points for each in assignment.table.written)
    if json:
        print_json(
            {
                "folder": str(folder),
                "starter": str(folder / STARTER),
                "file": assignment.file,
                "points": assignment.most,
                "points by a person": written,
            }
        )
        return
    hidden = sum(each.points for each in assignment.criteria if each.hidden)
    facts = {
        "for students": folder / STARTER,
        "they hand in": assignment.file,
        "points": f"{assignment.most:g} by checks ({hidden:g} of them hidden), {written:g} by a person",
        "rubric": folder / "rubric.md",
    }
    print_facts(f"{folder}: {assignment.title}", facts)
    command = f"heedful course check {folder / 'solution.py'} --as {folder / 'assignment.toml'}"
    console().print(f"Check the solution: {one_line(command)}", markup=False, soft_wrap=True)


def starter(folder: Annotated[Path, Parameter(name="DIR")], /) -> None:
    """Write DIR/starter again, from the solution and the public criteria of DIR.

    In DIR/solution.py everything between a line `# SOLUTION: a hint` and a line
    `# END SOLUTION` is taken out; in its place students find the hint.

    Examples:
      heedful course starter a1

    Parameters
    ----------
    folder
        The folder of an assignment, which heedful course new has written.
    """
    from heedful.course.assignment import Assignment
    from heedful.course.new import write_rubric, write_starter
    from heedful.runs.files import write_text

    assignment = Assignment(folder)
    path = write_starter(assignment)
    write_text(folder / "rubric.md", write_rubric(assignment))
    console().print(f"written: {one_line(str(path))}", markup=False, soft_wrap=True)
