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
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.batches import Batches
from heedful.data.random import key, stream
from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS, Metric
from heedful.objectives import Evaluation, Inputs, Losses, Objective
from heedful.objectives.base import Ints
from heedful.options.training import LoopOptions
from heedful.problems import find_metric_name
from heedful.progress import ProgressBar as Bar
from heedful.progress import progress as show_progress
from heedful.runs.directory import Run
from heedful.runs.files import JsonLines
from heedful.runs.schemas import Metrics, Timing
from heedful.training import checkpoint, optimizers, schedules
from heedful.training.checkpoint import TrainingState
from heedful.training.devices import clip, seed_generators, threads
from heedful.training.distributed import GradientExchange
from heedful.training.precision import autocast
from heedful.training.ranks import Ranks, current_ranks
from heedful.training.signals import StoppedError, StopSignals
from heedful.training.sparse_embeddings import use_occurring_rows
from heedful.training.trackers import Tracker

CHECKPOINT_SECONDS = 300.0
LEAST_SECONDS = 1.0
"""An evaluation that found nothing better is not worth a checkpoint so soon after another."""
SETTLE_EVERY = 20
"""Steps whose losses stay on a device other than the CPU, so that it need not be waited for."""
SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
"""What a run can be asked to stop by; that the time is over comes first."""


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
    trackers: Sequence[Tracker] = ()
    on_row: Callable[[Metrics], None] | None = None
    """Called with each row of metrics; an exception in it ends the run."""
    stopping: StopSignals = field(default_factory=StopSignals)
    lost: threading.Event = field(default_factory=threading.Event)
    """Set when another process has taken the run over."""
    ranks: Ranks = field(default_factory=current_ranks)
    """The processes that train together. Only the first one writes and scores."""

    def __post_init__(self) -> None:
        """Plan the steps."""
        o = self.options
        self.metric: Metric = METRICS.find(find_metric_name(o, self.objective))
        """What evaluations are compared by, to find the best model."""
        self.own_metric = self.metric.name == self.objective.metric
        """Whether the objective itself computes the metric, also while training."""
        if not self.own_metric and self.metric.reads not in self.objective.outputs:
            given = " and ".join(self.objective.outputs) or "none"
            raise UserError(
                f"--metric {self.metric.name}: is computed from {self.metric.reads}; "
                f"--objective {self.objective.name} gives {given}"
            )
        if o.patience is not None and "dev" not in self.objective.splits:
            raise UserError("--patience needs a dev split, and this task has none")
        self.device = next(iter(self.parameters.values())).device
        self.parameters = dict(self.parameters)
        self.rows = use_occurring_rows(self.model, self.parameters, self.objective.train_ids())
        self.moving = list(self.parameters.values())
        self.batches = Batches(
            self.objective.train_lengths(),
            batch_size=None if o.token_budget else o.batch_size,
            token_budget=o.token_budget,
            seed=o.seed,
        )
        first = self.objective.first_steps
        self.ends: list[int] = []
        """The step after each epoch."""
        self.total = self.plan_epochs(first)
        self.warmup = schedules.warmup_steps(o.warmup, self.total - first)
        groups = optimizers.group_parameters(self.model, self.parameters, o.weight_decay)
        self.optimiser = optimizers.make(o.optimizer, groups, self.lr)
        self.progress = TrainingState(
            data=key(self.batches.fingerprint(), self.objective.content()) % 2**53,
            warmup=self.warmup,
            processes=self.ranks.size,
        )
        if self.ranks.broadcast((self.progress.data, self.precision)) != (self.progress.data, self.precision):
            raise UserError("the processes read other data, or compute in another precision, than the first")
        alone = self.ranks.alone
        self.together = (
            None if alone else GradientExchange(self.model, self.objective, self.moving, self.ranks)
        )
        begins = schedules.decay_begins(o.schedule, self.total - first, self.warmup)
        self.pinned = first + begins if begins >= 0 else -1
        self.pending: list[list[Losses]] = []
        """Step by step, the losses that are not yet among the running ones."""
        n = len(self.objective.train_lengths())
        chosen = stream(o.seed, "train rows scored").permutation(n)[: o.train_eval_rows]
        self.train_rows: Ints = np.sort(chosen)

    def plan_epochs(self, first: int) -> int:
        """Find where each epoch ends, and after which step the run does: `--epochs`, or else `--steps`."""
        o, end = self.options, first
        while len(self.ends) < o.epochs if o.steps is None else end < first + o.steps:
            # Only a token budget makes epochs of different numbers of batches.
            same = bool(self.ends) and o.token_budget is None
            end += (self.ends[0] - first) if same else len(self.batches.plan(len(self.ends)))
            self.ends.append(end)
        return end if o.steps is None else first + o.steps

    def train(self, *, resume: bool = False) -> TrainingState:
        """Train to the end, or to a signal; afterwards the model has its best weights."""
        if resume:
            self.restore()
        p = self.progress
        self.model.train()
        try:
            self.work()
            if self.ranks.first:
                self.load(checkpoint.load_weights(self.run, p.best_step))
        finally:
            self.together = None
            if self.rows is not None:
                self.model.body.embed.tokens = self.rows.restore_table()  # type: ignore[union-attr]
        self.model.eval()
        return p

    def work(self) -> None:
        """Open what is written, and make the steps."""
        p = self.progress
        run, first = self.run, self.ranks.first
        with (
            run.metrics_log(keep=p.metrics_bytes) if first else nullcontext() as metrics,
            run.timing_log(keep=p.timing_bytes) if first else nullcontext() as timing,
            self.stopping.defer(),
            threads(self.objective.threads),
            show_progress("training (steps)", self.total) as bar,
        ):
            bar.advance(p.step)
            self.steps(metrics, timing, bar)

    def steps(self, metrics: JsonLines | None, timing: JsonLines | None, bar: Bar) -> None:
        """All steps that are left, with evaluations and checkpoints where they are due."""
        p = self.progress
        began, saved = time.monotonic() - p.seconds, time.monotonic()
        while p.step < self.total and not p.stopped_early:
            if self.lost.is_set():
                raise UserError(f"{self.run.path}: another process has taken this run over")
            self.step(p.step)
            p.step += 1
            bar.advance(1, self.note())
            now = time.monotonic()
            p.seconds = now - began
            if p.step == self.objective.first_steps:
                self.write_running(metrics)
            worth = False
            if self.evaluation_due(p.step):
                best = p.best_step
                self.evaluate(metrics)
                now = time.monotonic()
                p.seconds = now - began
                if timing is not None:
                    seconds = max(p.seconds, 1e-9)
                    timing.append(Timing(p.step, p.seconds, p.examples / seconds, p.tokens / seconds))
                ended = p.step == self.total or p.stopped_early
                worth = ended or p.best_step != best or now - saved > LEAST_SECONDS
            if p.step == self.pinned >= 0:
                p.pinned, worth = p.step, True
            asked, due = self.agreed(worth or now - saved > CHECKPOINT_SECONDS)
            if asked or due:
                self.settle()
                if metrics is not None and timing is not None:
                    p.metrics_bytes, p.timing_bytes = metrics.sync(), timing.sync()
                    checkpoint.save(self.run, p, self.weights(), self.optimiser.state_dict())
                self.ranks.barrier()  # none ends before it is written
                saved = time.monotonic()
            if asked:
                raise StoppedError(
                    f"stopped by {asked.name} after step {p.step} of {self.total}; "
                    "the same command with --resume continues",
                    asked,
                )

    def agreed(self, due: bool) -> tuple[signal.Signals | None, bool]:
        """Which signal, in whichever process, asks to stop after this step; whether to save."""
        if self.ranks.alone:
            return self.stopping.asked, due
        flags = [self.stopping.asked is number for number in SIGNALS]
        *flags, due = map(bool, self.ranks.maximum([*flags, due and self.ranks.first]))
        return next((number for number, sent in zip(SIGNALS, flags, strict=True) if sent), None), due

    def examples_of(self, step: int) -> tuple[int, Ints]:
        """The epoch of a step and its examples; none while the objective pretrains."""
        first = self.objective.first_steps
        if step < first:
            return 0, np.empty(0, np.int64)
        epoch = bisect_right(self.ends, step)
        begin = first if epoch == 0 else self.ends[epoch - 1]
        return epoch, self.batches.plan(epoch)[step - begin]

    def parts(self, examples: Ints) -> int:
        """In how many parts a step is computed: as asked for, or more, so that each fits a CPU's cache.

        Processes take turns at the parts, so that there are as many for each.
        """
        parts, tokens, size = self.options.accumulate, self.objective.part_tokens, self.ranks.size
        if self.device.type == "cpu" and tokens:
            fitting = -(-int(self.batches.lengths[examples].sum()) // tokens)
            parts = max(parts, min(fitting, len(examples)))
        return -(-parts // size) * size

    def rate(self, step: int) -> float:
        """The learning rate of a step; steps before the task have a schedule of their own."""
        first, total, warmup = self.objective.first_steps, self.total, self.warmup
        if step < first:
            total, warmup = first, schedules.warmup_steps(self.options.warmup, first)
        else:
            step, total = step - first, total - first
        return self.lr * schedules.factor(self.options.schedule, step, total, warmup)

    def step(self, step: int) -> None:
        """One update.

        Every process prepares the whole step, and computes its own parts of it: what is hidden or drawn, and
        the counts that losses are divided by, are those of one process.
        """
        o, rank = self.options, self.ranks.rank
        _, examples = self.examples_of(step)
        prepared = self.objective.prepare(examples, step, self.parts(examples))
        whole: dict[str, float] = {}
        for part in prepared:
            for name, n in (part.divisors or part.counts).items():
                whole[name] = whole.get(name, 0.0) + n
            self.count(part)
        if self.objective.one_mean:
            whole = dict.fromkeys(whole, sum(whole.values()))
        seed_generators(key(o.seed, "dropout", step, *([rank] if rank else [])) % 2**63, self.device)
        rate, weights = self.rate(step), self.objective.weights_at(step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.pending.append(self.gradients(prepared, whole, weights))
        if self.device.type == "cpu" or (step + 1) % SETTLE_EVERY == 0:
            self.settle()
        if o.clip:
            clip([p.grad for p in self.moving if p.grad is not None], o.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def gradients(
        self, prepared: list[Inputs], whole: Mapping[str, float], weights: Mapping[str, float]
    ) -> list[Losses]:
        """Forward and backward passes of this process's parts; the gradients are those of all processes."""
        together, made = self.together, []
        losses = partial(self.objective.losses, self.model) if together is None else together.losses
        mine = [part.to(self.device) for part in prepared[self.ranks.rank :: self.ranks.size]]
        if together is not None:
            together.begin(len(prepared))
        for at, part in enumerate(mine, 1):
            with nullcontext() if together is None else together.part(last=at == len(mine)):
                with autocast(self.precision, self.device):
                    run = losses(part)
                terms = [total * (weights[name] / (whole[name] or 1.0)) for name, total in run.sums.items()]
                loss = torch.stack(terms).sum() if len(terms) > 1 else terms[0]
                (loss if together is None else loss * together.scale).backward()  # type: ignore[no-untyped-call]
            made.append(Losses({name: total.detach() for name, total in run.sums.items()}, run.right))
        if together is not None:
            together.finish()
        return made

    def count(self, part: Inputs) -> None:
        """Add a part's units to the running ones."""
        p = self.progress
        p.examples += part.examples
        p.tokens += part.tokens
        for name, n in part.counts.items():
            p.running_loss.setdefault(name, 0.0)
            p.running_weight[name] = p.running_weight.get(name, 0.0) + (part.divisors or part.counts)[name]
            p.running_count[name] = p.running_count.get(name, 0) + n

    def settle(self) -> None:
        """Add the losses of the last steps to the running ones; ends the run when they are no numbers."""
        p, names = self.progress, list(self.objective.weights)
        own = [
            [sum(one.sums[name].item() for one in step if name in one.sums) for name in names]
            + [sum(int(one.right or 0) for one in step)]
            for step in self.pending
        ]
        for *sums, right in self.ranks.sum(own) if own else []:
            for name, total in zip(names, sums, strict=True):
                if name in p.running_loss:
                    p.running_loss[name] += total
            p.running_right += int(right)
        self.pending.clear()
        if not all(math.isfinite(v) for v in p.running_loss.values()):
            raise self.no_number("loss")

    def no_number(self, what: str) -> UserError:
        """The run cannot go on."""
        kept = "; the last checkpoint is intact" if checkpoint.steps(self.run) else ""
        step = self.progress.step + 1
        return UserError(f"the {what} is no longer a number at step {step}; a lower --lr may help{kept}")

    def evaluation_due(self, step: int) -> bool:
        """Whether dev is scored after this many steps."""
        if step == self.total:
            return True
        done = step - self.objective.first_steps
        if done <= 0:
            return False
        if self.options.eval_every is not None:
            return done % self.options.eval_every == 0
        return step in self.ends

    def epoch(self) -> float:
        """How many epochs are done, with the part of the current one."""
        p = self.progress
        if p.step <= self.objective.first_steps:
            return 0.0
        epoch, _ = self.examples_of(p.step - 1)
        begin = self.objective.first_steps if epoch == 0 else self.ends[epoch - 1]
        return round(epoch + (p.step - begin) / (self.ends[epoch] - begin), 6)

    def write_running(self, log: JsonLines | None) -> None:
        """Write the losses while training since the last such row."""
        self.settle()
        p = self.progress
        parts = {name: p.running_loss[name] / (p.running_weight[name] or 1.0) for name in p.running_loss}
        weights, main = self.objective.weights_at(p.step - 1), next(iter(self.objective.weights))
        loss = sum(weights.get(name, 0.0) * value for name, value in parts.items())
        if self.objective.one_mean:
            loss = sum(p.running_loss.values()) / (sum(p.running_weight.values()) or 1.0)
        seen = p.running_count.get(main, 0)
        counted = seen and self.own_metric
        value = self.objective.value(parts[main], p.running_right, seen) if counted else None
        several = parts if parts.keys() != {main} else None
        rate = self.rate(p.step - 1)
        self.write(log, Metrics(p.step, self.epoch(), "train", loss, value, seen, rate, several))
        p.running_loss, p.running_weight, p.running_count, p.running_right = {}, {}, {}, 0

    def evaluate(self, log: JsonLines | None) -> None:
        """Score, write the rows, and remember the best; other processes wait for the first one's verdict."""
        self.write_running(log)
        if self.ranks.first:
            self.judge(log)
        p = self.progress
        p.verdict = self.ranks.broadcast(p.verdict)

    def judge(self, log: JsonLines | None) -> None:
        """Score train and dev."""
        p, epoch = self.progress, self.epoch()
        if len(self.train_rows):
            found = self.score("train", self.train_rows)
            self.write(log, Metrics(p.step, epoch, "train_eval", found.loss, found.value, found.n))
        if "dev" not in self.objective.splits:
            p.best_step = p.step
            return
        found = self.score("dev")
        if not math.isfinite(found.loss):
            raise self.no_number("loss on dev")
        self.write(log, Metrics(p.step, epoch, "dev", found.loss, found.value, found.n))
        key = self.metric.sort_key
        better = p.best_step < 0 or key(found.value, found.loss) > key(p.best_value, p.best_loss)
        if better or self.options.select == "last":
            p.best_step = p.step
        if better:
            p.best_value, p.best_loss = found.value, found.loss
            p.evaluations_since_best = 0
        else:
            p.evaluations_since_best += 1
            patience = self.options.patience
            p.stopped_early = patience is not None and p.evaluations_since_best >= patience

    def score(self, split: str, rows: Ints | None = None) -> Evaluation:
        """Score a split in the run's precision."""
        with autocast(self.precision, self.device):
            return self.metric.score(self.objective.evaluate(self.model, split, rows))

    def write(self, log: JsonLines | None, row: Metrics) -> None:
        """One row, to the file and to whoever follows; only the first process has a file."""
        if log is None:
            return
        log.append(row)
        for tracker in self.trackers:
            tracker.log(row)
        if self.on_row is not None:
            self.on_row(row)

    def note(self) -> str:
        """What stands beside the bar."""
        p = self.progress
        main = next(iter(self.objective.weights))
        parts = (
            [f"loss {p.running_loss[main] / p.running_weight[main]:.3f}"]
            if p.running_weight.get(main)
            else []
        )
        if p.best_step >= 0 and math.isfinite(p.best_value):
            parts.append(f"best dev {self.metric.title} {p.best_value:.3f}")
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
        found = checkpoint.load_latest(self.run) if self.ranks.first else None
        step = self.ranks.broadcast(None if found is None else found[0].step)
        if step is None:
            return
        progress, weights, optimiser = found or checkpoint.read_checkpoint(
            checkpoint.checkpoint_folder(self.run, step)
        )
        if progress.data != self.progress.data:
            raise UserError(
                f"{self.run.path}: was made with other data or batch settings; --overwrite starts anew"
            )
        if weights.keys() != self.parameters.keys():
            raise UserError(f"{self.run.path}: was made with other parameters; --overwrite starts anew")
        self.load(weights)
        self.optimiser.load_state_dict(optimiser)
        if progress.processes != self.ranks.size:
            print(
                f"heedful: {self.run.path}: its last checkpoint is of {several(progress.processes)}, "
                f"it goes on with {several(self.ranks.size)}: to rounding, not to the bit",
                file=sys.stderr,
            )
        self.progress = replace(progress, processes=self.ranks.size)


def several(processes: int) -> str:
    """A number of processes in words."""
    return "1 process" if processes == 1 else f"{processes} processes"
