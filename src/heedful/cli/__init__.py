"""The `heedful` command. One file a command: it parses, calls one function and prints.

Commands are registered by import path, so that `heedful --help` loads none of them, and never torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from heedful import __version__
from heedful.errors import SubmittedElsewhere, UserError, one_line, unknown

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

    from heedful.cli.settings import Source

STATUS_USER_ERROR = 2
STATUS_INTERRUPTED = 130

COMMANDS = {
    "list": ("heedful.cli.listing:app", "What there is: attention mechanisms, models, families."),
    "adapt": (
        "heedful.cli.adapt:adapt",
        "Adapt a model to a task: fine-tune, head, prompt, prefix, LoRA, BitFit.",
    ),
    "pretrain": (
        "heedful.cli.pretrain:pretrain",
        "Train a language model on text, from nothing or from a checkpoint.",
    ),
    "inspect": (
        "heedful.cli.inspect:inspect",
        "A model's family, sizes, parameters by part, and what was loaded.",
    ),
    "evaluate": ("heedful.cli.evaluate:evaluate", "Score a run's best model on a split."),
    "predict": ("heedful.cli.predict:predict", "Label a text, a pair of texts, or a file of them."),
    "generate": ("heedful.cli.generate:generate", "Continue text with a language model."),
    "check": ("heedful.cli.check:check", "Examine a run or a model, and say what is wrong with it."),
    "export": ("heedful.cli.export:export", "Write a run or a model as a folder that transformers loads."),
    "run": ("heedful.cli.run:run", "Run a recipe, or make a run again from its config.toml."),
    "batch-size": ("heedful.cli.batch_size:batch_size", "The largest batch that fits, and the fastest."),
    "tokenizer": ("heedful.cli.tokenizer:app", "Train, compare and look into tokenizers."),
    "study": ("heedful.cli.study:app", "Many runs, one answer: overfit, search, compare, labels, ..."),
    "report": (
        "heedful.cli.report:report",
        "Report runs and studies: one HTML file, figures, PDF, a bundle.",
    ),
    "data": ("heedful.cli.data:app", "Look at a task's data, or make a world of data."),
    "lab": ("heedful.cli.lab:app", "Attention taken apart: claims, constructions, numbers, figures."),
    "jobs": ("heedful.cli.jobs:app", "Batch jobs: what is queued, running, done, failed and why."),
    "demo": ("heedful.cli.demo:demo", "The main job from start to end on data made here."),
}


def build(chosen: str | None = None) -> App:
    """Assemble the command tree. Only the chosen command is imported, and shows its own help."""
    from cyclopts import App, Parameter

    from heedful.cli.helping import Flowing, usual

    app = App(
        name="heedful",
        help="From how attention works to a Transformer language model adapted to your problem.",
        help_epilogue="" if chosen else "Start with: heedful demo",
        version=__version__,
        error_formatter=error_line,
        help_format="plaintext",
        help_formatter=Flowing(),
        default_parameter=Parameter(negative_iterable=(), show_default=usual),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        config=defaults() if chosen else [],
    )
    for name, (path, about) in COMMANDS.items():
        if name == chosen:
            module, _, attribute = path.partition(":")
            target = getattr(import_module(module), attribute)
            app.command(target, name=None if isinstance(target, App) else name)
        else:
            app.command(path, name=name, help=about)
    return app


def defaults() -> list[Source]:
    """A person's own defaults, from their files, and a look at what was given."""
    from heedful.cli.settings import settings

    return settings(COMMANDS)


def error_line(error: CycloptsError) -> str:
    """Turn a parsing error into the one line a person needs."""
    return one_line(" ".join(str(error).split()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Tests call this in-process."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "HEEDFUL_JOB" in os.environ:
        from heedful.launch.slurm.batch_job import BatchJob

        return BatchJob.from_environment().run(lambda: attempt(arguments))
    return attempt(arguments)[0]


def attempt(arguments: list[str]) -> tuple[int, BaseException | None]:
    """Run one command: the exit status, and the mistake or the interruption that it was told of."""
    from cyclopts import CycloptsError

    try:
        chosen = arguments[0] if arguments and not arguments[0].startswith("-") else None
        if chosen is not None and chosen not in COMMANDS:
            raise unknown("command", chosen, COMMANDS)
        result = build(chosen)(arguments)
    except UserError as error:
        fail(str(error))
        return error.status, error
    except SubmittedElsewhere as given:
        tell(given, json="--json" in arguments)
        return 0, None
    except CycloptsError as error:
        fail(error_line(error))
        return STATUS_USER_ERROR, UserError(error_line(error))
    except KeyboardInterrupt as error:
        fail("interrupted")
        return STATUS_INTERRUPTED, error
    except BrokenPipeError:
        sys.stderr.close()
        return 0, None
    return (result if isinstance(result, int) else 0), None


def tell(given: SubmittedElsewhere, *, json: bool) -> None:
    """Say where the work goes on."""
    if json:
        from heedful.cli.output import print_json

        print_json(given.facts)
        return
    print(given, end="")


def fail(message: str) -> None:
    """Print the one line of a person's mistake."""
    print(f"heedful: {message}", file=sys.stderr)
