"""Pretraining runs: exact resume, budgets, branches, texts, tokenizers, questions."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful import checkpoints
from heedful.checkpoints.reader import TRAINED_LENGTH
from heedful.data.corpus import Corpus, open_corpus
from heedful.errors import UserError
from heedful.inference.networks import load_writer
from heedful.objectives import Causal
from heedful.options.training import PretrainOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.training import checkpoint
from heedful.training import loop as loop_module
from heedful.training.build import build_pretrain
from heedful.training.build.corpus import open_splits
from heedful.training.loop import Loop
from heedful.training.rescore import LanguageModelScores
from heedful.training.train import train_run

NOUNS = ["river", "hill", "cloud", "garden", "winter", "bridge", "lamp", "stone"]
VERBS = ["sees", "keeps", "hides", "follows", "leaves"]


def lines(n: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [
        f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)}"
        + f" and the {rng.choice(NOUNS)}" * rng.randint(0, 2)
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> PretrainOptions:
    path = tmp_path_factory.mktemp("text") / "notes.txt"
    path.write_text("\n".join(lines(150)) + "\n", "utf-8")
    return PretrainOptions(
        model="char-gpt", corpus=str(path), tokenizer="word", min_count=1, epochs=2, batch_size=4, lr=5e-3,
        block=16, dev_share=0.1, threads=1, precision="float32", train_eval_rows=4,
        model_options=("n_layers=1", "d_model=16", "n_heads=2"),
    )  # fmt: skip


def test_a_run_saves_the_length_that_it_trained_on(base: PretrainOptions, tmp_path: Path) -> None:
    run = train_run(replace(base, out=tmp_path / "run", epochs=1)).folder
    writer = load_writer(run)
    assert (writer.model.body.room, writer.context) == (128, 16)
    saved = tmp_path / "copy"
    checkpoints.save(writer.model, saved, tokenizer=run / "best")
    assert load_writer(saved).context == 16
    # Older runs have it in config.toml alone.
    config = json.loads((run / "best/config.json").read_text())
    del config[TRAINED_LENGTH]
    (run / "best/config.json").write_text(json.dumps(config))
    assert load_writer(run).context == 16
    # A model that goes on with longer rows is trained on those.
    more = replace(base, model=str(saved), tokenizer=None, min_count=None, model_options=(), block=32)
    assert build_pretrain(more).model.trained_length == 32
    assert build_pretrain(replace(more, block=8)).model.trained_length == 16


class DiedError(Exception):
    """Stands for a death that leaves no time for anything."""


STEP = Loop.step


def die_at(patch: pytest.MonkeyPatch, number: int | None) -> None:
    """Let a run die in the given step, with a checkpoint at each step before it."""

    def dying(self: Loop, at: int) -> None:
        if at == number:
            raise DiedError
        STEP(self, at)

    patch.setattr(Loop, "step", dying)
    patch.setattr(loop_module, "CHECKPOINT_SECONDS", 300.0 if number is None else 0.0)


def traces(folder: Path) -> dict[str, str]:
    """Everything that has to be the same, file by file."""
    last = max(checkpoint.steps(Run(folder)))
    files = [folder / "metrics.jsonl", folder / "checks.json", *folder.glob("predictions_*.jsonl")]
    files += [path for path in (folder / "best").rglob("*") if path.is_file()]
    files += [folder / f"checkpoints/step-{last:08d}/{name}.pt" for name in ("weights", "optimizer")]
    return {str(path.relative_to(folder)): file_checksum(path) for path in files}


@pytest.mark.parametrize("case", ["causal", "masked", "alone", "tokens"])
def test_a_resumed_run_has_the_same_bits(
    base: PretrainOptions, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "causal": base,
        "masked": replace(base, model="bert-tiny", objective="masked", tokenizer="bpe", vocab_size=380,
                          min_count=None),
        "alone": replace(base, pack=False, schedule="wsd", eval_every=7),
        "tokens": replace(base, token_budget=50, optimizer="muon"),
    }[case]  # fmt: skip
    train_run(replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "stopped", resume=True)
    for step in (3, 9):
        die_at(monkeypatch, step)
        with pytest.raises(DiedError):
            train_run(stopped)
    die_at(monkeypatch, None)
    train_run(stopped)
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")


@pytest.mark.parametrize(
    ("objective", "pack"), [("causal", True), ("causal", False), ("masked", True), ("whole words", False)]
)
def test_what_was_read_is_known_and_scored_the_same_again(
    base: PretrainOptions, objective: str, pack: bool, tmp_path: Path
) -> None:
    options = replace(base, dev=base.corpus, dev_share=0.0, steps=60, eval_every=10, dropout=0.0, pack=pack)
    if objective != "causal":
        options = replace(options, model="bert-tiny", objective="masked", tokenizer="wordpiece", vocab_size=200,
                          min_count=None, mask_rate=0.3, whole_words=objective == "whole words")  # fmt: skip
    done = train_run(replace(options, out=tmp_path / "run"))
    dev = [row for row in Run(done.folder).read_metrics() if row.split == "dev"]
    found = done.results.splits["dev"]
    assert float(found.value or 1e9) < 0.6 * float(dev[0].value or 0)
    again = LanguageModelScores(done.folder).score_split("dev")[1]
    assert (again.value, again.loss) == pytest.approx((found.value, found.loss), rel=1e-6)
    assert again.mean_sentence_perplexity == pytest.approx(found.mean_sentence_perplexity, rel=1e-6)
    assert (again.n, again.texts, again.unknown_rate) == (found.n, found.texts, found.unknown_rate)


def test_the_best_model_has_the_lowest_perplexity(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = train_run(
        replace(base, epochs=4, lr=0.3, schedule="constant", eval_every=3, out=tmp_path)
    )  # far too fast: it gets worse
    dev = [row for row in Run(tmp_path).read_metrics() if row.split == "dev"]
    best = min(dev, key=lambda row: float(row.value or np.inf))
    assert best.step != dev[-1].step
    assert done.results.best_step == best.step
    assert done.results.splits["dev"].value == pytest.approx(best.value, rel=1e-6)
    first = next(row for row in Run(tmp_path).read_metrics() if row.split == "train")
    assert first.value == pytest.approx(np.exp(first.loss or 0.0))


def test_steps_end_a_run_in_the_middle_of_an_epoch(base: PretrainOptions, tmp_path: Path) -> None:
    done = train_run(replace(base, steps=17, out=tmp_path))
    assert done.results.steps == 17
    assert done.results.epochs is not None
    assert done.results.epochs % 1 > 0
    assert Run(tmp_path).read_metrics()[-1].step == 17


def test_a_budget_fixes_the_steps_once_and_for_all(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(base, epochs=1, eval_every=10**6, train_eval_rows=0, out=tmp_path / "run", resume=True)
    options = replace(options, budget_min=0.05)
    monkeypatch.setattr("heedful.training.budget.TRIAL_SHARE", 0.0)  # five steps, so that it dies later
    die_at(monkeypatch, 6)
    with pytest.raises(DiedError):
        train_run(options)
    steps = Run(tmp_path / "run").read_config()["pretrain"]["steps"]
    assert steps > 6
    die_at(monkeypatch, None)
    monkeypatch.setattr(
        "heedful.training.budget.measure_steps_in_budget",
        lambda *given: pytest.fail("measured twice"),
    )
    done = train_run(options)
    assert done.results.steps == steps
    assert done.results.seconds < 3 * 60 * 0.05  # of a machine that others use too
    again = replace(base, epochs=1, eval_every=10**6, train_eval_rows=0, steps=steps, out=tmp_path / "plain")
    train_run(again)  # the measurement leaves no trace
    assert traces(tmp_path / "run") == traces(tmp_path / "plain")


def test_a_budget_that_is_over_before_it_begins_is_refused(base: PretrainOptions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--budget-min 1e-06: is over before the first step"):
        train_run(replace(base, budget_min=1e-6, out=tmp_path))


@pytest.mark.parametrize("steps", [60, 45])
def test_a_branch_has_the_bits_of_a_run_that_began_anew(
    base: PretrainOptions, steps: int, tmp_path: Path
) -> None:
    wsd = replace(base, schedule="wsd", warmup=3.0, eval_every=10)
    train_run(replace(wsd, steps=40, out=tmp_path / "short"))
    pinned = 3 + int(0.8 * 37)
    assert pinned in checkpoint.steps(Run(tmp_path / "short"))
    done = train_run(replace(wsd, steps=steps, branch=tmp_path / "short", out=tmp_path / "branch"))
    train_run(replace(wsd, steps=steps, out=tmp_path / "long"))
    assert done.results.steps == steps
    assert traces(tmp_path / "branch") == traces(tmp_path / "long")


def test_a_branch_shares_the_warm_up_and_can_be_resumed(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wsd = replace(base, schedule="wsd", warmup=0.1, eval_every=10)
    train_run(replace(wsd, steps=40, out=tmp_path / "short"))
    branch = replace(wsd, steps=70, branch=tmp_path / "short", out=tmp_path / "branch", resume=True)
    die_at(monkeypatch, 50)
    with pytest.raises(DiedError):
        train_run(branch)
    die_at(monkeypatch, None)
    assert Run(tmp_path / "branch").read_config()["pretrain"]["warmup"] == 4.0
    train_run(branch)
    train_run(replace(wsd, steps=70, warmup=4.0, out=tmp_path / "long"))
    assert traces(tmp_path / "branch") == traces(tmp_path / "long")


def test_a_branch_that_cannot_be_is_refused(base: PretrainOptions, tmp_path: Path) -> None:
    wsd = replace(base, schedule="wsd", warmup=2.0)
    parent = tmp_path / "short"
    train_run(replace(wsd, steps=20, out=parent))
    branch = replace(wsd, steps=40, branch=parent)
    cases = [
        ({"lr": 1e-3}, "was begun with --lr 0.005, now it is 0.001; --branch takes the same options"),
        ({"schedule": "linear"}, "--branch needs --schedule wsd"),
        ({"block": 24}, "was begun with --block 16, now it is 24; --branch takes the same options"),
        ({"steps": 10}, "was 16 steps far; a run of 10 steps decays from step 8 on"),
    ]
    for number, (changes, words) in enumerate(cases):
        with pytest.raises(UserError, match=words):
            train_run(replace(branch, **changes, out=tmp_path / f"{number}"))
    for folder in (parent / "checkpoints").glob("step-*"):
        shutil.rmtree(folder)
    with pytest.raises(UserError, match="has no checkpoint from before its decay"):
        train_run(replace(branch, out=tmp_path / "none"))


def test_what_is_held_out_is_never_trained_on_and_always_the_same(base: PretrainOptions) -> None:
    texts = open_splits(base)
    train, dev = set(texts.splits["train"]), set(texts.splits["dev"])
    assert dev
    assert not train & dev
    assert train | dev == set(open_corpus(base.corpus))
    assert texts.how["dev"].startswith("10 % of ")
    assert set(open_splits(replace(base, seed=7)).splits["dev"]) == dev
    assert set(open_splits(replace(base, dev_share=0.3)).splits["dev"]) > dev
    assert list(open_splits(replace(base, dev_share=0.0)).splits) == ["train"]


def test_dev_and_test_are_the_corpus_s_own_or_those_that_are_named(
    base: PretrainOptions, tmp_path: Path
) -> None:
    for name, seed in (("train", 0), ("valid", 1), ("test", 2)):
        (tmp_path / f"x.{name}.txt").write_text("\n".join(lines(20, seed)), "utf-8")
    own = open_splits(replace(base, corpus=str(tmp_path)))
    assert {name: list(texts) for name, texts in own.splits.items()} == {
        "train": lines(20, 0), "dev": lines(20, 1), "test": lines(20, 2)
    }  # fmt: skip
    named = open_splits(replace(base, dev=str(tmp_path / "x.test.txt"), test=str(tmp_path / "x.valid.txt")))
    assert list(named.splits["dev"]) == lines(20, 2)
    assert list(named.splits["test"]) == lines(20, 1)
    assert list(named.splits["train"]) == lines(150)


def test_a_text_file_has_lines_paragraphs_or_one_order(tmp_path: Path) -> None:
    path = tmp_path / "play.txt"
    path.write_text("A:\nhello\n\nB:\nyes\n \n\nA:\nno\n", "utf-8")
    assert list(Corpus("x", (path,))) == ["A:", "hello", "B:", "yes", "A:", "no"]
    assert list(Corpus("x", (path,), documents="paragraph")) == ["A:\nhello", "B:\nyes", "A:\nno"]
    assert list(Corpus("x", (path,), documents="file")) == [path.read_text("utf-8").removesuffix("\n")]
    long = tmp_path / "long.txt"
    long.write_text("".join(f"line {i:5}\n" for i in range(4000)), "utf-8")
    pieces = list(Corpus("x", (long,), documents="file"))
    assert "\n".join(pieces) + "\n" == long.read_text("utf-8")
    assert max(map(len, pieces)) < 17_000
    names = {Corpus("x", (path,), documents=d).fingerprint for d in ("line", "paragraph", "file")}
    assert len(names) == 3


def test_the_tokenizer_is_trained_on_the_training_text_alone(base: PretrainOptions, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    texts = [f"common w{i}" for i in range(200)]
    path.write_text("\n".join(texts), "utf-8")
    job = build_pretrain(replace(base, corpus=str(path)))
    known = set(job.tokenizer.backend.get_vocab())
    for text in job.scorer.splits.splits["dev"]:
        assert text.split()[1] not in known
    for text in job.scorer.splits.splits["train"]:
        assert text.split()[1] in known
    assert job.model.config.vocab_size == job.tokenizer.vocab_size


def test_a_run_goes_on_from_another_with_its_vocabulary(base: PretrainOptions, tmp_path: Path) -> None:
    first = train_run(replace(base, steps=20, out=tmp_path / "first"))
    on = replace(base, model=str(first.folder), tokenizer=None, min_count=None, model_options=(), steps=1,
                 lr=1e-6)  # fmt: skip
    done = train_run(replace(on, out=tmp_path / "on"))
    before, after = first.results.splits["dev"].value, done.results.splits["dev"].value
    assert after == pytest.approx(before, rel=1e-3)
    with pytest.raises(UserError, match="goes on with the vocabulary it has"):
        train_run(replace(on, tokenizer="char", out=tmp_path / "other"))
    with pytest.raises(UserError, match="--model-options are for models from nothing"):
        train_run(replace(on, model_options=("n_layers=2",), out=tmp_path / "other"))


def test_questions_come_from_train_alone_and_are_their_share_of_a_batch(
    base: PretrainOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(base, corpus="world/birthplaces", questions="world/birthplaces", tokenizer="char",
                      block=64, batch_size=8, dev_share=0.0)  # fmt: skip
    job = build_pretrain(options)
    loop = job.make_loop(Run("nowhere"), options)
    answer: Any = job.objective.answer  # type: ignore[attr-defined]
    assert list(answer.task.splits) == ["train"]
    assert loop.plan.batches.batch_size == 6
    parts = job.objective.prepare(np.arange(6), 0)
    assert [(list(part.counts), part.examples) for part in parts] == [(["causal"], 6), (["answer"], 2)]
    loop.model.train()
    loop.step(0)
    p = loop.state
    assert p.running_count.keys() == {"causal", "answer"}
    sums = {name: p.running_loss[name] for name in p.running_loss}
    n = sum(p.running_count.values())
    rows: list[Any] = []
    monkeypatch.setattr(loop.log, "write", rows.append)
    p.step = 1
    loop.write_running()
    assert rows[0].loss == pytest.approx(sum(sums.values()) / n)
    assert rows[0].losses == pytest.approx({k: sums[k] / c for k, c in (("causal", n - parts[1].counts["answer"]),
                                            ("answer", parts[1].counts["answer"]))})  # fmt: skip


def test_a_mechanism_that_cannot_keep_documents_apart_says_so(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.attention import MECHANISMS

    monkeypatch.setattr(MECHANISMS["additive"], "segments", False)
    with pytest.raises(UserError, match="additive attention cannot keep packed documents apart; --no-pack"):
        train_run(replace(base, attention="additive", out=tmp_path / "a"))
    done = train_run(replace(base, attention="additive", pack=False, steps=3, out=tmp_path / "b"))
    assert done.results.splits["dev"].value is not None


def test_an_unsafe_mask_is_found_by_the_run_itself(base: PretrainOptions, tmp_path: Path) -> None:
    done = train_run(replace(base, attention="zero_scores:unsafe=true", pack=False, steps=30, out=tmp_path))
    found = {check.name: check for check in done.checks.checks}
    assert found["causality"].status == "failed"


def test_dev_is_scored_once_per_evaluation_and_not_again_at_the_end(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    evaluate = Causal.evaluate

    def counted(self: Causal, model: Any, split: str, examples: Any = None) -> Any:
        calls.append(split)
        return evaluate(self, model, split, examples)

    monkeypatch.setattr(Causal, "evaluate", counted)
    done = train_run(replace(base, out=tmp_path / "run"))
    rows = [row for row in Run.open(done.folder).read_metrics() if row.split == "dev"]
    assert calls.count("dev") == len(rows) == 2
    dev = done.results.splits["dev"]
    assert dev.value in [row.value for row in rows]
    # Loaded again, the selected model has the same score.
    assert LanguageModelScores(done.folder).score_split("dev")[1].value == pytest.approx(dev.value)
    # After a resume the selected evaluation is not known, and dev is scored again.
    (done.folder / "results.json").unlink()
    calls.clear()
    again = train_run(replace(base, out=tmp_path / "run", resume=True))
    assert (calls, again.results.splits["dev"]) == (["dev"], dev)


def test_a_causal_run_has_samples(base: PretrainOptions, tmp_path: Path) -> None:
    done = train_run(replace(base, out=tmp_path / "run", epochs=1))
    samples = done.results.samples
    assert samples is not None
    assert len(samples) == 3
    texts = [str(row.text) for row in Run.open(done.folder).read_predictions("dev")]
    assert all(any(sample.prompt.strip() in text for text in texts) for sample in samples)
    assert any(sample.text.strip() for sample in samples)
    assert Run.open(done.folder).read_results().samples == samples
    encoder = replace(base, model="bert-tiny", objective="masked", tokenizer="char", epochs=1)
    assert train_run(replace(encoder, out=tmp_path / "masked")).results.samples is None
