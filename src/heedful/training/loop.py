"""The one training loop, for every objective and method: steps, evaluations and the best model.

A step is a pure function of the weights, the optimizer's state and its own number: the batch, the corruption
and dropout all come from streams keyed by (seed, purpose, step). So a run that was killed and resumed ends
with the same bits as one that never stopped.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.random import key, stream
from heedful.errors import UserError
from heedful.inference.devices import autocast
from heedful.objectives import Evaluation, Inputs, Losses, Objective
from heedful.objectives.base import Ints
from heedful.options.training import LoopOptions
from heedful.progress import ProgressBar
from heedful.progress import progress as show_progress
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics
from heedful.training import checkpoint, optimizers
from heedful.training.checkpoint import TrainingState
from heedful.training.devices import clip, seed_generators, threads
from heedful.training.distributed import GradientExchange, agree_on_stop
from heedful.training.plan import StepPlan, count_dev
from heedful.training.ranks import Ranks, current_ranks
from heedful.training.run_log import RunLog
from heedful.training.running_losses import RunningLosses
from heedful.training.selection import Selection
from heedful.training.signals import StoppedError, StopSignals
from heedful.training.sparse_embeddings import use_occurring_rows
from heedful.training.trackers import Tracker

CHECKPOINT_SECONDS = 300.0
LEAST_SECONDS = 1.0
"""An evaluation that found nothing better is not worth a checkpoint so soon after another."""
COLLECT_EVERY = 20
"""Number of steps whose losses stay on a device other than the CPU, so that it need not be waited for."""


@dataclass
class Loop:
    """Trains the `parameters` of a model to minimize an objective."""

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
        o = self.options
        self.selection = Selection(o, self.objective)
        self.metric = self.selection.metric
        self.device = next(iter(self.parameters.values())).device
        self.parameters = dict(self.parameters)
        self.rows = use_occurring_rows(self.model, self.parameters, self.objective.train_ids())
        self.moving = list(self.parameters.values())
        self.plan = StepPlan(o, self.objective)
        groups = optimizers.group_parameters(self.model, self.parameters, o.weight_decay)
        self.optimizer = optimizers.make(o.optimizer, groups, self.lr)
        self.state = TrainingState(
            data=key(self.plan.batches.fingerprint(), self.objective.content()) % 2**53,
            warmup=self.plan.warmup,
            processes=self.ranks.size,
        )
        if self.ranks.broadcast((self.state.data, self.precision)) != (self.state.data, self.precision):
            raise UserError("the processes read other data, or compute in another precision, than the first")
        self.exchange: GradientExchange | None = None
        if not self.ranks.alone:
            self.exchange = GradientExchange(self.model, self.objective, self.moving, self.ranks)
        self.log = RunLog(self.run, self.trackers, self.on_row)
        self.losses = RunningLosses(self.objective, self.ranks)
        order = stream(o.seed, "train rows scored").permutation(len(self.objective.train_lengths()))
        self.train_rows: Ints = np.sort(order[: self.plan.count_scored_rows(count_dev(self.objective))])
        """The training rows that evaluations score."""

    def train(self, *, resume: bool = False) -> TrainingState:
        """Train to the end, or to a signal; afterwards the model has its best weights."""
        if resume:
            self.restore()
        self.model.train()
        try:
            with (
                self.log.open(self.state) if self.ranks.first else nullcontext(),
                self.stopping.defer(),
                threads(self.objective.threads),
                show_progress("training (steps)", self.plan.total) as bar,
            ):
                bar.advance(self.state.step)
                self.take_steps(bar)
            if self.ranks.first and self.state.best_step != self.state.step:
                best = checkpoint.load_weights(self.run, self.state.best_step)
                checkpoint.copy_weights(best, self.parameters)
        finally:
            self.exchange = None
            if self.rows is not None:
                self.model.body.embed.tokens = self.rows.restore_table()  # type: ignore[union-attr]
        self.model.eval()
        return self.state

    def take_steps(self, bar: ProgressBar) -> None:
        """Take all steps that are left, with evaluations and checkpoints where they are due."""
        state, plan = self.state, self.plan
        start, saved = time.monotonic() - state.seconds, time.monotonic()
        if state.step == 0 and self.selection.scores_start and state.best_step < 0:
            self.evaluate_and_select()
            self.write_checkpoint()
        while state.step < plan.total and not (state.stopped_early or self.stopping.is_over(state.best_step)):
            if self.lost.is_set():
                raise UserError(f"{self.run.path}: another process has taken this run over")
            self.step(state.step)
            state.step += 1
            state.seconds = (now := time.monotonic()) - start
            bar.advance(1, self.losses.describe(state, self.metric.title))
            if state.step == self.objective.first_steps:
                self.write_running()
            worth_saving = False
            if plan.evaluates_after(state.step):
                best = state.best_step
                self.log.watch_scoring(self.evaluate_and_select, state, plan.interval)
                state.seconds = (now := time.monotonic()) - start
                self.log.write_timing(state)
                ended = state.step == plan.total or state.stopped_early
                worth_saving = ended or state.best_step != best or now - saved > LEAST_SECONDS
            if state.step == plan.decay_start >= 0:
                state.pinned, worth_saving = state.step, True
            due = worth_saving or now - saved > CHECKPOINT_SECONDS
            asked, due = agree_on_stop(self.ranks, self.stopping.asked, due)
            if asked or due:
                self.collect_losses()
                self.write_checkpoint()
                saved = time.monotonic()
            if asked:
                reached = f"stopped by {asked.name} after step {state.step} of {plan.total}"
                raise StoppedError(f"{reached}; the same command with --resume continues", asked)

    def choose_examples(self, step: int) -> Ints:
        return self.plan.examples_of(step)[1]

    def rate(self, step: int) -> float:
        return self.lr * self.plan.rate_factor(step)

    def count_parts(self, examples: Ints) -> int:
        """Return in how many parts a step is computed: as given, or more, so that each fits a CPU's cache.

        Processes take turns at the parts, so it is a multiple of their number.
        """
        parts, tokens, size = self.options.accumulate, self.objective.part_tokens, self.ranks.size
        if self.device.type == "cpu" and tokens:
            fitting = -(-int(self.plan.batches.lengths[examples].sum()) // tokens)
            parts = max(parts, min(fitting, len(examples)))
        return -(-parts // size) * size

    def step(self, step: int) -> None:
        """Take one optimizer step.

        Every process prepares the whole step, and computes its own parts of it: what is hidden or drawn, and
        the counts that losses are divided by, are those of one process.
        """
        o, rank = self.options, self.ranks.rank
        examples = self.choose_examples(step)
        prepared = self.objective.prepare(examples, step, self.count_parts(examples))
        divisors: dict[str, float] = {}
        for part in prepared:
            for name, n in (part.divisors or part.counts).items():
                divisors[name] = divisors.get(name, 0.0) + n
            self.losses.count(self.state, part)
        if self.objective.one_mean:
            divisors = dict.fromkeys(divisors, sum(divisors.values()))
        seed_generators(key(o.seed, "dropout", step, *([rank] if rank else [])) % 2**63, self.device)
        rate, weights = self.rate(step), self.objective.weights_at(step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.losses.pending.append(self.compute_gradients(prepared, divisors, weights))
        if self.device.type == "cpu" or (step + 1) % COLLECT_EVERY == 0:
            self.collect_losses()
        if o.clip:
            clip([p.grad for p in self.moving if p.grad is not None], o.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def compute_gradients(
        self, prepared: list[Inputs], divisors: Mapping[str, float], weights: Mapping[str, float]
    ) -> list[Losses]:
        """Run this process's parts forward and backward; the gradients are those of all processes."""
        exchange, results = self.exchange, []
        forward = partial(self.objective.losses, self.model) if exchange is None else exchange.losses
        own_parts = [part.to(self.device) for part in prepared[self.ranks.rank :: self.ranks.size]]
        if exchange is not None:
            exchange.begin(len(prepared))
        for number, part in enumerate(own_parts, 1):
            with nullcontext() if exchange is None else exchange.part(last=number == len(own_parts)):
                with autocast(self.precision, self.device):
                    losses = forward(part)
                sums = losses.sums
                terms = [total * (weights[name] / (divisors[name] or 1.0)) for name, total in sums.items()]
                loss = torch.stack(terms).sum() if len(terms) > 1 else terms[0]
                (loss if exchange is None else loss * exchange.scale).backward()  # type: ignore[no-untyped-call]
            results.append(Losses({name: total.detach() for name, total in sums.items()}, losses.right))
        if exchange is not None:
            exchange.finish()
        return results

    def collect_losses(self) -> None:
        """Add the losses of the last steps to the running ones; ends the run if they are not finite."""
        if not self.losses.add_pending(self.state):
            raise self.not_finite("loss")

    def not_finite(self, what: str) -> UserError:
        intact = "; the last checkpoint is intact" if checkpoint.steps(self.run) else ""
        step = self.state.step + 1
        return UserError(f"the {what} is no longer a number at step {step}; a lower --lr may help{intact}")

    def epoch(self) -> float:
        return self.plan.epochs_after(self.state.step)

    def write_running(self) -> None:
        """Write the losses while training since the last such row."""
        self.collect_losses()
        state, main = self.state, next(iter(self.objective.weights))
        loss, parts = self.losses.means(state)
        seen = state.running_count.get(main, 0)
        counted = seen and self.selection.own_metric
        value = self.objective.value(parts[main], state.running_right, seen) if counted else None
        several = parts if parts.keys() != {main} else None
        rate = self.rate(state.step - 1)
        self.log.write(Metrics(state.step, self.epoch(), "train", loss, value, seen, rate, several))
        self.losses.clear(state)

    def evaluate_and_select(self) -> None:
        """Score, write the rows, and remember the best; other processes wait for the first one's verdict."""
        if self.state.step:
            self.write_running()
        if self.ranks.first:
            self.score_train_and_dev()
        self.state.verdict = self.ranks.broadcast(self.state.verdict)

    def score_train_and_dev(self) -> None:
        """Score some training rows and dev, and decide whether this is the best model so far."""
        state, epoch = self.state, self.epoch()
        if len(self.train_rows):
            train = self.score_split("train", self.train_rows)
            self.log.write(Metrics(state.step, epoch, "train_eval", train.loss, train.value, train.n))
        if "dev" not in self.objective.splits:
            state.best_step = state.step
            return
        dev = self.score_split("dev")
        if not math.isfinite(dev.loss):
            raise self.not_finite("loss on dev")
        self.log.write(Metrics(state.step, epoch, "dev", dev.loss, dev.value, dev.n))
        self.selection.update(state, dev)

    def score_selected(self, split: str) -> Evaluation:
        """Score a split with the selected model; that of dev is known, unless the run was resumed since."""
        if split == "dev" and self.selection.selected is not None:
            return self.selection.selected
        with threads(self.objective.threads):
            return self.score_split(split)

    def score_split(self, split: str, rows: Ints | None = None) -> Evaluation:
        with autocast(self.precision, self.device):
            return self.metric.score(self.objective.evaluate(self.model, split, rows))

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach().cpu().clone() for name, p in self.parameters.items()}

    def write_checkpoint(self) -> None:
        self.log.save_checkpoint(self.state, self.weights(), self.optimizer.state_dict())
        self.ranks.barrier()  # no process ends before it is written

    def restore(self) -> None:
        """Continue from the newest intact checkpoint, if there is one."""
        restored = self.log.restore(self.state, self.parameters, self.ranks)
        if restored is not None:
            self.state, weights, optimizer = restored
            checkpoint.copy_weights(weights, self.parameters)
            self.optimizer.load_state_dict(optimizer)
