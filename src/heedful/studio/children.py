"""Commands that the studio starts: they go on when it ends, each with its output in a file."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.runs.directory import slug
from heedful.runs.files import write_json
from heedful.runs.json_files import read_record
from heedful.runs.processes import is_gone, process_name
from heedful.studio.folder import StudioFolder

PLACE = ".heedful-studio"
"""Where the studio keeps files of its own, in its folder."""
TAIL_BYTES = 64 * 1024
STOPPED = (75, 130)
"""The statuses of a run that was asked to stop, and of a solution that was interrupted."""


@dataclass(frozen=True)
class Child:
    """A command that was started for the folder of a run, a study or a solution."""

    name: str
    """That folder, below the studio's."""
    command: tuple[str, ...]
    """The words after `heedful`."""
    process: str
    started: float
    log: str
    """The file with its output, below the studio's folder."""

    @property
    def runs(self) -> bool:
        return bool(self.process) and not is_gone(self.process)


class Children:
    """Starts commands, and remembers the last one of each folder, also in later studios."""

    def __init__(self, folder: StudioFolder) -> None:
        self.folder = folder
        self.place = folder.root / PLACE / "commands"
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self.lock = threading.Lock()
        self.known = {child.name: child for child in reversed(self.read_all())}

    def start(self, name: str, command: Sequence[str]) -> Child:
        """Start `heedful COMMAND` for a folder, unless one that was started for it still runs."""
        with self.lock:
            before = self.known.get(name)
            if before is not None and before.runs:
                raise UserError(f"{name}: a command that was started here is still at work")
            stem = self.stem(name)
            log = stem.with_suffix(".txt")
            try:
                self.place.mkdir(parents=True, exist_ok=True)
                if not self.place.resolve().is_relative_to(self.folder.root):
                    raise UserError(f"{PLACE} is a link that leads out of the studio's folder; remove it")
                with log.open("wb") as output:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "heedful", *command],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"},
                        start_new_session=True,  # what ends the studio does not end it
                    )
            except OSError as error:
                raise UserError(f"the command could not be started: {error.strerror}") from None
            self.started[name] = process
            threading.Thread(target=process.wait, daemon=True).start()  # so that it does not stay as a zombie
            child = Child(
                name,
                tuple(command),
                process_name(process.pid),
                time.time(),
                self.folder.name(log),
            )
            write_json(stem.with_suffix(".json"), child)
            self.known[name] = child
            return child

    def stem(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()[:12]
        return self.place / f"{slug(name)}-{digest}"

    def read_all(self) -> list[Child]:
        """Return the last command of each folder, the newest first."""
        children = []
        for file in self.place.glob("*.json") if self.place.is_dir() else ():
            try:
                child = read_record(Child, file)
                inside = (self.folder.root / child.name).resolve().is_relative_to(self.folder.root)
            except (UserError, OSError, ValueError):
                continue
            children += [child] if inside else []
        return sorted(children, key=lambda child: -child.started)

    def find_failure(self, name: str) -> str:
        """Return the last line of a command of this studio that has failed; "" for all others."""
        process = self.started.get(name)
        if process is None or process.poll() in (None, 0, *STOPPED):
            return ""
        return next(iter(self.read_log(self.known[name])[::-1]), f"it ended with status {process.poll()}")

    def read_log(self, child: Child) -> list[str]:
        """Return the last lines that a command has printed."""
        path = self.stem(child.name).with_suffix(".txt")
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TAIL_BYTES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return []
        return [one_line(line.removeprefix("heedful: ")) for line in lines if line.strip()]
