"""The other sides of `benchmarks.solve`: what people use today, each as its documentation shows it.

    python solve_peers.py tfidf FOLDER --minutes 5 --seed 0

FOLDER has train.jsonl, dev.jsonl (if there is one) and test.jsonl, one object with `text`, `pair` (or null)
and `label` per line. The script writes predictions.json, the labels that it gives to the rows of test. It
imports nothing of Heedful, because it runs in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FOLDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=sorted(SIDES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    splits = {
        name: read_rows(path)
        for name in ("train", "dev", "test")
        if (path := arguments.folder / f"{name}.jsonl").is_file()
    }
    deadline = time.monotonic() + 60 * arguments.minutes
    labels = SIDES[arguments.side](splits, arguments.seed, deadline)
    (arguments.folder / "predictions.json").write_text(json.dumps(list(labels)), "utf-8")


def read_rows(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def join_pairs(rows: Rows) -> list[str]:
    """Return one text per row; the two texts of a pair are joined, since these tools read one."""
    return [row["text"] if row["pair"] is None else f"{row['text']} {row['pair']}" for row in rows]


def targets(rows: Rows) -> list[str]:
    return [row["label"] for row in rows]


def run_tfidf(splits: dict[str, Rows], seed: int, deadline: float) -> Sequence[str]:
    """Tf-idf of words and word pairs and of characters, with logistic regression; C by cross-validation."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
    )
    rows = splits["train"] + splits.get("dev", [])
    train = features.fit_transform(join_pairs(rows))
    return fit_and_predict(train, targets(rows), features.transform(join_pairs(splits["test"])), seed)


def run_sentence_transformers(splits: dict[str, Rows], seed: int, deadline: float) -> Sequence[str]:
    """The embeddings of sentence-transformers with logistic regression; C by cross-validation."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(os.environ["MINILM"], device="cpu")
    rows = splits["train"] + splits.get("dev", [])
    train, test = encoder.encode(join_pairs(rows)), encoder.encode(join_pairs(splits["test"]))
    return fit_and_predict(train, targets(rows), test, seed)


def fit_and_predict(train: Any, labels: list[str], test: Any, seed: int) -> Sequence[str]:
    """Fit logistic regression with the best C of a grid; a label with few rows means fewer folds."""
    from collections import Counter

    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    folds = min(FOLDS, *Counter(labels).values())
    model: Any = LogisticRegression(max_iter=1000)
    if folds > 1:
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        model = GridSearchCV(model, {"C": STRENGTHS}, cv=splitter)
    return [str(label) for label in model.fit(train, labels).predict(test)]


def run_setfit(splits: dict[str, Rows], seed: int, deadline: float) -> Sequence[str]:
    """SetFit with its defaults: one epoch over the pairs that it makes of all rows."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    rows = splits["train"] + splits.get("dev", [])
    names = sorted({row["label"] for row in rows})
    data = Dataset.from_dict({"text": join_pairs(rows), "label": [names.index(row["label"]) for row in rows]})
    model = SetFitModel.from_pretrained(os.environ["MINILM"])
    arguments = TrainingArguments(seed=seed, report_to="none", save_strategy="no", show_progress_bar=False)
    Trainer(model=model, args=arguments, train_dataset=data).train()
    return [names[int(i)] for i in model.predict(join_pairs(splits["test"]))]


def run_trainer(splits: dict[str, Rows], seed: int, deadline: float) -> Sequence[str]:
    """Run the Trainer of transformers with its defaults, stopped when the time is over."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    class Deadline(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            control.should_training_stop = time.monotonic() > deadline
            return control

    rows = splits["train"] + splits.get("dev", [])
    names = sorted({row["label"] for row in rows})
    tokenizer = AutoTokenizer.from_pretrained(os.environ["MINILM"])

    def encode(part: Rows) -> list[dict[str, Any]]:
        pairs = [row["pair"] for row in part] if part[0]["pair"] is not None else None
        encoded = tokenizer([row["text"] for row in part], pairs, truncation=True, max_length=256)
        known = {name: number for number, name in enumerate(names)}
        return [
            {**{key: values[i] for key, values in encoded.items()}, "labels": known.get(row["label"], 0)}
            for i, row in enumerate(part)
        ]

    model = AutoModelForSequenceClassification.from_pretrained(os.environ["MINILM"], num_labels=len(names))
    arguments = TrainingArguments(
        output_dir=str(Path.cwd() / "trainer"), seed=seed, report_to="none", save_strategy="no", use_cpu=True
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=encode(rows),  # type: ignore[arg-type, unused-ignore]
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[Deadline()],
    )
    trainer.train()
    logits = torch.tensor(trainer.predict(encode(splits["test"])).predictions)  # type: ignore[arg-type, unused-ignore]
    return [names[int(i)] for i in logits.argmax(1)]


SIDES = {
    "tfidf": run_tfidf,
    "sentence-transformers": run_sentence_transformers,
    "setfit": run_setfit,
    "trainer": run_trainer,
}

if __name__ == "__main__":
    main()
