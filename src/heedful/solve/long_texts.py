"""What the training process measures about long texts: the same linear model on other readings of them."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from heedful.evaluation.selection import compare_with_best
from heedful.objectives.base import evaluation_mode
from heedful.options.training import AdaptOptions
from heedful.solve.insight.long_texts import How, LongTextScores
from heedful.solve.probes import (
    Ints,
    StatesProbe,
    find_probe_metric,
    hold_out,
    predict_held_out,
    read_outputs,
)
from heedful.text import Tokenizer

States = npt.NDArray[np.float32]
Ids = tuple[list[int], list[int]]
"""Token ids and token types."""
MOST_ROWS, LEAST_HELD_OUT = 4000, 100
"""The most rows that are read again, and the fewest held-out ones that can show a difference."""
MOST_PARTS = 8
"""Parts of a text that are read; what is beyond them is not."""
TOGETHER, BATCH = 64, 16
"""Rows between two looks at the clock, and texts in a batch."""


def measure_long_texts(options: AdaptOptions, folds: int, seconds: float) -> LongTextScores:
    """Count the texts that are cut, and measure what reading more of them would bring.

    Only the states of long texts are computed again. If the time is over before all rows were read, those
    that were read are a random sample. `folds` of train are held out in turn as well, besides dev.
    """
    end = time.monotonic() + seconds
    probe = StatesProbe(options)
    tokens = [probe.objective.tokens[name] for name in ("train", "dev")]
    share = sum(part.truncated_rows for part in tokens) / sum(map(len, tokens))
    found = LongTextScores(share, probe.max_len)
    if not found.open:
        return found
    readings, rows = read_again(probe, end)
    probes = {how: take_rows(probe, states, rows) for how, states in readings.items()}
    parts = hold_out(probes["cut"], folds)
    targets = np.concatenate([probes["cut"].labels[split][held_out] for _, split, held_out in parts])
    size = min(len(part) for part, _, _ in parts)
    if len(targets) < LEAST_HELD_OUT or len(np.unique(probe.labels["train"][probes["cut"].rows])) < 2:
        return found
    metric = find_probe_metric(probe)
    outputs = {how: predict_held_out(one, parts, size) for how, one in probes.items()}
    predicted = {how: read_outputs(probe, metric, one, targets) for how, one in outputs.items()}
    scores = {how: float(metric.compute(targets, labels)) for how, labels in predicted.items()}
    tests = compare_with_best(metric, targets, predicted, list(predicted))  # cutting against each other way
    better = [how for how, test in tests.items() if test.differs and test.better_first().a == how]
    return replace(found, metric=metric.title, held_out=len(targets), scores=scores, better=tuple(better))


Readings = dict[How, dict[str, States]]


def read_again(probe: StatesProbe, end: float) -> tuple[Readings, dict[str, Ints]]:
    """Return the states of each way to read, and the positions of the rows that were read in the time."""
    reader = LongTextReader(probe)
    ways: list[How] = ["cut", "head-tail"] if reader.paired else ["cut", "head-tail", "parts"]
    readings: Readings = {how: {name: s.copy() for name, s in probe.states.items()} for how in ways}
    counts = {name: len(states) for name, states in probe.states.items()}
    splits = np.repeat(list(counts), list(counts.values()))
    positions = np.concatenate([np.arange(n) for n in counts.values()])
    order = np.random.default_rng(0).permutation(len(positions))[:MOST_ROWS]
    done = 0
    while done < len(order) and time.monotonic() < end:
        now = order[done : done + TOGETHER]
        done += len(now)
        for name in counts:
            chosen = np.sort(positions[now][splits[now] == name])
            long = chosen[reader.find_long(name, chosen)]
            for how in ways[1:] if len(long) else ():
                readings[how][name][long] = reader.read(how, name, long)
    read = order[:done]
    return readings, {name: np.sort(positions[read][splits[read] == name]) for name in counts}


def take_rows(probe: StatesProbe, states: dict[str, States], rows: dict[str, Ints]) -> StatesProbe:
    """Return a probe with other states, and with some of the rows alone."""
    other = copy.copy(probe)
    other.rows = probe.rows[rows["train"]]
    other.states = {name: states[name][positions] for name, positions in rows.items()}
    other.labels = {**probe.labels, "dev": probe.labels["dev"][rows["dev"]]}
    return other


class LongTextReader:
    """Computes the pooled states of texts by other ways than cutting them."""

    def __init__(self, probe: StatesProbe) -> None:
        self.probe, self.objective, self.model = probe, probe.objective, probe.model
        self.tokenizer: Tokenizer = self.objective.tokenizer
        self.max_len = probe.max_len
        self.paired = probe.splits["train"].pairs is not None
        self.texts = {name: list(probe.splits[name].texts) for name in ("train", "dev")}
        self.pairs = {name: list(probe.splits[name].pairs or ()) for name in ("train", "dev")}

    def find_rows(self, split: str, positions: Ints) -> Ints:
        return self.probe.rows[positions] if split == "train" else positions

    def find_long(self, split: str, positions: Ints) -> npt.NDArray[np.bool_]:
        """Return which rows fill the whole length, so that they may have been cut."""
        return np.asarray(self.objective.lengths[split][self.find_rows(split, positions)] >= self.max_len)

    def read(self, how: How, split: str, positions: Ints) -> States:
        rows = self.find_rows(split, positions)
        texts = [self.texts[split][row] for row in rows]
        if how == "parts":
            return self.read_parts(texts)
        pairs = [self.pairs[split][row] for row in rows] if self.paired else None
        encoded = self.tokenizer.encode_batch(texts, pairs, max_len=self.max_len, long_texts="head-tail")
        return self.pool([(one.ids, one.types) for one in encoded])

    def read_parts(self, texts: Sequence[str]) -> States:
        """Return the mean of the states of a text's parts, which are about equally long."""
        whole, inner = self.tokenizer.encode_batch(texts), self.tokenizer.encode_batch(texts, special=False)
        parts: list[Ids] = []
        owners: list[int] = []
        for owner, (one, text) in enumerate(zip(whole, inner, strict=True)):
            divided = divide_ids((one.ids, one.types), text.ids, self.max_len)
            parts += divided
            owners += [owner] * len(divided)
        states, means = self.pool(parts), np.zeros((len(texts), self.model.config.pooled_width), np.float32)
        np.add.at(means, owners, states)
        return np.asarray(means / np.bincount(owners, minlength=len(texts))[:, None], np.float32)

    def pool(self, encoded: Sequence[Ids]) -> States:
        states = np.empty((len(encoded), self.model.config.pooled_width), np.float32)
        with evaluation_mode(self.model) as device:
            for start in range(0, len(encoded), BATCH):
                batch = encoded[start : start + BATCH]
                width = max(len(ids) for ids, _ in batch)
                ids = torch.full((len(batch), width), self.objective.pad_id)
                types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
                for row, (tokens, kinds) in enumerate(batch):
                    ids[row, : len(tokens)], types[row, : len(tokens)] = map(torch.tensor, (tokens, kinds))
                    mask[row, : len(tokens)] = 1
                given = types.to(device) if self.objective.with_types else None
                pooled = self.model.body.pooled(ids.to(device), mask.to(device), given)
                states[start : start + BATCH] = pooled.float().cpu().numpy()
        return states


def divide_ids(whole: Ids, inner: Sequence[int], max_len: int) -> list[Ids]:
    """Divide a text into parts of at most `max_len` tokens, each with the special tokens around it.

    `whole` are the ids and types of the text with its special tokens, `inner` the ids without them.
    """
    ids, types = whole
    added = len(ids) - len(inner)
    starts = [k for k in range(added + 1) if list(ids[k : k + len(inner)]) == list(inner)]
    front = starts[0] if starts else added
    room = max_len - added
    inside = range(front, front + min(len(inner), MOST_PARTS * room))
    count = max(1, math.ceil(len(inside) / room))
    before, after = list(range(front)), list(range(front + len(inner), len(ids)))
    places = [[*before, *part.tolist(), *after] for part in np.array_split(np.array(inside, np.int64), count)]
    return [([ids[i] for i in part], [types[i] for i in part]) for part in places]


def answer_long_texts(options: AdaptOptions, **request: Any) -> dict[str, Any]:
    return {"long_texts": asdict(measure_long_texts(options, **request))}
