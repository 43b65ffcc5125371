"""The `heedful` command. Each command has a file that parses, calls one function and prints.

Commands are registered by import path, so that `heedful --help` imports none of them, and never torch.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from heedful import __version__
from heedful.cli.collector import collect_rarely
from heedful.errors import SubmittedElsewhere, UserError, one_line, shorten, unknown
from heedful.logs import print_messages

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

    from heedful.cli.user_defaults import Source

DEBUG = "--debug"
"""The option that every command has: show the traceback of an error that nothing foresaw."""
STATUS_USER_ERROR = 2
STATUS_INTERRUPTED = 130

NAMES_ELSEWHERE = {
    "--learning-rate": "--lr",
    "--num-epochs": "--epochs",
    "--num-train-epochs": "--epochs",
    "--max-length": "--max-len",
    "--max-seq-length": "--max-len",
    "--output": "--out",
    "--output-dir": "--out",
}
"""Options of other tools that are not spelled like ours."""
COMMANDS = {
    "demo": ("heedful.cli.demo:command", "Show in three minutes what Heedful does, on a real model."),
    "selftest": ("heedful.cli.selftest:command", "Check that everything works on this machine."),
    "list": (
        "heedful.cli.list_names:app",
        "List everything that has a name: models, tasks, methods, attentions, ...",
    ),
    "solve": (
        "heedful.cli.solve:command",
        "Find the best model for your texts in the time you have.",
    ),
    "adapt": (
        "heedful.cli.adapt:command",
        "Adapt a model to a task: full fine-tuning, head, prompt, prefix, LoRA or BitFit.",
    ),
    "pretrain": (
        "heedful.cli.pretrain:command",
        "Train a language model on text, from scratch or from a checkpoint.",
    ),
    "run": ("heedful.cli.run:command", "Run a recipe, or repeat a run from its config.toml."),
    "batch-size": ("heedful.cli.batch_size:command", "Find the largest and the fastest batch size."),
    "predict": ("heedful.cli.predict:command", "Label a text, a pair of texts, or a file of them."),
    "explain": (
        "heedful.cli.explain:command",
        "Show which words of a text carried the answer, and whether that can be trusted.",
    ),
    "generate": ("heedful.cli.generate:command", "Continue a text with a language model."),
    "serve": ("heedful.cli.serve:command", "Serve a model over HTTP, with a page to try it out."),
    "evaluate": ("heedful.cli.evaluate:command", "Score the best model of a run on a split."),
    "export": ("heedful.cli.export:command", "Write a run or a model as a folder that transformers loads."),
    "track": ("heedful.cli.track:command", "Upload a finished run to a tracker."),
    "push": ("heedful.cli.push:command", "Upload the best model of a run to the Hub, with a card."),
    "check": ("heedful.cli.check:command", "Check a run or a model, and say what is wrong with it."),
    "study": ("heedful.cli.study:app", "Answer a question with many runs: search, compare, labels, ..."),
    "report": (
        "heedful.cli.report:command",
        "Report on runs and studies: one HTML file, figures, PDF or a bundle.",
    ),
    "ui": ("heedful.cli.ui:command", "Open the studio: runs, models and attention, in a browser."),
    "lab": (
        "heedful.cli.lab:app",
        "Show properties of attention, constructed, checked with numbers and drawn.",
    ),
    "inspect": (
        "heedful.cli.inspect:command",
        "Show a model's family, sizes, parameters per part, and what was loaded.",
    ),
    "course": ("heedful.cli.course:app", "Check what students write."),
    "data": ("heedful.cli.data:app", "Show the data of a task, or generate a world of data."),
    "tokenizer": ("heedful.cli.tokenizer:app", "Train, compare and inspect tokenizers."),
    "jobs": ("heedful.cli.jobs:app", "Show and cancel batch jobs, and show the nodes of the cluster."),
}
COMMAND_GROUPS = {
    "Start here": ("solve", "demo", "selftest", "list"),
    "Prepare your data": ("data", "tokenizer"),
    "Train a model": ("adapt", "pretrain", "run", "batch-size"),
    "Use a model": ("predict", "explain", "serve", "generate", "evaluate", "export", "push", "check"),
    "Compare and report": ("study", "report", "ui", "track"),
    "Understand attention and models": ("lab", "inspect"),
    "Teach": ("course",),
    "On a cluster": ("jobs",),
}
"""The panels of `heedful --help`: commands by what a person wants to do."""


def build(chosen: str | None = None, arguments: Sequence[str] = ()) -> App:
    """Assemble the command tree. Only the chosen command is imported, and shows its own help."""
    from cyclopts import App, Group, Parameter

    from heedful.cli.help_format import PanelFormatter, format_default

    formatter = PanelFormatter()
    app = App(
        name="heedful",
        help="Understand attention, pretrain small language models and adapt models to your text problem.",
        help_epilogue=""
        if chosen
        else "Start with: heedful demo, and with texts of your own: heedful solve reviews.csv\n"
        "Every command takes --debug, which shows the traceback of an error that nothing foresaw.",
        version=__version__,
        error_formatter=error_line,
        help_format="plaintext",
        help_formatter=formatter,
        default_parameter=Parameter(negative_iterable=(), show_default=format_default),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        config=read_user_defaults() if chosen else [],
    )
    for number, (title, names) in enumerate(COMMAND_GROUPS.items()):
        group = Group(title, sort_key=number)
        for position, name in enumerate(names):
            path, about = COMMANDS[name]
            if name == chosen:
                module, _, attribute = path.partition(":")
                target = getattr(import_module(module), attribute)
                app.command(target, name=None if isinstance(target, App) else name)
            else:
                app.command(path, name=name, help=about, group=group, sort_key=position)
    other = Group("Other", sort_key=len(COMMAND_GROUPS))
    for option in ("--help", "--version"):
        app[option].group = other
    if chosen is not None:
        formatter.read_arguments(app, arguments)
    return app


def read_user_defaults() -> list[Source]:
    from heedful.cli.user_defaults import load_defaults

    return load_defaults(COMMANDS)


def error_line(error: CycloptsError) -> str:
    """Return the parser's error in one line, in the words of the other errors."""
    line = one_line(" ".join(str(error).split()))
    if match := re.fullmatch(r'Command "(.+)" parameter (\S+) requires an argument\.', line):
        missing = f"the value of {match[2]}" if match[2].startswith("-") else match[2]
        return f"{missing} is missing; see heedful {match[1]} --help"
    if match := re.fullmatch(r"Unknown option: (\S+)\.(?: Did you mean (\S+)\?)?", line):
        near = NAMES_ELSEWHERE.get(match[1].replace("_", "-"), match[2])
        return f"unknown option {match[1]}; " + (f"did you mean {near}?" if near else "--help lists them")
    if match := re.fullmatch(r"Unused Tokens: \[(.*)\]\.", line):
        return f"unexpected argument {match[1]}; text with spaces needs quotes"
    return line


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Tests call this in-process."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    own = argv is None  # this process is the command's
    end = arguments.index("--") if "--" in arguments else len(arguments)  # what follows is text
    debug = DEBUG in arguments[:end]
    arguments = [one for i, one in enumerate(arguments) if one != DEBUG or i >= end]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # half a character in a name must not end a command
    with print_messages(), collect_rarely():
        if "HEEDFUL_JOB" in os.environ:
            from heedful.launch.slurm.batch_job import BatchJob

            return BatchJob.from_environment().run(lambda: attempt(arguments, debug, own))
        return attempt(arguments, debug, own)[0]


def attempt(arguments: list[str], debug: bool = False, own: bool = False) -> tuple[int, BaseException | None]:
    """Run one command; return the exit status, and the error that ended it, if any."""
    from cyclopts import CycloptsError

    try:
        chosen = arguments[0] if arguments and not arguments[0].startswith("-") else None
        if chosen is not None and chosen not in COMMANDS:
            raise unknown("command", chosen, COMMANDS)
        result = build(chosen, arguments)(arguments)
    except UserError as error:
        fail(str(error))
        return error.status, error
    except SubmittedElsewhere as submitted:
        from heedful.cli.output import print_json

        print_json(submitted.facts) if "--json" in arguments else print(submitted, end="")
        return 0, None
    except CycloptsError as error:
        fail(error_line(error))
        return STATUS_USER_ERROR, UserError(error_line(error))
    except KeyboardInterrupt as error:
        if own and threading.current_thread() is threading.main_thread():
            signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # a second one, while the process ends, says nothing new
        fail("interrupted")
        return STATUS_INTERRUPTED, error
    except BrokenPipeError:
        sys.stderr.close()
        return 0, None
    except OSError as error:  # of the machine: a disk that is full, a folder that vanished, a name too long
        if error.errno is None or error.errno == errno.ENOMEM:
            return report_bug(error, arguments, debug), error
        place = f"{shorten(str(error.filename), 200)}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}")
        return STATUS_USER_ERROR, error
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        return report_bug(error, arguments, debug), error
    return (result if isinstance(result, int) else 0), None


def report_bug(error: BaseException, arguments: Sequence[str], debug: bool) -> int:
    """Print one line about an exception that nothing foresaw, and return the exit status."""
    from heedful.cli.last_line import (
        STATUS_BUG,
        STATUS_MEMORY,
        describe_bug,
        describe_no_memory,
        is_out_of_memory,
        show_traceback,
    )

    if debug:
        show_traceback(error)
    if is_out_of_memory(error):
        fail(describe_no_memory())
        return STATUS_MEMORY
    fail(describe_bug(error, arguments))
    return STATUS_BUG


def fail(message: str) -> None:
    print(f"heedful: {message}", file=sys.stderr)
