"""Score the answer "London" (or another place) to every question: the baseline that a model must beat.

python src/london_baseline.py [birth_dev.tsv] [--answer London]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from shared import find_data, one_line_errors

from heedful.data.named_tasks import find_named_folder
from heedful.errors import UserError


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="?", type=Path, default=Path("birth_dev.tsv"), help="questions and answers")
    p.add_argument("--answer", default="London")
    args = p.parse_args()
    with one_line_errors():
        file = args.file
        if not file.is_file() and file.name == str(file):
            file = find_named_folder(*find_data(None, "birthplaces", file.name)) / file
        if not file.is_file():
            raise UserError(f"{file}: there is no such file")
        lines = file.read_text("utf-8").splitlines()
        answers = [line.split("\t")[1] for line in lines if "\t" in line]
        if not answers:
            raise UserError(f"{file}: has no answers; each line must be a question, a tab and a place")
        right = sum(answer == args.answer for answer in answers)
        print(f"Correct: {right} out of {len(answers)}: {100 * right / len(answers)}%")


if __name__ == "__main__":
    main()
