"""The largest batch that fits, and the fastest: measured in child processes, which may run out of memory.

A child builds the model and takes real training steps on the longest texts. On a CPU its parent watches how
much memory it holds and ends it at the budget; on CUDA the child reports that memory ran out. The module is
also the child's program, and imports torch only there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from heedful.data.workers import STATUS_KILLED
from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.runs import memory
from heedful.runs.environment import peak_memory_gb

if TYPE_CHECKING:
    from heedful.training.build import Job

START = 32
GB = 1e9
SPARE = 0.1
"""The share of the free memory that the default budget leaves to the rest of the machine."""
LOOK_SECONDS = 0.02
STEPS, STEPS_SECONDS = 6, 2.0
"""Timed steps at most, and after how long no further one begins."""
NO_ROOM = "needs more memory"


@dataclass(frozen=True)
class Measured:
    """One batch size: its peak of memory and speed, or why there is none."""

    batch_size: int
    memory_gb: float | None = None
    """The largest amount held at once; of CUDA's memory on CUDA."""
    examples_per_second: float | None = None
    reason: str | None = None

    @property
    def fits(self) -> bool:
        return self.reason is None


@dataclass(frozen=True)
class BatchSizeSearch:
    tried: tuple[Measured, ...]
    """In the order of their sizes."""
    budget_gb: float | None
    device: str

    @property
    def largest(self) -> Measured | None:
        return max((m for m in self.tried if m.fits), key=lambda m: m.batch_size, default=None)

    @property
    def fastest(self) -> Measured | None:
        """The size with the most examples per second; of equal ones, the smallest."""
        fit = [m for m in self.tried if m.fits]
        return max(fit, key=lambda m: (m.examples_per_second or 0.0, -m.batch_size), default=None)


def find_batch_size(
    options: AdaptOptions, *, budget_gb: float | None = None, at_most: int = 512
) -> BatchSizeSearch:
    """Search for a model, a task and a method. `budget_gb` defaults to what is free."""
    for option, value in (("--memory-gb", budget_gb), ("--at-most", at_most)):
        if value is not None and not value > 0:
            raise UserError(f"{option} {value:g}: must be above 0")
    options = replace(options, cache_features=False, score_test=False)
    stated = budget_gb if budget_gb is not None else free_gb()
    built = run_child(options, 0, stated)  # also leaves the tokens in the cache: their making is not measured
    if "reason" in built:
        return BatchSizeSearch((Measured(1, reason=f"building the model {built['reason']}"),), stated, "cpu")
    device = str(built["device"])
    budget = stated if device == "cpu" else budget_gb

    def measure(batch_size: int) -> Measured:
        return Measured(batch_size, **run_child(options, batch_size, budget))

    return BatchSizeSearch(search(measure, min(at_most, int(built["rows"]))), budget, device)


def search(measure: Callable[[int], Measured], most: int, start: int = START) -> tuple[Measured, ...]:
    """Double from the start while it fits, or halve until it does; then bisect, to an eighth.

    Below 16 the answer is exact.
    """
    tried: dict[int, Measured] = {}

    def fits(batch_size: int) -> bool:
        tried[batch_size] = measure(batch_size)
        return tried[batch_size].fits

    low, high = 0, most + 1
    size = min(start, most)
    if fits(size):
        low = size
        while low < most and high > most:
            size = min(2 * low, most)
            low, high = (size, high) if fits(size) else (low, size)
    else:
        high = size
        while high > 1 and not low:
            size = high // 2
            low, high = (size, high) if fits(size) else (low, size)
    while low and high - low > max(1, low // 8):
        middle = (low + high) // 2
        if middle > most:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    return tuple(tried[size] for size in sorted(tried))


def run_child(options: AdaptOptions, batch_size: int, budget_gb: float | None) -> dict[str, Any]:
    """Measure one size in a child; it is ended when it holds more than the budget."""
    values = {**asdict(options), "batch_size": max(1, batch_size)}
    request = json.dumps({"options": values, "batch_size": batch_size, "budget_gb": budget_gb}, default=str)
    return run_watched_child([sys.executable, "-m", "heedful.training.batch_size"], request, budget_gb)


def run_watched_child(command: Sequence[str], request: str, budget_gb: float | None) -> dict[str, Any]:
    """Run a child that prints one JSON object, and end it at the budget."""
    with (
        tempfile.TemporaryFile("w+") as request_file,
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
    ):
        request_file.write(request)
        request_file.seek(0)
        child = subprocess.Popen(command, stdin=request_file, stdout=output, stderr=errors)
        over = False
        try:
            while child.poll() is None:
                if budget_gb is not None and resident_gb(child.pid) > budget_gb:
                    over = True
                    child.kill()
                    child.wait()
                time.sleep(LOOK_SECONDS)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        output.seek(0)
        errors.seek(0)
        answers, complaints = output.read().strip().splitlines(), errors.read().strip().splitlines()
    if over:
        return {"reason": NO_ROOM}
    if child.returncode == STATUS_KILLED:
        return {"reason": f"{NO_ROOM} (the system ended it)"}
    if child.returncode or not answers:
        raise UserError(f"a step could not be measured: {(complaints or ['the child said nothing'])[-1]}")
    answer: dict[str, Any] = json.loads(answers[-1])
    if "error" in answer:
        raise UserError(str(answer["error"]))
    if budget_gb is not None and answer.get("memory_gb", 0.0) > budget_gb:
        return {"reason": NO_ROOM}  # held it for less time than two looks are apart
    return answer


def resident_gb(pid: int) -> float:
    """Return how much memory a process uses now; 0 if it has ended."""
    try:
        return float(psutil.Process(pid).memory_info().rss) / GB
    except psutil.Error:
        return 0.0


def free_gb() -> float:
    """Return the free memory of this machine, or of this job's share of it, minus a reserve."""
    return memory.free_gb() * (1 - SPARE)


def take_steps(job: Job, batch_size: int) -> dict[str, Any]:
    """Take real steps on the longest texts, in the child process."""
    import numpy as np
    import torch

    from heedful.objectives import Joint
    from heedful.objectives.base import Ints
    from heedful.runs.directory import Run
    from heedful.training.build import learning_rate
    from heedful.training.loop import Loop

    lengths = job.objective.train_lengths()
    longest = np.resize(np.argsort(lengths)[::-1][:batch_size], batch_size)
    o = job.options
    if isinstance(job.objective, Joint):
        job.objective.masked.keep_longest(batch_size)

    class Longest(Loop):
        def choose_examples(self, step: int) -> Ints:
            return longest

    cuda = job.device.type == "cuda"
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        loop = Longest(
            job.model,
            job.trainable_parameters(),
            job.objective,
            o,
            learning_rate(o),
            Run(folder),
            job.precision,
        )
        job.model.train()
        try:
            for step in range(STEPS + 1):
                start = time.monotonic()
                loop.step(step)
                if cuda:
                    torch.cuda.synchronize(job.device)
                times.append(time.monotonic() - start)
                if sum(times[1:]) > STEPS_SECONDS:
                    break
        except torch.cuda.OutOfMemoryError:
            return {"reason": NO_ROOM}
        except RuntimeError as error:
            if "allocate memory" not in str(error):
                raise
            return {"reason": NO_ROOM}
    seconds = min(times[1:])  # the first one makes the optimizer's state; the least disturbed one counts
    peak = torch.cuda.max_memory_allocated(job.device) / GB if cuda else peak_memory_gb()
    return {"memory_gb": peak, "examples_per_second": batch_size / seconds}


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """Build everything as `heedful adapt` does; with a batch size, take steps."""
    import torch

    from heedful.options.configuration import check_table
    from heedful.training.build import build_adapt
    from heedful.training.validation import validate

    values = {k: v for k, v in request["options"].items() if v is not None}
    try:
        options = AdaptOptions(**check_table(AdaptOptions, values, "batch-size"))
        validate(options)
        job = build_adapt(options)
    except UserError as error:
        return {"error": str(error)}
    except torch.cuda.OutOfMemoryError:
        return {"reason": NO_ROOM}
    if job.device.type == "cuda" and request["budget_gb"] is not None:
        total = torch.cuda.get_device_properties(job.device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, request["budget_gb"] * GB / total), job.device)
    if request["batch_size"]:
        return take_steps(job, request["batch_size"])
    return {
        "device": job.device.type,
        "rows": len(job.objective.train_lengths()),
        "memory_gb": peak_memory_gb() if job.device.type == "cpu" else 0.0,
    }


def main() -> None:
    """The child's program: a request on stdin, an answer on stdout."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, end this one first
    print(json.dumps(answer_request(json.loads(sys.stdin.read()))))


if __name__ == "__main__":
    main()
