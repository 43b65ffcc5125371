from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from heedful.runs import Lease, holder_of
from heedful.runs.leases import holder_file, holder_numbers


def age(lease: Lease, seconds: float) -> None:
    past = time.time() - seconds
    os.utime(lease.file, (past, past))


def claimed(path: Path, holder: str = "a", ttl: float = 60) -> Lease:
    lease = Lease.claim(path, holder, ttl)
    assert lease is not None
    return lease


def test_a_held_lease_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "x.lease"
    assert holder_of(path) is None
    lease = claimed(path)
    assert Lease.claim(path, "b", 60) is None
    assert holder_of(path) == "a"
    assert lease.refresh()


def test_a_released_lease_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.lease"
    claimed(path).release()
    assert holder_of(path) is None
    assert claimed(path, "b").refresh()
    assert [file.name for file in tmp_path.iterdir()] == ["x.lease.2"]


def test_an_expired_lease_is_taken_over_and_its_former_holder_learns_it(tmp_path: Path) -> None:
    path = tmp_path / "x.lease"
    former = claimed(path)
    age(former, 61)
    assert holder_of(path) is None
    new = claimed(path, "b")
    assert not former.refresh()
    assert former.lost.is_set()
    former.release()
    assert holder_of(path) == "b"
    assert new.refresh()


def test_refreshing_keeps_a_lease_alive(tmp_path: Path) -> None:
    lease = claimed(tmp_path / "x.lease")
    age(lease, 61)
    assert lease.refresh()
    assert Lease.claim(lease.path, "b", 60) is None


def test_the_holder_is_judged_by_the_ttl_it_announced(tmp_path: Path) -> None:
    lease = claimed(tmp_path / "x.lease", ttl=600)
    age(lease, 100)
    assert Lease.claim(lease.path, "b", 1) is None


def test_a_sleeper_that_looks_before_and_links_after_others_does_not_get_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.lease"
    age(claimed(path), 61)
    link, slept = os.link, []

    def late(source: Path, target: Path) -> None:
        if not slept:
            slept.append(target)
            second = claimed(path, "second")
            age(second, 61)
            third = claimed(path, "third")
            assert holder_numbers(path) == [third.number]
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert Lease.claim(path, "sleeper", 60) is None
    assert holder_of(path) == "third"
    assert not holder_file(path, 2).exists()


def test_the_heart_beats_while_work_goes_on_and_stops_with_it(tmp_path: Path) -> None:
    lease = claimed(tmp_path / "x.lease", ttl=0.6)
    with lease.held():
        time.sleep(1.3)
        assert Lease.claim(lease.path, "b", 60) is None
        assert not lease.lost.is_set()
    assert holder_of(lease.path) is None


def test_the_heart_notices_a_takeover(tmp_path: Path) -> None:
    lease = claimed(tmp_path / "x.lease", ttl=0.3)
    with lease.held():
        holder_file(lease.path, 2).write_text('{"holder": "b", "ttl": 60}')
        assert lease.lost.wait(5)
    assert holder_of(lease.path) == "b"


def test_leases_of_similar_names_are_apart(tmp_path: Path) -> None:
    claimed(tmp_path / "x.lease")
    assert Lease.claim(tmp_path / "x.lease.1", "b", 60) is not None
    assert Lease.claim(tmp_path / "x", "c", 60) is not None


def contend(path: str, start: object, won: object, rounds: int) -> None:
    for i in range(rounds):
        start.wait()  # type: ignore[attr-defined]
        if Lease.claim(f"{path}-{i}", str(os.getpid()), 60) is not None:
            with won.get_lock():  # type: ignore[attr-defined]
                won[i] += 1  # type: ignore[index]


@pytest.mark.parametrize("expired", [False, True], ids=["free", "expired"])
def test_of_many_processes_exactly_one_gets_the_lease(tmp_path: Path, expired: bool) -> None:
    rounds, processes = 30, 6
    if expired:
        for i in range(rounds):
            age(claimed(tmp_path / f"x-{i}"), 61)
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(processes), context.Array("i", rounds)
    workers = [
        context.Process(target=contend, args=(str(tmp_path / "x"), start, won, rounds))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert list(won) == [1] * rounds
