"""Birth places: pretrain on biographies, fine-tune on questions, evaluate.

python src/run.py pretrain vanilla wiki.txt --writing_params_path P
python src/run.py finetune vanilla wiki.txt --reading_params_path P --writing_params_path Q
  --finetune_corpus_path birth_places_train.tsv
python src/run.py evaluate vanilla wiki.txt --reading_params_path Q --eval_corpus_path birth_dev.tsv
  --outputs_path predictions

Parameters are a run directory: weights, tokenizer and configuration, all that reading them again needs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from shared import beside, find_data, heedful, one_line_errors, show

from heedful.data.named_tasks import find_named_folder


def arguments() -> argparse.Namespace:
    """The course's options and defaults."""
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
    p.add_argument("--epochs", type=int, help="instead of 650, of 75 from nothing or 10 from pretrained")
    p.add_argument("--budget-min", dest="budget_min", type=float, help="pretrain: fit into so many minutes")
    given = p.parse_args()
    needed = {"pretrain": "writing_params_path", "finetune": "writing_params_path finetune_corpus_path"}
    for name in needed.get(given.function, "reading_params_path eval_corpus_path").split():
        if getattr(given, name) is None:
            p.error(f"{given.function} needs --{name}")
    return given


def find_files(given: argparse.Namespace) -> None:
    """The files; of a corpus that is not here, $HEEDFUL_DATA's or the world's with those beside it."""
    corpus, folder = given.pretrain_corpus_path, given.pretrain_corpus_path.parent
    if corpus.name == str(corpus) and not corpus.is_file():
        folder = find_named_folder(*find_data(None, "birthplaces", corpus.name))
    for name in ("pretrain_corpus_path", "finetune_corpus_path", "eval_corpus_path"):
        setattr(given, name, beside(getattr(given, name), folder))


def model_of(variant: str) -> list[str]:
    """The course's decoder of 3.3 million parameters, with the variant's attention or positions."""
    if variant == "rope":
        return ["--tokenizer", "char", "--model-options", "position=rotary"]
    return ["--tokenizer", "char", *([] if variant == "vanilla" else ["--attention", variant])]


def pretrain(given: argparse.Namespace) -> None:
    """Span corruption on all biographies: a part held out would hide its people."""
    words = ["--objective", "span", "--block", 128, "--batch-size", 128, "--lr", given.pretrain_lr]
    words += ["--epochs", given.epochs or 650, "--schedule", "wsd", "--warmup", 100, "--weight-decay", 0.1]
    words += ["--dev-share", 0, *(["--budget-min", given.budget_min] if given.budget_min else [])]
    words += ["--out", given.writing_params_path, "--overwrite", *model_of(given.variant)]
    heedful("pretrain", "char-gpt", str(given.pretrain_corpus_path), *map(str, words))


def finetune(given: argparse.Namespace) -> None:
    """The questions, from pretrained parameters or from nothing; the last epoch is kept."""
    task = Path(f"{given.writing_params_path}-data")
    task.mkdir(parents=True, exist_ok=True)
    shutil.copy(given.finetune_corpus_path, task / "train.tsv")
    shutil.copy(given.pretrain_corpus_path, task / "wiki.txt")
    dev = given.finetune_corpus_path.with_name("birth_dev.tsv")
    if dev.is_file():
        shutil.copy(dev, task / "dev.tsv")
    else:
        (task / "dev.tsv").unlink(missing_ok=True)
        print(f"no {dev}: a tenth of the questions is dev, a tenth test")
    model, epochs = [given.reading_params_path, "birthplaces"], 10
    if given.reading_params_path is None:
        model, epochs = ["char-gpt", "birthplaces", *model_of(given.variant)], 75
    words = ["--data-dir", task, "--max-len", 128, "--batch-size", 256, "--lr", given.finetune_lr]
    words += ["--epochs", given.epochs or epochs, "--weight-decay", 0.1, "--warmup", 10, "--select", "last"]
    heedful("adapt", *map(str, [*model, *words, "--out", given.writing_params_path, "--overwrite"]))


def evaluate(given: argparse.Namespace) -> None:
    """Answers one a line, and how many are right."""
    from heedful import load

    rows = [line.split("\t") for line in given.eval_corpus_path.read_text("utf-8").splitlines() if line]
    answers = [a.label for a in load(given.reading_params_path).predict([row[0] for row in rows])]
    if given.outputs_path:
        given.outputs_path.write_text("".join(f"{answer}\n" for answer in answers), "utf-8")
    if any(len(row) < 2 for row in rows):
        print("No gold birth places provided; returning (0,0)")
        return
    right = sum(answer == row[1] for answer, row in zip(answers, rows, strict=True))
    print(f"Correct: {right} out of {len(rows)}: {100 * right / len(rows)}%")


def main() -> None:
    """One of the three."""
    given = arguments()
    with one_line_errors():
        find_files(given)
        {"pretrain": pretrain, "finetune": finetune, "evaluate": evaluate}[given.function](given)
        if given.function != "evaluate":
            show(given.writing_params_path)


if __name__ == "__main__":
    main()
