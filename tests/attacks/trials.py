"""What the attacks share: a server of forked children, and what counts as having withstood an attack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent / "server.py"
GOOD_STATUS = (0, 1, 2, 75)
"""Success, a mistake of the person that is said in one line, and a run that was stopped."""


@dataclass(frozen=True)
class Trial:
    """What became of one attack."""

    statuses: list[int]
    out: str
    err: str
    ended: str
    took: float
    traceback: str = ""

    def fault(self) -> str | None:
        """Return what is wrong with how an attack ended; None if it was withstood."""
        if self.ended != "exit 0":
            return f"ended by {self.ended}"
        if self.traceback:
            return f"raised: {self.traceback[-1500:]}"
        if "Traceback (most recent call last)" in self.err:
            return f"a traceback: {self.err[-1500:]}"
        for status in self.statuses:
            if status not in GOOD_STATUS:
                return f"status {status}: {self.err[-600:]}"
        if 2 in self.statuses and not [x for x in self.err.splitlines() if x.startswith("heedful: ")]:
            return f"status 2 without a line that says why: {self.err[-600:]!r}"
        if (longest := max(map(len, self.err.splitlines()), default=0)) > 5000:
            return f"a line of {longest} characters"
        return None

    @property
    def refused(self) -> bool:
        return 2 in self.statuses


@dataclass
class Trials:
    """A server of forked children."""

    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, SERVER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **self.environment},
            )  # fmt: skip
            assert self.process.stdout is not None
            assert self.process.stdout.readline() == "ready\n"
        return self.process

    def run_batches(
        self, attacks: Sequence[tuple[str, Sequence[Sequence[object]]]], size: int = 25, **limits: Any
    ) -> dict[str, str]:
        """Run many attacks, `size` of them per child, and return what is wrong with those that were not withstood.

        The attacks of a child that fails as a whole are repeated, each in a child of its own.
        """
        faults: dict[str, str] = {}
        for start in range(0, len(attacks), size):
            batch = attacks[start : start + size]
            seconds = float(limits.get("seconds", 20))
            together = self.run(
                *(call for _, calls in batch for call in calls), **{**limits, "seconds": 2 * seconds}
            )
            if together.fault() is None:
                continue
            for name, calls in batch:
                if (fault := self.run(*calls, **limits).fault()) is not None:
                    faults[name] = fault
        return faults

    def run(
        self,
        *calls: Sequence[object],
        seconds: float = 20,
        megabytes: int = 1500,
        kill_after: float | None = None,
        **more: Any,
    ) -> Trial:
        """Run one or several commands in a child; `more` may be its `folder` and its `environment`.

        It may compute for `seconds`, and wait for longer, since the machine may be busy; it is killed after
        `kill_after` seconds, or if it hangs.
        """
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        request = {
            "calls": [[str(a) for a in call] for call in calls],
            "cpu": seconds,
            "seconds": 60 + 6 * seconds if kill_after is None else kill_after,
            "megabytes": megabytes,
        }
        print(json.dumps({**request, **more}), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        made = answer["calls"]
        return Trial(
            [call["status"] for call in made], "".join(c["out"] for c in made), "".join(c["err"] for c in made),
            answer["ended"], answer["took"], answer.get("traceback", ""),
        )  # fmt: skip

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(timeout=30)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None
