"""The first stages of the demo: what a pretrained encoder does with few labels, and where its heads look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heedful.options.training import AdaptOptions
from heedful.report.charts import bars, small_multiples
from heedful.report.page import Page
from heedful.runs.directory import Run
from heedful.runs.schemas import Prediction

Facts = dict[str, Any]
MODEL, TASK = "minilm", "world/messages"
DEV_ROWS = 200
SHOWN = 6
"""Letters that the page shows with their answers."""
SENTENCE = "I read your piece about stray cats with great interest."


def learn_desks(folder: Path, labels: int) -> Facts:
    """Adapt MiniLM to letters with this many labels and the default settings; return its scores."""
    run = Run(folder)
    if not run.has_results:
        from heedful.training.train import train_run

        options = AdaptOptions(
            model=MODEL,
            task=TASK,
            method="head",
            train_rows=labels,
            dev_rows=DEV_ROWS,
            train_eval_rows=0,
            out=folder,
            resume=folder.exists(),
        )
        train_run(options)
    results = run.read_results()
    test = results.splits["test"]
    simple = test.baselines or {}
    low, high = test.ci95 or (None, None)
    return {
        "labels": labels,
        "accuracy": test.value,
        "low": low,
        "high": high,
        "n": test.n,
        "bag_of_words": simple["bag_of_words"],
        "majority": simple["majority"],
        "seconds": round(results.seconds, 1),
    }


def add_desks(page: Page, rows: Sequence[Facts], run: Run) -> None:
    """Add the scores beside those of simple rules, and some letters with the answers of the last run."""
    rows = sorted(rows, key=lambda row: row["labels"])
    page.section("A pretrained model and a few labels")
    page.text(
        "Letters reach a newspaper, and one of six desks should read each. All six kinds of letters use the "
        "same sentences; only their subject tells the desk, and most subjects of the new letters are in none "
        "of the labeled ones. A bag of words can only count words that had a label. MiniLM has read a lot of "
        "text before, and knows that a hedgehog and a fox belong together; here it stays frozen, and only a "
        "linear layer on the mean of its states is trained, in seconds on a laptop."
    )
    drawn = []
    for row in rows:
        group = f"{row['labels']:,} labels"
        scores = {"value": row["accuracy"], "low": row["low"], "high": row["high"]}
        drawn.append({"label": "MiniLM", "group": group, **scores})
        drawn.append({"label": "bag of words", "group": group, "value": row["bag_of_words"], "weak": True})
        drawn.append({"label": "most frequent desk", "group": group, "value": row["majority"], "weak": True})
    page.figure(
        bars(
            drawn,
            title="Which desk should read the letter? Accuracy on new letters",
            subtitle="with 95 % intervals; a bag of words is logistic regression on the same labels",
            y_title="accuracy",
            y_domain=(0, 1),
            form=".2f",
        ),
        f"Scored once on {rows[-1]['n']:,} letters that no choice was made with.",
        "desks",
        lead=True,
    )
    answers = choose_examples(run.read_predictions("test"))
    cells = [(p.text, p.label, p.predicted, p.probabilities[p.predicted]) for p in answers]
    caption = f"Some of the new letters, with {rows[-1]['labels']:,} labels; the mistakes first"
    page.table(("letter", "desk", "answer", "confidence"), cells, caption)


def choose_examples(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Return at most two mistakes, then correct answers of different desks."""
    wrong = [p for p in predictions if p.predicted != p.label][:2]
    right: dict[Any, Prediction] = {}
    for p in predictions:
        if p.predicted == p.label:
            right.setdefault(p.label, p)
    return [*wrong, *right.values()][:SHOWN]


def add_heads(page: Page) -> list[Facts]:
    """Add maps of MiniLM's own attention on a letter: of each habit, the head that has most of it."""
    pieces, maps = read_maps(SENTENCE)
    n_layers, n_heads = maps.shape[:2]
    facts: list[Facts] = []
    panels = {}
    for habit, weights in measure_habits(maps).items():
        layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
        share = float(weights[layer, head])
        name = f"{habit}: layer {layer + 1}, head {head + 1}"
        panels[name] = maps[layer, head].tolist()
        facts.append({"habit": habit, "layer": int(layer + 1), "head": int(head + 1), "weight": share})
    page.section("Where a real model looks")
    page.text(
        f"MiniLM has {n_layers} layers of {n_heads} heads. Each head decides for every token of the letter "
        "from which tokens it takes information; a row of a map is one token, and sums to one. Nobody told "
        "the heads what to do: these habits were learned."
    )
    chart = small_multiples(
        panels,
        x_labels=pieces,
        y_labels=pieces,
        title="Attention of MiniLM",
        subtitle=f'reading "{SENTENCE}"',
        x_title="looks at",
        y_title="token",
        value_title="weight",
        domain=(0, 1),
        columns=2,
    )
    page.figure(chart, "For each habit, the head that has most of it.", "heads")
    return facts


def read_maps(text: str) -> tuple[list[str], Any]:
    """Return the tokens of a text, and MiniLM's attention weights [layers, heads, t, t]."""
    import torch

    from heedful.attention import Mechanism
    from heedful.checkpoints import load
    from heedful.text import load as load_tokenizer

    tokenizer, model = load_tokenizer(MODEL), load(MODEL)
    ids = tokenizer.encode(text).ids
    maps: list[torch.Tensor] = []

    def keep(mechanism: Mechanism, inputs: tuple[Any, ...], out: torch.Tensor) -> None:
        q, k, _, mask, bias = inputs
        maps.append(mechanism.weights(q, k, mask, bias)[0])

    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, Mechanism)]
    try:
        with torch.inference_mode():
            model(torch.tensor([ids]))
    finally:
        for hook in hooks:
            hook.remove()
    return tokenizer.pieces(ids), torch.stack(maps).numpy()


def measure_habits(maps: Any) -> dict[str, Any]:
    """Return the mean weight [layers, heads] of each habit, over the tokens between the two marks."""
    words = maps[..., 1:-1, 1:-1]
    far = np.triu(words, 2) + np.tril(words, -2)
    return {
        "the one before": np.diagonal(maps, -1, axis1=-2, axis2=-1)[..., :-1].mean(-1),
        "the next": np.diagonal(maps, 1, axis1=-2, axis2=-1)[..., 1:].mean(-1),
        "the beginning": maps[..., 1:-1, 0].mean(-1),
        "distant words": far.sum(-1).mean(-1),
    }
