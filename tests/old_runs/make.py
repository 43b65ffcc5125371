"""Makes the folders beside this file, with the version of heedful that is on the path (see README.md)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).parent
MADE = Path("/tmp/heedful-old-runs")
PLACEHOLDER = "@OLD_RUNS@"
"""Stands in the committed files for the folder that they are in."""
FAST = ("--threads", 1, "--precision", "float32", "--lr", 0.02)
ADAPT = ("--epochs", 12, "--batch-size", 10, "--max-len", 16, *FAST)
MODEL = ("--model-options", "n_layers=1", "d_model=16", "n_heads=2", "d_ff=32", "max_len=32")
PRETRAIN = (
    *("--tokenizer", "word", "--min-count", 1, *MODEL, "--block", 16, "--batch-size", 4),
    *("--steps", 80, "--eval-every", 20, *FAST),
)
COMMANDS = {
    "full": ("adapt", "bert", "task", *ADAPT),
    "lora": ("adapt", "bert", "task", "--method", "lora", "--method-options", "rank=2", *ADAPT),
    "head": ("adapt", "bert", "task", "--method", "head", *ADAPT),
    "pretrain": ("pretrain", "gpt-nano", "notes.txt", *PRETRAIN),
    "search": ("study", "search", "bert", "task", "--lr", "1e-3,2e-2", "--epochs", "4,8", "--batch-size", 10,
               "--max-len", 16, "--jobs", 0, "--threads", 1, "--precision", "float32"),
}  # fmt: skip
STOPPED = {
    "half-full": ("full", 26),
    "half-lora": ("lora", 26),
    "half-pretrain": ("pretrain", 47),
    "half-search": ("search", 38),
}
"""The same commands, stopped in the step of this number."""
GENERATE = ("generate", "pretrain", "the", "--temperature", 0, "--max-tokens", 8, "--json")


def main() -> None:
    """Make the material and the runs, and copy them here."""
    shutil.rmtree(MADE, ignore_errors=True)
    MADE.mkdir()
    os.chdir(MADE)
    os.environ["HEEDFUL_CACHE"] = str(MADE / "cache")
    make_material()
    for name, command in COMMANDS.items():
        assert run(*command, "--out", name) == 0
    for name, (whole, step) in STOPPED.items():
        assert run(*COMMANDS[whole], "--out", name, stop=step) == 75
    commands = COMMANDS | {name: COMMANDS[whole] for name, (whole, _) in STOPPED.items()}
    (MADE / "commands.json").write_text(json.dumps(commands, indent=1) + "\n")
    with redirect_stdout(StringIO()) as written:
        assert run(*GENERATE) == 0
    (MADE / "generated.json").write_text(written.getvalue())
    for unneeded in ("cache", "full/checkpoints", "pretrain/checkpoints"):  # the latter for their size
        shutil.rmtree(MADE / unneeded)
    for folder in MADE.iterdir():
        copy(folder, HERE / folder.name)


def make_material() -> None:
    """A tiny model, a tiny task and a tiny corpus."""
    import heedful

    sys.path.insert(0, str(Path(heedful.__file__).parents[2] / "tests"))
    from tiny import make_model, make_task

    make_model(MADE / "bert")
    shutil.rmtree(MADE / "bert-tokenizer")
    make_task(MADE / "task", rows=50)
    rows = (MADE / "task" / "train.csv").read_text().splitlines()[1:]
    (MADE / "notes.txt").write_text("".join(row.rpartition(",")[0] + "\n" for row in rows * 2))


def run(*arguments: object, stop: int | None = None) -> int:
    """Run a command in this process; SIGTERM comes in its step number `stop`."""
    from heedful.cli import main as heedful
    from heedful.training.loop import Loop

    step, taken = Loop.step, 0

    def stopping(self: Loop, number: int) -> None:
        nonlocal taken
        taken += 1
        if taken == stop:
            os.kill(os.getpid(), signal.SIGTERM)
        step(self, number)

    with patch.object(Loop, "step", stopping):
        return heedful([str(argument) for argument in arguments])


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, with the placeholder instead of the path it was made in."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for entry in source.iterdir():
            copy(entry, target / entry.name)
        return
    content = source.read_bytes()
    if source.suffix not in (".pt", ".safetensors"):
        content = content.replace(str(MADE).encode(), PLACEHOLDER.encode())
    target.write_bytes(content)


if __name__ == "__main__":
    main()
