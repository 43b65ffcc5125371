"""`heedful pretrain` and `heedful evaluate` of language models, as a new user meets them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs.directory import Run

SMALL = ("--model-options", "n_layers=1", "d_model=16", "n_heads=2")
FAST = ("--threads", 1, "--precision", "float32", "--block", 24, "--epochs", 1, "--lr", 0.01)
WORDS = ["sun", "moon", "tide", "wind", "sand", "wave", "shell", "gull", "boat", "rope"]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "notes.txt"
    path.write_text("\n".join(" ".join(rng.choices(WORDS, k=6)) for _ in range(120)) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, notes: Path) -> Path:
    """A finished run; nobody may write into it."""
    import heedful

    done = heedful.pretrain(
        "char-gpt", notes, tokenizer="word", min_count=1, block=24, epochs=2, lr=0.01, threads=1,
        precision="float32", model_options={"n_layers": 1, "d_model": 16, "n_heads": 2},
        out=tmp_path_factory.mktemp("runs") / "words",
    )  # fmt: skip
    return done.folder


def test_a_run_leaves_everything_and_prints_all_figures(
    heedful: Callable[..., Any], notes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = heedful(
        "pretrain", "char-gpt", notes, *FAST, *SMALL, "--sentences", "sun moon", "zebra", "--out", out
    )
    assert done.status == 0, done.err
    assert "a char tokenizer is trained on the training text" in done.err
    for word in (
        "perplexity", "95 % interval", "mean of sentences", "bits/character", "bits/byte", "unknown %",
        "sun moon", "zebra", f"run: {out}", "checks: ",
    ):  # fmt: skip
        assert word in done.out
    for name in (
        "config.toml", "env.json", "metrics.jsonl", "timing.jsonl", "checks.json", "results.json",
        "predictions_dev.jsonl", "best/model.safetensors", "best/tokenizer.json", "best/config.json",
    ):  # fmt: skip
        assert (out / name).is_file(), name
    results = Run.open(out).read_results()
    dev = results.splits["dev"]
    assert dev.metric == "perplexity"
    assert dev.bits_per_character == dev.bits_per_byte
    assert results.sentences is not None
    assert [s.unknown > 0 for s in results.sentences] == [False, True]  # z and b are no letters of the text
    texts = Run.open(out).read_predictions("dev")
    assert sum(t.loss or 0.0 for t in texts) / sum(t.tokens or 0 for t in texts) == pytest.approx(dev.loss)
    assert list(dev.baselines or ()) == ["unigram", "bigram", "trigram"]
    assert all(name in done.out for name in dev.baselines or ())
    assert (dev.baseline_bits_per_character or {}).keys() == (dev.baselines or {}).keys()
    checks = {check.name: check.status for check in Run.open(out).read_checks().checks}
    assert checks.pop("beats_ngrams") == "failed"  # after so few steps
    assert set(checks.values()) == {"passed", "skipped"}


def test_json_is_the_whole_of_stdout(heedful: Callable[..., Any], notes: Path, tmp_path: Path) -> None:
    done = heedful("pretrain", "char-gpt", notes, *FAST, *SMALL, "--out", tmp_path / "r", "--json")
    found = json.loads(done.out)
    assert found.pop("folder") == str(tmp_path / "r")
    assert found == json.loads((tmp_path / "r/results.json").read_text())
    assert found["objective"] == "causal"


def test_evaluate_gives_the_figures_of_the_run(heedful: Callable[..., Any], run: Path) -> None:
    found = json.loads(heedful("evaluate", run, "--json").out)
    before = Run.open(run).read_results().splits["dev"]
    assert found["recorded"] == {"dev": before.value}
    assert found["splits"]["dev"]["value"] == pytest.approx(before.value)
    assert found["splits"]["dev"]["bits_per_byte"] == pytest.approx(before.bits_per_byte)
    done = heedful("evaluate", run, "--split", "dev")
    assert f"dev, recorded when the run ended: {before.value:.3f}" in done.out


def test_evaluate_scores_other_texts_and_single_sentences(
    heedful: Callable[..., Any], run: Path, tmp_path: Path
) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("sun moon tide\nwind zebra\n", "utf-8")
    found = json.loads(heedful("evaluate", run, "--corpus", text, "--sentences", text, "--json").out)
    figures = found["splits"][str(text)]
    assert figures["texts"] == 2
    assert figures["unknown_rate"] == pytest.approx(1 / 5)
    losses = [s["loss"] * s["tokens"] for s in found["sentences"]]
    assert [s["tokens"] for s in found["sentences"]] == [4, 3]  # with the end of the text
    assert [s["unknown"] for s in found["sentences"]] == [0, 1]
    assert sum(losses) / 7 == pytest.approx(figures["loss"])
    mean = sum(s["perplexity"] for s in found["sentences"]) / 2
    assert figures["mean_sentence_perplexity"] == pytest.approx(mean)


def test_a_learnt_sentence_is_less_surprising_than_a_shuffled_alphabet(
    heedful: Callable[..., Any], notes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ("--epochs", 12, "--objective", "masked", "--tokenizer", "wordpiece", "--vocab-size", 180)
    done = heedful("pretrain", "bert-tiny", notes, *FAST[:-4], "--lr", 0.01, *options, *SMALL, "--out", out)
    assert done.status == 0, done.err
    found = json.loads(
        heedful("evaluate", out, "--sentences", "sun moon tide", "nus noom edit", "--json").out
    )
    known, strange = (s["perplexity"] for s in found["sentences"])
    assert known < strange
    dev = Run.open(out).read_results().splits["dev"]
    assert dev.bits_per_character is None  # hidden tokens given the others are no code for the text


def test_a_configuration_makes_the_run_again(heedful: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    done = heedful("run", run, "--out", tmp_path / "again", "--json")
    assert done.status == 0, done.err
    before = json.loads((run / "results.json").read_text())["splits"]
    assert json.loads(done.out)["splits"] == before
    other = heedful("run", run, "--set", "seed=3", "--out", tmp_path / "other", "--json")
    assert json.loads(other.out)["splits"] != before


def test_a_pretrained_run_is_a_model_for_every_other_command(
    heedful: Callable[..., Any], run: Path, tmp_path: Path
) -> None:
    assert heedful("inspect", run).status == 0
    done = heedful("check", run, "--json")
    assert done.status == 1, done.err
    checks = json.loads(done.out)["checks"]
    assert [c["name"] for c in checks if c["status"] == "failed"] == ["beats_ngrams"]  # after so few steps
    again = {c["name"]: c["status"] for c in checks if c["again"]}
    assert again == {"causality": "passed", "tokenizer_fits": "passed", "reload": "passed"}
    done = heedful("export", run, tmp_path / "exported", "--json")
    assert json.loads(done.out)["loads_with"] == "transformers"
    task = tmp_path / "task.csv"
    rows = [f"{WORDS[i % 10]} {WORDS[i % 7]} {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    task.write_text("\n".join(["text,label", *rows]) + "\n")
    done = heedful("adapt", run, task, "--epochs", 1, "--threads", 1, "--precision", "float32",
                   "--out", tmp_path / "adapted")  # fmt: skip
    assert done.status == 0, done.err


@pytest.mark.parametrize(("options", "line"), [
    (["--objective", "masked"], "--objective masked trains an encoder; char-gpt is a decoder"),
    (["--model-options", "n_layer=3"], 'unknown option of a model "n_layer"; did you mean "n_layers"'),
    (["--model-options", "n_layers=two"], '--model-options n_layers "two": must be a whole number'),
    (["--model-options", "vocab_size=9"], "--model-options vocab_size: the preset or the tokenizer decides it"),
    (["--tokenizer", "cahr"], 'unknown tokenizer "cahr"; did you mean "char"'),
    (["--block", "2"], "--block 2: must be at least 4"),
    (["--dev-share", "1"], "--dev-share 1: must be at least 0 and below 1"),
    (["--dev", "nowhere.txt"], "nowhere.txt: no such file"),
    (["--budget-min", "0"], "--budget-min 0: must be above 0"),
    (["--whole-words"], "--whole-words belongs to --objective masked"),
    (["--questions-share", "1"], "--questions-share 1: must be above 0 and below 1"),
    (["--questions", "world/sentiment"], "has labels; a task with free answers is wanted"),
    (["--attention", "softmx"], 'did you mean "softmax"'),
    (["--sentences", " "], "--sentences: a sentence is empty"),
    (["--steps", "0"], "--steps 0: must be at least 1"),
    (["--branch", "nowhere"], "nowhere: there is no such folder"),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_leaves_no_run(
    heedful: Callable[..., Any], notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: list[str], line: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = heedful("pretrain", "char-gpt", notes, "--threads", 1, "--precision", "float32", *options)
    assert done.status == 2
    assert line in done.err
    assert (
        done.err.strip().count("\n") <= 2
    )  # beside what is being loaded, and the notice about the tokenizer
    assert not list(Path().rglob("results.json"))


def test_language_options_are_refused_for_other_runs(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], run: Path
) -> None:
    done = heedful("evaluate", run_of("head"), "--sentences", "x")
    assert done.status == 2
    assert "are for language models" in done.err
    done = heedful("evaluate", run, "--split", "test")
    assert done.status == 2
    assert 'unknown split "test"; there are dev, train' in done.err


def test_without_out_a_run_is_named_by_corpus_model_and_objective(
    heedful: Callable[..., Any], notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert heedful("pretrain", "char-gpt", notes, *FAST, *SMALL, "--steps", 2).status == 0
    assert [path.name for path in Path("runs").iterdir()] == ["notes-char-gpt-causal-s0"]


def test_a_tokenizer_of_another_kind_belongs_to_the_model_that_was_pretrained_with_it(
    run: Path, tiny_task: Path, notes: Path, heedful: Callable[..., Any], tmp_path: Path
) -> None:
    fast = ("--epochs", 1, "--threads", 1, "--precision", "float32")
    commands = {
        "labels": ("adapt", run, tiny_task, "--max-len", 16),
        "more": ("pretrain", run, notes, "--block", 24),
    }
    for name, words in commands.items():
        done = heedful(*words, *fast, "--out", tmp_path / name)
        assert done.status == 0, done.err
        (check,) = [c for c in Run.open(tmp_path / name).read_checks().checks if c.name == "tokenizer_fits"]
        assert check.status == "passed", check.message
    assert "do not belong together" not in heedful("check", run / "best").out
