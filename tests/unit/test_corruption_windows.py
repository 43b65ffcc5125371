"""Windows around salient spans: what a row holds, what it never holds, and how titles are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data import open_corpus
from heedful.data.batches import IGNORED
from heedful.data.corruption import SalientSpans, find_salient, hide_in_windows
from heedful.data.corruption.windows import find_title_end
from heedful.data.random import stream
from heedful.text import train

PAD, MASK = 0, 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Ada Lund. Ada Lund was born in Oslo .", "Ada Lund"),
        ("Cy P. Dahl. Dahl is a poet .", "Cy P. Dahl"),
        ("J. B. Fox, Jr.. He was a painter .", "J. B. Fox, Jr."),
        ("No I.D.. A rapper .", "No I.D."),
        ("One sentence without a title.", ""),
        ("", ""),
    ],
)
def test_a_title_ends_at_the_first_full_stop_that_is_no_initial_s(text, title):
    assert text[: find_title_end(text)] == title


def test_salient_ranges_leave_out_the_title_and_what_repeats_it(tmp_path):
    text = "Ada Lund. Ada Lund (born 3 May 1901 in Oslo, Norway), the sister of Bo Lund, painted ."
    (tmp_path / "wiki.txt").write_text(f"{text}\nno names here\n")
    tokenizer = train([text] * 3, kind="wordpiece", vocab_size=300)
    found = find_salient(open_corpus(tmp_path / "wiki.txt"), tokenizer)
    ids = tokenizer.encode(text, special=False).ids
    assert tokenizer.decode(ids[: found.titles[0]]) == "Ada Lund."
    assert [tokenizer.decode(ids[a:b]) for a, b in found.document_ranges(0)] == [
        "3 May 1901",
        "Oslo",
        "Norway",
        "Bo Lund",
    ]
    alone = find_salient(open_corpus(tmp_path / "wiki.txt"), tokenizer, "names")
    assert [tokenizer.decode(ids[a:b]) for a, b in alone.document_ranges(0)] == ["Oslo", "Norway", "Bo Lund"]
    assert found.titles[1] == 0
    assert found.document_ranges(1) == []
    again = find_salient(open_corpus(tmp_path / "wiki.txt"), tokenizer)
    assert all(np.array_equal(getattr(found, n), getattr(again, n)) for n in ("titles", "firsts", "ranges"))
    assert found.limit_to(int(found.ranges[1, 1])).document_ranges(0) == found.document_ranges(0)[:2]
    assert found.limit_to(0).document_ranges(1) == []


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[np.ndarray], SalientSpans]:
    documents, titles, ranges, counts = [], [], [], []
    for _ in range(draw(st.integers(1, 6))):
        n = draw(st.integers(1, 90))
        documents.append(np.arange(len(documents) * 100 + 2, len(documents) * 100 + 2 + n))
        titles.append(draw(st.integers(0, n - 1)))
        cuts = sorted(draw(st.sets(st.integers(titles[-1], n), max_size=8)))
        own = list(zip(cuts[::2], cuts[1::2], strict=False))
        ranges += own
        counts.append(len(own))
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return documents, SalientSpans(np.array(titles), firsts, np.array(ranges, np.int64).reshape(-1, 2))


@settings(max_examples=80, deadline=None)
@given(corpora(), st.integers(24, 60), st.integers(0, 9), st.integers(0, 9), st.integers(0, 2**32))
def test_a_row_is_the_title_and_the_neighbourhood_of_one_span(made, block, left, right, seed):
    documents, salient = made
    flat = np.concatenate(documents)
    offsets = np.concatenate([[0], np.cumsum([len(d) for d in documents])])
    chosen = np.arange(len(documents))
    salient = salient.limit_to(block)
    rows = hide_in_windows(
        flat, offsets, chosen, salient, block=block, mask_id=MASK, pad_id=PAD, left=left, right=right,
        generator=stream(seed, "windows"),
    )  # fmt: skip
    for i, document in enumerate(documents):
        n = int(rows.lengths[i])
        row, targets = rows.ids[i, :n], rows.targets[i, :n]
        assert n < block
        assert (rows.ids[i, n:] == PAD).all()
        assert (rows.targets[i, n:] == IGNORED).all()
        first, second = np.flatnonzero(row == MASK)
        title = min(int(salient.titles[i]), block // 2)
        span = row[second + 1 :]
        at = int(np.flatnonzero(document == span[0])[0])
        assert np.array_equal(span, document[at : at + len(span)])
        before, after = row[title:first], row[first + 1 : second]
        assert np.array_equal(row[:title], document[:title])
        assert np.array_equal(before, document[at - len(before) : at])
        assert np.array_equal(after, document[at + len(span) :][: len(after)])
        assert len(before) <= left
        assert len(after) <= right
        assert (targets[:second] == IGNORED).all()
        assert np.array_equal(targets[second:], [*span, MASK])
        inside = [(a, min(b, a + block // 4)) for a, b in salient.document_ranges(i)]
        assert not inside or (at, at + len(span)) in inside


def test_every_salient_span_comes_equally_often():
    n, rows = 40, 6000
    salient = SalientSpans(np.array([3]), np.array([0, 4]), np.array([[3, 5], [9, 10], [20, 24], [30, 31]]))
    found = hide_in_windows(
        np.arange(2, n + 2), np.array([0, n]), np.zeros(rows, np.int64), salient, block=40, mask_id=MASK,
        pad_id=PAD, generator=stream(0, "often"),
    )  # fmt: skip
    starts = [row[np.flatnonzero(row == MASK)[1] + 1] for row in found.ids]
    values, counts = np.unique(starts, return_counts=True)
    assert values.tolist() == [5, 11, 22, 32]
    assert abs(counts - rows / 4).max() < 5 * np.sqrt(rows * 3 / 16)
