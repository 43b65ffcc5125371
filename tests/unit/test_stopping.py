"""Asked to stop: which signal counts, and what happens when a step does not end."""

from __future__ import annotations

import os
import signal
import time

import pytest

from heedful.training.signals import StoppedError, StopSignals


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0)


def test_slurms_warning_counts_also_when_its_end_follows(capfd: pytest.CaptureFixture[str]) -> None:
    stopping = StopSignals()
    with stopping.defer():
        send(signal.SIGUSR1)
        send(signal.SIGTERM)
        assert stopping.asked is signal.SIGUSR1


def keep_on(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


def test_what_does_not_end_in_time_is_stopped_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STOP_SECONDS", "1")
    stopping = StopSignals()
    began = time.monotonic()
    with stopping.defer():
        send(signal.SIGUSR1)
        with pytest.raises(StoppedError, match="before the next checkpoint") as stopped:
            keep_on(20)
    assert stopped.value.by is signal.SIGUSR1
    assert time.monotonic() - began < 10


def test_a_step_that_ends_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STOP_SECONDS", "1")
    with StopSignals().defer():
        send(signal.SIGUSR1)
    with StopSignals().listen():
        keep_on(1.5)  # a second signal would stop it


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_before_the_first_step_a_signal_stops_at_once(number: signal.Signals) -> None:
    with StopSignals().listen(), pytest.raises(StoppedError) as stopped:
        send(number)
    assert stopped.value.by is number
