"""A real Slurm of two nodes, each a slurmd with a host name and a network of its own; one of them loses power."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from places import LOCAL_SLURM, ON, SEARCH, TRAIN, Place, ask, restarts, study_traces, take_all_cores, traces

from heedful.runs.directory import Run
from heedful.runs.studies import StudyFolder
from heedful.training import checkpoint

pytestmark = [pytest.mark.needs("slurm of two nodes (root, iproute2)"), pytest.mark.usefixtures("nodes")]
TWO_NODES = [*ON, "--nodes", "2"]
LAST_STEP = 31
RECORD = """
import json, os, time
from pathlib import Path
from heedful.training import loop, resume

resume.TTL_SECONDS = 6.0
folder, step = Path({folder!r}), loop.Loop.step

def peers():
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    remote = [bytes.fromhex(row[2][:8])[::-1] for row in rows if row[3] == "01"]
    return sorted({{".".join(map(str, address)) for address in remote}})

def record(self, number):
    while number >= 10 and (folder / "hold").exists():
        time.sleep(0.05)
    done = step(self, number)
    row = dict(host=os.uname().nodename, rank=self.ranks.rank, size=self.ranks.size, step=number,
               local=self.ranks.local_rank, run=self.run.path.name, peers=peers())
    with (folder / "steps.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\\n")
    return done

loop.Loop.step = record
"""
"""Put before each process of a job: steps are recorded, and from the tenth on they wait while a file is there."""


def control(folder: Path, *words: str) -> None:
    subprocess.run([*LOCAL_SLURM, *words, "--folder", str(folder)], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Path]:
    """The folder of a cluster of two nodes; Slurm's commands speak to it, until the module's tests are over."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    begin = [
        *LOCAL_SLURM,
        "start",
        "--nodes",
        "2",
        "--cpus",
        "4",
        "--folder",
        str(folder),
        "--with",
        str(os.getpid()),
    ]
    with pytest.MonkeyPatch.context() as patch:
        subprocess.run(begin, check=True, stdout=subprocess.DEVNULL, preexec_fn=take_all_cores)
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            yield folder
        finally:
            control(folder, "stop")


@dataclass
class Recorder:
    """What the steps of jobs record, and the file that holds them up."""

    folder: Path

    @property
    def setup(self) -> list[str]:
        return ["--setup", f"export PYTHONPATH='{self.folder}':\"$PYTHONPATH\""]

    @property
    def hold(self) -> Path:
        return self.folder / "hold"

    def steps(self, run: Path) -> list[dict[str, Any]]:
        file = self.folder / "steps.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
        return [row for row in rows if row["run"] == run.name]


@pytest.fixture(scope="module")
def recorder(place: Place) -> Recorder:
    folder = place.path / "recorder"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(RECORD.format(folder=str(folder)))
    return Recorder(folder)


@pytest.fixture(autouse=True)
def _here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.path)


def wait_until(condition: Callable[[], object], what: str, seconds: float = 150) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"{what}: not after {seconds} s"
        time.sleep(0.2)


def submit(folder: Path, *words: str) -> str:
    """Give a command in this folder, and return the number of its job."""
    from heedful.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*words]) == 0
    out = folder / words[words.index("--out") + 1]
    return str(json.loads((out / ("jobs" if words[0] == "study" else "") / "job.json").read_text())["job"])


@pytest.fixture(scope="module")
def undisturbed(nodes: Path, place: Place, recorder: Recorder) -> tuple[Path, Path]:
    """Two runs of four processes, on both nodes and on one."""
    what = ["adapt", "model", "task", *TRAIN, *recorder.setup]
    submit(place.path, *what, *TWO_NODES, "--processes", "4", "--out", "both-nodes")
    alone = ["--on", "slurm", "--cpus", "4", "--processes", "4", "--threads", "1"]
    submit(place.path, *what, *alone, "--out", "one-node")
    both, one = place.path / "both-nodes", place.path / "one-node"
    for out in (both, one):
        wait_until((out / "ended.json").is_file, f"the end of {out}")
        assert (out / "results.json").is_file(), (out / "log.txt").read_text()
    return both, one


@dataclass
class Disturbed:
    """A run on both nodes and a study with a worker on each, in whose middle the second node lost its power."""

    run: Path
    job: str
    study: Path
    array: str


@pytest.fixture(scope="module")
def disturbed(nodes: Path, place: Place, recorder: Recorder) -> Iterator[Disturbed]:
    recorder.hold.touch()
    what = ["model", "task", *recorder.setup]
    job = submit(place.path, "adapt", *what, *TRAIN, *TWO_NODES, "--out", "run")
    search = [*what, *SEARCH, *ON, "--max-parallel", "2"]
    array = submit(place.path, "study", "search", *search, "--out", "two-node-study")
    made = Disturbed(place.path / "run", job, place.path / "two-node-study", array)
    folders = [made.run, *(outcome.folder for outcome in StudyFolder.open(made.study).read_outcomes())]
    wait_until(
        lambda: all(len(recorder.steps(f)) >= 10 and checkpoint.steps(Run(f)) for f in folders),
        "the middle of all three runs",
    )
    control(nodes, "power-off", "n2")
    recorder.hold.unlink()
    yield made
    ask("scancel", job, array)


def test_a_run_on_two_nodes_gives_the_bits_of_as_many_processes_on_one(
    undisturbed: tuple[Path, Path], nodes: Path, recorder: Recorder
) -> None:
    both, one = undisturbed
    ranks = {(row["rank"], row["host"], row["local"], row["size"]) for row in recorder.steps(both)}
    assert ranks == {(0, "n1", 0, 4), (1, "n1", 1, 4), (2, "n2", 0, 4), (3, "n2", 1, 4)}
    assert len({row["host"] for row in recorder.steps(one)}) == 1
    addresses = dict(line.split() for line in ask("sinfo", "-hN", "-o", "%n %o").splitlines())
    for row in recorder.steps(both):  # gloo uses the cable
        assert addresses["n2" if row["host"] == "n1" else "n1"] in row["peers"]
    assert traces(both) == traces(one)


def test_a_study_goes_on_without_the_node_that_lost_its_power(
    disturbed: Disturbed, place: Place, recorder: Recorder, wait_for: Callable[..., Any]
) -> None:
    study = StudyFolder.open(disturbed.study)
    wait_until(lambda: study.concluded, "the study's end")
    outcomes = study.read_outcomes()
    assert [outcome.state for outcome in outcomes] == ["finished", "finished"]
    assert study_traces(disturbed.study) == study_traces(place.whole_study)
    steps = {outcome.name: recorder.steps(outcome.folder) for outcome in outcomes}
    assert {rows[0]["host"] for rows in steps.values()} == {"n1", "n2"}
    (lost,) = (name for name, rows in steps.items() if rows[0]["host"] == "n2")
    for name, rows in steps.items():
        times = Counter(row["step"] for row in rows)
        # From the last checkpoint on, the steps that the dead process had taken are taken again.
        again = {step for step, count in times.items() if count == 2}
        assert set(times) == set(range(LAST_STEP + 1))
        assert max(times.values()) <= 2
        assert again == ({8, 9} if name == lost else set())
        assert rows[-1] == {**rows[-1], "step": LAST_STEP, "host": "n1"}
    assert json.loads((disturbed.study / "leases" / f"{lost}.deaths").read_text()) == {"deaths": 1}


def test_a_run_on_two_nodes_is_requeued_and_goes_on_when_the_node_is_back(
    disturbed: Disturbed,
    two: Path,
    nodes: Path,
    recorder: Recorder,
    wait_for: Callable[..., Any],
) -> None:
    waiting = wait_for(disturbed.run, "queued", "failed", "stopped", "done")
    assert waiting["state"] == "queued", (disturbed.run / "log.txt").read_text()
    assert restarts(disturbed.job) == 1
    control(nodes, "power-on", "n2")
    job = wait_for(disturbed.run, "done", "failed", "stopped")
    assert job["state"] == "done", (disturbed.run / "log.txt").read_text()
    steps = recorder.steps(disturbed.run)
    times = Counter((row["rank"], row["step"]) for row in steps)
    assert {row["host"] for row in steps[-2:]} == {"n1", "n2"}
    for rank in range(2):
        # None of them on a busy machine, where the time for a checkpoint may come first.
        assert {step for step in range(LAST_STEP + 1) if times[rank, step] == 2} <= {8, 9}
        assert {times[rank, step] for step in range(LAST_STEP + 1)} <= {1, 2}
        assert times[rank, LAST_STEP] == 1
    assert traces(disturbed.run) == traces(two)
    # The worker of the study that was on the dead node begins again and finds nothing left to do.
    assert wait_for(disturbed.study, "done", "failed", "stopped")["state"] == "done"


def test_the_cluster_ends_with_the_process_that_wanted_it() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    with subprocess.Popen(["sleep", "600"]) as wanted:
        control(folder, "start", "--nodes", "2", "--with", str(wanted.pid))
        network = json.loads((folder / "network.json").read_text())
        assert network["bridge"] in ask("ip", "-brief", "link")
        wanted.kill()
    wait_until(lambda: not folder.exists(), "the cluster's end")
    assert network["bridge"] not in ask("ip", "-brief", "link")
    hosts = f"-{network['token']} /etc/hosts "
    assert not [f for f in Path("/proc").glob("[0-9]*/mountinfo") if hosts in read_if_there(f)]


def read_if_there(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
