"""Heads of a tiny model: the maps are the model's own, and what was taken out is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from heedful import checkpoints, lab, models
from heedful.attention.softmax import Softmax
from heedful.errors import UserError
from heedful.lab import head_maps
from heedful.lab.topics import heads
from heedful.text import train

TEXT = "the film was very fine"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.make_model(tmp_path_factory.mktemp("heads") / "model"))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("heads") / "decoder"
    tokenizer = train([TEXT] * 20, kind="bpe", vocab_size=280, sentinels=0)
    torch.manual_seed(0)
    config = models.PRESETS["gpt-nano"].config.replace(vocab_size=tokenizer.vocab_size)
    checkpoints.save(models.build(config, "causal"), path)
    tokenizer.save(path)
    return str(path)


def test_maps_sum_to_one_and_what_was_removed_is_restored(folder: str) -> None:
    found = lab.heads(TEXT, model=folder)
    assert found.passed, found.failed
    results, t = found.results, len(found.results.tokens)
    assert results.weights.shape == (2, results.entropy.shape[1], t, t)
    assert (results.change > 0).all()
    assert (results.entropy <= np.log(t) + 1e-6).all()


def test_a_decoders_maps_never_show_the_future(decoder: str) -> None:
    found = lab.heads(TEXT, model=decoder, layers=(2,))
    assert found.passed, found.failed
    assert found.results.layers == [2]
    assert np.triu(found.results.weights, 1).max() == 0


def test_a_head_that_stays_out_fails_the_topic(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, entered = head_maps.remove_head, []

    @contextmanager
    def forgetful(mechanism: Any, head: int) -> Iterator[None]:
        entered.append(real(mechanism, head))  # a reference, or the collector would leave it for us
        entered[-1].__enter__()
        yield

    monkeypatch.setattr(heads, "remove_head", forgetful)
    assert any("restored" in n.name for n in lab.heads(TEXT, model=folder).failed)


def test_maps_that_are_not_the_models_fail_the_topic(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Softmax.weights
    monkeypatch.setattr(Softmax, "weights", lambda self, *given: real(self, *given).flip(-1))
    assert [n.name for n in lab.heads(TEXT, model=folder).failed] == [
        "maps times values: distance from what the layers computed"
    ]
    monkeypatch.setattr(Softmax, "weights", lambda self, *given: real(self, *given) * 1.001)
    assert "sums of the maps' rows: distance from 1" in [n.name for n in lab.heads(TEXT, model=folder).failed]


def test_removing_nothing_fails_the_topic(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def nothing(mechanism: Any, head: int) -> Iterator[None]:
        yield

    monkeypatch.setattr(heads, "remove_head", nothing)
    assert any("largest change" in n.name for n in lab.heads(TEXT, model=folder).failed)


def test_mistakes_are_named(folder: str, tmp_path: Path) -> None:
    for text, more, line in (
        (" ", {}, "the text is empty"),
        (TEXT, {"layers": (3,)}, "layers are from 1 to 2, not 3"),
        (TEXT, {"layers": ()}, "layers are from 1 to 2"),
        ("fine " * 400, {}, "tokens"),
    ):
        with pytest.raises(UserError, match=line):
            lab.heads(text, model=folder, **more)
    model = checkpoints.load(folder, attention="linformer")
    with pytest.raises(UserError, match="linformer attention never makes its weights"):
        head_maps.find_mechanisms(model, "m")


def test_entropy_and_distance_of_known_maps() -> None:
    even, before = np.full((1, 4, 4), 0.25), np.eye(4, k=-1)[None]
    assert head_maps.entropy(even)[0] == pytest.approx(np.log(4))
    assert head_maps.entropy(np.eye(4)[None])[0] == head_maps.distance(np.eye(4)[None])[0] == 0
    assert head_maps.distance(before)[0] == pytest.approx(3 / 4)
    assert heads.preference(before[0]) == ("the one before", 1.0)
    assert heads.preference(np.ones((1, 1))) == ("itself", 1.0)
