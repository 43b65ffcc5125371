"""Requests that arrive together are labeled together: one model, one thread, batches of texts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from heedful.errors import UserError
from heedful.inference.predictions import PredictedLabel
from heedful.server.statistics import Statistics

Item = tuple[str, str | None]
"""A text, and the second text of a pair."""
LabelItems = Callable[[Sequence[Item]], list[PredictedLabel]]
BATCH = 64
"""Texts per batch. A request with more is a batch of its own."""


class QueueFullError(Exception):
    """More texts are waiting than the queue takes."""


@dataclass(eq=False)
class Waiting:
    items: list[Item]
    answer: asyncio.Future[list[PredictedLabel]]


class Batcher:
    """Collects requests, and labels them in a thread.

    Parameters
    ----------
    label_items
        Labels texts; it is called in one thread, one batch after the other.
    wait_seconds
        How long a request may wait for others, if the model is idle.
    limit
        Number of texts that may wait.
    statistics
        Counts batches, and shows how many texts wait.

    """

    def __init__(
        self, label_items: LabelItems, *, wait_seconds: float, limit: int, statistics: Statistics
    ) -> None:
        self.label_items, self.wait_seconds, self.limit = label_items, wait_seconds, limit
        self.statistics = statistics
        self.queue: deque[Waiting] = deque()
        self.texts_waiting = 0
        self.arrived = asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "predict")

    async def label(self, items: list[Item]) -> list[PredictedLabel]:
        """Return the answers to the texts of one request, in their order."""
        if self.texts_waiting + len(items) > self.limit and self.texts_waiting:
            raise QueueFullError
        waiting = Waiting(items, asyncio.get_running_loop().create_future())
        self.queue.append(waiting)
        self.count_waiting(len(items))
        self.arrived.set()
        return await waiting.answer

    async def work(self) -> None:
        """Label what arrives, until this task is canceled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.arrived.wait()
            if self.texts_waiting < BATCH:
                await asyncio.sleep(self.wait_seconds)
            batch = self.take_batch()
            if not self.queue:
                self.arrived.clear()
            if batch:
                await loop.run_in_executor(self.thread, self.answer_batch, batch, loop)

    def take_batch(self) -> list[Waiting]:
        """Take requests off the queue, as many as make a batch; those that nobody waits for are dropped."""
        batch: list[Waiting] = []
        size = 0
        while self.queue and (not batch or size + len(self.queue[0].items) <= BATCH):
            waiting = self.queue.popleft()
            self.count_waiting(-len(waiting.items))
            if not waiting.answer.cancelled():
                batch.append(waiting)
                size += len(waiting.items)
        return batch

    def answer_batch(self, batch: list[Waiting], loop: asyncio.AbstractEventLoop) -> None:
        """Label a batch in the thread. One request with a mistake does not spoil the others."""
        items = [item for waiting in batch for item in waiting.items]
        self.statistics.count_batch(len(items))
        try:
            answers = self.label_items(items)
        except Exception as error:
            if len(batch) > 1 and isinstance(error, UserError):
                for waiting in batch:
                    self.answer_batch([waiting], loop)
                return
            for waiting in batch:
                loop.call_soon_threadsafe(fail, waiting.answer, error)
            return
        start = 0
        for waiting in batch:
            end = start + len(waiting.items)
            loop.call_soon_threadsafe(resolve, waiting.answer, answers[start:end])
            start = end

    def count_waiting(self, change: int) -> None:
        self.texts_waiting += change
        self.statistics.texts_waiting = self.texts_waiting


def resolve(future: asyncio.Future[list[PredictedLabel]], answers: list[PredictedLabel]) -> None:
    if not future.done():
        future.set_result(answers)


def fail(future: asyncio.Future[list[PredictedLabel]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
