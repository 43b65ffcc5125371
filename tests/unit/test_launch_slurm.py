"""What Slurm prints, read; and what becomes of a job, judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.launch.slurm import client, jobs
from heedful.launch.slurm.client import FIELD, RECORD, QueueEntry
from heedful.launch.slurm.monitor import Display, Tail, copy_output, exit_status, summarize_states
from heedful.launch.slurm.records import JobEnd, JobProgress, Submission, write_submission
from heedful.runs.files import write_json


def queued(*records: tuple[str, ...]) -> str:
    return "".join(RECORD + FIELD.join(record) + "\n" for record in records)


def test_squeue_is_read_whatever_a_path_holds() -> None:
    command = "/a b|\n\t;'/submit.sh"
    found = client.parse_queue(
        queued(
            ("12", "N/A", "PENDING", "Resources", "0:00", "1:00:00", "main", "", command),
            ("13", "2", "RUNNING", "None", "1-02:03:04", "UNLIMITED", "main", "n1", "/x/submit.sh"),
        )
    )
    assert found[0] == QueueEntry("12", None, "PENDING", "Resources", "0:00", "1:00:00", "main", "", command)
    assert (found[1].job, found[1].task, found[1].reason) == ("13", 2, "")
    assert client.parse_queue("") == []
    with pytest.raises(UserError, match="not what was asked for"):
        client.parse_queue(RECORD + "12\n")


def test_sacct_is_read_with_its_statuses() -> None:
    text = "12|COMPLETED|0:0|00:01:00\n13_4|CANCELLED by 1000|0:15|00:00:09\n14|OUT_OF_MEMORY|0:125|00:00:01\n13_[5-9]|PENDING|0:0|0\n"
    found = client.parse_accounting(text + "12.batch\n\n")
    assert [(k.job, k.task, k.state, k.exit_status) for k in found] == [
        ("12", None, "COMPLETED", 0),
        ("13", 4, "CANCELLED", 128 + 15),
        ("14", None, "OUT_OF_MEMORY", 128 + 125),
        ("13", None, "PENDING", 0),
    ]


NODE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=32 CPUAlloc=24 CPUEfctv=64 CPUTot=64 CPULoad=1.2 "
    "Gres=gpu:a100:4(S:0-1),nic:2,gpu:h100:1 GresUsed=gpu:a100:3(IDX:0-2),gpu:h100:0(IDX:N/A),nic:0 "
    "OS=Linux 6.1 #1 SMP State=FAKE RealMemory=512000 AllocMem=256000 FreeMem=1 "
)


def test_nodes_are_read_with_what_is_free() -> None:
    line = (
        NODE.replace("State=FAKE ", "") + "State=MIXED ThreadsPerCore=1 Partitions=gpu,long  AllocTRES=cpu=24"
    )
    (node,) = client.parse_nodes(line + "\n")
    assert (node.name, node.state, node.partitions) == ("n1", "mixed", "gpu,long")
    assert (node.cpus, node.cpus_free) == (64, 40)
    assert (node.memory_gb, node.memory_free_gb) == (500.0, 250.0)
    assert (node.gpus, node.gpus_free, node.gpu_types) == (5, 2, "a100,h100")


@pytest.mark.parametrize("state", ["DOWN*", "IDLE+DRAIN", "DOWN+NOT_RESPONDING", "DRAINED"])
def test_nothing_is_free_on_a_node_that_takes_no_jobs(state: str) -> None:
    line = (
        NODE.replace("State=FAKE ", f"State={state} ")
        + "Partitions=gpu Reason=bad disk, ask Ada [root@2026-01-01T00:00:00]"
    )
    (node,) = client.parse_nodes(line)
    assert (node.cpus_free, node.memory_free_gb, node.gpus_free) == (0, 0.0, 0)
    assert node.reason == "bad disk, ask Ada"


@pytest.mark.parametrize(("gres", "count"), [
    ("", (0, "")), ("gpu:2", (2, "")), ("gpu:tesla-v100:8(S:0)", (8, "tesla-v100")), ("shard:4,gpu:1", (1, "")),
    ("gpu:1g.5gb:7", (7, "1g.5gb")),
])  # fmt: skip
def test_gpus_are_counted(gres: str, count: tuple[int, str]) -> None:
    assert client.count_gpus(gres) == count


def known(state: str, **more: object) -> QueueEntry:
    return QueueEntry("12", None, state, **more)  # type: ignore[arg-type]


STOPPED = JobEnd("12", 75, "stopped by SIGUSR1 after step 3")


@pytest.mark.parametrize(("entry", "ended", "finished", "said"), [
    (known("PENDING", reason="Priority"), None, False, ("queued", "Priority")),
    (known("PENDING", reason="BeginTime"), JobEnd("12", 75, "x", requeued=True), False, ("queued", "requeued: BeginTime")),
    (known("RUNNING"), None, False, ("running", "")),
    (known("RUNNING"), STOPPED, False, ("running", "")),  # begun again, before the command says so
    (known("COMPLETING"), JobEnd("12", 0), True, ("done", "")),
    (known("COMPLETING"), JobEnd("12", 2, "no such file"), False, ("failed", "no such file")),
    (known("CANCELLED"), STOPPED, False, ("cancelled", "stopped by SIGUSR1 after step 3")),
    (known("CANCELLED"), None, False, ("cancelled", "")),
    (known("FAILED"), STOPPED, False, ("stopped", "stopped by SIGUSR1 after step 3")),
    (known("TIMEOUT"), None, False, ("failed", "the time limit was over")),
    (known("OUT_OF_MEMORY"), None, False, ("failed", "more memory than it was given; --mem-gb gives more")),
    (known("FAILED", exit_status=7), None, False, ("failed", "status 7: the last line")),
    (known("COMPLETED"), None, False, ("done", "")),
    (None, JobEnd("12", 0), True, ("done", "")),
    (None, None, True, ("done", "")),
    (None, None, False, ("failed", "the last line")),
])  # fmt: skip
def test_a_job_is_judged_by_its_own_word_and_by_slurm(
    entry: QueueEntry | None, ended: JobEnd | None, finished: bool, said: tuple[str, str]
) -> None:
    assert jobs.decide_state(entry, ended, finished, "the last line") == said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs" / "a"
    made.mkdir(parents=True)
    write_submission(made, Submission("12", ("heedful",), "/", "2026-01-01", log_bytes=(4,)))
    return made


def test_progress_is_the_last_count_of_this_job_alone(folder: Path) -> None:
    (folder / "log.txt").write_text(
        "old\ntraining (steps): 7 of 96 after 20 s, loss 0.3\nheedful: \x1b[31mhm\n"
    )
    count = JobProgress("training (steps)", 7, 96, 20.0, "loss 0.3", ("training (steps)",))
    write_json(folder / "progress.json", count)
    job = jobs.job_state(folder, jobs.read_submission(folder), [known("RUNNING", elapsed="0:21")])  # type: ignore[arg-type]
    assert job.tasks[0].progress == "training (steps) 7 of 96, loss 0.3"
    assert job.tasks[0].elapsed == "0:21"
    gone = jobs.job_state(folder, jobs.read_submission(folder), [])  # type: ignore[arg-type]
    assert (gone.state, gone.tasks[0].reason) == ("failed", r"\x1b[31mhm")
    with (folder / "log.txt").open("a") as log:
        log.write("training (steps): 8 of 96 after 30 s, loss 0.2\n")
    again = jobs.job_state(folder, jobs.read_submission(folder), [])  # type: ignore[arg-type]
    assert again.tasks[0].reason == r"\x1b[31mhm"
    (folder / "log.txt").write_text("old\n")
    assert (
        jobs.job_state(folder, jobs.read_submission(folder), [])
        .tasks[0]
        .reason.startswith("it left no message")
    )  # type: ignore[arg-type]


def test_another_jobs_word_is_not_this_jobs(folder: Path) -> None:
    write_json(folder / "ended.json", JobEnd("11", 0))
    assert jobs.job_state(folder, jobs.read_submission(folder), []).state == "failed"  # type: ignore[arg-type]
    write_json(folder / "ended.json", JobEnd("12", 0))
    assert jobs.job_state(folder, jobs.read_submission(folder), []).state == "done"  # type: ignore[arg-type]


def test_jobs_are_found_below_folders_but_not_in_checkpoints(folder: Path, tmp_path: Path) -> None:
    for hidden in ("checkpoints", "best", ".x"):
        (folder / hidden).mkdir()
        (folder / hidden / "job.json").write_text("{}")
    assert jobs.find_folders([tmp_path]) == [folder]
    with pytest.raises(UserError, match="no such folder"):
        jobs.find_folders([tmp_path / "none"])
    assert jobs.active_jobs(tmp_path, [known("RUNNING")]) == ["12"]
    with pytest.raises(UserError, match="job 12 is over"):
        jobs.active_jobs(tmp_path, [known("FAILED")])
    (tmp_path / "runs" / "b").mkdir()
    with pytest.raises(UserError, match="holds no job"):
        jobs.active_jobs(tmp_path / "runs" / "b", [])


def test_a_damaged_note_is_one_line(folder: Path) -> None:
    (folder / "job.json").write_text('{"job": 12}')
    with pytest.raises(UserError, match=r"job\.json: field"):
        jobs.read_submission(folder)


@pytest.mark.usefixtures("printed_messages")
def test_a_log_is_followed_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Tail(tmp_path / "log.txt", 4, "")
    assert log.new_lines() == []
    (tmp_path / "log.txt").write_bytes(b"old\none\ntw")
    assert log.new_lines() == ["one"]
    with (tmp_path / "log.txt").open("ab") as file:
        file.write(b"o\n\xff\x1b\n")
    lines = log.new_lines()
    assert lines == ["two", "�\x1b"]
    display = Display()
    for line in [*lines, "training (steps): 7 of 96 after 20 s, loss 0.3"]:
        display.show_line(line, JobProgress("training (steps)", 7, 96, labels=("training (steps)",)))
    assert capsys.readouterr().err == "two\n�\\x1b\ntraining (steps): 7 of 96 after 20 s, loss 0.3\n"
    (tmp_path / "out.txt").write_text('old\n{"a": 1}\n')
    copy_output(tmp_path / "out.txt", 4)
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_progress_of_a_log_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    display = Display()
    count = JobProgress("training (steps)", 1007, 2096, 20.0, "loss 0.3", ("training (steps)",))
    display.show_progress(count)
    display.show_line("training (steps): 1,007 of 2,096 after 20 s, loss 0.3", count)
    assert display.shown is not None
    assert (display.shown.done, display.shown.total) == (1007, 2096)
    display.show_progress(replace(count, done=1017))
    assert display.shown.done == 1017
    display.close()


def test_an_array_is_as_its_tasks_are() -> None:
    tasks = tuple(
        jobs.TaskState(i, s, status=c) for i, (s, c) in enumerate([("done", 0), ("failed", 3), ("done", 0)])
    )
    job = jobs.SlurmJob("12", Path("/x"), Submission("12", (), "/", "", 3), tasks)
    assert (job.state, job.over, exit_status(job), summarize_states(job)) == (
        "failed",
        True,
        3,
        "2 done, 1 failed",
    )
    alive = jobs.SlurmJob("12", Path("/x"), job.submitted, (*tasks, jobs.TaskState(3, "queued")))
    assert (alive.state, alive.over) == ("queued", False)


def test_a_machine_without_slurm_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (client.read_queue, client.read_nodes, lambda: client.sbatch("submit.sh", tmp_path)):
        with pytest.raises(client.NoSlurmError, match="Slurm is not installed here"):
            ask()
    assert client.read_accounting(["12"]) == []


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Put a shell script in the place of one of Slurm's commands, for what a real one says seldom."""

    def make(name: str, body: str) -> None:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return make


def test_slurms_errors_are_one_line(pretend: Callable[[str, str], None]) -> None:
    pretend("squeue", "echo 'squeue: error: one' >&2; echo 'squeue: fatal: two' >&2; exit 1")
    with pytest.raises(client.SlurmError, match=r"^squeue: one; two$"):
        client.read_queue()
    pretend("sbatch", "echo '77;cluster'")
    assert client.sbatch("submit.sh", Path("/")) == "77"
    pretend("sbatch", "echo 'welcome!'")
    with pytest.raises(client.SlurmError, match='printed "welcome!", not a job number'):
        client.sbatch("submit.sh", Path("/"))


def test_the_accounting_adds_to_what_the_queue_forgot(
    pretend: Callable[[str, str], None], folder: Path, tmp_path: Path
) -> None:
    pretend("squeue", "exit 0")
    pretend("sacct", "echo '12|TIMEOUT|0:0|01:00:00'")
    (job,), trouble = jobs.find_jobs([tmp_path / "runs"])
    assert trouble is None
    assert (job.state, job.tasks[0].reason) == ("failed", "the time limit was over")


@pytest.mark.parametrize(("said", "line"), [
    ("sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
     "sinfo: fatal: Could not establish a configuration source", "this machine belongs to no Slurm cluster"),
    ("sinfo: fatal: Unable to process configuration file", "SLURM_CONF names no configuration"),
    ("slurm_load_node: Unable to contact slurm controller (connect failure)", "controller does not answer"),
])  # fmt: skip
def test_without_a_cluster_the_line_names_a_remedy(said: str, line: str, tmp_path: Path) -> None:
    program = tmp_path / "sinfo"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(client.SlurmError, match=line) as error:
        client.run_slurm_command([str(program)])
    assert "log in to a node of a cluster, or set SLURM_CONF; scripts/local-slurm starts" in str(error.value)
    assert "res_nsearch" not in str(error.value)
    assert "\n" not in str(error.value)
