"""SST-2: one run, three optimisers, a random search.

python sst2.py --model roberta-base                          10 epochs of batch 64 at 5e-5, with both curves
python sst2.py --model roberta-base --experiment optimizers  AdamW, SGD and RMSprop, each at its own rate
python sst2.py --model roberta-base --experiment same        the same at one rate for all
python sst2.py --model roberta-base --experiment search      four draws; best on dev, test once
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import find_data, find_model, heedful, one_line_errors, show


def main() -> None:
    """One experiment."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="roberta-base")
    p.add_argument("--experiment", choices=["train", "optimizers", "same", "search"], default="train")
    p.add_argument("--num_epochs", type=int, default=10)
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--lr", type=float, default=5e-5)
    p.add_argument("--epoch_choices", default="10,15,20", help="search: the numbers of epochs to draw from")
    p.add_argument("--train_rows", type=int, help="keep so many training rows")
    p.add_argument("--data_dir", help="train, dev and test as TSV; by default $HEEDFUL_DATA/sst2")
    p.add_argument("--out", type=Path)
    given = p.parse_args()
    with one_line_errors():
        model, note = find_model(given.model)
        task, place = find_data(given.data_dir, "sst2")
        out = given.out or Path("runs") / f"sst2-{given.experiment}"
        common = ["--out", str(out), *(["--data-dir", str(place)] if place else [])]
        common += ["--train-rows", str(given.train_rows)] if given.train_rows else []
        common += ["--note", note] if note else []
        epochs, batch = ["--epochs", str(given.num_epochs)], ["--batch-size", str(given.batch_size)]
        if given.experiment == "train":
            heedful("adapt", model, task, "--lr", str(given.lr), *epochs, *batch, "--overwrite", *common)
        elif given.experiment == "search":
            drawn = ["--random", "4", "--lr", "2e-5:8e-5", "--batch-size", "32,64"]
            heedful("study", "search", model, task, *drawn, "--epochs", given.epoch_choices, *common)
        else:
            same = ["--same-settings", "--lr", str(given.lr)] if given.experiment == "same" else []
            kinds = ["--optimizers", "adamw,sgd,rmsprop"]
            heedful("study", "optimizers", model, task, *kinds, *same, *epochs, *batch, *common)
        show(out)


if __name__ == "__main__":
    main()
