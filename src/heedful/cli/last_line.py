"""What no gate foresaw: one line for the person, and a report in a file for those who mend it."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from heedful import __version__
from heedful.errors import one_line, shorten

STATUS_BUG = 70
"""As sysexits.h has it: an internal software error."""
STATUS_MEMORY = 71
ISSUES = "docs/reliability.md says how to report it"
SECRET = re.compile(r"token|secret|passw|credential|api.?key|authorization|bearer", re.IGNORECASE)
TOKEN = re.compile(r"\b(hf_\w{8,}|sk-[\w-]{8,}|gh[pousr]_\w{8,}|wandb_v1_\w{8,}|[0-9a-f]{40})\b")
"""What tokens of the Hub, of trackers and of code hosts look like."""
PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")
NO_MEMORY = re.compile(
    r"can(?:no|')t allocate memory|failed to map segment|not enough memory|std::bad_alloc|out of memory",
    re.IGNORECASE,
)
LONGEST_REPORT = 200_000


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed: Python has a class for that, torch's allocators have messages."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError | ImportError) and NO_MEMORY.search(str(error)) is not None
    )


def describe_no_memory() -> str:
    from heedful.runs.memory import free_gb

    return (
        f"there was not enough memory ({free_gb():,.1f} GB are free); a smaller --batch-size, a larger "
        "--accumulate, a smaller --max-len or a smaller model needs less"
    )


def describe_bug(error: BaseException, arguments: Sequence[str]) -> str:
    """Save a report, and return the line that says so."""
    kind = f"{type(error).__name__}: {shorten(str(error), 100)}" if str(error) else type(error).__name__
    path = save_report(error, arguments)
    where = f"the report is {path}" if path is not None else "no report could be saved; --debug shows it"
    return f"this is a bug in heedful ({hide_secrets(one_line(kind))}); {where}, and {ISSUES}"


def save_report(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Write the traceback, the versions and the command; None where that is not possible either."""
    moment = datetime.now(UTC)
    name = f"heedful-{moment:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in report_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / name
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(write_report(error, arguments, moment))
            return path
        except (OSError, ValueError, RuntimeError):
            continue
    return None


def report_folders() -> list[Path]:
    """Return where reports may be kept: the cache, and where that cannot be written the temporary folder."""
    folders = []
    try:
        from heedful.data.cache import get_cache_folder

        folders.append(get_cache_folder() / "reports")
    except Exception:  # the cache may be what is broken
        pass
    return [*folders, Path(tempfile.gettempdir())]


def write_report(error: BaseException, arguments: Sequence[str], moment: datetime) -> str:
    lines = traceback.format_exception(error)
    facts = {
        "heedful": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "at": moment.isoformat(timespec="seconds"),
        "command": " ".join(["heedful", *hide_values(arguments)]),
        **package_versions(),
    }
    head = "".join(f"{name}: {one_line(value)}\n" for name, value in facts.items())
    return hide_secrets(f"{head}\n{''.join(lines)}")[-LONGEST_REPORT:]


def package_versions() -> Mapping[str, str]:
    from heedful.runs.environment import versions

    return {name: version for name, version in versions().items() if name != "heedful"}


def hide_values(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without the values of options that may be secret."""
    shown: list[str] = []
    for argument in arguments:
        before = shown[-1] if shown else ""
        if before.startswith("-") and "=" not in before and SECRET.search(before):
            shown.append("...")
        elif argument.startswith("-") and "=" in argument and SECRET.search(argument.partition("=")[0]):
            shown.append(f"{argument.partition('=')[0]}=...")
        else:
            shown.append(argument)
    return shown


def hide_secrets(text: str) -> str:
    """Return text without what looks like a token, and without the values of secret variables."""
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value) >= 6:
            text = text.replace(value, "...")
    return TOKEN.sub("...", PASSWORD.sub("...@", text))


def show_traceback(error: BaseException) -> None:
    """Print the traceback, for `--debug`."""
    print(hide_secrets("".join(traceback.format_exception(error))), end="", file=sys.stderr)
