"""The training process of `heedful solve`, in the process of the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from heedful.solve import plan, runner, worker
from heedful.training import precision
from heedful.training.build import settings


class WorkerInThisProcess:
    """Stands for the training process; what it does not answer in time is decided by the test."""

    failing: ClassVar[dict[str, BaseException | dict[str, str]]] = {}

    def __init__(self, log: Path, threads: int | None) -> None:
        self.startup, self.asked = 0.0, list[str]()

    def start(self) -> None:
        pass

    def stop(self, patience: float = 0.0) -> None:
        pass

    def get_ready(self, limit: float, look: Callable[[], None] = lambda: None) -> None:
        pass

    def ask(self, limit: float, look: Callable[[], None] = lambda: None, /, **request: Any) -> dict[str, Any]:
        look()
        request = json.loads(json.dumps(request, default=str))
        name = Path(request.get("options", {}).get("out", "test")).name
        self.asked.append(name)
        answer = self.failing.get(name)
        if isinstance(answer, BaseException):
            raise answer
        return answer or worker.handle(request)

    def __enter__(self) -> WorkerInThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def use_worker(monkeypatch: pytest.MonkeyPatch) -> type[WorkerInThisProcess]:
    """Solve in this process, with next to no measuring and little training."""
    monkeypatch.setattr(runner, "TrainingProcess", WorkerInThisProcess)
    monkeypatch.setattr(WorkerInThisProcess, "failing", {})
    monkeypatch.setattr(worker, "PILOT_SECONDS", 0.05)
    monkeypatch.setattr(precision, "measure_precision", lambda device: {"failed": "is not measured here"})
    monkeypatch.setattr(settings, "LEAST_STEPS", 12)
    monkeypatch.setattr(plan, "LEAST_DEV", 10)
    return WorkerInThisProcess
