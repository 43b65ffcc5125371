"""Birthplaces: pretrain on biographies, fine-tune on questions, evaluate.

python src/run.py pretrain vanilla wiki.txt --writing_params_path P
python src/run.py finetune vanilla wiki.txt --reading_params_path P --writing_params_path Q
  --finetune_corpus_path birth_places_train.tsv
python src/run.py evaluate vanilla wiki.txt --reading_params_path Q --eval_corpus_path birth_dev.tsv
  --outputs_path predictions

A params path is a run directory: weights, tokenizer and configuration, all that is needed to load the model.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from shared import find_data, find_file, heedful, one_line_errors, show

from heedful.data.named_tasks import find_named_folder


def parse_arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("function", choices=["pretrain", "finetune", "evaluate"])
    p.add_argument("variant", help="vanilla, rope, synthesizer, or any attention by name")
    p.add_argument("pretrain_corpus_path", type=Path)
    p.add_argument("--reading_params_path", type=Path)
    p.add_argument("--writing_params_path", type=Path)
    p.add_argument("--finetune_corpus_path", type=Path)
    p.add_argument("--eval_corpus_path", type=Path)
    p.add_argument("--outputs_path", type=Path)
    p.add_argument("--pretrain_lr", type=float, default=6e-3)
    p.add_argument("--finetune_lr", type=float, default=6e-4)
    p.add_argument("--epochs", type=int, help="default: 650; finetune: 10, or 75 without pretraining")
    p.add_argument(
        "--budget-min", dest="budget_min", type=float, help="pretrain: stay within this many minutes"
    )
    args = p.parse_args()
    needed = {"pretrain": "writing_params_path", "finetune": "writing_params_path finetune_corpus_path"}
    for name in needed.get(args.function, "reading_params_path eval_corpus_path").split():
        if getattr(args, name) is None:
            p.error(f"{args.function} needs --{name}")
    return args


def find_files(args: argparse.Namespace) -> None:
    """Find all files; a corpus that is not here is read from $HEEDFUL_DATA, else generated."""
    corpus, folder = args.pretrain_corpus_path, args.pretrain_corpus_path.parent
    if corpus.name == str(corpus) and not corpus.is_file():
        folder = find_named_folder(*find_data(None, "birthplaces", corpus.name))
    for name in ("pretrain_corpus_path", "finetune_corpus_path", "eval_corpus_path"):
        setattr(args, name, find_file(getattr(args, name), folder))


def model_options(variant: str) -> list[str]:
    """Return the options for the variant's attention or positions; the rest is the preset `char-gpt`."""
    if variant == "rope":
        return ["--tokenizer", "char", "--model-options", "position=rotary"]
    return ["--tokenizer", "char", *([] if variant == "vanilla" else ["--attention", variant])]


def pretrain(args: argparse.Namespace) -> None:
    """Train span corruption on all biographies; holding some out would hide their people from the model."""
    words = ["--objective", "span", "--block", 128, "--batch-size", 128, "--lr", args.pretrain_lr]
    words += ["--epochs", args.epochs or 650, "--schedule", "wsd", "--warmup", 100, "--weight-decay", 0.1]
    words += ["--dev-share", 0, *(["--budget-min", args.budget_min] if args.budget_min else [])]
    words += ["--out", args.writing_params_path, "--overwrite", *model_options(args.variant)]
    heedful("pretrain", "char-gpt", str(args.pretrain_corpus_path), *map(str, words))


def finetune(args: argparse.Namespace) -> None:
    """Train on the questions, from pretrained parameters or from scratch, and keep the last epoch."""
    task = Path(f"{args.writing_params_path}-data")
    task.mkdir(parents=True, exist_ok=True)
    shutil.copy(args.finetune_corpus_path, task / "train.tsv")
    shutil.copy(args.pretrain_corpus_path, task / "wiki.txt")
    dev = args.finetune_corpus_path.with_name("birth_dev.tsv")
    if dev.is_file():
        shutil.copy(dev, task / "dev.tsv")
    else:
        (task / "dev.tsv").unlink(missing_ok=True)
        print(f"no {dev}: using a tenth of the questions as dev, and a tenth as test")
    model, epochs = [args.reading_params_path, "birthplaces"], 10
    if args.reading_params_path is None:
        model, epochs = ["char-gpt", "birthplaces", *model_options(args.variant)], 75
    words = ["--data-dir", task, "--max-len", 128, "--batch-size", 256, "--lr", args.finetune_lr]
    words += ["--epochs", args.epochs or epochs, "--weight-decay", 0.1, "--warmup", 10, "--select", "last"]
    heedful("adapt", *map(str, [*model, *words, "--out", args.writing_params_path, "--overwrite"]))


def evaluate(args: argparse.Namespace) -> None:
    """Write one answer per line, and print how many are right."""
    from heedful import load

    rows = [line.split("\t") for line in args.eval_corpus_path.read_text("utf-8").splitlines() if line]
    answers = [a.label for a in load(args.reading_params_path).predict([row[0] for row in rows])]
    if args.outputs_path:
        args.outputs_path.write_text("".join(f"{answer}\n" for answer in answers), "utf-8")
    if any(len(row) < 2 for row in rows):
        print("No gold birth places provided; returning (0,0)")
        return
    right = sum(answer == row[1] for answer, row in zip(answers, rows, strict=True))
    print(f"Correct: {right} out of {len(rows)}: {100 * right / len(rows)}%")


def main() -> None:
    args = parse_arguments()
    with one_line_errors():
        find_files(args)
        {"pretrain": pretrain, "finetune": finetune, "evaluate": evaluate}[args.function](args)
        if args.function != "evaluate":
            show(args.writing_params_path)


if __name__ == "__main__":
    main()
