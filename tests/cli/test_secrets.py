"""Secrets of the environment reach nothing that is written or printed; caches are for their owner alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.data.cache import get_cache_folder

SECRETS = {
    "HF_TOKEN": "hf_aVerySecretTokenOfTheHub",
    "HUGGING_FACE_HUB_TOKEN": "hf_anotherSecretToken",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "MLFLOW_TRACKING_PASSWORD": "the-password-of-mlflow",
    "AWS_SECRET_ACCESS_KEY": "aSecretAccessKeyOfAws",
    "MY_OWN_PASSWORD": "open-sesame-please",
}


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: (os.umask(mask), None)[1]
    os.umask(before)


def test_secrets_of_the_environment_are_in_no_file_and_no_line(
    heedful: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    task = tmp_path / "task.csv"
    task.write_text(
        "text,label\n" + "".join(f"a {'good' if i % 2 else 'bad'} film {i},{i % 2}\n" for i in range(80))
    )
    run, report = tmp_path / "run", tmp_path / "report.html"
    printed = ""
    for command in (
        ("adapt", "tfidf", task, "--out", run),
        ("report", run, "--out", report, "--bundle", tmp_path / "bundle.zip", "--markdown"),
        ("export", run, tmp_path / "export"),
        ("adapt", "minilm", task, "--on", "slurm", "--dry-run", "--out", tmp_path / "later"),
        ("jobs", "list", tmp_path / "nothing"),
    ):
        done = heedful(*command)
        assert done.status in (0, 2), done.err
        printed += done.out + done.err
    assert "#SBATCH" in printed
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"results.json", "env.json", "config.toml", "bundle.zip", "report.html"} <= {
        path.name for path in files
    }
    for name, value in SECRETS.items():
        assert value not in printed, name
        assert [path for path in files if value.encode() in path.read_bytes()] == [], name


def test_a_new_cache_is_for_its_owner_alone_and_a_shared_one_stays_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "new"))
    assert get_cache_folder().stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "shared"))
    assert get_cache_folder().stat().st_mode & 0o777 == 0o775
    monkeypatch.delenv("HEEDFUL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert get_cache_folder().stat().st_mode & 0o777 == 0o700


def test_runs_follow_the_umask_so_that_a_cluster_can_share_them(
    heedful: Callable[..., Any], tmp_path: Path, umask: Callable[[int], None]
) -> None:
    task = tmp_path / "task.csv"
    task.write_text(
        "text,label\n" + "".join(f"a {'good' if i % 2 else 'bad'} film {i},{i % 2}\n" for i in range(80))
    )
    for mask in (0o022, 0o002, 0o077):
        umask(mask)
        run = tmp_path / oct(mask)
        assert heedful("adapt", "tfidf", task, "--out", run).status == 0
        for path in [run, *run.rglob("*")]:
            wanted = 0o777 if path.is_dir() else 0o666
            assert path.stat().st_mode & 0o777 == wanted & ~mask, path
