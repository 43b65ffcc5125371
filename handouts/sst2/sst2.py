"""SST-2: a single run, a comparison of three optimizers, a random search.

python sst2.py --model roberta-base                          10 epochs, batch size 64, learning rate 5e-5
python sst2.py --model roberta-base --experiment optimizers  AdamW, SGD, RMSprop, each with its own rate
python sst2.py --model roberta-base --experiment same        the same with one rate for all
python sst2.py --model roberta-base --experiment search      four draws; the best on dev is scored on test
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import AS_IN_TRANSFORMERS, find_data, find_model, heedful, one_line_errors, show


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="roberta-base")
    p.add_argument("--experiment", choices=["train", "optimizers", "same", "search"], default="train")
    p.add_argument("--num_epochs", type=int, default=10)
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--lr", type=float, default=5e-5)
    p.add_argument("--epoch_choices", default="10,15,20", help="search: numbers of epochs to draw from")
    p.add_argument("--train_rows", type=int, help="use only this many training rows")
    p.add_argument("--data_dir", help="has train, dev and test as TSV; default: $HEEDFUL_DATA/sst2")
    p.add_argument("--out", type=Path)
    args = p.parse_args()
    with one_line_errors():
        model, note = find_model(args.model)
        task, data_dir = find_data(args.data_dir, "sst2")
        out = args.out or Path("runs") / f"sst2-{args.experiment}"
        common = ["--out", str(out), *(["--data-dir", str(data_dir)] if data_dir else [])]
        common += ["--train-rows", str(args.train_rows)] if args.train_rows else []
        common += ["--note", note] if note else []
        for name, value in AS_IN_TRANSFORMERS.items():
            common += [f"--{name.replace('_', '-')}", value]
        epochs, batch = ["--epochs", str(args.num_epochs)], ["--batch-size", str(args.batch_size)]
        if args.experiment == "train":
            heedful("adapt", model, task, "--lr", str(args.lr), *epochs, *batch, "--overwrite", *common)
        elif args.experiment == "search":
            drawn = ["--random", "4", "--lr", "2e-5:8e-5", "--batch-size", "32,64"]
            heedful("study", "search", model, task, *drawn, "--epochs", args.epoch_choices, *common)
        else:
            same = ["--same-settings", "--lr", str(args.lr)] if args.experiment == "same" else []
            kinds = ["--optimizers", "adamw,sgd,rmsprop"]
            heedful("study", "optimizers", model, task, *kinds, *same, *epochs, *batch, *common)
        show(out)


if __name__ == "__main__":
    main()
