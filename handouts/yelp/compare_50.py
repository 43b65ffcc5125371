"""Yelp with 50 labels: compare classification alone with joint masked language modeling.

python compare_50.py --model_name_or_path huawei-noah/TinyBERT_General_4L_312D --data_dir DATA
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import find_data, find_file, find_model, heedful, one_line_errors, show

from heedful.data.named_tasks import find_named_folder


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model_name_or_path", required=True)
    p.add_argument("--data_dir", help="has train.csv, valid.csv and test.csv; default: generated reviews")
    p.add_argument("--train_data_file", type=Path, help="unlabeled text; default: the training texts")
    p.add_argument("--sizes", default="50", help="numbers of labels, such as 50,200,all")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--max_seq_length", type=int, default=128)
    p.add_argument("--output_dir", type=Path, default=Path("runs/yelp-labels"))
    p.add_argument("more", nargs="*", help="further options of `heedful study labels`, after --")
    args = p.parse_args()
    with one_line_errors():
        model, note = find_model(args.model_name_or_path)
        task, data_dir = find_data(args.data_dir, "yelp")
        words = ["--sizes", args.sizes, "--seeds", args.seeds, "--max-len", args.max_seq_length]
        words += ["--arms", "classify,joint", "--out", args.output_dir]
        words += ["--data-dir", data_dir] if data_dir else []
        unlabeled = find_file(args.train_data_file, find_named_folder(task, data_dir))
        words += ["--unlabeled", unlabeled] if unlabeled else []
        words += ["--note", note] if note else []
        heedful("study", "labels", model, task, *map(str, words), *args.more)
        show(args.output_dir)


if __name__ == "__main__":
    main()
