"""Leases: which process works on what, without a server, on a shared file system.

A lease on `x` is the file `x.N` with the largest N. To take one that is free or expired is to create `x.N+1`,
which exactly one process can do; nobody ever removes or rewrites the newest file of another. Age is measured
by the file system's own clock, so that machines whose clocks differ agree.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful.errors import UserError
from heedful.runs.files import temporary_path, write_error, write_json
from heedful.runs.json_files import read_record
from heedful.runs.processes import is_gone


@dataclass(frozen=True)
class Holder:
    holder: str
    ttl: float
    released: bool = False


@dataclass
class Lease:
    """A lease this process holds. `refresh` within `ttl` seconds, or let `held` do it."""

    path: Path
    number: int
    holder: str
    ttl: float
    lost: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def claim(cls, path: str | Path, holder: str, ttl: float) -> Lease | None:
        """Take a lease that is free or expired; None if another process holds it or was faster."""
        target = Path(path)
        mine = temporary_path(target)
        try:
            write_json(mine, Holder(holder, ttl))
            newest = newest_number(target)
            if newest and not is_free(target, newest, now=mine.stat().st_mtime):
                return None
            lease = cls(target, newest + 1, holder, ttl)
            link_or_copy(mine, lease.file)  # fails when another process has just done the same
        except FileExistsError:
            return None
        except OSError as error:
            raise write_error(target, error) from None
        finally:
            mine.unlink(missing_ok=True)
        if newest_number(target) != lease.number:  # this process slept between looking and linking
            lease.file.unlink(missing_ok=True)
            return None
        for number in holder_numbers(target):
            if number < lease.number:
                holder_file(target, number).unlink(missing_ok=True)
        return lease

    @property
    def file(self) -> Path:
        return holder_file(self.path, self.number)

    def refresh(self) -> bool:
        """Extend the lease. Return False if it was taken over, in which case work must stop."""
        if not self.lost.is_set():
            try:
                os.utime(self.file)
                held = newest_number(self.path) == self.number
            except FileNotFoundError:
                held = False
            except OSError:  # a file system that is away for a moment is no reason to stop: the ttl decides
                return True
            if not held:
                self.lost.set()
        return not self.lost.is_set()

    def release(self) -> None:
        """Give the lease back, so that others need not wait until it expires."""
        if self.refresh():
            write_json(self.file, Holder(self.holder, self.ttl, released=True))

    @contextmanager
    def held(self) -> Iterator[Lease]:
        """Refresh in the background, three times in each ttl, until the `with` ends; then release.

        `lost` is set when another process has taken over.
        """
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(self.ttl / 3) and self.refresh():
                pass

        heart = threading.Thread(target=beat, name=f"lease {self.path.name}", daemon=True)
        heart.start()
        try:
            yield self
        finally:
            ended.set()
            heart.join()
            with suppress(UserError):
                self.release()


def link_or_copy(source: Path, target: Path) -> None:
    """Create `target` with the content of `source`, unless it exists.

    A link appears complete; a copy, for file systems without links, is for a moment an empty file, which
    nobody takes for a free lease.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):
        with target.open("xb") as copy:
            copy.write(source.read_bytes())


def holder_of(path: str | Path) -> str | None:
    """Return who holds a lease; None if it is free or expired."""
    target = Path(path)
    newest = newest_number(target)
    if not newest:
        return None
    probe = temporary_path(target)
    try:
        probe.touch()
        if is_free(target, newest, now=probe.stat().st_mtime):
            return None
        return read_holder(target, newest).holder
    except OSError as error:
        raise write_error(target, error) from None
    finally:
        probe.unlink(missing_ok=True)


def release_dead(path: Path) -> None:
    """Release a lease whose process has run on this machine and is gone."""
    holder = holder_of(path)
    if holder is not None and is_gone(holder):
        newest = newest_number(path)
        write_json(holder_file(path, newest), replace(read_holder(path, newest), released=True))


def holder_file(path: Path, number: int) -> Path:
    return path.parent / f"{path.name}.{number}"


def holder_numbers(path: Path) -> list[int]:
    form = re.compile(re.escape(path.name) + r"\.(\d+)", re.ASCII)
    return [int(match[1]) for file in path.parent.iterdir() if (match := form.fullmatch(file.name))]


def newest_number(path: Path) -> int:
    """Return the largest number; 0 if nobody has ever held the lease."""
    return max(holder_numbers(path), default=0)


def read_holder(path: Path, number: int) -> Holder:
    return read_record(Holder, holder_file(path, number))


def is_free(path: Path, number: int, *, now: float) -> bool:
    """Whether the newest holder has released the lease or let it expire."""
    try:
        lease = read_holder(path, number)
        return lease.released or now - holder_file(path, number).stat().st_mtime > lease.ttl
    except (UserError, FileNotFoundError):
        return False  # replaced while we looked: somebody else is at it
