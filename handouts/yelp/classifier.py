"""Yelp with TinyBERT: fine-tune a classifier, with the options of the course.

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
from shared import AS_IN_TRANSFORMERS, find_data, find_file, find_model, one_line_errors, show

from heedful.data.named_tasks import find_named_folder
from heedful.errors import UserError


def make_parser(mlm: bool) -> argparse.ArgumentParser:
    """Return a parser of the course's options, with those of masked language modeling if `mlm`."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    p.add_argument("--model_type", default="bert", choices=["bert"])
    p.add_argument("--model_name_or_path", required=True, help="a Hub id, a folder, or minilm")
    p.add_argument("--task_name", default="yelp", choices=["yelp"])
    p.add_argument("--data_dir", help="has train.csv, valid.csv and test.csv; default: generated reviews")
    p.add_argument("--output_dir", required=True, type=Path)
    p.add_argument("--do_train", action="store_true")
    p.add_argument("--do_eval", action="store_true")
    p.add_argument("--evaluate_during_training", action="store_true", help="score dev every --logging_steps")
    p.add_argument("--overwrite_output_dir", action="store_true")
    p.add_argument("--per_gpu_train_batch_size", type=int, default=8)
    p.add_argument("--per_gpu_eval_batch_size", type=int, help="ignored; evaluation batches are by tokens")
    p.add_argument("--gradient_accumulation_steps", type=int, default=1)
    p.add_argument("--learning_rate", type=float, default=5e-5)
    p.add_argument("--num_train_epochs", type=float, default=3)
    p.add_argument("--max_steps", type=int, default=0, help="above 0: this many steps instead of epochs")
    p.add_argument("--max_seq_length", type=int, default=128)
    p.add_argument("--warmup_steps", type=int, default=0)
    p.add_argument("--weight_decay", type=float, default=0.0)
    p.add_argument("--max_grad_norm", type=float, default=1.0)
    p.add_argument("--logging_steps", type=int, default=500, help="steps between two evaluations on dev")
    p.add_argument("--save_steps", type=int, help="ignored; saved every epoch and every five minutes")
    p.add_argument("--train_rows", type=int, help="use only this many labeled rows, balanced by class")
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--no_cuda", action="store_true")
    if mlm:
        p.add_argument("--train_data_file", type=Path, help="unlabeled text, one text per line")
        p.add_argument(
            "--block_size", type=int, default=128, help="ignored; --max_seq_length applies to both texts"
        )
        p.add_argument("--line_by_line", action="store_true", help="ignored; each line is always one text")
        p.add_argument("--mlm", action="store_true", help="ignored; this command always does it")
        p.add_argument("--mlm_alpha", type=float, default=0.3, help="loss = classification + alpha x MLM")
        p.add_argument("--mlm_probability", type=float, default=0.15)
    return p


def adapt_options(args: argparse.Namespace, mlm: bool) -> dict[str, Any]:
    """Return the corresponding options of `heedful.adapt`."""
    name, data_dir = find_data(args.data_dir, "yelp")
    if args.num_train_epochs != int(args.num_train_epochs):
        raise UserError(f"--num_train_epochs {args.num_train_epochs}: must be a whole number")
    options: dict[str, Any] = {
        "task": name,
        "data_dir": data_dir,
        "lr": args.learning_rate,
        "epochs": int(args.num_train_epochs),
        "steps": args.max_steps or None,
        "batch_size": args.per_gpu_train_batch_size * args.gradient_accumulation_steps,
        "accumulate": args.gradient_accumulation_steps,
        "max_len": args.max_seq_length,
        "warmup": float(args.warmup_steps),
        "weight_decay": args.weight_decay,
        "clip": args.max_grad_norm,
        "eval_every": args.logging_steps if args.evaluate_during_training else None,
        "train_rows": args.train_rows,
        "balanced": args.train_rows is not None,
        "seed": args.seed,
        "device": "cpu" if args.no_cuda else "auto",
        "out": args.output_dir,
        "overwrite": args.overwrite_output_dir,
        "class_weights": "none",
        **AS_IN_TRANSFORMERS,
    }
    if mlm:
        options |= {"objective": "joint", "mlm_weight": args.mlm_alpha, "mlm_rate": args.mlm_probability}
        options["unlabeled"] = find_file(args.train_data_file, find_named_folder(name, data_dir))
    return options


def main(mlm: bool = False) -> None:
    import heedful

    args = make_parser(mlm).parse_args()
    with one_line_errors():
        if not (args.do_train or args.do_eval):
            raise UserError("nothing to do: add --do_train, --do_eval or both")
        if args.do_train:
            model, note = find_model(args.model_name_or_path)
            heedful.adapt(model, note=note, **adapt_options(args, mlm))
        from heedful.runs import Run

        results = Run.open(args.output_dir).read_results()
        for split, score in results.splits.items():
            print(f"{split}_acc = {score.value} (95 % interval {score.ci95}, baselines {score.baselines})")
        show(args.output_dir)


if __name__ == "__main__":
    main()
