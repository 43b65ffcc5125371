"""Masking and span corruption: what is hidden can be rebuilt, nothing else changes, rates hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.batches import IGNORED
from heedful.data.corruption import (
    convert_to_token_ranges,
    find_salient_ranges,
    hide_single_span,
    hide_t5_spans,
    is_long_enough,
    mask_tokens,
)
from heedful.data.random import stream

PAD, CLS, SEP, MASK, EOS, VOCAB = 0, 1, 2, 3, 4, 200
SPECIAL = [PAD, CLS, SEP, MASK, EOS]
SENTINELS = list(range(299, 199, -1))

documents = st.lists(st.lists(st.integers(5, VOCAB - 1), min_size=4, max_size=90), min_size=1, max_size=9)
seeds = st.integers(0, 2**32)


def arrays(lists):
    return [np.array(row) for row in lists]


def batch(rows=64, width=128, seed=0):
    generator = stream(seed, "test batch")
    ids = generator.integers(5, VOCAB, (rows, width))
    lengths = generator.integers(8, width - 1, rows)
    ids[:, 0] = CLS
    ids[np.arange(width)[None] >= lengths[:, None]] = PAD
    ids[np.arange(rows), lengths] = SEP
    return ids


def mask(ids, **options):
    return mask_tokens(ids, **{"special_ids": SPECIAL, "mask_id": MASK, "vocab_size": VOCAB, **options})


def within(count, n, p, sigmas=5):
    return abs(count - n * p) <= sigmas * np.sqrt(n * p * (1 - p)) + 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=7, max_size=7), min_size=1, max_size=6),
    st.floats(0, 1),
    seeds,
)
def test_masking_touches_ordinary_tokens_only_and_the_labels_restore_them(lists, rate, seed):
    ids = np.array(lists)
    before = ids.copy()
    inputs, labels = mask(ids, rate=rate, generator=stream(seed, "m"))
    assert (ids == before).all()
    chosen = labels != IGNORED
    assert not np.isin(ids[chosen], SPECIAL).any()
    assert (np.where(chosen, labels, inputs) == ids).all()
    assert not np.isin(inputs[chosen & (inputs != MASK)], SPECIAL).any()
    if rate > 0:
        has_ordinary = ~np.isin(ids, SPECIAL).all(axis=1)
        assert (chosen.any(axis=1) == has_ordinary).all()
    else:
        assert not chosen.any()


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.4, 1.0])
def test_the_rate_and_the_80_10_10_hold_within_binomial_bounds(rate):
    ids = batch(rows=400, width=300)
    ids[:, 1:8] = 5 + np.arange(7)
    inputs, labels = mask(ids, rate=rate, generator=stream(0, "rate"))
    ordinary, chosen = ~np.isin(ids, SPECIAL), labels != IGNORED
    long = ordinary.sum(axis=1) > 100  # there the one token a row is granted does not matter
    assert within(chosen[long].sum(), ordinary[long].sum(), rate)
    n = chosen.sum()
    assert within((inputs[chosen] == MASK).sum(), n, 0.8)
    others = VOCAB - len(SPECIAL)
    assert within((inputs[chosen] == ids[chosen]).sum(), n, 0.1 + 0.1 / others)
    replaced = inputs[chosen & (inputs != MASK) & (inputs != ids)]
    assert set(np.unique(replaced)) <= set(range(5, VOCAB))
    assert within(len(replaced), n, 0.1 * (1 - 1 / others))


def test_every_epoch_and_every_worker_masks_anew_and_a_resume_repeats_exactly():
    ids = batch()

    def labels(*keys):
        return mask(ids, generator=stream(3, "masking", *keys))[1]

    assert (labels(0, 0) == labels(0, 0)).all()
    for other in [(1, 0), (0, 1)]:
        both = (labels(0, 0) != IGNORED) & (labels(*other) != IGNORED)
        either = (labels(0, 0) != IGNORED) | (labels(*other) != IGNORED)
        assert both.sum() < 0.2 * either.sum()


def test_whole_words_are_chosen_whole_at_the_same_rate():
    ids = batch(rows=300, width=120)
    words = np.broadcast_to(np.arange(120) // 3, ids.shape).copy()
    words[np.isin(ids, SPECIAL)] = -1
    _, labels = mask(ids, words=words, generator=stream(0, "words"))
    chosen = labels != IGNORED
    for row in range(len(ids)):
        for word in range(words[row].max() + 1):
            assert len(set(chosen[row, words[row] == word].tolist())) <= 1
    assert chosen.any(axis=1).all()
    n = (words >= 0).sum()
    assert abs(chosen.sum() / n - 0.15) < 0.02


def test_masking_takes_one_row_and_small_integer_types():
    ids = batch(rows=1)[0].astype(np.uint16)
    inputs, labels = mask(ids, generator=stream(0, "row"))
    assert inputs.shape == labels.shape == ids.shape
    assert inputs.dtype == np.uint16
    assert labels.min() == IGNORED


def test_a_rate_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="rate"):
        mask(batch(), rate=15, generator=stream(0, "x"))


def parts(row):
    """Split a single-span row into prefix, suffix and span; says whether the last MASK is there."""
    row = row[: len(row) - int((row[::-1] == PAD).argmin())] if row[-1] == PAD else row
    at = np.flatnonzero(row == MASK)
    last = len(at) == 3
    return row[: at[0]], row[at[0] + 1 : at[1]], row[at[1] + 1 : at[2] if last else None], last


@settings(max_examples=80, deadline=None)
@given(documents, st.sampled_from([24, 31, 64, 128]), st.booleans(), seeds)
def test_single_spans_rebuild_the_cut_document(lists, block, last_mask, seed):
    docs = arrays(lists)
    before = [d.copy() for d in docs]
    inputs, targets = hide_single_span(
        docs, block=block, mask_id=MASK, pad_id=PAD, last_mask=last_mask, generator=stream(seed, "s")
    )
    assert all((a == b).all() for a, b in zip(docs, before, strict=True))
    assert inputs.shape == targets.shape == (len(docs), block - 1)
    for doc, x, y in zip(docs, inputs, targets, strict=True):
        real = y != IGNORED
        assert (x[1:][real[:-1]] == y[:-1][real[:-1]]).all()
        prefix, suffix, span, last = parts(np.append(x[:1], np.where(real, y, PAD)))
        assert last == last_mask
        rebuilt = np.concatenate([prefix, span, suffix])
        assert (rebuilt == doc[: len(rebuilt)]).all()
        assert 4 <= len(rebuilt) <= block * 7 // 8
        assert 1 <= len(span) < len(rebuilt) / 2 + 0.5


def test_single_spans_are_cut_evenly_and_hide_a_quarter_on_average():
    docs = [np.arange(5, 205)] * 20_000
    inputs, _ = hide_single_span(docs, block=64, mask_id=MASK, pad_id=PAD, generator=stream(0, "quarter"))
    masks = inputs == MASK
    second = np.argmax(np.cumsum(masks, axis=1) == 2, axis=1)
    # The row of a document cut to the longest ends where the inputs do: its third MASK is a target alone.
    third = np.where(masks.sum(axis=1) == 3, inputs.shape[1] - 1 - masks[:, ::-1].argmax(axis=1), 63)
    span, cut = third - second - 1, third - 2
    assert set(cut) == set(range(4, 57))
    assert np.bincount(cut)[4:].min() > 20_000 / 53 * 0.7
    assert abs((span / cut).mean() - 0.25) < 0.003


def test_single_span_loss_can_count_the_span_alone():
    docs = [np.arange(10, 60)]
    x, y = hide_single_span(docs, block=64, mask_id=MASK, pad_id=PAD, loss="span", generator=stream(4, "s"))
    x_all, y_all = hide_single_span(docs, block=64, mask_id=MASK, pad_id=PAD, generator=stream(4, "s"))
    assert (x == x_all).all()
    counted = y != IGNORED
    second = np.flatnonzero(x[0] == MASK)[1]
    assert np.flatnonzero(counted[0]).min() == second
    assert (y[counted] == y_all[counted]).all()
    assert y[counted][-1] == MASK
    assert (y_all != IGNORED).sum() > counted.sum()


def test_documents_too_short_are_named_by_the_helper_and_refused_by_the_function():
    docs = arrays([[5, 6, 7, 8], [], [5, 6, 7]])
    assert is_long_enough([len(d) for d in docs]).tolist() == [True, False, False]
    with pytest.raises(ValueError, match=r"document 1 .* 0 tokens"):
        hide_single_span(docs, block=32, mask_id=MASK, pad_id=PAD, generator=stream(0, "x"))
    with pytest.raises(ValueError, match="block is 16"):
        hide_single_span(docs[:1], block=16, mask_id=MASK, pad_id=PAD, generator=stream(0, "x"))


def rebuild_t5(x, y):
    """Put the spans of a target back into the places of their sentinels."""
    y = y[y != IGNORED]
    assert y[-1] == EOS
    x = x[: int(np.flatnonzero(x == EOS)[0])]
    spans, current = {}, None
    for token in y[:-1].tolist():
        if token >= 200:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    assert list(spans) == SENTINELS[: len(spans)]
    final = list(spans)[-1]
    assert spans[final] == []
    assert final not in x
    assert all(spans[s] for s in list(spans)[:-1])
    out = []
    for token in x.tolist():
        out += spans[token] if token >= 200 else [token]
    return out, list(spans.values())[:-1]


def t5(docs, **options):
    return hide_t5_spans(
        docs,
        **{"sentinel_ids": SENTINELS, "eos_id": EOS, "pad_id": PAD, "generator": stream(0, "t5"), **options},
    )


@settings(max_examples=80, deadline=None)
@given(documents, st.floats(0.01, 0.9), st.floats(1, 8), seeds)
def test_t5_spans_rebuild_the_document(lists, density, mean_span, seed):
    docs = arrays(lists)
    before = [d.copy() for d in docs]
    inputs, targets = t5(docs, density=density, mean_span=mean_span, generator=stream(seed, "t5"))
    assert all((a == b).all() for a, b in zip(docs, before, strict=True))
    for doc, x, y in zip(docs, inputs, targets, strict=True):
        rebuilt, spans = rebuild_t5(x, y)
        assert rebuilt == doc.tolist()
        hidden = sum(map(len, spans))
        assert hidden == np.clip(np.round(len(doc) * density), 1, len(doc) - 1)
        assert len(spans) == np.clip(round(hidden / mean_span), 1, min(hidden, len(doc) - hidden + 1))


def test_t5_hides_every_position_equally_often_but_the_ends():
    n, length = 20_000, 40
    inputs, _ = t5([np.arange(5, 5 + length)] * n)
    share = np.array([(inputs != token).all(axis=1).mean() for token in range(5, 5 + length)])
    assert abs(share.mean() - 6 / 40) < 1e-9
    assert share.min() > 0.05
    assert np.ptp(share[6:-6]) < 0.02


def test_an_empty_part_of_a_batch_is_corrupted_to_nothing():
    inputs, labels = mask(np.empty((0, 5), np.int64), generator=stream(0, "x"))
    assert inputs.shape == labels.shape == (0, 5)
    inputs, targets = hide_single_span([], block=32, mask_id=MASK, pad_id=PAD, generator=stream(0, "x"))
    assert inputs.shape == targets.shape == (0, 31)
    inputs, targets = t5([])
    assert len(inputs) == len(targets) == 0


def test_t5_never_needs_more_sentinels_than_there_are():
    inputs, targets = t5([np.arange(5, 105)], sentinel_ids=SENTINELS[:4], density=0.5, mean_span=1)
    rebuilt, spans = rebuild_t5(inputs[0], targets[0])
    assert rebuilt == list(range(5, 105))
    assert len(spans) == 3


SENTENCE = (
    "Vela Torhane (12 March 1871 - 1904) was a painter from Merrow. The J. R. Kost Prize cost her 1,200."
)


def test_salient_ranges_are_names_dates_and_numbers():
    found = [SENTENCE[s:e] for s, e in find_salient_ranges(SENTENCE)]
    assert found == ["Vela Torhane", "12 March 1871", "1904", "Merrow", "J. R. Kost Prize", "1,200"]
    more = "She met Aldo de la Kuz in May 1900. It rose 15% by 1900-01-02. Then we left."
    assert [more[s:e] for s, e in find_salient_ranges(more)] == [
        "Aldo de la Kuz",
        "May 1900",
        "15%",
        "1900-01-02",
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_salient_ranges_are_in_order_and_apart_on_any_text(text):
    ranges = find_salient_ranges(text)
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(edges)
    assert all(0 <= s < e <= len(text) for s, e in ranges)


def test_character_ranges_become_the_tokens_that_overlap_them():
    offsets = [(0, 0), (0, 3), (3, 5), (6, 9), (9, 12), (0, 0)]
    assert convert_to_token_ranges(offsets, [(1, 4)]) == [(1, 3)]
    assert convert_to_token_ranges(offsets, [(6, 9), (9, 10)]) == [(3, 4), (4, 5)]
    assert convert_to_token_ranges(offsets, [(6, 7), (8, 12)]) == [(3, 5)]
    assert convert_to_token_ranges(offsets, [(5, 6)]) == []
    assert convert_to_token_ranges([], [(0, 4)]) == []


def test_single_spans_can_be_salient():
    text = SENTENCE
    doc = np.array([ord(c) for c in text])
    ranges = find_salient_ranges(text)
    allowed = {text[s:e] for s, e in ranges}
    seen = set()
    inputs, _ = hide_single_span(
        [doc] * 300, block=128, mask_id=MASK, pad_id=PAD, salient=[ranges] * 300, generator=stream(0, "s")
    )
    for x in inputs:
        prefix, suffix, span, _ = parts(x)
        whole = "".join(map(chr, [*prefix, *span, *suffix]))
        assert text.startswith(whole)
        if any(e <= len(whole) and e - s < len(whole) for s, e in ranges):
            assert "".join(map(chr, span)) in allowed
            seen.add("".join(map(chr, span)))
    assert seen == allowed


def test_t5_spans_can_be_salient_and_fall_back_to_random_ones():
    docs = [np.arange(5, 65), np.arange(5, 65)]
    inputs, targets = t5(docs, salient=[[(10, 14), (30, 33), (50, 52)], []])
    rebuilt, spans = rebuild_t5(inputs[0], targets[0])
    assert rebuilt == docs[0].tolist()
    assert all(tuple(span) in {(15, 16, 17, 18), (35, 36, 37), (55, 56)} for span in spans)
    assert sum(map(len, spans)) <= 9
    rebuilt, spans = rebuild_t5(inputs[1], targets[1])
    assert sum(map(len, spans)) == 9
