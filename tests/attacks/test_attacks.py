"""Hostile files, options, paths and environments: no traceback, no hang, no signal, no memory without an end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kinds import KINDS, Attack, Kind, make_attacks
from trials import Trials

NIGHTLY = 100_000
"""Attacks of `make test-nightly`, over all kinds; HEEDFUL_ATTACKS changes the number."""


def report_faults(faults: dict[str, str]) -> str:
    return "\n".join(f"{name}: {fault}" for name, fault in faults.items())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_hostile_files_are_withstood(kind: Kind, material: Path, trials: Trials, tmp_path: Path) -> None:
    attacks = list(make_attacks(kind, range(kind.count), material, tmp_path))
    faults = trials.run_batches([(one.name, one.calls) for one in attacks])
    assert not faults, report_faults(faults)


def test_there_are_at_least_600_attacks_and_they_are_attacks(
    material: Path, trials: Trials, tmp_path: Path
) -> None:
    assert sum(kind.count for kind in KINDS) + len(OPTIONS) + len(PATHS) + len(ENVIRONMENTS) >= 600
    chosen = [kind for kind in KINDS if kind.file in ("config.json", "best/linear.json")]
    attacks = [one for kind in chosen for one in make_attacks(kind, range(20), material, tmp_path)]
    refused = [trials.run(*one.calls).refused for one in attacks]
    assert sum(refused) > 0.5 * len(refused)  # and the good folders are read
    assert trials.run(*([part.format(folder=material / "tfidf") for part in call] for call in KINDS[11].calls)).statuses == [0]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_a_hundred_thousand_attacks_are_withstood(material: Path, trials: Trials, tmp_path: Path) -> None:
    """The time for one attack is a few hundredths of a second, so this takes hours."""
    total = int(os.environ.get("HEEDFUL_ATTACKS", NIGHTLY))
    faults: dict[str, str] = {}
    for batch in batches(total, material, tmp_path):
        faults |= trials.run_batches([(one.name, one.calls) for one in batch])
    assert not faults, report_faults(faults)


def batches(total: int, material: Path, scratch: Path) -> Iterator[list[Attack]]:
    """Yield attacks beyond those of `make test-long`, whose folders are removed when the next ones are made."""
    weight = sum(kind.count for kind in KINDS)
    for kind in KINDS:
        last = kind.count + -(-total * kind.count // weight)
        for start in range(kind.count, last, 100):
            yield list(make_attacks(kind, range(start, min(start + 100, last)), material, scratch))
            for folder in scratch.iterdir():
                shutil.rmtree(folder)


OPTIONS = [
    *[("warmup", v) for v in ("nan", "inf", "-1", "1e300")],
    *[("seed", v) for v in (str(2**64), "1e30", str(-(2**63) - 1), "x", "1.5")],
    *[("epochs", v) for v in ("1e20", "0", "nan", "inf", "-3")],
    *[("accumulate", v) for v in ("9e18", "0")],
    *[("threads", v) for v in ("100000", "0", "1e9")],
    *[("processes", v) for v in ("4096", "1024", "0")],
    *[("device", v) for v in ("meta", "xla", "vulkan", "privateuseone", "cpu:7", "cuda:-1", "", "x" * 300)],
    *[("lr", v) for v in ("inf", "nan", "1e308", "0", "-1")],
    *[("weight-decay", v) for v in ("nan", "inf", "-1", "1e300")],
    *[("clip", v) for v in ("nan", "inf", "-1")],
    *[("label-smoothing", v) for v in ("nan", "1", "-0.1")],
    *[("dropout", v) for v in ("nan", "1", "inf")],
    *[("threshold", v) for v in ("nan", "0", "1")],
    *[("max-len", v) for v in ("1e20", "3", "-1", "nan")],
    *[("batch-size", v) for v in ("0", "1e20", "nan")],
    *[("mlm-weight", v) for v in ("nan", "inf")],
    *[("note", v) for v in ("x" * 100_000,)],
    *[("method-options", v) for v in ("rank=1e20", "alpha=inf", "alpha=nan", "rank=nan", "rank", "x=1", "alpha=1e308")],
]  # fmt: skip
"""Options that no run could have, each of which is refused in one line that names it."""


def test_nonsense_options_are_refused_alike_and_leave_nothing(
    material: Path, trials: Trials, tmp_path: Path
) -> None:
    faults = {}
    command = ["adapt", "minilm", material / "task", "--method", "lora", "--out", tmp_path / "out"]
    for start in range(0, len(OPTIONS), 20):
        batch = OPTIONS[start : start + 20]
        done = trials.run(*([*command, f"--{name}", value] for name, value in batch), seconds=60)
        for (name, _), status in zip(batch, done.statuses or [None] * len(batch), strict=False):
            if status != 2:
                faults[f"--{name}"] = f"{done.fault()} ({done.statuses})"
        lines = [line for line in done.err.splitlines() if line.startswith("heedful: ")]
        if len(lines) != len(batch) or done.fault():
            faults[f"batch {start}"] = done.err[-3000:] + done.traceback
        for (name, _), line in zip(batch, lines, strict=False):
            if f"--{name}" not in line and "lora" not in line:
                faults[f"--{name}"] = f"is not named: {line}"
    assert not faults, report_faults(faults)
    assert not (tmp_path / "out").exists()


LONG = "x" * 300
PATHS = [
    *[[*command] for name in (LONG, "~nouser/x", "a\0b", "/dev/zero", "/proc/self/mem", "/" + "x/" * 3000) for command in (
        ("adapt", name, "task"), ("adapt", "minilm", name), ("predict", name, "x"), ("report", name),
        ("inspect", name), ("evaluate", name), ("export", name, "out"), ("check", name), ("run", name),
        ("tokenizer", "show", name, "a text"), ("data", "show", name), ("generate", name, "x"),
        ("pretrain", "gpt-nano", name), ("explain", name, "x"), ("study", "search", "minilm", name),
        ("solve", name), ("report", "full", "--out", name), ("export", "full", name),
    )],
]  # fmt: skip


def test_hostile_paths_are_refused(trials: Trials, material: Path, tmp_path: Path) -> None:
    attacks = [(f"{call[0]} {call[-1][:20]!r}", [call]) for call in PATHS]
    faults = trials.run_batches(attacks, size=18, seconds=40, folder=str(tmp_path))
    assert not faults, report_faults(faults)


ENVIRONMENTS = [
    {name: value}
    for name in (
        "HEEDFUL_DATA",
        "HEEDFUL_MODELS",
        "HEEDFUL_CACHE",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "HF_HOME",
    )
    for value in ("~nouser/x", LONG, "/dev/null/x", "a\x01b", "")
]


def test_hostile_environments_are_withstood(trials: Trials, material: Path, tmp_path: Path) -> None:
    faults = {}
    for number, environment in enumerate(ENVIRONMENTS):
        (tmp_path / str(number)).mkdir()
        more = {"HEEDFUL_CACHE": ""} if "XDG_CACHE_HOME" in environment else {}
        calls = (
            ["tokenizer", "show", "nomodel", "x"],
            ["data", "show", "notask"],
            ["data", "show", material / "task"],
        )
        done = trials.run(
            *calls, seconds=30, folder=str(tmp_path / str(number)), environment={**environment, **more}
        )
        if done.fault() is not None:
            faults[str(environment)[:60]] = str(done.fault())
    assert not faults, report_faults(faults)
