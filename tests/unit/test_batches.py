"""Batches: every example once, never more than allowed, the same for the same seed, resumed exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.batches import IGNORED, Batches, collate, pad, padding_waste
from heedful.data.random import stream
from heedful.errors import UserError

LENGTHS = stream(0, "lengths").geometric(0.03, 3000) + 3
lengths_of = st.lists(st.integers(1, 60), max_size=150)
orders = st.sampled_from(["grouped", "shuffled", "sorted", "file"])
limits = st.one_of(
    st.fixed_dictionaries({"batch_size": st.integers(1, 40)}),
    st.fixed_dictionaries({"token_budget": st.integers(1, 300)}),
    st.fixed_dictionaries({"batch_size": st.integers(1, 40), "token_budget": st.integers(1, 300)}),
)


@settings(max_examples=150, deadline=None)
@given(lengths_of, orders, limits, st.integers(0, 5), st.integers(1, 4))
def test_every_example_is_seen_exactly_once_an_epoch_whatever_the_number_of_ranks(
    lengths, order, limits, epoch, world_size
):
    seen, steps, whole = [], set(), []
    for rank in range(world_size):
        batches = Batches(lengths, order=order, rank=rank, world_size=world_size, **limits)
        batches.epoch = epoch
        parts = list(batches)
        seen += [int(i) for part in parts for i in part]
        steps.add(len(parts))
        whole.append(parts)
    assert sorted(seen) == list(range(len(lengths)))
    assert len(steps) == 1
    for parts in zip(*whole, strict=True):
        members = np.concatenate(parts)
        assert len(members) <= limits.get("batch_size", len(members))
        longest = max(lengths[i] for i in members)
        assert len(members) == 1 or len(members) * longest <= limits.get("token_budget", np.inf)


@pytest.mark.parametrize("limits", [{"batch_size": 32}, {"token_budget": 2048}])
def test_batches_are_a_function_of_seed_and_epoch(limits):
    def epochs(seed, n=2):
        batches = Batches(LENGTHS, seed=seed, **limits)
        return [[b.tolist() for b in batches] for _ in range(n)]

    assert epochs(1) == epochs(1)
    assert epochs(1)[0] != epochs(1)[1]
    assert epochs(1)[0] != epochs(2)[0]


@pytest.mark.parametrize("limits", [{"batch_size": 32}, {"token_budget": 2048}])
@pytest.mark.parametrize("stop", [0, 1, 57, "end"])
def test_a_restored_position_continues_exactly(limits, stop):
    whole = Batches(LENGTHS, seed=3, **limits)
    stop = len(whole) if stop == "end" else stop
    steps = [b.tolist() for _ in range(2) for b in whole]
    first = Batches(LENGTHS, seed=3, **limits)
    taken = []
    if stop:
        for batch in first:
            taken.append(batch.tolist())
            if len(taken) == stop:
                break
    second = Batches(LENGTHS, seed=3, **limits)
    second.restore(first.state())
    while second.epoch < 2:
        taken += [b.tolist() for b in second]
    assert taken == steps


def test_the_position_may_move_to_another_number_of_ranks():
    one = Batches(LENGTHS, batch_size=32)
    for _, _ in zip(range(10), one, strict=False):
        pass
    rest = [sorted(b.tolist()) for b in Batches(LENGTHS, batch_size=32)][one.position :]
    halves = []
    for rank in range(2):
        part = Batches(LENGTHS, batch_size=32, rank=rank, world_size=2)
        part.restore(one.state())
        halves.append(list(part))
    assert [sorted(np.concatenate(pair).tolist()) for pair in zip(*halves, strict=True)] == rest


def test_a_position_in_other_data_is_refused():
    state = Batches(LENGTHS, batch_size=32).state()
    for other in (
        Batches(LENGTHS[1:], batch_size=32),
        Batches(LENGTHS, batch_size=16),
        Batches(LENGTHS, batch_size=32, seed=1),
    ):
        with pytest.raises(UserError, match="other data or other batch settings"):
            other.restore(state)


def test_drop_last_leaves_out_random_examples_and_not_the_longest():
    lengths = np.arange(1, 102)
    batches = Batches(lengths, batch_size=25, drop_last=True)
    left_out = []
    for _ in range(40):
        plan = list(batches)
        assert [len(b) for b in plan] == [25] * 4
        left_out += sorted(set(range(101)) - {int(i) for b in plan for i in b})
    assert len(left_out) == 40
    assert 25 < np.mean(left_out) < 75


def test_grouping_wastes_less_padding_and_keeps_batches_in_random_order():
    waste = padding_waste(LENGTHS, batch_size=32, token_budget=2048)
    assert waste["length-grouped"] < 0.1 < waste["shuffled"] < waste["all to the longest"]
    assert waste["length-grouped, token budget"] < 0.1
    assert waste["all to the longest"] == pytest.approx(1 - LENGTHS.mean() / LENGTHS.max())
    means = [LENGTHS[b].mean() for b in Batches(LENGTHS, batch_size=32)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.4


def test_file_order_measures_the_order_of_the_file():
    waste = padding_waste(np.sort(LENGTHS))
    assert waste["file order"] < 0.1 * waste["shuffled"]
    assert padding_waste([7] * 100) == dict.fromkeys(padding_waste([7] * 100), 0.0)
    with pytest.raises(ValueError, match="no text"):
        padding_waste([])


def test_evaluation_goes_from_the_longest_to_the_shortest():
    flat = [int(LENGTHS[i]) for b in Batches(LENGTHS, batch_size=50, order="sorted") for i in b]
    assert flat == sorted(flat, reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "batch_size or token_budget"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"token_budget": -5}, "token_budget is -5"),
        ({"batch_size": 2, "order": "groped"}, "one of grouped"),
        ({"token_budget": 2, "drop_last": True}, "fixed size"),
        ({"batch_size": 2, "rank": 2, "world_size": 2}, "rank is 2 of 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Batches([1, 2], **options)


def test_collate_pads_ids_types_and_token_labels():
    ids = [np.array([5, 6, 7]), np.array([8])]
    batch = collate(
        ids, pad_id=1, types=[np.array([0, 1, 1]), np.array([0])], labels=[2, 0], examples=np.array([9, 4])
    )
    assert batch.ids.tolist() == [[5, 6, 7], [8, 1, 1]]
    assert batch.mask.tolist() == [[True, True, True], [True, False, False]]
    assert batch.types.tolist() == [[0, 1, 1], [0, 0, 0]]
    assert batch.labels.tolist() == [2, 0]
    assert batch.examples.tolist() == [9, 4]
    tokens = collate(ids, pad_id=1, labels=[[1, 2, 3], [4]])
    assert tokens.labels.tolist() == [[1, 2, 3], [4, IGNORED, IGNORED]]
    tensors = tokens.tensors()
    assert set(tensors) == {"ids", "mask", "labels"}
    assert tensors["ids"].dtype == tensors["labels"].dtype == torch.int64
    assert tensors["mask"].dtype == torch.bool


def test_an_empty_part_of_a_batch_collates():
    batch = collate([], pad_id=0, labels=[])
    assert batch.ids.shape == (0, 0)
    assert batch.tensors()["labels"].shape == (0,)
    assert pad([], 0, width=4).shape == (0, 4)
