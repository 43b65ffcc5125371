"""Yelp with 50 labels: classification alone against joint training with masked language modelling.

python compare_50.py --model_name_or_path huawei-noah/TinyBERT_General_4L_312D --data_dir DATA
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import beside, find_data, find_model, heedful, one_line_errors, show

from heedful.data.named_tasks import find_named_folder


def main() -> None:
    """One study."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model_name_or_path", required=True)
    p.add_argument("--data_dir", help="train.csv, valid.csv and test.csv; by default the generated reviews")
    p.add_argument("--train_data_file", type=Path, help="text without labels; by default the training texts")
    p.add_argument("--sizes", default="50", help="numbers of labels, as 50,200,all")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--max_seq_length", type=int, default=128)
    p.add_argument("--output_dir", type=Path, default=Path("runs/yelp-labels"))
    p.add_argument("more", nargs="*", help="further options of `heedful study labels`, after --")
    given = p.parse_args()
    with one_line_errors():
        model, note = find_model(given.model_name_or_path)
        task, place = find_data(given.data_dir, "yelp")
        words = ["--sizes", given.sizes, "--seeds", given.seeds, "--max-len", given.max_seq_length]
        words += ["--arms", "classify,joint", "--out", given.output_dir]
        words += ["--data-dir", place] if place else []
        unlabeled = beside(given.train_data_file, find_named_folder(task, place))
        words += ["--unlabeled", unlabeled] if unlabeled else []
        words += ["--note", note] if note else []
        heedful("study", "labels", model, task, *map(str, words), *given.more)
        show(given.output_dir)


if __name__ == "__main__":
    main()
