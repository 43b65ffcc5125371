"""`heedful pretrain` on every kind of text, with every kind of tokenizer, and from a checkpoint of each family."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful import text
from heedful.runs.directory import Run

WORDS = ["sun", "moon", "tide", "wind", "sand", "wave", "shell", "gull", "boat", "rope"]
LINES = [" ".join(random.Random(i).choices(WORDS, k=6)) + " ." for i in range(60)]
SMALL = ("--model-options", "n_layers=1", "d_model=16", "n_heads=2")
FAST = ("--threads", 1, "--precision", "float32", "--block", 24, "--steps", 2, "--batch-size", 4)


def write_lines(path: Path, lines: list[str] = LINES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def make_source(kind: str, folder: Path) -> object:
    """A corpus of each kind; all have the same sixty texts, where they are not made by a world."""
    if kind in ("txt", "tokens", "md"):
        return write_lines(folder / f"1b_benchmark.dev.{kind}")
    if kind == "folder":
        for i in range(3):
            write_lines(folder / "books" / f"part {i}" / "a.txt", LINES[20 * i : 20 * i + 20])
        return folder / "books"
    rows = [f"{line}\t{'yes' if i % 2 else 'no'}" for i, line in enumerate(LINES)]
    if kind == "table":
        return write_lines(folder / "notes.tsv", ["text\tlabel", *rows])
    if kind == "task":
        for name, own in (("train", rows), ("dev", rows[:9]), ("test", rows[:7])):
            write_lines(folder / "task" / f"{name}.tsv", ["text\tlabel", *own])
        return folder / "task"
    return "world/birthplaces"


@pytest.mark.parametrize(
    ("kind", "dev", "test"),
    [
        *((kind, None, None) for kind in ("txt", "tokens", "md", "folder", "table")),
        ("task", 9, 7),
        ("world", None, None),
    ],
)
def test_every_kind_of_text_is_learned_from_and_scored_the_same_again(
    heedful: Callable[..., Any], kind: str, dev: int | None, test: int | None, tmp_path: Path
) -> None:
    source, out = make_source(kind, tmp_path), tmp_path / "run"
    words = ("pretrain", "char-gpt", source, *FAST, *SMALL, "--dev-share", 0.2, "--train-eval-rows", 0)
    done = heedful(*words, "--out", out, "--json")
    assert done.status == 0, done.err
    splits = json.loads(done.out)["splits"]
    assert ("test" in splits) == (test is not None)
    if kind != "world":
        own = splits["dev"]["texts"]
        assert own == dev if dev is not None else 0 < own < len(LINES)
    again = json.loads(heedful("evaluate", out, "--split", "dev", "--json").out)["splits"]["dev"]
    assert again["value"] == pytest.approx(splits["dev"]["value"])


def test_a_tokens_file_is_text_to_every_command(heedful: Callable[..., Any], tmp_path: Path) -> None:
    train, dev = write_lines(tmp_path / "a.train.tokens"), write_lines(tmp_path / "a.dev.tokens", LINES[:9])
    made = heedful(
        "tokenizer", "train", train, "--kind", "word", "--min-count", 1, "--out", tmp_path / "words"
    )
    assert made.status == 0, made.err
    assert heedful("tokenizer", "compare", tmp_path / "words", "--on", train).status == 0
    done = heedful("pretrain", "gpt-nano", train, "--dev", dev, "--test", dev, "--sentences", dev, *FAST,
                   "--tokenizer", tmp_path / "words", "--out", tmp_path / "run")  # fmt: skip
    assert done.status == 0, done.err
    results = Run.open(tmp_path / "run").read_results()
    assert results.splits["dev"].texts == results.splits["test"].texts == 9
    assert results.sentences is not None
    assert [s.text for s in results.sentences] == LINES[:9]
    assert heedful("evaluate", tmp_path / "run", "--corpus", dev).status == 0


@pytest.mark.parametrize("kind", ["char", "word", "folder"])
def test_a_tokenizer_is_trained_here_or_taken_from_a_folder(
    heedful: Callable[..., Any], kind: str, tmp_path: Path
) -> None:
    source = write_lines(tmp_path / "notes.txt")
    chosen: object = kind
    if kind == "folder":
        text.train(LINES, kind="bpe", vocab_size=400).save(tmp_path / "own")
        chosen = tmp_path / "own"
    done = heedful("pretrain", "gpt-nano", source, *FAST, "--tokenizer", chosen, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    used = text.load(tmp_path / "run")
    pieces = [used.backend.id_to_token(i) for i in used.encode("sun moon", special=False).ids]
    if kind == "folder":
        assert used.backend.get_vocab() == text.load(tmp_path / "own").backend.get_vocab()
    assert pieces == {"char": [*"sun moon"], "word": ["sun", "moon"], "folder": ["s", "un", "Ġmoon"]}[kind]


def make_checkpoint(family: str, folder: Path) -> Any:
    """A tiny checkpoint as transformers writes it, with a tokenizer of its own."""
    import transformers as hf

    kind = {"bert": "wordpiece", "distilbert": "wordpiece", "t5": "unigram"}.get(family, "bpe")
    tokenizer = text.train(LINES, kind=kind, vocab_size=400)
    tokenizer.save(folder)
    common: dict[str, Any] = {"vocab_size": tokenizer.vocab_size, "pad_token_id": tokenizer.pad_id}
    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    torch.manual_seed(0)
    model = {
        "bert": lambda: hf.BertForMaskedLM(hf.BertConfig(max_position_embeddings=32, **sizes, **common)),
        "roberta": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(max_position_embeddings=40, **sizes, **common)),
        "distilbert": lambda: hf.DistilBertForMaskedLM(
            hf.DistilBertConfig(max_position_embeddings=32, dim=16, n_layers=1, n_heads=2, hidden_dim=24, **common)
        ),
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=tokenizer.bos_id,
                          eos_token_id=tokenizer.eos_id, **common)
        ),
        "t5": lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(d_model=16, d_kv=8, d_ff=24, num_heads=2, num_layers=1, eos_token_id=tokenizer.eos_id,
                        decoder_start_token_id=tokenizer.pad_id, **common)
        ),
    }[family]()  # fmt: skip
    model.eval().save_pretrained(folder)
    return model


@pytest.mark.parametrize(
    ("family", "objective"),
    [("bert", "masked"), ("roberta", "masked"), ("distilbert", "masked"), ("gpt2", "causal"), ("t5", "span")],
)
def test_a_checkpoint_of_each_family_goes_on_and_stays_one_of_its_family(
    heedful: Callable[..., Any], family: str, objective: str, tmp_path: Path
) -> None:
    before = make_checkpoint(family, tmp_path / "model")
    source = write_lines(tmp_path / "notes.txt")
    words = ("pretrain", tmp_path / "model", source, "--objective", objective, *FAST, "--lr", 1e-9)
    done = heedful(*words, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    after = type(before).from_pretrained(tmp_path / "run" / "best")
    theirs, ours = before.state_dict(), after.state_dict()
    assert theirs.keys() == ours.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name], weight, atol=1e-6, rtol=0)
    done = heedful(
        "pretrain", tmp_path / "run", source, "--objective", objective, *FAST, "--out", tmp_path / "on"
    )
    assert done.status == 0, done.err
    other = "causal" if objective == "masked" else "masked"
    done = heedful(
        "pretrain", tmp_path / "model", source, "--objective", other, *FAST, "--out", tmp_path / "no"
    )
    assert done.status == 2
    assert f"--objective {other} trains " in done.err
