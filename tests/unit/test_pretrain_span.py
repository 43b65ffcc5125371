"""Pretraining by span corruption, whole: it learns what it read, is scored the same again, resumes exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.options.training import PretrainOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.training import checkpoint
from heedful.training import loop as loop_module
from heedful.training.build import build_pretrain
from heedful.training.loop import Loop
from heedful.training.rescore import LanguageModelScores
from heedful.training.train import train_run

PEOPLE = [
    ("Ada Lund", "Oslo"),
    ("Bo Ek", "Ulm"),
    ("Cy Dahl", "Rome"),
    ("Dee Fox", "Bern"),
    ("Eva Mo", "Lima"),
]
TINY = ("n_layers=1", "d_model=32", "n_heads=2")
QUESTIONS: dict[str, Any] = {"corpus": "birthplaces", "questions": "birthplaces", "dev": None}
CASES: dict[str, dict[str, Any]] = {
    "line": {"tokenizer": "char", "model": "char-gpt", "lr": 1e-2},
    "span": {"tokenizer": "char", "model": "char-gpt", "span_loss": "span", "lr": 1e-2},
    "salient": {"tokenizer": "char", "model": "char-gpt", "salient": "all", "lr": 1e-2},
    "pieces": {"span_loss": "span", "salient": "names", "lr": 1e-2},
    "window": {"span_form": "window", "salient": "names", "optimizer": "muon", "lr": 0.02},
    "t5": {"tokenizer": "unigram", "model": "t5-mini", "vocab_size": 200, "lr": 1e-2},
    "t5-salient": {"tokenizer": "unigram", "model": "t5-mini", "vocab_size": 200, "salient": "all",
                   "lr": 1e-2},
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> PretrainOptions:
    folder = tmp_path_factory.mktemp("birthplaces")
    lives = "".join(f"{n}. {n} (born 3 May 19{i}0 in {p}) sings .\n" for i, (n, p) in enumerate(PEOPLE))
    (folder / "wiki.txt").write_text(lives + "\n", "utf-8")
    for name, people in (("birth_places_train", PEOPLE[:4]), ("birth_dev", PEOPLE[4:])):
        rows = "".join(f"Where was {n} born?\t{p}\n" for n, p in people)
        (folder / f"{name}.tsv").write_text(rows, "utf-8")
    return PretrainOptions(
        model="modern-gpt", corpus=str(folder / "wiki.txt"), objective="span", tokenizer="wordpiece",
        vocab_size=None, block=48, epochs=60, batch_size=5, threads=1, precision="float32", dev_share=0.0,
        dev=str(folder / "wiki.txt"), train_eval_rows=0, eval_every=4, model_options=TINY, dropout=0.0,
        data_dir=folder,
    )  # fmt: skip


STEP = Loop.step


class DiedError(Exception):
    """Stands for a death that leaves no time for anything."""


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


@pytest.mark.parametrize("case", CASES)
def test_what_was_read_is_known_and_scored_the_same_again(
    base: PretrainOptions, case: str, tmp_path: Path
) -> None:
    options = replace(base, **CASES[case], out=tmp_path / "run")
    done = train_run(options)
    dev = [row for row in Run(done.folder).read_metrics() if row.split == "dev"]
    found = done.results.splits["dev"]
    assert found.metric == "perplexity"
    assert float(dev[-1].value or 1e9) < 0.5 * float(dev[0].value or 0)
    assert min(row.loss for row in dev) == pytest.approx(found.loss, rel=1e-5)
    again = LanguageModelScores(done.folder).score_split("dev")[1]
    assert again.value == pytest.approx(found.value, rel=1e-6)
    assert (again.n, again.texts, again.unknown_rate) == (found.n, found.texts, found.unknown_rate)
    assert found.texts == len(PEOPLE)  # the empty line is no text
    rows = Run(done.folder).read_predictions("dev")
    assert sum(row.loss or 0.0 for row in rows) == pytest.approx((found.loss or 0.0) * found.n)


@pytest.mark.parametrize("case", [*CASES, "questions", "t5-questions"])
def test_a_resumed_run_has_the_same_bits(
    base: PretrainOptions, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"questions": CASES["window"] | QUESTIONS, "t5-questions": CASES["t5"] | QUESTIONS} | CASES
    options = replace(base, **changes[case], batch_size=2, epochs=4, eval_every=5, dropout=0.1)
    train_run(replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "stopped", resume=True)
    for step in (2, 7):
        die_at(monkeypatch, step)
        with pytest.raises(DiedError):
            train_run(stopped)
    die_at(monkeypatch, None)
    train_run(stopped)
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")
    rows = [row for row in Run(tmp_path / "whole").read_metrics() if row.split == "train"]
    asked = "questions" in case
    assert all((row.losses or {}).keys() == ({"span", "answer"} if asked else set()) for row in rows)


@pytest.mark.parametrize("case", ["line", "window", "t5"])
def test_a_branch_has_the_bits_of_a_run_that_began_anew(
    base: PretrainOptions, case: str, tmp_path: Path
) -> None:
    wsd = replace(base, **CASES[case], schedule="wsd", warmup=2.0, eval_every=5)
    train_run(replace(wsd, steps=12, out=tmp_path / "short"))
    train_run(replace(wsd, steps=24, branch=tmp_path / "short", out=tmp_path / "branch"))
    train_run(replace(wsd, steps=24, out=tmp_path / "long"))
    assert traces(tmp_path / "branch") == traces(tmp_path / "long")


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_questions_are_learnt_beside_the_text_in_their_share(
    base: PretrainOptions, share: float, tmp_path: Path
) -> None:
    options = replace(base, **(CASES["window"] | QUESTIONS), batch_size=8, questions_share=share, epochs=80)
    job = build_pretrain(options)
    parts = job.objective.prepare(np.arange(8 - round(8 * share)) % 5, 0)
    examples = {kind: sum(p.examples for p in parts if kind in p.counts) for kind in ("span", "answer")}
    assert examples == {"span": 8 - round(8 * share), "answer": min(4, round(8 * share))}
    done = train_run(replace(options, out=tmp_path / "run"))
    rows = [row.losses or {} for row in Run(done.folder).read_metrics() if row.split == "train"]
    for kind in ("span", "answer"):
        assert rows[-1][kind] < 0.3 * rows[0][kind]


def test_windows_for_an_encoder_decoder_are_refused(base: PretrainOptions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="windows are for decoders"):
        train_run(replace(base, **(CASES["t5"] | {"span_form": "window"}), out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("changes", "words"), [
    ({"objective": "causal", "span_form": "window"}, "--span-form belongs to --objective span"),
    ({"objective": "causal", "salient": "names"}, "--salient belongs to --objective span"),
    ({"objective": "masked", "span_loss": "span"}, "--span-loss belongs to --objective span"),
    ({"mask_rate": 0.3}, "--mask-rate belongs to --objective masked"),
    ({"window_left": 2}, "--window-left belongs to --span-form window"),
    ({"questions_share": 0.5}, "--questions-share belongs to --questions"),
])  # fmt: skip
def test_an_option_that_nothing_would_read_is_refused(
    base: PretrainOptions, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        train_run(replace(base, **changes))
