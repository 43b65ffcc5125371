"""A subject in a sandbox: the child process of a submission, with limits and somebody who watches them."""

from __future__ import annotations

from pathlib import Path

from heedful.course.sandbox import MIB, Sandbox, Watch
from heedful.course.subject import CHUNK, KEPT_OUTPUT, ChildLimits, ChildSubject

IMPORT_SECONDS = 60.0


class SandboxedSubject(ChildSubject):
    """A submission's file in a sandbox of its own; whatever it does, the reason why it ended is kept."""

    def __init__(
        self, file: Path, suite: str, sandbox: Sandbox, call_seconds: float, printed: bytearray
    ) -> None:
        self.sandbox, self.kept = sandbox, printed
        self.printed = 0
        self.watch: Watch | None = None
        limits = sandbox.limits
        super().__init__(
            file,
            suite,
            prefix=sandbox.command([]),
            limits=ChildLimits(min(IMPORT_SECONDS, limits.seconds), call_seconds, limits.seconds),
        )

    def begin_watch(self) -> None:
        """Begin to watch the process."""
        self.watch = Watch(self.process, self.sandbox)
        self.watch.__enter__()

    def drain_output(self) -> None:
        """Read what the code prints; after too much of it the process is stopped."""
        assert self.process.stderr is not None
        most = self.sandbox.limits.output_bytes
        while data := self.process.stderr.read1(CHUNK):  # type: ignore[attr-defined]
            self.printed += len(data)
            self.kept += data[: max(0, KEPT_OUTPUT - len(self.kept))]
            if self.printed > most and self.watch is not None and not self.watch.reason:
                self.watch.stop(f"printed more than {most / MIB:g} MiB")

    def describe_end(self) -> str:
        """Return the limit that was exceeded, or how the process ended."""
        reason = "" if self.watch is None else self.watch.reason
        return f"it {reason} and was stopped" if reason else super().describe_end()

    @property
    def ended(self) -> bool:
        """Whether no more calls work."""
        return self.process.poll() is not None

    def close(self) -> None:
        """End the process, all that it started, and the watch."""
        if self.watch is not None:
            self.watch.kill()
        super().close()
        if self.watch is not None:
            watch, self.watch = self.watch, None
            watch.__exit__(None, None, None)
