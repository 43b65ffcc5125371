"""Batches: every example once, never more than allowed, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.batches import IGNORED, Batches, collate, measure_padding, pad
from heedful.data.random import stream

LENGTHS = stream(0, "lengths").geometric(0.03, 3000) + 3
lengths_of = st.lists(st.integers(1, 60), max_size=150)
orders = st.sampled_from(["grouped", "shuffled", "sorted", "file"])
limits = st.one_of(
    st.fixed_dictionaries({"batch_size": st.integers(1, 40)}),
    st.fixed_dictionaries({"token_budget": st.integers(1, 300)}),
    st.fixed_dictionaries({"batch_size": st.integers(1, 40), "token_budget": st.integers(1, 300)}),
)


@settings(max_examples=150, deadline=None)
@given(lengths_of, orders, limits, st.integers(0, 5))
def test_every_example_is_in_exactly_one_batch_of_an_epoch(lengths, order, limits, epoch):
    plan = Batches(lengths, order=order, **limits).plan(epoch)
    batches = [plan[number] for number in range(len(plan))]
    assert sorted(int(i) for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= limits.get("batch_size", len(batch))
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= limits.get("token_budget", np.inf)


@pytest.mark.parametrize("limits", [{"batch_size": 32}, {"token_budget": 2048}])
def test_batches_are_a_function_of_seed_and_epoch(limits):
    def epochs(seed, n=2):
        batches = Batches(LENGTHS, seed=seed, **limits)
        plans = [batches.plan(epoch) for epoch in range(n)]
        return [[plan[number].tolist() for number in range(len(plan))] for plan in plans]

    assert epochs(1) == epochs(1)
    assert epochs(1)[0] != epochs(1)[1]
    assert epochs(1)[0] != epochs(2)[0]


def test_the_fingerprint_depends_on_the_data_and_the_settings():
    fingerprint = Batches(LENGTHS, batch_size=32).fingerprint()
    assert (
        Batches([3, 1, 2], batch_size=2).fingerprint() == 6_158_518_500_725_094
    )  # it is written into checkpoints
    for other in (
        Batches(LENGTHS[1:], batch_size=32),
        Batches(LENGTHS, batch_size=16),
        Batches(LENGTHS, batch_size=32, seed=1),
    ):
        assert other.fingerprint() != fingerprint


def test_grouping_wastes_less_padding_and_keeps_batches_in_random_order():
    waste = measure_padding(LENGTHS, batch_size=32, token_budget=2048)
    assert waste["length-grouped"] < 0.1 < waste["shuffled"] < waste["all to the longest"]
    assert waste["length-grouped, token budget"] < 0.1
    assert waste["all to the longest"] == pytest.approx(1 - LENGTHS.mean() / LENGTHS.max())
    means = [LENGTHS[b].mean() for b in Batches(LENGTHS, batch_size=32)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.4


def test_file_order_measures_the_order_of_the_file():
    waste = measure_padding(np.sort(LENGTHS))
    assert waste["file order"] < 0.1 * waste["shuffled"]
    assert measure_padding([7] * 100) == dict.fromkeys(measure_padding([7] * 100), 0.0)
    with pytest.raises(ValueError, match="no text"):
        measure_padding([])


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
