"""A real Slurm of one node, begun by scripts/local-slurm, with a tiny model and task to train on it."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from places import LOCAL_SLURM, ON, SEARCH, TRAIN, Early, Place, take_all_cores

from tiny import make_model, make_task


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The cluster's folder; Slurm's commands speak to it."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    begun = [*LOCAL_SLURM, "start", "--folder", folder, "--cpus", "8", "--gpus", "2"]
    with pytest.MonkeyPatch.context() as patch:
        subprocess.run(begun, check=True, stdout=subprocess.DEVNULL, preexec_fn=take_all_cores)
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            yield folder
        finally:
            subprocess.run([*LOCAL_SLURM, "stop", "--folder", folder], check=True)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where commands are given."""
    from heedful.cli import main

    path = tmp_path_factory.mktemp("place")
    make_model(path / "model", words=20)
    make_task(path / "task")
    made = Place(path, path / "whole", path / "whole-study")
    what = [str(path / "model"), str(path / "task")]
    assert main(["adapt", *what, *TRAIN, "--threads", "1", "--out", str(made.whole)]) == 0
    alone = ["--threads", "1", "--jobs", "0", "--out", str(made.whole_study)]
    assert main(["study", "search", *what, *SEARCH, *alone]) == 0
    return made


@pytest.fixture(scope="session")
def two(place: Place) -> Path:
    """A run of two processes, made here without a stop."""
    from heedful.cli import main

    out = place.path / "two"
    what = [str(place.path / "model"), str(place.path / "task")]
    assert main(["adapt", *what, *TRAIN, "--threads", "1", "--processes", "2", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def early(cluster: Path, place: Place) -> Early:
    """Begin what will hit its limit: a run, one that may not go on, and a study of two workers."""
    from heedful.cli import main

    made = Early(place.path / "requeued", place.path / "stopped", place.path / "study")
    limit = [*ON, *place.slow(3), "--time-min", "1", "--slurm", "signal=B:USR1@5", "--max-requeues"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place.path)
        for out, requeues in ((made.requeued, "9"), (made.stopped, "0")):
            assert main(["adapt", "model", "task", *TRAIN, *limit, requeues, "--out", str(out)]) == 0
        study = ["study", "search", "model", "task", *SEARCH, *limit, "9", "--max-parallel", "2"]
        assert main([*study, "--out", str(made.study)]) == 0
    return made


@pytest.fixture
def jobs(heedful: Callable[..., Any]) -> Callable[[Path], dict[str, Any]]:
    """What `heedful jobs` says of a folder's job."""

    def look(folder: Path) -> dict[str, Any]:
        done = heedful("jobs", folder, "--json")
        assert done.status == 0, done.err
        (job,) = json.loads(done.out)
        return dict(job)

    return look


@pytest.fixture
def wait_for(jobs: Callable[[Path], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Until a job is in one of the states named."""

    def wait(folder: Path, *states: str, seconds: float = 200) -> dict[str, Any]:
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            job = jobs(folder)
            if job["state"] in states:
                return job
            time.sleep(1)
        raise AssertionError(f"not {states}: {job}")

    return wait
