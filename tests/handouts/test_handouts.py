"""Every handout's command runs, short, on generated data, and prints what its reader looks for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "handouts"
pytestmark = pytest.mark.needs("minilm")


def run(folder: str, *words: object, status: int = 0, **environment: str) -> str:
    base = {k: v for k, v in os.environ.items() if k not in ("HEEDFUL_DATA", "HEEDFUL_MODELS")}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT / folder,
        capture_output=True,
        text=True,
        check=False,
        env=base | {"HF_HUB_OFFLINE": "1", **environment},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


STAND_IN = {"HEEDFUL_STAND_IN": "minilm"}
SMALL = ("--max_len", 16, "--train_rows", 12)


def ends_well(text: str, out: Path) -> None:
    assert f"run directory: {out}" in text
    assert (out / "report.html").is_file()
    assert list((out / "figures").glob("*.png"))


def test_boolq_prints_the_lines_a_grader_looks_for(tmp_path: Path) -> None:
    words = ("--experiment", "overfit", "--small_subset", "True", "--device", "cuda", "--num_epochs", 1)
    text = run("boolq", "classification.py", *words, "--max_len", 16, "--out", tmp_path / "o", **STAND_IN)
    assert text.splitlines()[0].startswith("STAND-IN: distilbert-base-uncased")
    assert "Specified arguments" in text
    assert " ===> Epoch 1" in text
    for line in ("training", "DEV", "TEST"):
        assert re.search(rf" - Average {line} metrics: accuracy={{'accuracy': [01]\.\d+}}", text)
    assert "minilm" in (tmp_path / "o" / "results.json").read_text()
    ends_well(text, tmp_path / "o")


def test_without_a_stand_in_an_unreachable_model_is_one_line() -> None:
    said = run("boolq", "classification.py", status=2)
    assert "distilbert-base-uncased" in said
    assert "Traceback" not in said


def test_boolqs_prefix_is_vectors_before_the_text_and_a_linear_head(tmp_path: Path) -> None:
    words = ("--experiment", "mine", "--type", "prefix", "--num_epochs", 1, "--batch_size", 4, *SMALL)
    text = run(
        "boolq", "classification.py", *words, "--prefix_length", 8, "--out", tmp_path / "o", **STAND_IN
    )
    assert "10 d + 2 = 3,842" in text


def test_yelp_trains_jointly_and_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    words = ["--model_name_or_path", "minilm", "--do_train", "--do_eval", "--output_dir", tmp_path / "o"]
    words += ["--max_steps", 2, "--max_seq_length", 16, "--train_rows", 10, "--evaluate_during_training"]
    words += ["--logging_steps", 1, "--mlm_alpha", 0.3, "--line_by_line", "--warmup_steps", 1]
    text = run("yelp", "classifier_mlm.py", *words)
    assert "test_acc = 0." in text
    ends_well(text, tmp_path / "o")
    assert "overwrite" in run("yelp", "classifier.py", *words[:6], status=2)


def test_yelps_classes_have_the_courses_signatures() -> None:
    code = """
import torch
from modeling import BertForCLSMLM, BertForMaskedLanguageModel, BertForSequenceClassification
ids, mask = torch.randint(1000, (2, 7)), torch.ones(2, 7, dtype=torch.long)
loss, logits = BertForSequenceClassification("minilm", 5)(ids, mask, torch.tensor([0, 4]))
assert logits.shape == (2, 5) and loss.shape == ()
labels = torch.full((2, 7), -100); labels[0, 3] = 5
loss, logits = BertForMaskedLanguageModel("minilm")(ids, mask, labels)
assert logits.shape[:2] == (2, 7)
model = BertForCLSMLM("minilm", 5, mlm_alpha=0.5).eval()
both = model(ids, mask, torch.tensor([0, 4]), ids, mask, labels)[0]
alone = model(ids, mask, torch.tensor([0, 4]))[0]
assert torch.allclose(both, alone + 0.5 * model.mlm(ids, mask, labels)[0])
both.backward()
print("ok")
"""
    assert run("yelp", "-c", code).strip() == "ok"


def test_birth_places_from_pretraining_to_predictions(tmp_path: Path) -> None:
    from heedful.data import load_task

    task = load_task("world/birthplaces")
    wiki = tmp_path / "wiki.txt"
    wiki.write_text("\n".join((task.folder / "wiki.txt").read_text().splitlines()[:60]) + "\n")
    rows = [f"{e.text}\t{e.answer}" for e in list(task.splits["train"])[:24]]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "test.tsv").write_text("\n".join(row.split("\t")[0] for row in rows) + "\n")
    p, q = tmp_path / "p", tmp_path / "q"
    common = ("vanilla", wiki)
    run("birthplaces", "src/run.py", "pretrain", *common, "--writing_params_path", p, "--epochs", 1)
    words = ("--writing_params_path", q, "--finetune_corpus_path", tmp_path / "train.tsv", "--epochs", 1)
    run("birthplaces", "src/run.py", "finetune", *common, "--reading_params_path", p, *words)
    asked = ("--reading_params_path", q, "--outputs_path", tmp_path / "out")
    text = run(
        "birthplaces", "src/run.py", "evaluate", *common, *asked, "--eval_corpus_path", tmp_path / "train.tsv"
    )
    assert re.fullmatch(r"Correct: \d+ out of 24: [\d.]+%\n", text)
    assert len((tmp_path / "out").read_text().splitlines()) == 24
    text = run(
        "birthplaces", "src/run.py", "evaluate", *common, *asked, "--eval_corpus_path", tmp_path / "test.tsv"
    )
    assert text == "No gold birth places provided; returning (0,0)\n"


def test_birth_places_shows_its_data_and_its_baseline() -> None:
    assert "⁇" in run("birthplaces", "src/dataset.py", "charcorruption")
    assert "x: Where was" in run("birthplaces", "src/dataset.py", "namedata")
    assert re.search(r"Correct: \d+ out of \d+: [\d.]+%", run("birthplaces", "src/london_baseline.py"))


def test_mini_gpt_compares_every_variant(tmp_path: Path) -> None:
    text = run(
        "minigpt", "attention_experiments.py", "--steps", 2, "--batch_size", 4, "--out", tmp_path / "o"
    )
    assert "total tokens: " in text
    for variant in ("softmax", "additive", "shared_qk", "shared_qkv", "zero_after", "zero_scores"):
        assert variant in text
    assert "The quick brown fox jumps over the lazy dog." in (tmp_path / "o" / "answer.json").read_text()
    ends_well(text, tmp_path / "o")


def test_sst2_trains(tmp_path: Path) -> None:
    words = ("--num_epochs", 1, "--batch_size", 8, "--train_rows", 8, "--out", tmp_path / "o")
    ends_well(run("sst2", "sst2.py", *words, **STAND_IN), tmp_path / "o")
