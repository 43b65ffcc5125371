"""The contract that every attention mechanism passes, over the whole registry."""

from __future__ import annotations

import pytest
import torch

from heedful.attention import MECHANISMS, Mask
from heedful.contracts.attention_cases import (
    CASES,
    Case,
    able,
    cases,
    close,
    gradient,
    inputs,
    lengths_mask,
    masks,
    segments_of,
)
from heedful.contracts.mechanisms import (
    check_cache,
    check_documents,
    check_future,
    check_leak,
    check_padding,
    check_reach,
    check_rows,
)

pytestmark = pytest.mark.usefixtures("cut")

SAFE_CAUSAL = able("causal", safe=True)


def test_every_mechanism_has_a_case() -> None:
    assert {case.name for case in CASES} == set(MECHANISMS)


# --- the future never reaches the past, the past is reached ---


@pytest.mark.parametrize("mask", ["causal", "causal-padded-left", "causal-documents-padded", "causal-prefix"])
@pytest.mark.parametrize("case", SAFE_CAUSAL, ids=str)
def test_the_future_never_reaches_the_past_by_gradient(case: Case, mask: str) -> None:
    if mask not in masks(case):
        with pytest.raises(ValueError, match=f"{case.name} attention has no prefix"):
            case.build()(*inputs(13, 15), Mask(causal=True, prefix=2))
        return
    check_future(case, mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", SAFE_CAUSAL, ids=str)
def test_a_changed_suffix_leaves_every_bit_of_the_past(case: Case, dtype: torch.dtype) -> None:
    mechanism = case.build(dtype)
    q, k, v = inputs(13, dtype=dtype)
    before = mechanism(q, k, v, Mask(causal=True))
    changed = [x.clone() for x in (q, k, v)]
    for x in changed:
        x[:, :, 7:] = 30.0 * x[:, :, 7:].flip(2) + 1.0
    after = mechanism(*changed, Mask(causal=True))
    assert torch.equal(before[:, :, :7], after[:, :, :7])
    assert not torch.equal(before[:, :, 7:], after[:, :, 7:])


@pytest.mark.parametrize("case", [c for c in SAFE_CAUSAL if not c.kind.selects_one], ids=str)
def test_the_past_is_reached_exactly_where_it_says(case: Case) -> None:
    check_reach(case)


@pytest.mark.parametrize("case", cases(lambda c: not c.kind.causal), ids=str)
def test_a_mechanism_that_is_not_causal_reaches_everything_and_refuses_a_causal_mask(case: Case) -> None:
    q, k, v = inputs(13, grad=True)
    case.build()(q, k, v, Mask())[:, :, 6].sum().backward()
    assert (gradient(v).abs().amax((0, 1, 3)) > 0).all()
    with pytest.raises(ValueError, match="has no causal"):
        case.build()(q, k, v, Mask(causal=True))


@pytest.mark.parametrize("case", cases(lambda c: c.kind.selects_one), ids=str)
def test_one_that_selects_reaches_exactly_one_key(case: Case) -> None:
    q, k, v = inputs(13, grad=True)
    out = case.build()(q, k, v, Mask(causal=True))
    out[0, 0, 6].sum().backward()
    reached = (gradient(v)[0, 0].abs().amax(-1) > 0).nonzero()[:, 0]
    assert len(reached) == 1
    assert reached.item() == (q[0, 0, 6] @ k[0, 0, :7].mT).argmax()
    assert torch.equal(out[0, 0, 6], v[0, 0, reached.item()])


@pytest.mark.parametrize("case", cases(lambda c: c.kind.unsafe and "renormalize" not in c.options), ids=str)
def test_an_unsafe_mask_does_leak(case: Case) -> None:
    check_leak(case)


def test_how_each_unsafe_mask_leaks() -> None:
    """Through the denominator only keys leak, never values; with zero scores values leak and keys do not."""
    for name, by_key, by_value in (("zero_after", True, False), ("zero_scores", False, True)):
        q, k, v = inputs(13, grad=True)
        mechanism = Case(name, {"unsafe": True}).build()
        mechanism(q, k, v, Mask(causal=True))[:, :, 6].square().sum().backward()
        assert bool(gradient(k)[:, :, 7:].abs().max() > 0) == by_key
        assert bool(gradient(v)[:, :, 7:].abs().max() > 0) == by_value


# --- padding, rows, documents, lengths ---


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("causal", [False, True], ids=["free", "causal"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_padding_changes_nothing(case: Case, causal: bool, side: str) -> None:
    """Whatever stands in it, however long it is, on either side, each row gives what it gives alone."""
    if causal and not case.kind.causal:
        with pytest.raises(ValueError, match="has no causal"):
            case.build()(*inputs(), Mask(causal=True))
        return
    check_padding(case, causal, side)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_a_batch_and_heads_without_parameters_are_independent(case: Case) -> None:
    check_rows(case)


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("causal", [False, True], ids=["free", "causal"])
@pytest.mark.parametrize("case", able("segments"), ids=str)
def test_packed_documents_equal_separate_runs(case: Case, causal: bool, prefix: int) -> None:
    kind = case.kind
    if (causal and not kind.causal) or (prefix and not kind.prefix):
        with pytest.raises(ValueError, match="attention has no"):
            case.build()(*inputs(13, 13 + prefix), Mask(causal=causal, prefix=prefix))
        return
    check_documents(case, causal, prefix)


@pytest.mark.parametrize("case", able("segments"), ids=str)
def test_a_document_in_pieces_is_whole_or_refused_where_positions_count(case: Case) -> None:
    mechanism = case.build()
    q, k, v = inputs(13, batch=1)
    mask = Mask(causal=case.kind.causal, segments=torch.tensor([[0] * 5 + [1] * 4 + [0] * 4]))
    if case.name in ("bigbird", "linformer", "performer", "synthesizer"):
        with pytest.raises(ValueError, match="document 0 of row 0 is in pieces"):
            mechanism(q, k, v, mask)
        return
    out = mechanism(q, k, v, mask)
    for own in ([0, 1, 2, 3, 4, 9, 10, 11, 12], [5, 6, 7, 8]):
        alone = mechanism(q[:, :, own], k[:, :, own], v[:, :, own], Mask(causal=case.kind.causal))
        close(out[:, :, own], alone)


@pytest.mark.parametrize("case", able("segments"), ids=str)
def test_packed_documents_with_padding_equal_separate_runs(case: Case) -> None:
    mechanism = case.build()
    q, k, v = inputs(13, batch=1)
    keys = torch.ones(1, 13, dtype=torch.bool)
    keys[:, [0, 1, 11, 12]] = False
    mask = Mask(causal=case.kind.causal, segments=segments_of([6, 7]), keys=keys)
    out = mechanism(q, k, v, mask)
    for own in (slice(2, 6), slice(6, 11)):
        alone = mechanism(q[:, :, own], k[:, :, own], v[:, :, own], Mask(causal=case.kind.causal))
        close(out[:, :, own], alone)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 48])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_length_works(case: Case, length: int) -> None:
    for causal in {False, case.kind.causal}:
        q, k, v = inputs(length, grad=True)
        out = case.build()(q, k, v, Mask(causal=causal))
        assert out.shape == q.shape
        out.square().sum().backward()
        for x in (q, k, v):
            assert gradient(x).isfinite().all()


@pytest.mark.parametrize("case", cases(lambda c: c.name != "linformer"), ids=str)
def test_length_one_gives_its_own_value(case: Case) -> None:
    q, k, v = inputs(1)
    close(case.build()(q, k, v, Mask()), v)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_row_with_nothing_to_attend_gives_zeros_and_finite_gradients(case: Case) -> None:
    for causal in {False, case.kind.causal}:
        q, k, v = inputs(6, grad=True)
        keys = torch.ones(2, 6, dtype=torch.bool)
        keys[0] = False
        mechanism = case.build()
        out = mechanism(q, k, v, Mask(causal=causal, keys=keys))
        assert out[0].abs().max() == 0
        assert out[1].abs().min() > 0
        (out.square() + out).sum().backward()
        for x in (q, k, v, *mechanism.parameters()):
            assert gradient(x).isfinite().all()
        if case.kind.explicit_weights:
            assert mechanism.weights(q, k, Mask(causal=causal, keys=keys))[0].abs().max() == 0


# --- prefix and cache ---


@pytest.mark.parametrize("case", able("prefix"), ids=str)
def test_a_prefix_is_seen_by_every_query_and_padding_does_not_touch_it(case: Case) -> None:
    if case.kind.selects_one:
        return check_selected_prefix(case)
    for causal in {False, case.kind.causal}:
        mechanism = case.build()
        q, k, v = inputs(13, 15, grad=True)
        out = mechanism(q, k, v, Mask(causal=causal, keys=lengths_mask([9, 13], 13), prefix=2))
        for t in range(9):
            (reach,) = torch.autograd.grad(out[:, :, t].sum(), v, retain_graph=True)
            assert (reach[:, :, :2].abs().amax(-1) > 0).all()
    return None


def check_selected_prefix(case: Case) -> None:
    q, k, v = inputs(13, 15)
    k[:, :, 1] = 50.0 * q[:, :, 6]
    out = case.build()(q, k, v, Mask(causal=True, prefix=2))
    assert torch.equal(out[:, :, 6], v[:, :, 1])


@pytest.mark.parametrize(
    "case", cases(lambda c: c.name not in ("linformer", "bigbird", "synthesizer")), ids=str
)
def test_without_causality_a_prefix_is_more_keys(case: Case) -> None:
    mechanism = case.build()
    q, k, v = inputs(13, 15)
    close(mechanism(q, k, v, Mask(prefix=2)), mechanism(q, k, v, Mask()))


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", ["causal", "causal-padded-left", "causal-documents-padded", "causal-prefix"])
@pytest.mark.parametrize("case", able("cache"), ids=str)
def test_decoding_with_a_cache_equals_the_whole(case: Case, name: str, step: int) -> None:
    if name not in masks(case):
        assert not case.kind.prefix
        return
    check_cache(case, name, step)


@pytest.mark.parametrize("case", cases(lambda c: c.kind.unsafe), ids=str)
def test_an_unsafe_mask_cannot_decode_and_says_so(case: Case) -> None:
    assert not case.kind.cache
    q, k, v = inputs(1, 13)
    with pytest.raises(ValueError, match="has no cache"):
        case.build()(q, k, v, Mask(causal=True, offset=12))
