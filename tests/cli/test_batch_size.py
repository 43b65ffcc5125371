"""The largest batch that fits: searched, measured in children, and never beyond the budget."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.runs import memory
from heedful.training import batch_size
from heedful.training.batch_size import (
    BatchSizeSearch,
    Measured,
    find_batch_size,
    run_child,
    run_watched_child,
    search,
)

STEP = 50
"""Tenths of MB that each example of the stand-in child takes."""
STAND_IN = f"""
import json, sys, time
request = json.load(sys.stdin)
held = bytearray(b"x") * (request["batch_size"] * {STEP} * 10**5)
time.sleep(0.15)
print(json.dumps({{"memory_gb": len(held) / 1e9, "examples_per_second": 1000 / max(1, request["batch_size"]),
    **({{"device": "cpu", "rows": 10**6}} if not request["batch_size"] else {{}})}}))
"""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that holds 5 MB an example, in place of one that builds a model."""

    def child(options: AdaptOptions, size: int, budget: float | None) -> dict[str, Any]:
        request = json.dumps({"batch_size": size})
        answer = run_watched_child([sys.executable, "-c", STAND_IN], request, budget)
        return answer if size == 0 else {k: v for k, v in answer.items() if k not in ("device", "rows")}

    monkeypatch.setattr(batch_size, "run_child", child)


@given(limit=st.integers(0, 700), most=st.integers(1, 600))
def test_the_search_finds_the_largest_to_an_eighth_and_below_16_exactly(limit: int, most: int) -> None:
    tried = search(lambda size: Measured(size, 1.0, 1.0, None if size <= limit else "no"), most)
    largest = BatchSizeSearch(tried, None, "cpu").largest
    sizes = [m.batch_size for m in tried]
    assert len(set(sizes)) == len(sizes) <= 16
    assert max(sizes) <= most
    best = min(limit, most)
    if best == 0:
        assert largest is None
        return
    assert largest is not None
    assert largest.batch_size <= best
    assert best - largest.batch_size <= largest.batch_size // 8
    if best < 16:
        assert largest.batch_size == best


def test_the_search_starts_at_32_and_doubles_or_halves() -> None:
    def order(limit: int) -> list[int]:
        seen: list[int] = []
        search(lambda size: seen.append(size) or Measured(size, reason=None if size <= limit else "no"), 512)
        return seen

    assert order(130) == [32, 64, 128, 256, 192, 160, 144]
    assert order(9) == [32, 16, 8, 12, 10, 9]
    assert order(0) == [32, 16, 8, 4, 2, 1]
    assert order(600) == [32, 64, 128, 256, 512]


def test_a_budget_under_which_32_does_not_fit_and_16_does(
    heedful: Callable[..., Any], stand_in: None
) -> None:
    done = heedful(
        "batch-size", "m", "t", "--memory-gb", 0.12, "--json"
    )  # an interpreter and about 20 x 5 MB
    found = json.loads(done.out)
    assert done.status == 0
    fits = {row["batch_size"]: row["fits"] for row in found["tried"]}
    assert fits[16]
    assert not fits[32]
    assert 16 <= found["largest"] < 32
    assert found["fastest"] == 16  # the stand-in is faster the smaller the batch
    shown = heedful("batch-size", "m", "t", "--memory-gb", 0.12).out
    assert "needs more memory" in shown
    assert f"largest: {found['largest']}; fastest: 16" in shown


def test_a_child_is_ended_at_the_budget_before_it_takes_the_machine() -> None:
    grow = "import time\nheld = []\nwhile True:\n    held.append(bytearray(10**7))\n    time.sleep(0.005)"
    start = time.monotonic()
    assert run_watched_child([sys.executable, "-c", grow], "", 0.2) == {"reason": "needs more memory"}
    assert time.monotonic() - start < 20


def test_a_child_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(UserError, match="could not be measured: ZeroDivisionError: division by zero"):
        run_watched_child([sys.executable, "-c", "1 / 0"], "", 1.0)


def test_nothing_fits_in_too_small_a_budget(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path
) -> None:
    done = heedful("batch-size", tiny_bert, tiny_task, "--memory-gb", 0.05)
    assert done.status == 1
    assert "nothing fits" in done.out
    found = json.loads(heedful("batch-size", tiny_bert, tiny_task, "--memory-gb", 0.05, "--json").out)
    assert found["largest"] is None
    assert found["fastest"] is None


@pytest.mark.long
def test_real_steps_on_the_longest_texts_are_ended_at_the_budget(tmp_path: Path) -> None:
    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    rows = [f"{'warm cold ' * 125}{i},{i % 2}" for i in range(60)]
    (tmp_path / "long.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    tokenizer = text.train(
        ["warm cold 0 1 2 3 4 5 6 7 8 9"] * 5, kind="wordpiece", vocab_size=60, sentinels=0
    )
    tokenizer.save(tmp_path / "t")
    sizes = {"d_model": 32, "d_ff": 2048, "d_head": 16, "max_len": 256, "n_layers": 2}
    config = PRESETS["bert-tiny"].config.replace(vocab_size=tokenizer.vocab_size, **sizes)
    checkpoints.export(models.build(config), tmp_path / "wide", tokenizer=tmp_path / "t")
    options = AdaptOptions(
        model=str(tmp_path / "wide"), task=str(tmp_path / "long.csv"), max_len=256, method="full",
        threads=1, precision="float32", device="cpu",
    )  # fmt: skip
    small = run_child(options, 4, None)
    assert small["examples_per_second"] > 0
    assert run_child(options, 32, small["memory_gb"] + 0.08) == {"reason": "needs more memory"}


def test_cuda_out_of_memory_is_an_answer_not_a_crash(
    tiny_bert: Path, tiny_task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.training.build import build_adapt
    from heedful.training.loop import Loop

    options = AdaptOptions(
        model=str(tiny_bert), task=str(tiny_task), max_len=32, threads=1, precision="float32", device="cpu"
    )
    job = build_adapt(options)
    plain = Loop.step

    def step(self: Loop, number: int) -> None:
        if len(self.choose_examples(number)) > 20:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        plain(self, number)

    monkeypatch.setattr(Loop, "step", step)

    def child(options: AdaptOptions, size: int, budget: float | None) -> dict[str, Any]:
        return batch_size.take_steps(job, size) if size else {"device": "cuda", "rows": 192}

    monkeypatch.setattr(batch_size, "run_child", child)
    found = find_batch_size(options)
    assert {m.batch_size: m.fits for m in found.tried} == {
        16: True,
        20: True,
        22: False,
        24: False,
        32: False,
    }
    assert found.largest is not None
    assert found.largest.batch_size == 20
    assert found.budget_gb is None  # a card's memory is found by running out of it


def test_other_errors_of_a_step_are_not_taken_for_want_of_memory(
    tiny_bert: Path, tiny_task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.training.build import build_adapt
    from heedful.training.loop import Loop

    def step(self: Loop, number: int) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    monkeypatch.setattr(Loop, "step", step)
    job = build_adapt(
        AdaptOptions(model=str(tiny_bert), task=str(tiny_task), max_len=32, precision="float32")
    )
    with pytest.raises(RuntimeError, match="shapes"):
        batch_size.take_steps(job, 4)


@pytest.mark.parametrize(("told", "place", "most", "used", "unused"), [
    ("0::/job/step", "job", "memory.max", "memory.current", "inactive_file"),
    ("3:cpu:/\n4:cpuacct,memory:/job/step", "memory/job", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"),
])  # fmt: skip
def test_free_memory_is_that_of_the_jobs_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, place: str, most: str, used: str, unused: str
) -> None:
    assert 0 < batch_size.free_gb() < 100_000
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cgroup").write_text(told)
    (tmp_path / place / "step").mkdir(parents=True)
    (tmp_path / place / most).write_text("500000000\n")
    (tmp_path / place / used).write_text("300000000\n")
    (tmp_path / place / "memory.stat").write_text(f"anon 5\n{unused} 200000000\n")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUP", tmp_path / "proc/cgroup")
    assert batch_size.free_gb() == pytest.approx(0.36)


@pytest.mark.parametrize(("options", "line"), [
    (["--memory-gb", "0"], "--memory-gb 0: must be above 0"),
    (["--at-most", "0"], "--at-most 0: must be at least 1"),
    (["--method", "lorra"], 'did you mean "lora"?'),
])  # fmt: skip
def test_mistakes_get_one_line(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, options: list[str], line: str
) -> None:
    done = heedful("batch-size", tiny_bert, tiny_task, *options)
    assert done.status == 2
    assert line in done.err


def test_joint_training_is_measured_with_the_longest_unlabeled_texts_and_its_second_head(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from heedful.objectives import Joint
    from heedful.training.build import build_adapt
    from heedful.training.loop import Loop

    more = tmp_path / "more.txt"
    more.write_text("\n".join(f"the room was {'very ' * (n % 20)}warm" for n in range(200)))
    asked: list[AdaptOptions] = []
    stepped: list[tuple[int, int]] = []
    plain = Loop.step

    def step(self: Loop, number: int) -> None:
        assert isinstance(self.objective, Joint)
        (part,) = self.objective.prepare(self.choose_examples(number), number)
        masked = part.tensors["masked_mask"].sum(1)
        stepped.append((len(masked), int(masked.min())))
        assert any(name.startswith("masked_head.") for name in self.parameters)
        plain(self, number)

    def child(options: AdaptOptions, size: int, budget: float | None) -> dict[str, Any]:
        asked.append(options)
        return batch_size.take_steps(build_adapt(options), size) if size else {"device": "cpu", "rows": 192}

    monkeypatch.setattr(Loop, "step", step)
    monkeypatch.setattr(batch_size, "run_child", child)
    monkeypatch.setattr(batch_size, "STEPS", 1)
    done = heedful(
        "batch-size", tiny_bert, tiny_task, "--objective", "joint", "--unlabeled", more, "--at-most", 8,
        "--max-len", 32, "--precision", "float32", "--threads", 1, "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert json.loads(done.out)["largest"] == 8
    assert asked[0].unlabeled == more
    assert set(stepped) == {(8, 23 + 2)}  # the longest, and [CLS] and [SEP]


def test_label_words_are_measured_on_a_text_to_text_model(
    heedful: Callable[..., Any], tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def child(options: AdaptOptions, size: int, budget: float | None) -> dict[str, Any]:
        request = {"options": asdict(options), "batch_size": size, "budget_gb": budget}
        answer = batch_size.answer_request(json.loads(json.dumps(request, default=str)))
        if "error" in answer:
            raise UserError(answer["error"])
        return answer

    monkeypatch.setattr(batch_size, "run_child", child)  # the child's work, in this process

    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    texts = [line.rpartition(",")[0] for line in tiny_task.read_text().splitlines()[1:]]
    tokenizer = text.train([*texts, "good bad"] * 2, kind="unigram", vocab_size=200, sentinels=0)
    tokenizer.save(tmp_path / "t")
    sizes = {"d_model": 32, "d_ff": 64, "d_head": 16, "n_layers": 1}
    config = PRESETS["t5-mini"].config.replace(vocab_size=tokenizer.vocab_size, **sizes)
    checkpoints.export(models.build(config, "text2text"), tmp_path / "t5", tokenizer=tmp_path / "t")
    options = [
        "--objective",
        "text2text",
        "--at-most",
        2,
        "--max-len",
        32,
        "--precision",
        "float32",
        "--threads",
        1,
    ]
    done = heedful(
        "batch-size", tmp_path / "t5", tiny_task, *options, "--label-words", "good=good", "bad=bad"
    )
    assert done.status == 0, done.err
    assert "largest: 2" in done.out
    done = heedful("batch-size", tmp_path / "t5", tiny_task, *options, "--label-words", "good=bad")
    assert done.status == 2
    assert 'the label words "bad" and "bad" have the same pieces' in done.err
