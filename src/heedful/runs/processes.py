"""Names of processes: which one holds a lease, and whether it still runs on this machine."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path


def machine_name() -> str:
    """Name this machine, and on it the space in which process numbers count."""
    space = ""
    with suppress(OSError):
        space = " " + str(Path("/proc/self/ns/pid").readlink())
    return platform.node() + space


def process_name(number: int) -> str:
    """Return a name that no later process with the same number has; "" if the process is gone."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        fields_after_name = stat.rpartition(")")[2].split()
        if fields_after_name[0] == "Z":
            return ""
        return f"{machine_name()} process {number} begun {fields_after_name[19]}"
    except OSError:
        pass
    if Path("/proc/self").exists():
        return ""
    import psutil  # only where there is no /proc

    try:
        process = psutil.Process(number)
        gone = process.status() == psutil.STATUS_ZOMBIE
        return "" if gone else f"{machine_name()} process {number} begun {process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return ""
    except psutil.Error:  # it belongs to somebody else
        return f"{machine_name()} process {number}"


def parse_process_name(name: str) -> tuple[str, int | None]:
    """Return the machine and the number of a named process; other names have no number."""
    machine, _, rest = name.rpartition(" process ")
    number = rest.partition(" ")[0]
    return machine, int(number) if number.isdigit() else None


def is_gone(name: str) -> bool:
    """Whether a named process has run on this machine and has ended."""
    machine, number = parse_process_name(name)
    return machine == machine_name() and number is not None and process_name(number) != name


def find_process(name: str) -> int | None:
    """Return the number of a named process, if it runs on this machine."""
    machine, number = parse_process_name(name)
    return None if number is None or machine != machine_name() or is_gone(name) else number
