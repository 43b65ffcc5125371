"""The main contracts of attention mechanisms, on any device. `tests/contracts` has these and more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from heedful.attention import MECHANISMS, Mask, Mechanism
from heedful.contracts.attention_cases import CASES, Case, gradient, inputs, lengths_mask, masks, segments_of
from heedful.contracts.claims import CPU, Place, require

LENGTH = 13


def build(case: Case, place: Place) -> Mechanism:
    return case.build(place.dtype).to(place.device)


def draw(place: Place, length: int = LENGTH, keys: int | None = None, batch: int = 2) -> list[Tensor]:
    """Return q, k and v on a device, ready for gradients."""
    return [x.requires_grad_() for x in place.put(*inputs(length, keys, batch))]


def move_mask(mask: Mask, place: Place) -> Mask:
    keys, segments = (None if x is None else x.to(place.device) for x in (mask.keys, mask.segments))
    return replace(mask, keys=keys, segments=segments)


def check_future(case: Case, mask_name: str = "causal", place: Place = CPU) -> None:
    """The future never reaches the past, by gradient; the past is reached."""
    mask = move_mask(masks(case)[mask_name], place)
    q, k, v = draw(place, LENGTH, LENGTH + mask.prefix)
    build(case, place)(q, k, v, mask)[:, :, 6].sum().backward()
    for x in (k, v):
        require(gradient(x)[:, :, mask.prefix + 7 :].abs().max() == 0, "the future reaches the past")
    require(gradient(q)[:, :, 7:].abs().max() == 0, "a later query reaches an earlier output")
    past = gradient(v)[:, :, mask.prefix : mask.prefix + 7]
    require(past.abs().max() > 0, "the past is not reached")


def check_reach(case: Case, place: Place = CPU) -> None:
    """The past is reached exactly where the mechanism says."""
    mechanism = build(case, place)
    for t in (0, 5, 6, 22):
        q, k, v = draw(place, 23)
        mechanism(q, k, v, Mask(causal=True))[:, :, t].sum().backward()
        reached = (gradient(v).abs().amax((0, 1, 3)) > 0).nonzero()[:, 0].tolist()
        promised = mechanism.reaches(t, 23).tolist()
        require(reached == promised, f"query {t} reaches {reached} instead of {promised}")


def check_leak(case: Case, place: Place = CPU) -> None:
    """A mask that is declared unsafe does leak."""
    mechanism = build(case, place)
    q, k, v = draw(place)
    before = mechanism(q, k, v, Mask(causal=True))
    before[:, :, 6].square().sum().backward()
    leaks = [gradient(x)[:, :, 7:].abs().max() for x in (k, v)]
    require(max(leaks) > 1e-3, "declared unsafe, but no gradient leaks")
    changed = [x.detach().clone() for x in (q, k, v)]
    for x in changed:
        x[:, :, 7:] += 1.0
    difference = (mechanism(*changed, Mask(causal=True)) - before)[:, :, :7].abs().max()
    require(difference > 1e-3, "declared unsafe, but the future changes nothing")


def check_padding(case: Case, causal: bool, side: str = "right", place: Place = CPU) -> None:
    """Padding changes nothing: whatever is in it and however long it is, each row gives what it gives alone.

    Raises if the mechanism is not causal and `causal` is asked for.
    """
    mechanism = build(case, place)
    q, k, v = place.put(*inputs(17, batch=4))
    keys = lengths_mask([9, 17, 4, 1], 17, side).to(place.device)
    for x in (q, k, v):
        x.masked_fill_(~keys[:, None, :, None], 1e6)
    out = mechanism(q, k, v, Mask(causal=causal, keys=keys))
    require(out.isfinite().all(), "padding gives numbers that are not finite")
    for row in range(4):
        alone = [x[row : row + 1, :, keys[row]] for x in (q, k, v)]
        expected = mechanism(*alone, Mask(causal=causal))[0]
        place.require_close(out[row, :, keys[row]], expected, "padding changes an output")


def check_documents(case: Case, causal: bool, prefix: int = 0, place: Place = CPU) -> None:
    """Packed documents give what they give alone."""
    mechanism = build(case, place)
    rows = [[5, 1, 11, 6], [14, 9]]
    q, k, v = place.put(*inputs(23, 23 + prefix))
    segments = torch.cat([segments_of(lengths) for lengths in rows]).to(place.device)
    out = mechanism(q, k, v, Mask(causal=causal, segments=segments, prefix=prefix))
    for row, lengths in enumerate(rows):
        start = 0
        for size in lengths:
            queries = slice(start, start + size)
            keys = [*range(prefix), *range(prefix + start, prefix + start + size)]
            alone = mechanism(
                q[row : row + 1, :, queries],
                k[row : row + 1, :, keys],
                v[row : row + 1, :, keys],
                Mask(causal=causal, prefix=prefix),
            )
            place.require_close(out[row, :, queries], alone[0], "a packed document sees another")
            start += size


def check_rows(case: Case, place: Place = CPU) -> None:
    """The rows of a batch are independent, and so are its heads."""
    for name, mask in masks(case).items():
        mechanism = build(case, place)
        mask = move_mask(mask, place)
        q, k, v = place.put(*inputs(LENGTH, LENGTH + mask.prefix))
        before = mechanism(q, k, v, mask)
        for x in (q, k, v):
            x[1, 0] += 1.0
        after = mechanism(q, k, v, mask)
        require(torch.equal(before[0], after[0]), f"a row changes another ({name})")
        require(torch.equal(before[1, 1], after[1, 1]), f"a head changes another ({name})")
        require(not torch.equal(before[1, 0], after[1, 0]), f"a change of the input changes nothing ({name})")


def check_cache(case: Case, mask_name: str = "causal", step: int = 3, place: Place = CPU) -> None:
    """Decoding with a cache gives what the whole sequence gives."""
    mask = move_mask(masks(case)[mask_name], place)
    mechanism = build(case, place)
    q, k, v = place.put(*inputs(LENGTH, LENGTH + mask.prefix))
    whole = mechanism(q, k, v, mask)
    is_real = torch.ones(2, LENGTH, dtype=torch.bool) if mask.keys is None else mask.keys
    for start in range(0, LENGTH, step):
        stop = min(start + step, LENGTH)
        part = replace(
            mask,
            offset=start,
            keys=None if mask.keys is None else mask.keys[:, :stop],
            segments=None if mask.segments is None else mask.segments[:, :stop],
        )
        end = stop + mask.prefix
        out = mechanism(q[:, :, start:stop], k[:, :, :end], v[:, :, :end], part).transpose(1, 2)
        expected = whole[:, :, start:stop].transpose(1, 2)
        real = is_real[:, start:stop]
        place.require_close(out[real], expected[real], "decoding with a cache differs from the whole")


def check_gradients(case: Case, mask_name: str = "plain", place: Place = CPU) -> None:
    """Gradients agree with finite differences, which need float64."""
    mask = move_mask(masks(case)[mask_name], place)
    mechanism = build(case, place)
    q, k, v = draw(place, LENGTH, LENGTH + mask.prefix)
    torch.autograd.gradcheck(
        lambda q, k, v, *_: mechanism(q, k, v, mask), (q, k, v, *mechanism.parameters()), fast_mode=True
    )


def check_float32(case: Case, place: Place = CPU) -> None:
    """In float32 on this device the output is that of float64 on the CPU, to rounding."""
    exact = case.build()(*inputs(), Mask(causal=case.kind.causal))
    mechanism = case.build(torch.float32).to(place.device)
    q, k, v = (x.to(place.device, torch.float32) for x in inputs())
    rounded = mechanism(q, k, v, Mask(causal=case.kind.causal)).double().cpu()
    # On a CPU the error is about 1e-6; a GPU that multiplies in TF32 keeps about three digits.
    torch.testing.assert_close(
        rounded, exact, rtol=1e-3, atol=1e-4, msg=lambda why: f"float32 differs from the CPU's float64: {why}"
    )


def list_cases() -> list[Case]:
    """Return the cases of all mechanisms, and one with default options of each that a package added."""
    tested = {case.name for case in CASES}
    return [*CASES, *(Case(name) for name in MECHANISMS if name not in tested)]


def list_contracts(case: Case, place: Place) -> dict[str, Callable[[], None]]:
    """Return the contracts that a mechanism's class constants promise, by name."""
    kind, here = case.kind, partial(partial, place=place)
    contracts: dict[str, Callable[[], None]] = {
        "padding": here(check_padding, case, causal=False),
        "rows": here(check_rows, case),
        "float32": here(check_float32, case),
    }
    if kind.segments:
        contracts["documents"] = here(check_documents, case, causal=False)
    if kind.causal:
        contracts["causal padding"] = here(check_padding, case, causal=True)
        if kind.segments:
            contracts["causal documents"] = here(check_documents, case, causal=True)
        if kind.cache:
            contracts["cache"] = here(check_cache, case)
        if not kind.unsafe:
            contracts["future"] = here(check_future, case)
        if not kind.unsafe and not kind.selects_one:
            contracts["reach"] = here(check_reach, case)
    if kind.unsafe and not case.options.get("renormalize"):
        contracts["leak"] = here(check_leak, case)
    if place.dtype == torch.float64 and not case.options.get("straight_through"):
        contracts["gradients"] = here(check_gradients, case)
    return contracts
