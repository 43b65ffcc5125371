"""What nothing foresaw: one line, a report without secrets, and status 70; memory that ran out has its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.cli import list_names
from heedful.cli.last_line import hide_secrets, hide_values

Run = Callable[..., Any]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[BaseException], None]:
    """Let `heedful list models` raise something."""
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))

    def let_raise(error: BaseException) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(list_names, "print_table", fail)

    return let_raise


def test_a_bug_is_one_line_with_a_report_and_status_70(
    heedful: Run, broken: Callable[[BaseException], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "a-token-of-the-hub")
    broken(KeyError("with hf_abcdefghijkl\nand a-token-of-the-hub"))
    done = heedful("list", "models")
    assert done.status == 70
    assert done.err.count("\n") == 1
    assert re.match(r"heedful: this is a bug in heedful \(KeyError: .*\); the report is ", done.err)
    assert "Traceback" not in done.err
    (report,) = (tmp_path / "cache/reports").iterdir()
    assert str(report) in done.err
    text = report.read_text()
    assert "Traceback (most recent call last)" in text
    assert "command: heedful list models" in text
    assert "torch: " in text
    for secret in ("hf_abcdefghijkl", "a-token-of-the-hub"):
        assert secret not in text + done.err
    assert report.stat().st_mode & 0o777 == 0o600


def test_debug_shows_the_traceback(heedful: Run, broken: Callable[[BaseException], None]) -> None:
    broken(RuntimeError("odd"))
    done = heedful("list", "models", "--debug")
    assert done.status == 70
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1].startswith("heedful: this is a bug")


def test_memory_that_ran_out_is_no_bug(heedful: Run, broken: Callable[[BaseException], None]) -> None:
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to")):
        broken(error)
        done = heedful("list", "models")
        assert (done.status, done.err.count("\n")) == (71, 1)
        assert "not enough memory" in done.err


def test_a_report_goes_elsewhere_where_the_cache_cannot_be_written(
    heedful: Run, broken: Callable[[BaseException], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "file/below"))
    broken(RuntimeError("odd"))
    done = heedful("list", "models")
    report = re.search(r"the report is (\S+),", done.err)
    assert report is not None
    path = Path(report[1])
    assert "RuntimeError: odd" in path.read_text()
    path.unlink()


def test_in_python_it_stays_an_exception(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import heedful
    from heedful.inference import loading

    def fail(*_: object, **__: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(loading, "read_run_facts", fail)
    with pytest.raises(KeyError):
        heedful.load(tmp_path)


def test_values_of_secret_options_are_hidden() -> None:
    arguments = ["push", "--token", "abc", "--api-key=def", "--lr", "1e-3"]
    assert hide_values(arguments) == ["push", "--token", "...", "--api-key=...", "--lr", "1e-3"]
    assert hide_secrets("https://me:word@host/x ghp_0123456789ab") == "https://...@host/x ..."
