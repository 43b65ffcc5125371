"""Several processes: which one this is, how many there are to be, and what is told when one has ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.launch import processes
from heedful.launch.rank_environment import detect_ranks, tasks_by_node
from heedful.launch.slurm import batch_job
from heedful.launch.slurm.script import Batch, batch_script, count_tasks
from heedful.options.launch import TrainLaunchOptions
from heedful.options.training import AdaptOptions
from heedful.training.ranks import LostError, Ranks
from heedful.training.signals import StoppedError
from heedful.training.train import train_run

TASK = {
    "SLURM_JOB_ID": "70123", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5", "SLURM_PROCID": "4",
    "SLURM_LOCALID": "0", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
    "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_NODELIST": "n[1-3]",
}  # fmt: skip


def test_slurm_tells_each_task_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "heedful.launch.slurm.client.run_slurm_command",
        lambda words: (asked.append(words), "n1\nn2\nn3\n")[1],
    )
    known = dict(TASK)
    assert detect_ranks(known) == Ranks(rank=4, size=5, local_rank=0, local_size=1)
    assert asked == [["scontrol", "show", "hostnames", "n[1-3]"]]
    assert (known["MASTER_ADDR"], known["MASTER_PORT"]) == ("n1", "20123")
    one_node = {**TASK, "SLURM_STEP_NUM_NODES": "1", "SLURM_CPUS_PER_TASK": "3"}
    place = detect_ranks(one_node)
    assert place is not None
    assert (place.threads, one_node["MASTER_ADDR"]) == (3, "127.0.0.1")
    assert tasks_by_node("4(x2),1,2") == [4, 4, 1, 2]


def test_a_batch_script_and_a_single_task_are_no_place_among_several() -> None:
    script = {name: value for name, value in TASK.items() if "STEP" not in name} | {"SLURM_NTASKS": "5"}
    assert detect_ranks(script) is None
    assert detect_ranks({**TASK, "SLURM_STEP_NUM_TASKS": "1"}) is None


def test_cores_are_shared_by_the_processes_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.training.ranks.usable_cores", lambda: 7)
    assert [Ranks(local_size=n).threads for n in (1, 2, 3, 9)] == [7, 3, 2, 1]


def test_without_a_launcher_one_process_agrees_with_itself() -> None:
    alone = Ranks()
    alone.barrier()
    with alone.first_process_first():
        assert alone.broadcast("x") == "x"
    assert alone.maximum([1, 0]) == [1, 0]
    assert alone.sum([[1.5], [2.0]]) == [[1.5], [2.0]]


@pytest.mark.parametrize(("options", "processes", "number"), [
    ({}, 4, 1),
    ({"nodes": 2}, None, 2),
    ({"nodes": 2, "gpus": "a100:4"}, None, 8),
    ({"nodes": 2, "gpus": "4"}, 4, 4),
    ({"slurm": ("ntasks=3",)}, None, 3),
    ({"slurm": ("nodes=2", "ntasks-per-node=3")}, 6, 6),
])  # fmt: skip
def test_srun_starts_the_processes_of_several_tasks_or_nodes(
    options: dict[str, Any], processes: int | None, number: int
) -> None:
    assert count_tasks(TrainLaunchOptions(**options), processes) == number


@pytest.mark.parametrize(("options", "processes", "line"), [
    ({"slurm": ("ntasks=3",)}, 2, "--processes 2: the job has 3 tasks"),
    ({"nodes": 2}, 3, "--processes 3: cannot be shared by 2 nodes"),
    ({"slurm": ("nodes=2-4",)}, None, "--slurm nodes=2-4: is not a number"),
])  # fmt: skip
def test_tasks_that_do_not_add_up_are_refused(
    options: dict[str, Any], processes: int | None, line: str
) -> None:
    with pytest.raises(UserError, match=line):
        count_tasks(TrainLaunchOptions(**options), processes)


def test_the_script_of_several_tasks_ends_in_srun_and_the_signal_goes_to_them() -> None:
    options = TrainLaunchOptions(nodes=2, gpus="2", cpus=3)
    script = batch_script(Batch(("heedful", "a b"), Path("/f"), Path("/"), "x", tasks=4), options)
    assert script.splitlines()[-1] == "exec srun --kill-on-bad-exit=1 --cpus-per-task=3 heedful 'a b'"
    told = set(script.splitlines())
    wanted = ("nodes=2", "ntasks=4", "ntasks-per-node=2", "cpus-per-task=3", "gres=gpu:2", "signal=USR1@90")
    assert {f"#SBATCH --{text}" for text in wanted} <= told
    own = replace(options, slurm=("ntasks-per-node=3", "ntasks=6"))
    script = batch_script(Batch(("heedful",), Path("/f"), Path("/"), "x", tasks=6), own)
    assert [line for line in script.splitlines() if "ntasks-per-node" in line] == [
        "#SBATCH --ntasks-per-node=3"
    ]


def test_of_several_tasks_the_first_alone_speaks_for_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requeued: list[str] = []
    monkeypatch.setattr("heedful.launch.slurm.client.requeue", requeued.append)
    job = {"SLURM_JOB_ID": "41", "HEEDFUL_MAX_REQUEUES": "2", "SLURM_STEP_NUM_TASKS": "2"}
    stop = StoppedError("stopped", signal.SIGUSR1)
    second = batch_job.BatchJob(str(tmp_path), {**job, "SLURM_PROCID": "1"})
    assert second.run(lambda: (75, stop)) == 0  # else srun would end the first
    assert second.run(lambda: (2, UserError("no"))) == 2
    assert not (tmp_path / "ended.json").exists()
    first = batch_job.BatchJob(str(tmp_path), {**job, "SLURM_PROCID": "0"})
    assert first.run(lambda: (75, stop)) == 75
    assert requeued == ["41"]
    assert json.loads((tmp_path / "ended.json").read_text())["requeued"]


LOST = {"kind": "lost", "message": "another process of this run is gone"}
DONE = {"kind": "done"}
ENDS: dict[str, tuple[list[dict[str, Any]], dict[int, int], list[signal.Signals], type[BaseException], str]] = {
    "killed": ([LOST, {}], {0: 1, 1: -9}, [], LostError, "process 2 of 2 was ended by SIGKILL .*; KEPT"),
    "first killed": ([{}, LOST], {0: -9, 1: 1}, [], LostError, "process 1 of 2 was ended by SIGKILL"),
    "failed": ([LOST, {"kind": "failure", "message": "E: x"}], {0: 1, 1: 1}, [], LostError,
               "process 2 of 2 failed: E: x; KEPT"),
    "mistake": ([{"kind": "mistake", "message": "no such task"}, {}], {0: 1, 1: -15}, [], UserError, "no such task"),
    "stopped": ([{"kind": "stopped", "message": "stopped by SIGUSR1 after step 3", "by": "SIGUSR1"}, LOST],
                {1: 1}, [signal.SIGUSR1], StoppedError, "after step 3"),
    "early": ([{}, {}], {0: -15, 1: -15}, [signal.SIGTERM], StoppedError, "stopped by SIGTERM"),
    "Ctrl-C": ([{}, {}], {0: -2, 1: -2}, [signal.SIGINT], KeyboardInterrupt, "^$"),
    "lost": ([LOST, LOST], {0: 1, 1: 1}, [], LostError, "another process of this run is gone; KEPT"),
    "silent": ([{}, DONE], {0: 3}, [], LostError, "process 1 of 2 ended with status 3; KEPT"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_of_several_reasons_the_first_cause_is_told(name: str) -> None:
    reports, codes, asked, kind, line = ENDS[name]
    with pytest.raises(kind, match=line) as told:
        processes.raise_failure(dict(enumerate(reports)), codes, asked, 2, lambda: "KEPT")
    if isinstance(told.value, UserError):
        assert told.value.status == {UserError: 2, StoppedError: 75, LostError: 70}[kind]


def test_a_good_end_is_told_by_the_run() -> None:
    processes.raise_failure({0: DONE, 1: DONE}, {}, [], 2, lambda: "KEPT")


def test_how_many_processes_is_settled_before_anything_is_loaded(
    heedful: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = AdaptOptions(model="m", task="t", device="cpu")
    assert processes.count_processes(options) == 1
    assert processes.count_processes(replace(options, processes=3)) == 3
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert processes.count_processes(replace(options, device="auto")) == 4
    assert processes.count_processes(replace(options, device="cuda:1")) == 1
    assert processes.count_processes(options) == 1
    for given_, line in (
        ({"device": "auto", "processes": 5}, "--processes 5: there are 4 GPUs here"),
        ({"device": "cuda:1", "processes": 2}, "--processes 2: cuda:1 is one GPU"),
        ({"processes": 0}, "--processes 0: must be at least 1"),
    ):
        with pytest.raises(UserError, match=line):
            processes.count_processes(replace(options, **given_))
    (tmp_path / "config.toml").write_text('command = "adapt"\n[adapt]\nprocesses = 2\n')
    begun = replace(options, out=tmp_path, resume=True)
    assert processes.count_processes(begun) == 2
    assert processes.count_processes(replace(begun, processes=1)) == 1


def test_a_run_inside_another_command_has_one_process() -> None:
    with pytest.raises(UserError, match="--processes 2: here it is 1"):
        train_run(AdaptOptions(model="m", task="t", processes=2))
