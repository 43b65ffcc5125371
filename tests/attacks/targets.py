"""What an attack may call besides commands: a reader by itself, which fails as a command does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load(folder: str, head: str | None = None) -> None:
    from heedful.checkpoints import load as load_model

    load_model(folder, head=head)


def tokenize(folder: str, text: str) -> None:
    from heedful.text import load as load_tokenizer

    tokenizer = load_tokenizer(folder)
    tokenizer.encode(text, text, max_len=20)
    tokenizer.decode(tokenizer.encode(text).ids)
    _ = tokenizer.kind, tokenizer.fingerprint


def config(folder: str) -> None:
    from heedful.runs.config import load_run_config

    load_run_config(folder)


def recipe(path: str) -> None:
    from heedful.runs.config import load_run_config
    from heedful.training.validation import validate

    validate(load_run_config(path))


def checkpoint(folder: str) -> None:
    from heedful.runs.directory import Run
    from heedful.training.checkpoint import read_checkpoint, steps

    run = Run(folder)
    for step in steps(run):
        with contextlib.suppress(ValueError):
            read_checkpoint(run.checkpoints / f"step-{step:08d}")
    read_checkpoint(max((run.checkpoints).iterdir()))


def ensemble(folder: str) -> None:
    from heedful.inference.ensemble import read_thresholds, read_weights

    read_weights(Path(folder) / "best")
    read_thresholds(Path(folder) / "best")


def often(*arguments: str) -> int:
    """Run a command whose runs write a checkpoint after every step."""
    from heedful.cli import main
    from heedful.training import loop

    loop.CHECKPOINT_SECONDS = 0.0
    return main(list(arguments))


WRITES = ("open", "os.mkdir", "os.rename", "os.link", "os.truncate")


def failing(number: str, error: str, folder: str, *arguments: str) -> int:
    """Run a command in which one call that writes below a folder fails, as on a disk that is full or gone."""
    import errno
    import os

    from heedful.cli import main

    count, code = 0, getattr(errno, error)

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in WRITES or not str(details[0]).startswith(folder):
            return
        flags = details[2] if event == "open" else os.O_WRONLY
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            count += 1
            if count == int(number):
                raise OSError(code, os.strerror(code), details[0])

    sys.addaudithook(watch)
    status = main(list(arguments))
    print(f"writes {count}")
    return status


FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (load, tokenize, config, recipe, checkpoint, ensemble, often, failing)
}


def call(name: str, arguments: list[str]) -> int:
    """Call a function as a command is called: a `UserError` is a line and status 2, anything else escapes."""
    from heedful.errors import UserError

    try:
        return int(FUNCTIONS[name](*arguments) or 0)
    except UserError as error:
        print(f"heedful: {error}", file=sys.stderr)
        return 2
