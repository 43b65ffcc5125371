"""Encode texts on all cores: one process per core, each with its own tokenizer and its own cache of words.

The processes are new interpreters that read from and write to a pipe. A fork of a process with threads can
hang, and multiprocessing would run the user's script again. They end when their pipe closes, whatever happens
to the process that started them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from heedful.data.cache import describe_os_error
from heedful.errors import UserError, shorten

if TYPE_CHECKING:
    from heedful.text.bulk_encoder import BulkEncoder, EncodedTexts

TextBatch = tuple[list[str], list[str] | None]

START = "import sys; sys.path[:] = {path!r}; from heedful.data.workers import main; main()"
ONE_THREAD = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX")
STATUS_KILLED = -9
"""The status of a process that SIGKILL ended, as a system that is short of memory does; Windows has none."""


class Worker:
    """One worker process; only one thread at a time may call `encode`."""

    def __init__(self, order: bytes) -> None:
        self.order: bytes | None = order
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self.child = subprocess.Popen(
                [sys.executable, "-P", "-c", START.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr,
                env=os.environ | dict.fromkeys(ONE_THREAD, "1") | {"TOKENIZERS_PARALLELISM": "false"},
                process_group=0,  # Ctrl-C is for the process that started it
            )
        except OSError as error:
            self.stderr.close()
            reason = describe_os_error(error)
            raise UserError(f"tokenizing: cannot start a worker process ({reason})") from None

    def encode(self, batch: TextBatch) -> EncodedTexts:
        stdin, stdout = self.child.stdin, self.child.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            if self.order is not None:
                stdin.write(self.order)
                self.order = None
            pickle.dump(batch, stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()
            answer: EncodedTexts | str = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            failure = self.describe_failure()
            raise UserError(f"tokenizing stopped: {failure}; nothing was kept, try again") from None
        if isinstance(answer, str):
            raise UserError(answer)
        return answer

    def describe_failure(self) -> str:
        self.child.kill()  # where only its pipe is broken
        status = self.child.wait()
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").split("\n")
        if last := next((line for line in reversed(lines) if line.strip()), ""):
            return f"a worker process failed ({shorten(last.strip(), 200)})"
        memory = " (out of memory?)" if status == STATUS_KILLED else ""
        return f"a worker process was killed{memory}"

    def close(self) -> None:
        for pipe in (self.child.stdin, self.child.stdout, self.stderr):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self.child.wait()


def encode_in_processes(
    bulk: BulkEncoder, batches: Iterable[TextBatch], cores: int
) -> Generator[tuple[TextBatch, EncodedTexts], None, None]:
    """Encode batches in several processes and yield each with its ids, in order."""
    order = pickle.dumps(bulk, pickle.HIGHEST_PROTOCOL)
    workers: list[Worker] = []
    free: SimpleQueue[Worker] = SimpleQueue()

    def ask(batch: TextBatch) -> EncodedTexts:
        worker = free.get()
        try:
            return worker.encode(batch)
        finally:
            free.put(worker)

    waiting: deque[tuple[TextBatch, Future[EncodedTexts]]] = deque()
    pool = ThreadPoolExecutor(cores)
    try:
        for _ in range(cores):
            workers.append(Worker(order))
            free.put(workers[-1])
        for batch in batches:
            waiting.append((batch, pool.submit(ask, batch)))
            if len(waiting) > 2 * cores:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    finally:
        for worker in workers:
            worker.child.kill()
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    bulk: BulkEncoder = pickle.load(orders)
    while True:
        try:
            texts, pairs = pickle.load(orders)
        except EOFError:
            return
        answer: EncodedTexts | str
        try:
            answer = bulk.encode(texts, pairs)
        except UserError as error:
            answer = str(error)
        except BaseException as error:  # the library's own failures are no Exception
            answer = f"tokenizing failed: {type(error).__name__}: {shorten(str(error), 200)}"
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> NoReturn:
    """Run a worker; it is not an error if the process that started it has ended."""
    with suppress(BrokenPipeError, EOFError):
        serve(sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)
