"""Large sources are encoded by a process a core: the same bytes, in order, and a clean end whatever happens."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from heedful.data import load_task, tokenize, tokens, workers
from heedful.errors import UserError
from heedful.text import train
from heedful.text.bulk_encoder import BulkEncoder, EncodedTexts

RNG = random.Random(7)
WORDS = ["".join(RNG.choices("aeilnorst", k=RNG.randint(2, 9))) for _ in range(500)]
LINES = [" ".join(RNG.choices(WORDS, k=RNG.randint(1, 12))) for _ in range(600)]
MADE = train(LINES, kind="bpe", vocab_size=500)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES))
    return path


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large, and there are three cores."""
    monkeypatch.setattr(tokens, "ALONE_CHARS", 2000)
    monkeypatch.setattr(tokens, "BATCH_CHARS", 1000)
    monkeypatch.setattr(tokens, "usable_cores", lambda: 3)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[workers.Worker]:
    """The processes that were started."""
    found: list[workers.Worker] = []

    class Seen(workers.Worker):
        def __init__(self, order: bytes) -> None:
            super().__init__(order)
            found.append(self)

    monkeypatch.setattr(workers, "Worker", Seen)
    return found


def content(found: tokens.Tokens) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in found.folder.iterdir()}


def all_gone(started: list[workers.Worker]) -> bool:
    return bool(started) and all(worker.child.returncode is not None for worker in started)


def test_processes_give_the_same_bytes_as_one(
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[workers.Worker],
    request: pytest.FixtureRequest,
) -> None:
    alone = content(tokenize(corpus, MADE, max_len=9))
    assert not started
    request.getfixturevalue("large")
    monkeypatch.setenv("HEEDFUL_CACHE", str(corpus.parent / "other"))
    found = tokenize(corpus, MADE, max_len=9)
    assert content(found) == alone
    assert 0 < found.truncated_rows < len(LINES)
    assert len(started) == 3
    assert all_gone(started)


def test_pairs_and_their_types_come_from_processes(
    tmp_path: Path, large: None, started: list[workers.Worker]
) -> None:
    rows = [f"{a}\t{b}\t{n % 2}" for n, (a, b) in enumerate(zip(LINES[:300], LINES[300:], strict=True))]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tpair\tlabel", *rows]))
    found = tokenize(load_task(str(tmp_path)).splits["train"], MADE)
    assert started
    for place in (0, 150, 299):
        want = MADE.encode(LINES[place], LINES[300 + place])
        assert found[place].tolist() == want.ids
        assert found.types(place).tolist() == want.types


def test_a_small_source_starts_no_process(corpus: Path, started: list[workers.Worker]) -> None:
    assert len(tokenize(corpus, MADE)) == len(LINES)
    assert not started


def test_one_core_starts_no_process(
    corpus: Path, large: None, monkeypatch: pytest.MonkeyPatch, started: list[workers.Worker]
) -> None:
    monkeypatch.setattr(tokens, "usable_cores", lambda: 1)
    assert len(tokenize(corpus, MADE)) == len(LINES)
    assert not started


def test_a_process_that_is_killed_ends_it_in_one_line(
    corpus: Path, large: None, started: list[workers.Worker], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = workers.Worker.encode

    def killed_before(self: workers.Worker, batch: workers.TextBatch) -> EncodedTexts:
        if self is started[1]:
            self.child.kill()
        return ask(self, batch)

    monkeypatch.setattr(workers.Worker, "encode", killed_before)
    with pytest.raises(UserError, match=r"a worker process was killed \(out of memory\?\)"):
        tokenize(corpus, MADE)
    assert all_gone(started)
    assert not list((own_cache / "tokens").iterdir())


def test_a_process_that_cannot_start_says_why(
    corpus: Path, large: None, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr(workers, "START", "import no_such_module  # {path}")
    with pytest.raises(UserError, match=r"a worker process failed .*No module named 'no_such_module'"):
        tokenize(corpus, MADE)
    assert not list((own_cache / "tokens").iterdir())


def test_a_python_that_is_not_there_is_one_line(
    corpus: Path, large: None, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(UserError, match=r"cannot start a worker process \(no such file or directory\)"):
        tokenize(corpus, MADE)
    assert not list((own_cache / "tokens").iterdir())


def test_a_bad_text_in_a_process_is_the_same_line_as_here(
    tmp_path: Path, large: None, started: list[workers.Worker], own_cache: Path
) -> None:
    # JSON can write half of a surrogate pair; whoever reads first must refuse it.
    bulk = MADE.bulk(paired=False, max_len=None, special=True)
    with pytest.raises(UserError, match=r'^not valid Unicode: "a \\ud800"$'):
        list(workers.encode_in_processes(bulk, [(["fine"], None), (["a \ud800"], None)], 2))
    assert all_gone(started)


class Broken(BulkEncoder):
    """Fails as a bug would, in the process."""

    def __init__(self, how: str = "") -> None:
        self.how = how

    def __reduce__(self) -> tuple[type[Broken], tuple[str]]:
        return Broken, (self.how,)

    def encode(self, texts: object, pairs: object) -> EncodedTexts:
        raise ZeroDivisionError(self.how)


def test_a_bug_in_a_process_is_one_line(started: list[workers.Worker]) -> None:
    with pytest.raises(UserError, match=r"^tokenizing failed: ZeroDivisionError: so\\nand so$"):
        list(workers.encode_in_processes(Broken("so\nand so"), [(["text"], None)], 2))
    assert all_gone(started)


def test_a_source_that_turns_bad_ends_the_processes(
    corpus: Path, large: None, started: list[workers.Worker], own_cache: Path
) -> None:
    corpus.write_bytes(corpus.read_bytes() + b"\nbad \x81 line\n")
    with pytest.raises(UserError, match=r"corpus\.txt line 601: byte 5 is not UTF-8"):
        tokenize(corpus, MADE)
    assert all_gone(started)
    assert not list((own_cache / "tokens").iterdir())


def test_reading_stays_a_few_batches_ahead_of_writing(started: list[workers.Worker]) -> None:
    taken = 0

    def endless() -> Iterator[workers.TextBatch]:
        nonlocal taken
        while True:
            taken += 1
            yield [LINES[taken % 600]], None

    results = workers.encode_in_processes(MADE.bulk(paired=False, max_len=None, special=True), endless(), 2)
    for place, (batch, found) in enumerate(islice(results, 20), 1):
        assert batch[0] == [LINES[place % 600]]
        assert np.frombuffer(found.ids, np.uint16).tolist() == MADE.encode(batch[0][0]).ids
        assert taken <= place + 5
    results.close()
    assert all_gone(started)


SCRIPT = """
import sys
from heedful.data import tokenize, tokens
from heedful.text import load

tokens.ALONE_CHARS, tokens.BATCH_CHARS, tokens.usable_cores = 2000, 1000, lambda: 2
print(len(tokenize(sys.argv[1], load(sys.argv[2]))))
"""
# Without a last line, so that the process waits in the middle of a corpus.
WAITING = """
import os
real = tokens.group_texts
def group_texts(texts):
    yield from real(texts)
    print("waiting", flush=True)
    os.read(0, 1)
tokens.group_texts = group_texts
"""


def script(tmp_path: Path, corpus: Path, code: str) -> subprocess.Popen[str]:
    MADE.save(tmp_path / "tokenizer")
    (tmp_path / "person.py").write_text(code)
    # What a worker imports must not come from the folder where the person works.
    (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')")
    return subprocess.Popen(
        [sys.executable, "-P", "person.py", str(corpus), str(tmp_path / "tokenizer")],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_without_a_main_guard_is_run_once(tmp_path: Path, corpus: Path) -> None:
    with script(tmp_path, corpus, SCRIPT) as process:
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("600\n", "", 0)


def children(pid: int) -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for children in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill"])
def test_the_processes_end_with_the_one_that_started_them(
    tmp_path: Path, corpus: Path, own_cache: Path, how: signal.Signals
) -> None:
    head, tail = SCRIPT.rsplit("\n", 2)[:2]
    listens = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's & ignores it
    )
    with script(tmp_path, corpus, listens + head + WAITING + tail) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        workers_now = children(process.pid)
        assert len(workers_now) == 2
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() and state(pid) != "Z" for pid in workers_now):
        assert time.monotonic() < deadline, "a worker outlived the process that started it"
        time.sleep(0.05)
    if how == signal.SIGINT:
        assert err.strip().endswith("KeyboardInterrupt")
        assert err.count("Traceback") == 1
        assert not list((own_cache / "tokens").iterdir())


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
