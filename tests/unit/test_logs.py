"""Messages go to the logger; the command line alone prints them."""

from __future__ import annotations

import logging

import pytest

from heedful import logs


def test_a_caller_decides_what_is_shown(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="heedful"):
        logs.notice("it is warm")
        logs.warn("it is hot")
    assert caplog.record_tuples == [
        ("heedful", logging.INFO, "it is warm"),
        ("heedful", logging.WARNING, "it is hot"),
    ]
    assert capsys.readouterr() == ("", "")


def test_the_command_line_prints_everything(capsys: pytest.CaptureFixture[str]) -> None:
    before = logs.LOGGER.level, list(logs.LOGGER.handlers)
    with logs.print_messages(), logs.print_messages():  # a command inside a command prints once
        logs.notice("it is warm")
        logs.progress_line("training (steps): 1 of 2")
    logs.notice("nobody reads this")
    assert capsys.readouterr().err == "heedful: it is warm\ntraining (steps): 1 of 2\n"
    assert (logs.LOGGER.level, logs.LOGGER.handlers) == before
