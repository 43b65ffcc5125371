"""Yelp with TinyBERT: fine-tunes a classifier, with the options that the course gives.

python classifier.py --model_type bert --model_name_or_path huawei-noah/TinyBERT_General_4L_312D
  --task_name yelp --do_train --do_eval --data_dir DATA --per_gpu_train_batch_size 32 --learning_rate 3e-5
  --num_train_epochs 3 --max_seq_length 128 --output_dir OUT --evaluate_during_training --overwrite_output_dir
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from shared import beside, find_data, find_model, one_line_errors, show

from heedful.data.named_tasks import find_named_folder
from heedful.errors import UserError


def parser(mlm: bool) -> argparse.ArgumentParser:
    """The course's options; those of masked language modelling only where it takes part."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    p.add_argument("--model_type", default="bert", choices=["bert"])
    p.add_argument("--model_name_or_path", required=True, help="a Hub id, a folder, or minilm")
    p.add_argument("--task_name", default="yelp", choices=["yelp"])
    p.add_argument("--data_dir", help="train.csv, valid.csv and test.csv; by default the generated reviews")
    p.add_argument("--output_dir", required=True, type=Path)
    p.add_argument("--do_train", action="store_true")
    p.add_argument("--do_eval", action="store_true")
    p.add_argument("--evaluate_during_training", action="store_true", help="score dev every --logging_steps")
    p.add_argument("--overwrite_output_dir", action="store_true")
    p.add_argument("--per_gpu_train_batch_size", type=int, default=8)
    p.add_argument("--per_gpu_eval_batch_size", type=int, help="accepted; evaluation goes by tokens")
    p.add_argument("--gradient_accumulation_steps", type=int, default=1)
    p.add_argument("--learning_rate", type=float, default=5e-5)
    p.add_argument("--num_train_epochs", type=float, default=3)
    p.add_argument("--max_steps", type=int, default=0, help="above 0: so many steps instead of epochs")
    p.add_argument("--max_seq_length", type=int, default=128)
    p.add_argument("--warmup_steps", type=int, default=0)
    p.add_argument("--weight_decay", type=float, default=0.0)
    p.add_argument("--max_grad_norm", type=float, default=1.0)
    p.add_argument("--logging_steps", type=int, default=500, help="steps between two evaluations on dev")
    p.add_argument("--save_steps", type=int, help="accepted; checkpoints come every epoch and five minutes")
    p.add_argument("--train_rows", type=int, help="keep so many labelled rows, balanced")
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--no_cuda", action="store_true")
    if mlm:
        p.add_argument("--train_data_file", type=Path, help="text without labels, one text a line")
        p.add_argument(
            "--block_size", type=int, default=128, help="accepted; --max_seq_length cuts both texts"
        )
        p.add_argument("--line_by_line", action="store_true", help="accepted; a line always is a text")
        p.add_argument("--mlm", action="store_true", help="accepted; this command always does")
        p.add_argument("--mlm_alpha", type=float, default=0.3, help="loss = classification + alpha x MLM")
        p.add_argument("--mlm_probability", type=float, default=0.15)
    return p


def options(given: argparse.Namespace, mlm: bool) -> dict[str, Any]:
    """The same in heedful's words."""
    name, place = find_data(given.data_dir, "yelp")
    if given.num_train_epochs != int(given.num_train_epochs):
        raise UserError(f"--num_train_epochs {given.num_train_epochs}: must be a whole number")
    found: dict[str, Any] = {
        "task": name,
        "data_dir": place,
        "lr": given.learning_rate,
        "epochs": int(given.num_train_epochs),
        "steps": given.max_steps or None,
        "batch_size": given.per_gpu_train_batch_size * given.gradient_accumulation_steps,
        "accumulate": given.gradient_accumulation_steps,
        "max_len": given.max_seq_length,
        "warmup": float(given.warmup_steps),
        "weight_decay": given.weight_decay,
        "clip": given.max_grad_norm,
        "eval_every": given.logging_steps if given.evaluate_during_training else None,
        "train_rows": given.train_rows,
        "seed": given.seed,
        "device": "cpu" if given.no_cuda else "auto",
        "out": given.output_dir,
        "overwrite": given.overwrite_output_dir,
    }
    if mlm:
        found |= {"objective": "joint", "mlm_weight": given.mlm_alpha, "mlm_rate": given.mlm_probability}
        found["unlabeled"] = beside(given.train_data_file, find_named_folder(name, place))
    return found


def main(mlm: bool = False) -> None:
    """Train, score, and say where everything is."""
    import heedful

    given = parser(mlm).parse_args()
    with one_line_errors():
        if not (given.do_train or given.do_eval):
            raise UserError("nothing to do: --do_train, --do_eval or both")
        if given.do_train:
            model, note = find_model(given.model_name_or_path)
            heedful.adapt(model, note=note, **options(given, mlm))
        from heedful.runs import Run

        results = Run.open(given.output_dir).results()
        for split, score in results.splits.items():
            print(f"{split}_acc = {score.value} (95 % interval {score.ci95}, baselines {score.baselines})")
        show(given.output_dir)


if __name__ == "__main__":
    main()
