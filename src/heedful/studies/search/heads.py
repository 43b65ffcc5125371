"""All heads of a search at once: the body runs once, and one product serves every learning rate.

Heads on the same frozen body that see the same batches differ only in their weights and their rates, so that
their logits are one matrix product, with one mask of dropout, as each would have drawn it alone.
Grade: same mathematics (sums in another order).
"""

from __future__ import annotations

import copy
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.data.random import key
from heedful.errors import UserError
from heedful.models.heads import LinearHead
from heedful.objectives import ClassifyFeatures, Inputs, Losses
from heedful.objectives.base import upcast
from heedful.options.training import AdaptOptions
from heedful.progress import progress as show_progress
from heedful.runs.directory import METRICS, TIMING, Run
from heedful.runs.files import JsonLines, WriteError
from heedful.runs.schemas import Timing
from heedful.runs.studies import Configuration
from heedful.studies.base import drop_checkpoints
from heedful.training import checkpoint
from heedful.training.build import Job, build_adapt, learning_rate
from heedful.training.build.objective import resolve_objective
from heedful.training.devices import clip, seed_generators, threads
from heedful.training.loop import Loop
from heedful.training.record import write_description
from heedful.training.signals import StoppedError, StopSignals
from heedful.training.train import train_job

if TYPE_CHECKING:
    from heedful.studies.search.study import Search

Cell = tuple[Configuration, AdaptOptions]


def work_heads(study: Search, job: Sequence[Configuration], threads: int | None) -> bool:
    """Make the runs of a job, whose method is `head`; False where that cannot be done together."""
    cells = [(c, replace(study.options(c), threads=threads)) for c in job]
    stopping = StopSignals()
    failed: dict[str, Exception] = {}
    with stopping.listen():
        try:
            made = build_adapt(cells[0][1])
            cells = [(c, resolve_objective(o)) for c, o in cells]
            linear = isinstance(made.model.head, LinearHead)
            if made.from_scratch or not linear or made.precision != "float32":
                return False
            for size in sorted({o.batch_size for _, o in cells}):
                failed |= train_together(
                    made, [cell for cell in cells if cell[1].batch_size == size], stopping
                )
        except (StoppedError, WriteError):
            raise
        except Exception as error:  # what all need has failed for all
            failed = {c.name: error for c in job}
        for configuration, options in cells:
            with study.attempt(configuration):
                if configuration.name in failed:
                    raise failed[configuration.name]
                train_job(replace(made, options=options), stopping)
            drop_checkpoints(study.folder.run(configuration.name))
    return True


class One(nn.Module):
    """A model with a head of its own on the common body, which is not run again."""

    def __init__(self, common: Any) -> None:
        super().__init__()
        self.config = common.config
        self.head: LinearHead = copy.deepcopy(common.head)


def train_together(job: Job, cells: Sequence[Cell], stopping: StopSignals) -> dict[str, Exception]:
    """Train a head for each learning rate, and leave a checkpoint for each number of epochs.

    Gives the names of the cells that were not reached, because their loss is no longer a number.
    """
    chains: dict[float, list[AdaptOptions]] = {}
    for _, options in cells:
        chains.setdefault(learning_rate(options), []).append(options)
    heads = Heads(job, [sorted(chain, key=lambda o: o.epochs) for chain in chains.values()])
    print(f"heedful: {len(heads.loops)} heads are trained at once on kept features", file=sys.stderr)
    with ExitStack() as stack:
        stack.enter_context(stopping.defer())
        stack.enter_context(threads(1))
        logs = [
            (stack.enter_context(loop.run.metrics_log()), stack.enter_context(loop.run.timing_log()))
            for loop in heads.loops
        ]
        heads.train(logs, stopping)
    return {c.name: heads.failed[learning_rate(o)] for c, o in cells if o.out not in heads.left}


class Heads:
    """One loop a learning rate, stepped together; each writes what it would write alone."""

    def __init__(self, job: Job, chains: Sequence[Sequence[AdaptOptions]]) -> None:
        assert isinstance(job.objective, ClassifyFeatures)
        self.job, self.objective, self.chains = job, job.objective, chains
        self.failed: dict[float, Exception] = {}
        """By learning rate: why a head cannot go on."""
        self.left: set[Path | None] = set()
        """The runs that have their checkpoint."""
        longest = max(chain[-1].epochs for chain in chains)
        self.loops: list[Loop] = []
        for chain in chains:
            runs = [self.empty(o) for o in chain]
            model = One(job.model)
            named = {name: p for name, p in model.named_parameters() if name in job.method.parts}
            o = replace(chain[-1], epochs=longest)
            self.loops.append(
                Loop(model, named, self.objective, o, learning_rate(o), runs[-1], job.precision)
            )

    def empty(self, options: AdaptOptions) -> Run:
        """A run's folder with its configuration and nothing learnt; half of a killed attempt is removed."""
        assert options.out is not None
        run = Run(options.out)
        if run.path.is_dir():
            run.clear()
        run.path.mkdir(parents=True, exist_ok=True)
        write_description(run, replace(self.job, options=options))
        run.checkpoints.mkdir(exist_ok=True)
        return run

    def train(self, logs: Sequence[tuple[JsonLines, JsonLines]], stopping: StopSignals) -> None:
        """All steps; at each number of epochs that was asked for, the cells get their checkpoints."""
        first = self.loops[0]
        began = time.monotonic()
        with show_progress("training heads (steps)", first.total) as bar:
            for step in range(first.total):
                self.step(step)
                bar.advance()
                if stopping.asked:
                    raise StoppedError(f"stopped by {stopping.asked.name}")
                if step + 1 not in first.ends:
                    continue
                epoch = first.ends.index(step + 1) + 1
                for loop, chain, (metrics, timing) in zip(self.loops, self.chains, logs, strict=True):
                    if epoch > chain[-1].epochs or loop.lr in self.failed:
                        continue
                    with self.alive(loop):
                        p = loop.progress
                        p.step = step + 1
                        loop.evaluate(metrics)
                        p.seconds = (time.monotonic() - began) / len(self.loops)
                        rate = p.examples / max(p.seconds, 1e-9)
                        timing.append(Timing(p.step, p.seconds, rate, p.tokens / max(p.seconds, 1e-9)))
                        p.metrics_bytes, p.timing_bytes = metrics.sync(), timing.sync()
                        for options in chain:
                            if options.epochs == epoch:
                                self.leave(loop, options)

    @contextmanager
    def alive(self, loop: Loop) -> Iterator[None]:
        """Inside, a head whose loss is no longer a number drops out; the others go on."""
        try:
            yield
        except WriteError:
            raise
        except UserError as error:
            self.failed.setdefault(loop.lr, error)

    def leave(self, loop: Loop, options: AdaptOptions) -> None:
        """Give one cell what has been learnt so far."""
        assert options.out is not None
        run = Run(options.out)
        if run.path != loop.run.path:
            for name in (METRICS, TIMING):
                shutil.copyfile(loop.run.path / name, run.path / name)
        checkpoint.save(run, loop.progress, loop.weights(), loop.optimiser.state_dict())
        self.left.add(options.out)

    def step(self, step: int) -> None:
        """One update of every head."""
        first = self.loops[0]
        o = first.options
        _, examples = first.examples_of(step)
        (part,) = self.objective.prepare(examples, step)
        part = part.to(first.device)
        heads: list[LinearHead] = [loop.model.head for loop in self.loops]  # type: ignore[misc]
        seed_generators(key(o.seed, "dropout", step) % 2**63, first.device)
        features = heads[0].train().dropout(part.tensors["features"])  # [b, d]: the same mask for all
        weight = torch.cat([head.out.weight.detach() for head in heads]).requires_grad_()  # [k n, d]
        bias = torch.cat([head.out.bias.detach() for head in heads]).requires_grad_()
        logits = upcast(F.linear(features, weight, bias)).view(len(features), len(heads), -1)  # [b, k, n]
        losses = self.losses(logits, part.tensors["labels"])  # [k]
        whole = float((part.divisors or part.counts)["classify"]) or 1.0
        by_weight, by_bias = torch.autograd.grad(losses.sum() / whole, [weight, bias])
        right = (logits.detach().argmax(2) == part.tensors["labels"][:, None]).sum(0)
        n = heads[0].out.out_features
        for i, (loop, head) in enumerate(zip(self.loops, heads, strict=True)):
            if loop.lr in self.failed:
                continue
            head.out.weight.grad = by_weight[i * n : (i + 1) * n]
            head.out.bias.grad = by_bias[i * n : (i + 1) * n]
            with self.alive(loop):
                self.update(loop, step, part, Losses({"classify": losses[i].detach()}, right[i]))

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The sum of each head's losses: logits [b, k, n], labels [b], to [k]."""
        weights = self.objective.class_weights
        each = F.cross_entropy(
            logits.flatten(0, 1),
            labels.repeat_interleave(logits.shape[1]),
            None if weights is None else weights.to(logits),
            reduction="none",
            label_smoothing=self.objective.label_smoothing,
        )
        return each.view(logits.shape[:2]).sum(0)

    def update(self, loop: Loop, step: int, part: Inputs, found: Losses) -> None:
        """One head's own step, from its gradient."""
        loop.pending.append([found])
        loop.progress.step = step
        loop.count(part)
        loop.settle()
        for group in loop.optimiser.param_groups:
            group["lr"] = loop.rate(step)
        if loop.options.clip:
            clip([p.grad for p in loop.moving if p.grad is not None], loop.options.clip)
        loop.optimiser.step()
        loop.optimiser.zero_grad(set_to_none=True)
