"""The one loop, for every objective and method.

A step is a pure function of the weights, the optimiser's state and its own number: the batch, the corruption
and dropout all come from streams keyed by (seed, purpose, step). So a run that was killed and resumed ends
with the same bits as one that never stopped.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.batches import Batches
from heedful.data.random import key, stream
from heedful.errors import UserError
from heedful.objectives import Evaluation, Objective
from heedful.objectives.base import Ints
from heedful.progress import progress as show_progress
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics, Timing
from heedful.training import optimisers, saving, schedules
from heedful.training.hooks import Hook
from heedful.training.options import LoopOptions
from heedful.training.precision import autocast
from heedful.training.saving import Progress

CHECKPOINT_SECONDS = 300.0
STATUS_STOPPED = 75
"""Left by SIGTERM or SIGUSR1 after writing a checkpoint: try again with --resume (EX_TEMPFAIL)."""


class StoppedError(UserError):
    """The run was asked to stop; its checkpoint is written."""

    status = STATUS_STOPPED


@dataclass
class Loop:
    """One training run: what it moves, what it minimises, where it writes."""

    model: nn.Module
    parameters: Mapping[str, nn.Parameter]
    objective: Objective
    options: LoopOptions
    lr: float
    run: Run
    precision: str = "float32"
    hooks: Sequence[Hook] = ()

    def __post_init__(self) -> None:
        """Plan the steps."""
        o = self.options
        self.device = next(iter(self.parameters.values())).device
        self.batches = Batches(self.objective.train_lengths(), batch_size=o.batch_size, seed=o.seed)
        sizes = [len(self.batches.plan(epoch)) for epoch in range(o.epochs)]
        first = self.objective.first_steps
        self.ends = first + np.cumsum(sizes)
        """The step after each epoch."""
        self.total = int(self.ends[-1])
        self.warmup = schedules.warmup_steps(o.warmup, self.total)
        made = optimisers.groups(self.model, self.parameters, o.weight_decay)
        self.optimiser = optimisers.make(o.optimizer, made, self.lr)
        self.progress = Progress(data=self.batches.fingerprint())
        n = len(self.objective.train_lengths())
        chosen = stream(o.seed, "train rows scored").permutation(n)[: o.train_eval_rows]
        self.train_rows: Ints = np.sort(chosen)
        self.stop_signal: int | None = None

    def train(self, *, resume: bool = False) -> Progress:
        """Train to the end, or to a signal; afterwards the model has its best weights."""
        if resume:
            self.restore()
        p = self.progress
        metrics = self.run.metrics_log(keep=p.metrics_bytes)
        timing = self.run.timing_log(keep=p.timing_bytes)
        began = saved = time.monotonic() - p.seconds
        saved = time.monotonic()
        self.model.train()
        with metrics, timing, self.signals(), show_progress("training (steps)", self.total) as bar:
            bar.advance(p.step)
            while p.step < self.total and not p.stopped_early:
                self.step(p.step)
                p.step += 1
                p.seconds = time.monotonic() - began
                bar.advance(1, self.note())
                due = self.evaluation_due(p.step)
                if due:
                    self.evaluate(metrics)
                    rate = p.examples / max(p.seconds, 1e-9)
                    timing.append(Timing(p.step, p.seconds, rate, p.tokens / max(p.seconds, 1e-9)))
                if due or self.stop_signal or time.monotonic() - saved > CHECKPOINT_SECONDS:
                    p.metrics_bytes, p.timing_bytes = metrics.sync(), timing.sync()
                    saving.save(self.run, p, self.weights(), self.optimiser.state_dict())
                    saved = time.monotonic()
                if self.stop_signal and p.step < self.total:
                    raise StoppedError(
                        f"stopped by {signal.Signals(self.stop_signal).name} after step {p.step} "
                        f"of {self.total}; the same command with --resume continues"
                    )
        self.load(saving.load_step(self.run, p.best_step))
        self.model.eval()
        return p

    def examples_of(self, step: int) -> tuple[int, Ints]:
        """The epoch of a step and its examples; none while the objective pretrains."""
        first = self.objective.first_steps
        if step < first:
            return 0, np.empty(0, np.int64)
        epoch = int(np.searchsorted(self.ends, step, side="right"))
        begin = first if epoch == 0 else int(self.ends[epoch - 1])
        return epoch, self.batches.plan(epoch)[step - begin]

    def step(self, step: int) -> None:
        """One update."""
        o, p = self.options, self.progress
        _, examples = self.examples_of(step)
        parts = [part.to(self.device) for part in self.objective.prepare(examples, step, o.accumulate)]
        counts: dict[str, int] = {}
        for part in parts:
            for name, count in part.counts.items():
                counts[name] = counts.get(name, 0) + count
        torch.manual_seed(key(o.seed, "dropout", step) % 2**63)
        rate = self.lr * schedules.factor(o.schedule, step, self.total, self.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        for part in parts:
            with autocast(self.precision, self.device):
                found = self.objective.losses(self.model, part)
            terms = [
                self.objective.weights[name] * total / counts[name] for name, total in found.sums.items()
            ]
            loss = torch.stack(terms).sum() if len(terms) > 1 else terms[0]
            loss.backward()  # type: ignore[no-untyped-call]
            for name, total in found.sums.items():
                p.running_loss[name] = p.running_loss.get(name, 0.0) + float(total.detach())
                p.running_count[name] = p.running_count.get(name, 0) + part.counts[name]
            p.running_right += found.right or 0
            p.examples += part.examples
            p.tokens += part.tokens
        if not all(math.isfinite(v) for v in p.running_loss.values()):
            raise UserError(f"the loss is no longer a number at step {step + 1}; a lower --lr may help")
        if o.clip:
            nn.utils.clip_grad_norm_(list(self.parameters.values()), o.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def evaluation_due(self, step: int) -> bool:
        """Whether dev is scored after this many steps."""
        if step == self.total:
            return True
        if step <= self.objective.first_steps:
            return False
        if self.options.eval_every is not None:
            return step % self.options.eval_every == 0
        return bool(np.isin(step, self.ends))

    def epoch(self) -> float:
        """How many epochs are done, with the part of the current one."""
        p = self.progress
        if p.step <= self.objective.first_steps:
            return 0.0
        epoch, _ = self.examples_of(p.step - 1)
        begin = self.objective.first_steps if epoch == 0 else int(self.ends[epoch - 1])
        return epoch + (p.step - begin) / (int(self.ends[epoch]) - begin)

    def evaluate(self, log: Any) -> None:
        """Score, write the rows, and remember the best."""
        p, epoch = self.progress, round(self.epoch(), 6)
        parts = {name: p.running_loss[name] / max(1, p.running_count[name]) for name in p.running_loss}
        loss = sum(self.objective.weights[name] * value for name, value in parts.items())
        main = next(iter(self.objective.weights))
        seen = p.running_count.get(main, 0)
        rate = self.lr * schedules.factor(self.options.schedule, p.step - 1, self.total, self.warmup)
        self.write(
            log,
            Metrics(
                p.step,
                epoch,
                "train",
                loss,
                p.running_right / seen if seen else None,
                seen,
                rate,
                parts if len(parts) > 1 else None,
            ),
        )
        p.running_loss, p.running_count, p.running_right = {}, {}, 0
        if len(self.train_rows):
            found = self.score("train", self.train_rows)
            self.write(log, Metrics(p.step, epoch, "train_eval", found.loss, found.value, found.n))
        if "dev" not in self.objective.splits:
            p.best_step = p.step
            return
        found = self.score("dev")
        self.write(log, Metrics(p.step, epoch, "dev", found.loss, found.value, found.n))
        if (found.value, -found.loss) > (p.best_value, -p.best_loss):
            p.best_value, p.best_loss, p.best_step = found.value, found.loss, p.step
            p.evaluations_since_best = 0
        else:
            p.evaluations_since_best += 1
            patience = self.options.patience
            p.stopped_early = patience is not None and p.evaluations_since_best >= patience

    def score(self, split: str, rows: Ints | None = None) -> Evaluation:
        """Score a split in the run's precision."""
        with autocast(self.precision, self.device):
            return self.objective.evaluate(self.model, split, rows)

    def write(self, log: Any, row: Metrics) -> None:
        """One row, to the file and to whoever follows."""
        log.append(row)
        for hook in self.hooks:
            hook.row(row)

    def note(self) -> str:
        """What stands beside the bar."""
        p = self.progress
        main = next(iter(self.objective.weights))
        parts = (
            [f"loss {p.running_loss[main] / p.running_count[main]:.3f}"] if p.running_count.get(main) else []
        )
        if p.best_step >= 0 and math.isfinite(p.best_value):
            parts.append(f"best dev {self.objective.metric} {p.best_value:.3f}")
        parts.append(f"{p.examples / max(p.seconds, 1e-9):.0f} examples/s")
        return ", ".join(parts)

    def weights(self) -> dict[str, Tensor]:
        """What moves."""
        return {name: p.detach().cpu().clone() for name, p in self.parameters.items()}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Set what moves."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(weights[name])

    def restore(self) -> None:
        """Continue from the newest whole checkpoint, if there is one."""
        found = saving.load_latest(self.run)
        if found is None:
            return
        progress, weights, optimiser = found
        if progress.data != self.progress.data:
            raise UserError(
                f"{self.run.path}: was made with other data or batch settings; --overwrite starts anew"
            )
        if weights.keys() != self.parameters.keys():
            raise UserError(f"{self.run.path}: was made with other parameters; --overwrite starts anew")
        self.load(weights)
        self.optimiser.load_state_dict(optimiser)
        self.progress = progress

    @contextmanager
    def signals(self) -> Iterator[None]:
        """While training, SIGTERM, SIGUSR1 and Ctrl-C ask for a checkpoint and an end at the next step."""

        def ask(number: int, frame: object) -> None:
            if self.stop_signal == signal.SIGINT == number:
                raise KeyboardInterrupt
            self.stop_signal = number
            print(
                f"heedful: {signal.Signals(number).name}: writing a checkpoint, then stopping",
                file=sys.stderr,
            )

        former: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():  # elsewhere, whoever runs us handles them
            for wanted in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
                former[wanted] = signal.signal(wanted, ask)
        try:
            yield
        finally:
            for wanted, handler in former.items():
                signal.signal(wanted, handler)


def find_device(name: str) -> torch.device:
    """The device called `name`; `auto` takes what there is."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f'--device "{name}": is one of auto, cpu, cuda, cuda:1, mps') from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "--device cuda: this machine or this torch has no CUDA; --device cpu works everywhere"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError("--device mps: this machine has no Metal; --device cpu works everywhere")
    return device
