"""An encoder-decoder from nothing: read by span corruption, adapted in three ways, asked as any other run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAST = ("--threads", 1, "--precision", "float32", "--head-start", "random")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory, tiny_task: Path) -> Path:
    """A T5 of one layer that has read the reviews; nobody may write into its folder."""
    import heedful

    sizes = {"n_layers": 1, "d_model": 32, "n_heads": 2}
    done = heedful.pretrain(
        "t5-mini", tiny_task, objective="span", vocab_size=250, block=24, steps=8, lr=0.01, threads=1,
        precision="float32", model_options=sizes, out=tmp_path_factory.mktemp("runs") / "t5",
    )  # fmt: skip
    return done.folder


@pytest.mark.parametrize("objective", ["classify", "text2text"])
def test_it_learns_labels_and_every_command_takes_the_run(
    heedful: Callable[..., Any], pretrained: Path, tiny_task: Path, objective: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    how = ("--lr", 1e-2, "--batch-size", 32, "--warmup", 0.06)
    if objective == "text2text":
        how = ("--lr", 5e-3, "--batch-size", 8)
    options = ("--objective", objective, "--epochs", 6, *how, "--max-len", 24, *FAST)
    done = heedful("adapt", pretrained, tiny_task, *options, "--out", out, "--json")
    assert done.status == 0, done.err
    dev = json.loads(done.out)["splits"]["dev"]
    assert dev["value"] > 0.8  # two words decide the label
    found = json.loads(heedful("evaluate", out, "--split", "dev", "--json").out)
    assert (found["value"], found["loss"]) == (dev["value"], pytest.approx(dev["loss"]))
    asked = json.loads(heedful("predict", out, "the room was lovely and clean", "--json").out)
    assert asked["label"] == "good"
    again = json.loads(heedful("check", out, "--json").out)["checks"]
    assert {c["name"] for c in again if c["again"] and c["status"] == "passed"} >= {"reload", "causality"}
    done = heedful("generate", out, "the room")
    assert done.status == 2
    assert "heedful predict labels" in done.err


def test_it_learns_to_answer_and_writes_its_answers(
    heedful: Callable[..., Any], pretrained: Path, tmp_path: Path
) -> None:
    task = tmp_path / "birthplaces"
    task.mkdir()
    rows = "".join(
        f"Where was {name} born?\t{place}\n" for name, place in [("staff", "room"), ("food", "table")]
    )
    (task / "wiki.txt").write_text("the staff was clean\n")
    for name in ("birth_places_train", "birth_dev"):
        (task / f"{name}.tsv").write_text(rows)
    out = tmp_path / "run"
    options = ("--data-dir", task, "--steps", 120, "--eval-every", 120, "--lr", 5e-3, "--max-len", 24, *FAST)
    done = heedful("adapt", pretrained, "birthplaces", *options, "--out", out)
    assert done.status == 0, done.err
    assert json.loads(heedful("evaluate", out, "--split", "dev", "--json").out)["value"] == 1.0
    assert json.loads(heedful("predict", out, "Where was food born?", "--json").out)["label"] == "table"
    assert heedful("generate", out, "Where was staff born?", "--temperature", 0).out.strip() == "room"


def test_what_it_has_read_can_be_written_and_label_words_it_lacks_are_named(
    heedful: Callable[..., Any], pretrained: Path, tmp_path: Path
) -> None:
    done = heedful("generate", pretrained, "the room was", "--max-tokens", 5)
    assert done.status == 0, done.err
    task = tmp_path / "task.csv"
    task.write_text("text,label\n" + "".join(f"the food {i},{'é' if i % 2 else 'ö'}\n" for i in range(60)))
    done = heedful("adapt", pretrained, task, "--objective", "text2text", *FAST, "--out", tmp_path / "run")
    assert done.status == 2
    assert "have the same pieces (this tokenizer does not know them); choose others, as" in done.err
    assert not (tmp_path / "run").exists()
