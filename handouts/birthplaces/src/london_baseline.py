"""Always answers "London" (or another place): what a model must beat.

python src/london_baseline.py [birth_dev.tsv] [--answer London]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from shared import find_data, one_line_errors


def main() -> None:
    """Count."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="?", type=Path, help="questions and answers; by default the task's dev")
    p.add_argument("--answer", default="London")
    given = p.parse_args()
    with one_line_errors():
        if given.file:
            lines = given.file.read_text("utf-8").splitlines()
            answers = [line.split("\t")[1] for line in lines if "\t" in line]
        else:
            from heedful.data import load_task

            name, place = find_data(None, "birthplaces", "*dev*")
            answers = [example.answer for example in load_task(name, data_dir=place).splits["dev"]]
        right = sum(answer == given.answer for answer in answers)
        print(f"Correct: {right} out of {len(answers)}: {100 * right / len(answers)}%")


if __name__ == "__main__":
    main()
