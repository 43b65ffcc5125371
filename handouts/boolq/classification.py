"""BoolQ: is the answer to this question, given this passage, yes?

python classification.py --experiment overfit --small_subset True --device cuda
  --model distilbert-base-uncased --batch_size 64 --lr 1e-4 --num_epochs 20
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import find_data, find_device, find_model, heedful, one_line_errors, show

from heedful.runs.schemas import Metrics

MODELS = [
    *("distilbert-base-uncased", "bert-base-uncased", "bert-base-cased", "bert-large-uncased"),
    *("bert-large-cased", "roberta-base", "roberta-large", "t5-small", "t5-base", "t5-large"),
]
METHODS = {"auto": "full", "full": "full", "head": "head", "prefix": "prompt"}
"""What the course calls prefix are trained vectors before the text: our prompt, 130 d + 2 parameters."""
GRID = ["--lr", "1e-4,5e-4,1e-3", "--epochs", "5,7,9"]


def truth(text: str) -> bool:
    """`False` means false."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is not True or False")
    return text.lower() == "true"


def arguments() -> argparse.Namespace:
    """The course's options."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--experiment", default="train", help="search, compare, peft; any other is a plain run")
    p.add_argument(
        "--small_subset", type=truth, nargs="?", const=True, default=False, help="10 training rows"
    )
    p.add_argument("--device", default="cpu")
    p.add_argument("--model", default="distilbert-base-uncased")
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--num_epochs", type=int, default=30)
    p.add_argument("--type", choices=sorted(METHODS), default="auto")
    p.add_argument("--prefix_length", type=int, default=128)
    p.add_argument("--max_len", type=int, default=256)
    p.add_argument("--train_rows", type=int, help="keep so many training rows")
    p.add_argument("--models", default=",".join(MODELS), help="compare: by commas")
    p.add_argument("--data_dir", help="train.jsonl and dev.jsonl; by default $HEEDFUL_DATA/boolq")
    p.add_argument("--out", type=Path)
    return p.parse_args()


class Lines:
    """The lines a grader looks for, while the run goes on."""

    def row(self, row: Metrics) -> None:
        """An evaluation."""
        if row.split == "train_eval":
            print(f" ===> Epoch {row.epoch:g}")
            print(f" - Average training metrics: accuracy={{'accuracy': {row.value}}}", flush=True)
        elif row.split == "dev":
            print(f" - Average validation metrics: accuracy={{'accuracy': {row.value}}}", flush=True)


def train(given: argparse.Namespace, model: str, task: str, place: Path | None, out: Path) -> None:
    """A plain run with its curves."""
    from heedful.training.adapt import adapt
    from heedful.training.options import AdaptOptions

    method = METHODS[given.type]
    settings = {"task": task, "data_dir": place, "method": method, "lr": given.lr, "epochs": given.num_epochs}
    settings |= {"batch_size": given.batch_size, "max_len": given.max_len, "out": out, "overwrite": True}
    settings |= {"train_rows": 10 if given.small_subset else given.train_rows}
    if method == "prompt":
        settings["method_options"] = (f"length={given.prefix_length}",)
    done = adapt(AdaptOptions(model=model, device=find_device(given.device), **settings), [Lines()])
    print(f"trained parameters: {done.results.formula}")
    for split, score in done.results.splits.items():
        print(f" - Average {split.upper()} metrics: accuracy={{'accuracy': {score.value}}}")


def main() -> None:
    """One experiment."""
    given = arguments()
    with one_line_errors():
        model = "" if given.experiment == "compare" else find_model(given.model)
        print("Specified arguments:", given)
        task, place = find_data(given.data_dir, "boolq")
        out = given.out or Path("runs") / f"boolq-{Path(given.experiment).name}"
        common = ["--batch-size", str(given.batch_size), "--max-len", str(given.max_len), "--out", str(out)]
        common += ["--data-dir", str(place)] if place else []
        rows = 10 if given.small_subset else given.train_rows
        common += ["--train-rows", str(rows)] if rows else []
        if given.experiment == "search":
            heedful("study", "search", model, task, *GRID, *common)
        elif given.experiment == "compare":
            heedful("study", "compare", task, "--models", given.models, "--search", *GRID, *common)
        elif given.experiment == "peft":
            common += ["--lr", str(given.lr), "--epochs", str(given.num_epochs)]
            heedful("study", "compare", task, "--models", model, "--methods", "full,head,prompt", *common)
        else:
            train(given, model, task, place, out)
        show(out)


if __name__ == "__main__":
    main()
