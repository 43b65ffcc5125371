"""Checks that two versions of heedful train the same bits: tiny runs of each, compared byte for byte.

    python scripts/same_bits.py OLD NEW [--cache DIR] [--keep DIR]

OLD and NEW are git revisions or folders of checkouts. Every case is one command line; a case may start from
the model of an earlier one. Weights (safetensors), tokenizers, metrics.jsonl, predictions and generated data
are compared. One line per case is printed, and the exit status is 1 on any difference.

Both versions run on this machine with one thread, because bits depend on both. With --cache, the results of
revisions are stored there and used again; folders are always run, since their files may change.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPARED = ("*.safetensors", "tokenizer.json", "metrics.jsonl", "predictions_*", "world/*")
"""Patterns of the compared files: the name, or the path within the folder of all cases."""
FAILED = "same_bits: failed: "

THREADS = ("--threads", "1")
FAST = (*THREADS, "--precision", "float32")
SIZES = ("--model-options", "n_layers=2", "d_model=32", "n_heads=2")
ROOM = (*SIZES, "max_len=64")
BATCHES = ("--eval-every", "3", "--batch-size", "8", "--block", "48", "--lr", "0.01", *FAST)
PRETRAIN = ("--steps", "6", *BATCHES)
NOTHING = (*ROOM, *PRETRAIN)
TEXTS = ("--epochs", "2", "--batch-size", "16", "--max-len", "48", "--lr", "0.01", *THREADS)
ADAPT = (*TEXTS, "--precision", "float32")
BIRTHPLACES = ("birthplaces", "--data-dir", "birthplaces")
WIKI = "birthplaces/wiki.txt"
SPAN = (WIKI, "--objective", "span")
QUESTIONS = ("--questions", *BIRTHPLACES)
SEARCH = ("--batch-size", "16", "--warmup", "10", "--max-len", "48", "--keep", "all", "--jobs", "0", *FAST)
WSD = (*ROOM, *BATCHES, "--documents", "file", "--dev-share", "0", "--schedule", "wsd", "--accumulate", "2")
BPE = ("--tokenizer", "bpe", "--vocab-size", "400")
ROWS = {"reviews": 64, "sentiment": 64, "boolq": 32, "birthplaces": 1000}
"""Rows of each generated file that are used; birthplaces are few already."""

CASES: dict[str, tuple[str, ...]] = {
    "world": ("data", "make", "world", "world", "--people", "40"),
    # every objective of pretraining
    "masked": ("pretrain", "bert-tiny", "reviews", "--objective", "masked", "--tokenizer", "wordpiece",
               "--vocab-size", "300", *NOTHING),
    "masked-words": ("pretrain", "masked", "reviews", "--objective", "masked", "--whole-words", "--mask-rate",
                     "0.3", *PRETRAIN),
    "causal": ("pretrain", "gpt-nano", WIKI, *BPE, *NOTHING, "--sentences", "He was born in Dalello."),
    "causal-modern": ("pretrain", "modern-gpt", WIKI, "--tokenizer", "char", *NOTHING, "--no-pack",
                      "--optimizer", "muon", "--schedule", "cosine"),
    "causal-wsd": ("pretrain", "char-gpt", WIKI, *WSD, "--steps", "6"),
    "causal-branch": ("pretrain", "char-gpt", WIKI, *WSD, "--steps", "8", "--branch", "causal-wsd"),
    "causal-performer": ("pretrain", "gpt-nano", WIKI, "--tokenizer", "word", *NOTHING, "--attention",
                         "performer:features=8", "--projections", "shared_qk"),
    "causal-further": ("pretrain", "causal", "reviews", *PRETRAIN, "--dropout", "0.2"),
    "span-line": ("pretrain", "char-gpt", *SPAN, *NOTHING, "--span-loss", "span"),
    "span-window": ("pretrain", "gpt-nano", *SPAN, *BPE, *NOTHING, "--span-form", "window"),
    "span-questions": ("pretrain", "gpt-nano", *SPAN, *BPE, *NOTHING, "--salient", "names", *QUESTIONS),
    "span-window-questions": ("pretrain", "gpt-nano", *SPAN, *BPE, *NOTHING, "--span-form", "window",
                              *QUESTIONS, "--questions-share", "0.5"),
    "span-t5": ("pretrain", "t5-mini", "reviews", "--objective", "span", "--vocab-size", "350", *NOTHING),
    # every method of adapting
    "full": ("adapt", "masked", "reviews", *ADAPT),
    "head": ("adapt", "masked", "reviews", "--method", "head", *ADAPT),
    "head-not-cached": ("adapt", "masked", "reviews", "--method", "head", "--no-cache-features",
                        "--pool", "mean", *ADAPT),
    "prompt": ("adapt", "masked", "reviews", "--method", "prompt", "--method-options", "length=3", *ADAPT),
    "prefix": ("adapt", "masked", "reviews", "--method", "prefix", "--method-options", "length=3", *ADAPT),
    "lora": ("adapt", "masked", "reviews", "--method", "lora", "--method-options", "rank=2", *ADAPT),
    "bitfit": ("adapt", "masked", "reviews", "--method", "bitfit", *ADAPT),
    # every objective of adapting
    "joint": ("adapt", "masked", "reviews", "--objective", "joint", "--unlabeled", "reviews/unlabeled.txt",
              "--mlm-first", "2", *ADAPT),
    "joint-lora": ("adapt", "masked", "reviews", "--objective", "joint", "--method", "lora", *ADAPT),
    "text2text": ("adapt", "span-t5", "sentiment", "--objective", "text2text", "--label-words", "0=poor",
                  "1=fine", *ADAPT),
    "classify-t5": ("adapt", "span-t5", "sentiment", *ADAPT),
    "classify-decoder": ("adapt", "causal", "sentiment", "--method", "lora", *ADAPT),
    "answer": ("adapt", "span-questions", *BIRTHPLACES, *ADAPT),
    "answer-all": ("adapt", "span-window", *BIRTHPLACES, "--answer-loss", "all", "--method", "prefix",
                   *ADAPT),
    # other choices that decide bits
    "pairs": ("adapt", "masked", "boolq", "--data-dir", "boolq", "--optimizer", "sgd", "--schedule",
              "constant", "--clip", "0", "--class-weights", "balanced", "--label-smoothing", "0.1", *ADAPT),
    "nothing": ("adapt", "bert-tiny", "sentiment", "--tokenizer", "wordpiece", *SIZES, "--optimizer",
                "rmsprop", "--steps", "6", "--eval-every", "2", "--patience", "1", "--seed", "3", *ADAPT),
    "few-rows": ("adapt", "masked", "reviews", "--train-rows", "20", "--dev-rows", "20", "--attention",
                 "bigbird:block=8", "--accumulate", "2", *ADAPT),
    "bfloat16": ("adapt", "masked", "reviews", *TEXTS, "--precision", "bfloat16"),
    "token-budget": ("adapt", "masked", "reviews", "--token-budget", "300", "--lr", "1e-3", "--epochs", "2",
                     "--warmup", "2", *FAST),
    "two-processes": ("adapt", "masked", "reviews", *ADAPT, "--processes", "2"),
    # searches: shared beginnings, drawn configurations. Not a search over heads: 959ae48 trained them as one
    # batched product, which differs from its own separate runs by rounding. They are separate runs now, equal
    # to those of 959ae48 ("head"); tests/unit/test_studies_search.py compares both byte for byte.
    "search": ("study", "search", "masked", "reviews", "--lr", "1e-3,1e-2", "--epochs", "1,2", *SEARCH),
    "search-drawn": ("study", "search", "masked", "reviews", "--method", "lora,bitfit", "--lr", "1e-4:1e-2",
                     "--tpe", "3", *SEARCH),
}  # fmt: skip


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("old", help="a git revision or the folder of a checkout")
    parser.add_argument("new", help="a git revision or the folder of a checkout")
    parser.add_argument("--cache", type=Path, help="store the results of git revisions in this folder")
    parser.add_argument(
        "--keep", type=Path, help="write both sides into this new folder, and leave them there"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run both versions and print how their results compare."""
    if arguments[:1] == ["--run-cases"]:
        return run_cases()
    options = parse_arguments(arguments)
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="same_bits.")))
        scratch: Path = options.keep.resolve() if options.keep else temporary
        scratch.mkdir(parents=True, exist_ok=True)
        sides = []
        for name, version in (("old", options.old), ("new", options.new)):
            cached = cache_folder(options.cache, version)
            if cached is not None and cached.is_dir():
                print(f"{name}: {version} (from {cached})", flush=True)
                sides.append(read_outcome(cached))
                continue
            started = time.monotonic()
            folder = scratch / name
            with checkout(version, scratch / f"{name}-checkout") as source:
                run_side(source, folder)
            print(f"{name}: {version} ({time.monotonic() - started:.0f} s)", flush=True)
            sides.append(read_outcome(folder))
            if cached is not None:
                store(folder, cached)
        return compare(*sides)


def run_cases() -> int:
    """Run every case in the current folder; called in a process of its own, with one version on its path."""
    import heedful

    options = Path(heedful.__file__).parent / "options" / "training.py"
    has_balanced = options.is_file() and "    balanced: " in options.read_text()
    print(f"heedful is {heedful.__file__}", flush=True)
    assert Path(heedful.__file__).is_relative_to(os.environ["PYTHONPATH"]), "another heedful is found first"
    for name, command in CASES.items():
        out: tuple[str, ...] = () if name == "world" else ("--out", name)
        if "--train-rows" in command and has_balanced:
            out += ("--balanced",)  # which older versions always are
        if name not in ("world", "nothing") and command[0] != "pretrain":
            out += tuple(fixed_settings(command))
        (sys.argv[0], sys.argv[1:]) = ("heedful", [*command, *out])
        status: object = 0
        try:
            runpy.run_module("heedful", run_name="__main__", alter_sys=True)
        except SystemExit as error:
            status = error.code or 0
        except Exception as error:
            traceback.print_exc()
            status = f"1 ({type(error).__name__})"
        sys.stdout.flush()
        if status != 0:
            print(f"{FAILED}{name}: status {status}", file=sys.stderr)
        if name == "world":
            take_first_rows(Path("world"))
    return 0


def fixed_settings(command: Sequence[str]) -> Iterator[str]:
    """Iterate over the options that give today's version the settings which older versions always used."""
    try:
        from heedful.options import training
    except ModuleNotFoundError:  # an older version
        return
    settings: Mapping[str, object] = getattr(training, "FIXED_SETTINGS", {})
    for name in ("batch_size", "warmup", "max_len", "class_weights", "pool", "head_start"):
        option = f"--{name.replace('_', '-')}"
        if name in settings and option not in command:
            yield from (option, str(settings[name]))


def take_first_rows(world: Path) -> None:
    """Write the first rows of each generated file beside the world: runs on whole files take too long."""
    for task, rows in ROWS.items():
        Path(task).mkdir()
        for file in (world / task).iterdir():
            lines = file.read_text("utf-8").splitlines(keepends=True)
            (Path(task) / file.name).write_text("".join(lines[:rows]), "utf-8")


def run_side(source: Path, folder: Path) -> None:
    """Run every case with the package in `source`, writing to `folder`; print which commands failed."""
    folder.mkdir()
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    cache = tempfile.mkdtemp(prefix="same_bits_cache.")
    paths = {"PYTHONPATH": str(source / "src"), "HEEDFUL_CACHE": cache}
    environment = os.environ | threads | paths | {"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    for name in ("HEEDFUL_DATA", "HEEDFUL_MODELS", "HEEDFUL_JOB"):
        environment.pop(name, None)
    try:
        with (folder / "log.txt").open("w") as log:
            subprocess.run(
                [sys.executable, str(Path(__file__).resolve()), "--run-cases"],
                cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, check=True,
            )  # fmt: skip
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    lines = (folder / "log.txt").read_text("utf-8").splitlines()
    for before, line in pairwise(["", *lines]):
        if line.startswith(FAILED):
            print(f"{line.removeprefix('same_bits: ')}: {before}", flush=True)


@contextlib.contextmanager
def checkout(version: str, folder: Path) -> Iterator[Path]:
    """The folder of a version: the given one, or a temporary git worktree of a revision."""
    if Path(version).is_dir():
        yield Path(version).resolve()
        return
    git("worktree", "add", "--quiet", "--detach", str(folder), find_commit(version))
    try:
        yield folder
    finally:
        git("worktree", "remove", "--force", str(folder))


def find_commit(version: str) -> str:
    return git("rev-parse", "--verify", "--quiet", f"{version}^{{commit}}")


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"same_bits: git {' '.join(arguments)} failed; OLD and NEW are git revisions or folders")
    return done.stdout.strip()


def cache_folder(cache: Path | None, version: str) -> Path | None:
    """Where the results of a revision are stored; they hold for this machine and these cases."""
    if cache is None or Path(version).is_dir():
        return None
    import numpy
    import torch

    cpu = "".join(line for line in cpu_lines() if line.startswith(("model name", "flags")))
    facts = (platform.platform(), cpu, sys.version, torch.__version__, numpy.__version__)
    key = hashlib.sha256(Path(__file__).read_bytes() + repr(facts).encode()).hexdigest()[:12]
    return cache / f"{find_commit(version)[:12]}-{key}"


def cpu_lines() -> list[str]:
    """The description of the first processor, where the system has one."""
    with contextlib.suppress(OSError):
        return Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return []


def read_outcome(folder: Path) -> dict[str, dict[str, str]]:
    """The checksum of each compared file, by case."""
    if (folder / "checksums.txt").is_file():
        outcome: dict[str, dict[str, str]] = {}
        for line in (folder / "checksums.txt").read_text("utf-8").splitlines():
            case, checksum, path = line.split(" ", 2)
            outcome.setdefault(case, {})[path] = checksum
        return outcome
    return {case: checksums(folder / case, case) for case in CASES}


def checksums(folder: Path, case: str) -> dict[str, str]:
    """The checksum of each compared file of a case."""
    found = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        whole = f"{case}/{path}"
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if (
            file.is_file()
            and not hidden
            and any(fnmatch(file.name, p) or fnmatch(whole, p) for p in COMPARED)
        ):
            found[path] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def store(folder: Path, cached: Path) -> None:
    """Store the checksums of a side, whole or not at all."""
    lines = [
        f"{case} {checksum} {path}\n"
        for case, files in read_outcome(folder).items()
        for path, checksum in files.items()
    ]
    cached.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial.", dir=cached.parent))
    (partial / "checksums.txt").write_text("".join(lines), "utf-8")
    shutil.copy(folder / "log.txt", partial)
    with contextlib.suppress(OSError):  # somebody else stored it first
        partial.rename(cached)
    shutil.rmtree(partial, ignore_errors=True)


def compare(old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]) -> int:
    """Print one line per case; return 1 where any differs or has no results."""
    different = 0
    for case in CASES:
        before, after = old.get(case, {}), new.get(case, {})
        if case == "world":  # newer versions generate further tasks, and world.json lists them
            after = {path: checksum for path, checksum in after.items() if path in before}
            before, after = ({**side, "world.json": ""} for side in (before, after))
        wrong = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
        if wrong:
            words = [
                word
                for word, side in (("only in new", before), ("only in old", after))
                if wrong[0] not in side
            ]
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            line = f"DIFFERENT  {case}: {wrong[0]}{f' ({words[0]})' if words else ''}{more}"
        elif not before:
            line = f"DIFFERENT  {case}: the command failed on both sides"
        else:
            line = f"same       {case} ({len(before)} files)"
        different += not line.startswith("same")
        print(line)
    print(
        f"{different} of {len(CASES)} cases differ" if different else f"all {len(CASES)} cases are the same"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
