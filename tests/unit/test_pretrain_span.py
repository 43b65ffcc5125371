"""Pretraining by span corruption, whole: it learns what it read, is scored the same again, and resumes exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.training.loop import Loop
from heedful.training.options import PretrainOptions
from heedful.training.pretrain import pretrain

PEOPLE = [
    ("Ada Lund", "Oslo"),
    ("Bo Ek", "Ulm"),
    ("Cy Dahl", "Rome"),
    ("Dee Fox", "Bern"),
    ("Eva Mo", "Lima"),
]
TINY = ("n_layers=1", "d_model=32", "n_heads=2")
CASES: dict[str, dict[str, Any]] = {
    "line": {"tokenizer": "char", "model": "char-gpt", "span_loss": "span", "lr": 1e-2},
    "salient": {"tokenizer": "char", "model": "char-gpt", "salient": "all", "lr": 1e-2},
    "window": {"span_form": "window", "salient": "names", "optimizer": "muon", "lr": 0.02},
    "t5": {"tokenizer": "unigram", "model": "t5-mini", "vocab_size": 200, "lr": 1e-2},
}


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
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_was_read_is_known(base: PretrainOptions, case: str, tmp_path: Path) -> None:
    options = replace(base, **CASES[case], out=tmp_path / "run")
    done = pretrain(options)
    dev = [row for row in Run(done.folder).metrics() if row.split == "dev"]
    assert done.results.splits["dev"].metric == "perplexity"
    assert float(dev[-1].value or 1e9) < 0.5 * float(dev[0].value or 0)
    assert min(row.loss for row in dev) == pytest.approx(done.results.splits["dev"].loss, rel=1e-5)


def test_questions_beside_windows_resume_to_the_same_bits(
    base: PretrainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(base.corpus).parent
    options = replace(
        base, **CASES["window"], epochs=6, eval_every=2, questions="birthplaces", data_dir=folder,
        corpus="birthplaces", dev=None,
    )  # fmt: skip
    pretrain(replace(options, out=tmp_path / "whole"))
    step = Loop.step

    def dying(self: Loop, at: int) -> None:
        if at == 5:
            raise KeyboardInterrupt
        step(self, at)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "step", dying)
        with pytest.raises(KeyboardInterrupt):
            pretrain(replace(options, out=tmp_path / "stopped"))
    pretrain(replace(options, out=tmp_path / "stopped", resume=True))
    for name in ("metrics.jsonl", "best/model.safetensors"):
        assert file_checksum(tmp_path / "whole" / name) == file_checksum(tmp_path / "stopped" / name)
    rows = [row for row in Run(tmp_path / "whole").metrics() if row.split == "train"]
    assert all(row.losses is not None and row.losses.keys() == {"span", "answer"} for row in rows)


def test_windows_for_an_encoder_decoder_are_refused(base: PretrainOptions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="windows are for decoders"):
        pretrain(replace(base, **(CASES["t5"] | {"span_form": "window"}), out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
