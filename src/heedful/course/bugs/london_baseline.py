"""Mistakes in the baseline of a constant answer."""

from __future__ import annotations

from heedful.course.bugs import Bug

BASELINE = """
def london_baseline(path, answer="London"):
    total = correct = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\\n")
            if not line:
                continue
            parts = line.split("\\t")
            if len(parts) < 2:
                return 0, 0
            total += 1
            if parts[1] == answer:
                correct += 1
    return total, correct
"""
SCRIPT = """
import sys

def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "birth_dev.tsv"
    lines = [line for line in open(path, encoding="utf-8").read().split("\\n") if line]
    places = [line.split("\\t")[1] for line in lines]
    correct = sum(place == "London" for place in places)
    print(f"Correct: {correct} out of {len(places)}: {100 * correct / len(places)}%")

if __name__ == "__main__":
    main()
"""
SAME = "if parts[1] == answer:"
BLANK = "            if not line:\n                continue\n"

BUGS = (
    Bug("part of a name counted", "Every place that contains the answer counts: New London too.", "What does `in` do with two texts?", BASELINE,
        ((SAME, "if answer in parts[1]:"),)),
    Bug("question searched", "The whole line is searched, also the question.", "Where in the line is the place?", BASELINE,
        ((SAME, "if answer in line:"),)),
    Bug("letters ignored", "Capital and small letters are taken for the same.", "How does the course compare places?", BASELINE,
        ((SAME, "if parts[1].lower() == answer.lower():"),)),
    Bug("end of line kept", "The place still has the end of its line, and never equals the answer.", "What is the last character of a line of a file?",
        BASELINE, (('            line = line.rstrip("\\n")\n', ""), (BLANK, "            if not line.strip():\n                continue\n"))),
    Bug("first row skipped", "The first row is taken for names of columns.", "Has this file a header?", BASELINE,
        (("        for line in file:\n", "        next(file)\n        for line in file:\n"),)),
    Bug("blank line counted", "The blank line at the end counts as a question.", "How many questions are there?", BASELINE,
        ((BLANK, ""), ("            if len(parts) < 2:\n                return 0, 0\n            total += 1\n            if parts[1] == answer:",
                       "            total += 1\n            if len(parts) > 1 and parts[1] == answer:"))),
    Bug("different places counted", "The number of different places is taken for the number of questions.", "By what is accuracy divided?", BASELINE,
        (("total = correct = 0", "total = correct = 0\n    seen = set()"), ("            total += 1\n", "            seen.add(parts[1])\n            total = len(seen)\n"))),
    Bug("rounded down", "The percentage is a whole number, rounded down.", "What does // do?", SCRIPT,
        (("{100 * correct / len(places)}", "{100 * correct // len(places)}"),)),
    Bug("share called percent", "The share between 0 and 1 is printed with a percent sign.", "How many percent is a half?", SCRIPT,
        (("{100 * correct / len(places)}", "{correct / len(places)}"),)),
    Bug("stops after the first", "Only the first right row counts.", "What does any() give?", SCRIPT,
        (('sum(place == "London" for place in places)', 'int(any(place == "London" for place in places))'),)),
    Bug("different places counted", "The number of different places is taken for the number of questions.", "By what is accuracy divided?", SCRIPT,
        (("len(places)}%", "len(set(places))}%"), ("out of {len(places)}:", "out of {len(set(places))}:"))),
)  # fmt: skip
