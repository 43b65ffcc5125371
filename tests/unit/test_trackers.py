"""Trackers: they get the configuration, every row and the results, and never stop a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics, Results
from heedful.training.trackers import TRACKERS
from heedful.training.train import train_run
from tiny import make_model, make_task


class Recorder:
    """Remembers what it is given; fails at the row of a step if it is told to."""

    def __init__(self, failing_step: int | None = None) -> None:
        self.failing_step, self.calls, self.rows = failing_step, list[str](), list[Metrics]()

    def begin(self, config: Mapping[str, Any]) -> None:
        self.calls.append("begin")
        assert config["adapt"]["lr"] == 5e-3

    def log(self, row: Metrics) -> None:
        self.rows.append(row)
        if self.failing_step is not None:
            raise ConnectionError("no network")

    def end(self, results: Results) -> None:
        self.calls.append("end")
        assert results.splits["dev"].n > 0


@pytest.mark.usefixtures("printed_messages")
def test_a_tracker_follows_a_run_and_one_that_fails_is_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = AdaptOptions(
        model=str(make_model(tmp_path / "model", words=20)), task=str(make_task(tmp_path / "task")), epochs=2,
        batch_size=8, lr=5e-3, max_len=32, precision="float32", threads=1, out=tmp_path / "run",
    )  # fmt: skip
    good, bad = Recorder(), Recorder(failing_step=0)
    train_run(options, [good, bad])
    assert good.calls == ["begin", "end"]
    assert good.rows == Run(tmp_path / "run").read_metrics()
    assert (bad.calls, len(bad.rows)) == (["begin"], 1)
    assert capsys.readouterr().err.count("the tracker Recorder failed and is ignored from now on") == 1
    assert not (tmp_path / "run" / "progress.json").exists()


def test_trackers_are_chosen_by_name() -> None:
    assert "tensorboard" in TRACKERS
    with pytest.raises(UserError, match='tracker "tensorbord"'):
        train_run(AdaptOptions(model="m", task="t", track=("tensorbord",)))
