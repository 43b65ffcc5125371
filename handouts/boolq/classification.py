"""BoolQ: is the answer to this question, given this passage, yes?

python classification.py --experiment overfit --small_subset True --device cuda
  --model distilbert-base-uncased --batch_size 64 --lr 1e-4 --num_epochs 20
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import find_data, find_device, find_models, heedful, one_line_errors, show, show_counts

from heedful.runs.schemas import Metrics

MODELS = "distilbert-base-uncased,bert-base-uncased,bert-base-cased,bert-large-uncased,bert-large-cased,"
MODELS += "roberta-base,roberta-large,t5-small,t5-base,t5-large"
METHODS = {"auto": "full", "full": "full", "head": "head", "prefix": "prompt"}
"""What the course calls prefix are trained vectors before the text: our prompt, 130 d + 2 parameters."""


def truth(text: str) -> bool:
    """`False` means false."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is not True or False")
    return text.lower() == "true"


def arguments() -> argparse.Namespace:
    """The course's options."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--experiment", default="train", help="search, compare, peft; any other is a plain run")
    p.add_argument("--small_subset", type=truth, nargs="?", const=True, default=False, help="10 train rows")
    p.add_argument("--device", default="cpu")
    p.add_argument("--model", default="distilbert-base-uncased")
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--num_epochs", type=int, help="by default 30, of peft 20")
    p.add_argument("--type", choices=sorted(METHODS), default="auto")
    p.add_argument("--prefix_length", type=int, default=128)
    p.add_argument("--max_len", type=int, default=256)
    p.add_argument("--train_rows", type=int, help="keep so many training rows")
    p.add_argument("--models", default=MODELS, help="compare: by commas")
    p.add_argument("--rates", default="1e-4,5e-4,1e-3", help="search, compare: by commas")
    p.add_argument("--epochs", default="5,7,9", help="search, compare: by commas")
    p.add_argument("--seeds", type=int, default=1, help="compare, peft: runs of each")
    p.add_argument("--data_dir", help="train.jsonl and dev.jsonl; by default $HEEDFUL_DATA/boolq")
    p.add_argument("--out", type=Path)
    given = p.parse_args()
    given.num_epochs = given.num_epochs or (20 if given.experiment == "peft" else 30)
    return given


class Lines:
    """The lines a grader looks for, while the run goes on."""

    def row(self, row: Metrics) -> None:
        """An evaluation."""
        if row.split == "train_eval":
            print(f" ===> Epoch {row.epoch:g}")
            print(f" - Average training metrics: accuracy={{'accuracy': {row.value}}}", flush=True)
        elif row.split == "dev":
            print(f" - Average validation metrics: accuracy={{'accuracy': {row.value}}}", flush=True)


def plain(given: argparse.Namespace, **settings: Any) -> None:
    """A run with its curves."""
    from heedful.options.training import AdaptOptions
    from heedful.training.train import train

    settings |= {"lr": given.lr, "epochs": given.num_epochs, "method": METHODS[given.type]}
    if given.type == "prefix":
        settings["method_options"] = (f"length={given.prefix_length}",)
    results = train(AdaptOptions(**settings, overwrite=True), [Lines()]).results
    print(f"trained parameters: {results.formula}")
    for split, score in results.splits.items():
        print(f" - Average {split.upper()} metrics: accuracy={{'accuracy': {score.value}}}")


def study(given: argparse.Namespace, model: str, task: str, **settings: Any) -> None:
    """Several runs, and what they say together."""
    method, length = METHODS[given.type], f"length={given.prefix_length}"
    if given.experiment == "search":
        words = ["search", model, task, "--method", method, "--lr", given.rates, "--epochs", given.epochs]
        words += ["--method-options", length] if method == "prompt" else []
    elif given.experiment == "compare":
        words = ["compare", task, "--models", model, "--methods", method, "--search", "--rates", given.rates]
        words += ["--epochs", given.epochs, "--schedule", "constant", "--warmup", 10, "--seeds", given.seeds]
    else:
        words = ["compare", task, "--models", model, "--methods", "full,head,prompt", "--seeds", given.seeds]
        words += ["--lr", given.lr, "--epochs", given.num_epochs, "--method-options", f"prompt:{length}"]
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}", value] if value is not None else []
    heedful("study", *map(str, words))
    show_counts(settings["out"])


def main() -> None:
    """One experiment."""
    given = arguments()
    with one_line_errors():
        asked = given.models if given.experiment == "compare" else given.model
        models, note = find_models(asked.split(","))
        print("Specified arguments:", given)
        task, place = find_data(given.data_dir, "boolq")
        settings = {"data_dir": place, "batch_size": given.batch_size, "max_len": given.max_len, "note": note}
        rows, device = 10 if given.small_subset else given.train_rows, find_device(given.device)
        settings |= {"train_rows": rows, "device": device}
        settings |= {"out": given.out or Path("runs") / f"boolq-{Path(given.experiment).name}"}
        run = study if given.experiment in ("search", "compare", "peft") else plain
        run(given, model=",".join(models), task=task, **settings)
        show(settings["out"])


if __name__ == "__main__":
    main()
