"""Mechanisms by name: options come from the constructor, mistakes get one line."""

from __future__ import annotations

import pytest
import torch

from heedful.attention import MECHANISMS, Mask, find_capable, make, options, parse
from heedful.errors import UserError

SIZES = {"n_heads": 2, "d_head": 4, "max_len": 16}


def test_an_unknown_mechanism_lists_the_nearest() -> None:
    with pytest.raises(UserError, match='unknown attention "perfomer"; did you mean "performer"'):
        make("perfomer", **SIZES)


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_unknown_option_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UserError, match=f'{name} attention has no option "color"') as error:
        make(name, **SIZES, color=3)
    for option in options(name):
        assert option in str(error.value)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("performer", {"features": "many"}, 'features "many": must be a whole number'),
        ("performer", {"kind": "sines"}, 'kind "sines": must be positive, hyperbolic or trigonometric'),
        ("performer", {"orthogonal": 1}, "orthogonal 1: must be true or false"),
        (
            "performer",
            {"features": 5, "kind": "trigonometric"},
            "trigonometric features come in pairs, so not 5",
        ),
        ("performer", {"features": 0}, "features 0: must be at least 1"),
        ("performer", {"scale": 0.0}, "scale is above 0, not 0"),
        ("linformer", {"rank": 0}, "rank 0: must be at least 1"),
        ("linformer", {"share": "layers"}, 'share "layers": must be nothing, heads or all'),
        ("bigbird", {"window": 2}, "window is an odd number of blocks, not 2"),
        ("bigbird", {"block": 0}, "block 0: must be at least 1"),
        ("additive", {"d_hidden": 0}, "d_hidden 0: must be at least 1"),
        ("synthesizer", {"d_hidden": -1}, "d_hidden -1: must be at least 1"),
        ("softmax", {"dropout": 1.5}, "dropout 1.5: must be at least 0 and below 1"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(name: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        make(name, **SIZES, **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [n for n, kind in MECHANISMS.items() if kind.unsafe])
def test_an_unsafe_mask_is_built_only_by_someone_who_says_so(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} attention leaks the future into the past"):
        make(name, **SIZES)
    with pytest.raises(UserError, match="unsafe=True"):
        make(name, **SIZES, unsafe=False)
    assert make(name, **SIZES, unsafe=True).unsafe


def test_a_specification_is_read_by_the_declared_types() -> None:
    assert parse("softmax") == ("softmax", {})
    name, given = parse("performer:features=64,kind=trigonometric,orthogonal=false,seed=none,scale=0.5")
    assert name == "performer"
    assert given == {
        "features": 64,
        "kind": "trigonometric",
        "orthogonal": False,
        "seed": None,
        "scale": 0.5,
    }
    assert make(name, **SIZES, **given).features == 64
    for spec, message in (
        ("performer:features", "must be option=value"),
        ("performer:sides=3", 'unknown option of performer "sides"'),
        ("performer:features=x", 'features "x": must be a whole number'),
    ):
        with pytest.raises(UserError, match=message):
            parse(spec)


def test_every_option_is_kept_and_none_is_lost_on_the_way() -> None:
    for name in MECHANISMS:
        assert {"scale", "dropout"} <= set(options(name))
        assert not {"n_heads", "d_head", "max_len", "self"} & set(options(name))


def test_who_can_do_what() -> None:
    assert find_capable("causal", "bias") == ["softmax", "argmax", "additive", "synthesizer"]
    assert find_capable("prefix", "cache") == ["softmax", "argmax", "additive", "bigbird", "performer"]


@pytest.mark.parametrize(
    ("size", "value"), [("n_heads", 0), ("n_heads", "2"), ("d_head", -4), ("d_head", 4.5), ("max_len", 0)]
)
def test_a_size_that_is_no_whole_number_from_one_on_is_refused(size: str, value: object) -> None:
    sizes = {"n_heads": 2, "d_head": 4, "max_len": 8, size: value}
    shown, expected = (
        repr(value).replace("'", '"'),
        "at least 1" if isinstance(value, int) else "a whole number",
    )
    with pytest.raises(UserError, match=f"{size} {shown}: must be {expected}"):
        make("softmax", **sizes)


def test_keys_and_values_that_do_not_go_together_are_refused() -> None:
    q, k = torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    for name, cls in MECHANISMS.items():
        mechanism = make(name, n_heads=2, d_head=4, max_len=8, **({"unsafe": True} if cls.unsafe else {}))
        with pytest.raises(ValueError, match="they go together"):
            mechanism(q, k, k[:, :, :4], Mask())
        with pytest.raises(ValueError, match=r"takes \[b, 2, t, 4\]"):
            mechanism(q.expand(1, 2, 5, 4)[:, :1], k, k, Mask())
    with pytest.raises(ValueError, match="must not be negative"):
        Mask(offset=-1)
