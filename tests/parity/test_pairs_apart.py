"""Pairs whose texts are read by themselves: each as if it were alone, with every method, saved and loaded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from oracles import BERT, ROBERTA

from heedful import checkpoints, methods
from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.models import Classifier
from heedful.text import load as load_tokenizer
from tiny import BAD, GOOD, PLAIN, make_model, make_task

PAIRS = [("the film was fine", "a dull plot"), ("again", "the music was very lovely and warm"), ("a", "a")]
FAST = ("--threads", "1", "--precision", "float32", "--max-len", "32")


def encode(tokenizer: Any, rows: list[Any]) -> dict[str, torch.Tensor]:
    encoded = [tokenizer.encode(*row) for row in rows]
    width = max(len(one.ids) for one in encoded)
    ids, types, mask = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(3))
    for i, one in enumerate(encoded):
        ids[i, : len(one.ids)], types[i, : len(one.ids)] = torch.tensor(one.ids), torch.tensor(one.types)
        mask[i, : len(one.ids)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


@pytest.mark.parametrize("method", [None, "prompt", "lora"])
def test_each_text_is_read_as_if_it_were_alone(method: str | None, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model")
    tokenizer = load_tokenizer(str(folder))
    apart, mean = (checkpoints.load(folder, head="classify", n_classes=1, pool=p) for p in ("apart", "mean"))
    assert isinstance(apart, Classifier)
    assert isinstance(mean, Classifier)
    if method:
        options = {"length": 2} if method == "prompt" else {}
        attached = [methods.make(method, **options) for _ in range(2)]
        for one, model in zip(attached, (apart, mean), strict=True):
            one.attach(model)
        body_state = {n: t for n, t in attached[1].state(mean).items() if not n.startswith("head.")}
        attached[0].load_state(apart, attached[0].state(apart) | body_state)
    with torch.no_grad():
        found = apart.body.pooled(**encode(tokenizer, PAIRS))
        alone = [mean.body.pooled(**encode(tokenizer, [(pair[i],) for pair in PAIRS])) for i in (0, 1)]
        swapped = apart.body.pooled(**encode(tokenizer, [pair[::-1] for pair in PAIRS]))
    u, v = (states / states.norm(dim=1, keepdim=True) * 16**0.5 for states in alone)
    cosine = torch.nn.functional.cosine_similarity(*alone)[:, None]
    torch.testing.assert_close(found, torch.cat([(u - v).abs(), u * v, cosine], 1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found, swapped, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found[2, -1], torch.tensor(1.0))


def make_pairs(folder: Path, kind: str) -> Path:
    """Pairs of texts of good and bad words; how alike they are, or whether they are."""
    rng = random.Random(0)
    folder.mkdir()
    for split, count in (("train", 80), ("dev", 40), ("test", 30)):
        lines = ["first,second,answer"]
        for _ in range(count):
            sides = [rng.random() < 0.5 for _ in range(2)]
            texts = [
                " ".join([*rng.choices(PLAIN, k=3), *rng.choices(GOOD if s else BAD, k=2)]) for s in sides
            ]
            alike = sides[0] == sides[1]
            answer = {"number": f"{4 * alike + rng.random():.2f}", "label": "yes" if alike else "no"}[kind]
            lines.append(",".join([*texts, answer]))
        (folder / f"{split}.csv").write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("number", ("--method", "head", "--method-options", "solver=convex")),
        ("label", ("--method", "top-layers", "--method-options", "layers=1", "--epochs", "1")),
        ("label", ("--method", "lora", "--epochs", "1")),
    ],
)
def test_a_run_predicts_what_it_scored(
    kind: str, words: tuple[str, ...], heedful: Callable[..., Any], tmp_path: Path
) -> None:
    model, run = make_model(tmp_path / "model"), tmp_path / "run"
    columns = ("--text-column", "first", "--pair-column", "second")
    task = make_pairs(tmp_path / "task", kind)
    done = heedful("adapt", model, task, *columns, "--pool", "apart", *words, "--out", run, *FAST)
    assert done.status == 0, done.err
    results = json.loads((run / "results.json").read_text())
    assert results["loads_with"] == "heedful"
    rows = [json.loads(line) for line in (run / "predictions_test.jsonl").read_text().splitlines()]
    whole = heedful("export", run, tmp_path / "whole", "--merge")
    assert whole.status == 2
    assert "no other library has a head on a comparison of two texts" in whole.err
    folders = [run]
    if {"head", "lora"} & {*words}:
        assert heedful("export", run, tmp_path / "adapter").status == 0
        folders.append(tmp_path / "adapter")
    for predictor in map(load_run, folders):
        answers = predictor.predict([(row["text"], row["pair"]) for row in rows])
        if kind == "number":
            stored = [row["predicted_value"] for row in rows]
            np.testing.assert_allclose([one.value for one in answers], stored, atol=1e-4)
        else:
            assert [one.label for one in answers] == [row["predicted"] for row in rows]
    with pytest.raises(UserError, match="compares the two texts of a pair"):
        load_run(run).predict(["only one"])


def test_what_has_no_pairs_is_refused(heedful: Callable[..., Any], tmp_path: Path) -> None:
    task, model = make_task(tmp_path / "task"), make_model(tmp_path / "model")
    done = heedful("adapt", model, task, "--pool", "apart", "--out", tmp_path / "run", *FAST)
    assert done.status == 2
    assert "task has one text per row" in done.err
    assert not (tmp_path / "run").exists()
    ROBERTA.make(None).save_pretrained(tmp_path / "roberta")
    with pytest.raises(UserError, match="token types, which roberta has not"):
        checkpoints.load(tmp_path / "roberta", head="classify", n_classes=2, pool="apart")
    BERT.make(None).save_pretrained(tmp_path / "bert")
    apart = checkpoints.load(tmp_path / "bert", head="classify", n_classes=2, pool="apart")
    with pytest.raises(UserError, match="compares the two texts"):
        apart(torch.ones(2, 5, dtype=torch.long))
