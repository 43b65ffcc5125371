"""The batch script: what bash reads from it is what went in, whatever that holds."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.launch.site import fill_from_table
from heedful.launch.slurm.options import refuse_impossible
from heedful.launch.slurm.script import Batch, batch_script, signal_seconds
from heedful.launch.slurm.submission import prepare_job
from heedful.options.launch import LaunchOptions, RunLaunchOptions, StudyLaunchOptions

HOSTILE = st.text(st.sampled_from(list(" \t\n'\"$`;&|<>(){}[]*?!#~\\%=-abé\udcff\x1b")), max_size=30)
WORD = st.one_of(
    HOSTILE, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
)
NAME = WORD.map(lambda text: text.replace("/", "_")).filter(
    lambda t: t not in ("", ".", "..") and len(os.fsencode(t)) < 200
)


def bash(script: str, cwd: str | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "--norc"], input=os.fsencode(script), capture_output=True, check=False, cwd=cwd
    )


@settings(max_examples=80, deadline=None)
@given(words=st.lists(WORD, max_size=4), cwd=NAME, folder=NAME, line=HOSTILE)
def test_bash_reads_words_and_folders_as_they_were(
    words: list[str], cwd: str, folder: str, line: str
) -> None:
    with tempfile.TemporaryDirectory() as root:
        place = Path(root) / cwd
        place.mkdir()
        show = ("printf", "%s\\0", "--", *words)
        batch = Batch(
            ("bash", "-c", 'pwd -P; printf "%s\\0" "$HEEDFUL_JOB" "$@"', *show[2:]),
            Path("/f") / folder,
            place,
            folder,
        )
        options = RunLaunchOptions(setup=(f": {shlex.quote(line)}",))
        done = bash(batch_script(batch, options))
    assert done.returncode == 0, done.stderr
    said = os.fsdecode(done.stdout)
    assert said == f"{place.resolve()}\n" + "".join(f"{text}\0" for text in (f"/f/{folder}", *words))


@settings(max_examples=50, deadline=None)
@given(folder=NAME, words=st.lists(WORD, min_size=1, max_size=3), line=HOSTILE)
def test_slurm_reads_only_lines_that_no_name_or_setup_can_change(
    folder: str, words: list[str], line: str
) -> None:
    def directives(script: str) -> list[str]:
        head = script.split("\n\n")[0].split("\n")  # sbatch stops at the first line that is no comment
        assert all(text.startswith("#") for text in head)
        return [text for text in head if text.startswith("#SBATCH") and "job-name" not in text]

    plain = batch_script(Batch(("true",), Path("/f/x"), Path("/"), "x"), RunLaunchOptions())
    batch = Batch(("true", *words), Path("/f") / folder, Path("/") / folder, folder)
    assert directives(batch_script(batch, RunLaunchOptions(setup=(line,)))) == directives(plain)


@settings(max_examples=50, deadline=None)
@given(line=HOSTILE)
def test_a_setup_line_that_bash_cannot_read_never_reaches_the_command(line: str) -> None:
    with tempfile.TemporaryDirectory() as place:  # such a line may write files where it runs
        script = batch_script(
            Batch(("echo", "reached"), Path("/f"), Path(place), "x"), LaunchOptions(setup=(f"x='{line}",))
        )
        alone = subprocess.run(
            ["bash", "--norc", "-c", f"x='{line}"], capture_output=True, check=False, cwd=place
        )
        assert (b"reached" in bash(script, place).stdout) <= (alone.returncode == 0)


def test_a_setup_line_runs_in_the_shell_of_the_command(tmp_path: Path) -> None:
    options = LaunchOptions(setup=("cd /tmp; export A='x  y'", 'f() { echo "$A"; }\nf'))
    done = bash(batch_script(Batch(("bash", "-c", 'pwd; echo "$A"'), tmp_path, tmp_path, "x"), options))
    assert done.stdout.decode().splitlines() == ["x  y", "/tmp", "x  y"]


def test_a_setup_line_that_fails_ends_the_job_with_its_status(tmp_path: Path) -> None:
    script = batch_script(
        Batch(("echo", "reached"), tmp_path, tmp_path, "x"), LaunchOptions(setup=("(exit 9)",))
    )
    assert (bash(script).returncode, bash(script).stdout) == (9, b"")
    gone = batch_script(Batch(("echo", "reached"), tmp_path, tmp_path / "gone", "x"), LaunchOptions())
    assert bash(gone).returncode == 1
    assert b"reached" not in bash(gone).stdout


def test_the_script_says_to_slurm_what_was_asked_for() -> None:
    options = StudyLaunchOptions(
        partition="gpu", account="lab", qos="long", constraint="a100|h100", gpus="a100:2", cpus=8, mem_gb=32,
        time_min=120, max_requeues=2, slurm=("nodelist=n1", "--exclusive", "comment=a b", "comment=a \"b\\"),
    )  # fmt: skip
    script = batch_script(Batch(("true",), Path("/studies/x"), Path("/"), "x", 3), options)
    for line in (
        "--job-name=x", "--output=out-%a.txt", "--error=log-%a.txt", "--open-mode=append", "--partition=gpu",
        "--account=lab", "--qos=long", "--constraint=a100|h100", "--gres=gpu:a100:2", "--cpus-per-task=8",
        "--mem=32G", "--time=120", "--array=0-2", "--requeue", "--signal=B:USR1@90", "--nodelist=n1",
        "--exclusive", '--comment="a \\"b\\\\"',
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    assert "comment=a b" not in script
    assert "HEEDFUL_MAX_REQUEUES=2\n" in script
    assert script.splitlines()[-1] == "exec true"
    assert script == batch_script(Batch(("true",), Path("/studies/x"), Path("/"), "x", 3), options)


def test_what_cannot_go_on_is_neither_warned_nor_requeued() -> None:
    script = batch_script(Batch(("true",), Path("/x"), Path("/"), "x"), LaunchOptions())
    assert "requeue\n" not in script
    assert "--signal" not in script
    assert "HEEDFUL_MAX_REQUEUES=0\n" in script


def test_a_short_job_is_warned_late_enough_to_begin() -> None:
    assert [signal_seconds(m) for m in (None, 1, 2, 6, 600)] == [90, 15, 30, 90, 90]
    for options, seconds in (
        (RunLaunchOptions(), 60),
        (RunLaunchOptions(time_min=1), 10),
        (RunLaunchOptions(slurm=("signal=B:USR1@300",)), 200),
    ):
        script = batch_script(Batch(("true",), Path("/x"), Path("/"), "x"), options)
        assert f"HEEDFUL_STOP_SECONDS={seconds} " in script


@pytest.mark.parametrize(("options", "words"), [
    (LaunchOptions(cpus=0), "--cpus 0: must be at least 1"),
    (RunLaunchOptions(max_requeues=-1), "--max-requeues -1"),
    (StudyLaunchOptions(max_parallel=0), "--max-parallel 0"),
    (LaunchOptions(gpus="two"), '--gpus "two"'),
    (LaunchOptions(gpus="1\n#SBATCH --x"), "--gpus"),
    (LaunchOptions(partition="a\n#SBATCH --uid=0"), r'--partition "a\n#SBATCH --uid=0"'),
    (LaunchOptions(account=""), "--account"),
    (LaunchOptions(slurm=("no de=1",)), "must be key=value"),
    (LaunchOptions(slurm=("output=x",)), "the batch script depends on it"),
    (LaunchOptions(slurm=("--array=0-9",)), "the batch script depends on it"),
    (LaunchOptions(slurm=("comment=a\nb",)), "cannot be in a batch script"),
    (LaunchOptions(setup=("module load 'x",)), "--setup"),
    (LaunchOptions(setup=("a; ; b",)), "syntax error"),
])  # fmt: skip
def test_what_slurm_or_bash_could_misread_is_refused(options: LaunchOptions, words: str) -> None:
    with pytest.raises(UserError) as told:
        refuse_impossible(options)
    assert words in str(told.value)


@pytest.mark.parametrize("name", ["a%j", "a\\b"])
def test_a_folder_that_slurm_would_rewrite_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="in its own way"):
        prepare_job(("true",), LaunchOptions(), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_options_of_a_cluster_belong_to_on_slurm() -> None:
    assert not LaunchOptions().elsewhere
    assert LaunchOptions(on="slurm", wait=True).elsewhere
    for given_alone in (LaunchOptions(wait=True), LaunchOptions(gpus="1"), RunLaunchOptions(max_requeues=1)):
        with pytest.raises(UserError, match="belongs to --on slurm"):
            _ = given_alone.elsewhere


def test_flags_beat_the_nearer_file_which_beats_the_farther() -> None:
    near = {"partition": "near", "account": "near", "slurm": ["comment=near", "mail-type=END"], "gpus": 2}
    far = {
        "partition": "far",
        "account": "far",
        "qos": "far",
        "setup": "module load python",
        "max-parallel": 9,
    }
    told = RunLaunchOptions(on="slurm", partition="flag", slurm=("comment=flag",))
    for table in (near, far):
        told = fill_from_table(told, table, "heedful.toml")
    assert (told.partition, told.account, told.qos, told.gpus) == ("flag", "near", "far", "2")
    assert told.setup == ("module load python",)
    script = batch_script(Batch(("true",), Path("/x"), Path("/"), "x"), told)
    assert "#SBATCH --comment=flag\n" in script
    assert "#SBATCH --mail-type=END\n" in script
    assert fill_from_table(StudyLaunchOptions(), far, "x").max_parallel == 9


@pytest.mark.parametrize(("table", "words"), [
    ({"partitoin": "x"}, 'heedful.toml: [slurm] unknown option "partitoin"; did you mean "partition"'),
    ({"on": "slurm"}, 'unknown option "on"'),
    ({"cpus": "four"}, 'heedful.toml: [slurm] cpus "four": must be a whole number'),
    ({"setup": 3}, "heedful.toml: [slurm] setup"),
])  # fmt: skip
def test_a_wrong_table_is_told(table: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as told:
        fill_from_table(LaunchOptions(), table, "heedful.toml")
    assert words in str(told.value)


def test_requeues_are_the_options_own_number(tmp_path: Path) -> None:
    prepared = prepare_job(("true",), replace(RunLaunchOptions(), max_requeues=7), tmp_path)
    assert "HEEDFUL_MAX_REQUEUES=7\n" in prepared.script
    usual = prepare_job(("true",), RunLaunchOptions(), tmp_path / "usual")
    assert "HEEDFUL_MAX_REQUEUES=10\n" in usual.script


def test_a_flag_beats_the_site_even_where_it_says_the_usual() -> None:
    given = fill_from_table(replace(RunLaunchOptions(), max_requeues=10), {"max-requeues": 0}, "heedful.toml")
    assert given.max_requeues == 10
    assert fill_from_table(RunLaunchOptions(), {"max-requeues": 0}, "heedful.toml").max_requeues == 0
