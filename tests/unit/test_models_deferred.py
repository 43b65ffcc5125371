"""Models that are loaded to be used have the file's weights, and draw those that it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from heedful import checkpoints
from heedful.errors import UserError
from heedful.models.deferred import DeferredWeights
from tiny import make_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "bert")


def test_a_model_to_use_is_the_model_to_train(folder: Path) -> None:
    one, other = checkpoints.load(folder), checkpoints.load_to_use(folder)
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


def test_weights_that_the_file_has_are_not_drawn(folder: Path) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    checkpoints.load_to_use(folder)
    assert torch.equal(before, torch.get_rng_state())
    checkpoints.load(folder)  # training goes on with the stream that it always had
    assert not torch.equal(before, torch.get_rng_state())


def test_weights_that_the_file_lacks_are_drawn(folder: Path) -> None:
    torch.manual_seed(1)
    model = checkpoints.load_to_use(folder, "classify", n_classes=7, head_form="linear")
    weight = model.head.out.weight
    assert "head.out.weight" in model.report.new
    assert 0.5 < float(weight.detach().std()) / model.config.init_std < 2


def test_a_file_that_does_not_fit_is_refused_as_ever(folder: Path, tmp_path: Path) -> None:
    config = (folder / "config.json").read_text()
    other = tmp_path / "other"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    (other / "config.json").write_text(config.replace('"intermediate_size": 32', '"intermediate_size": 48'))
    with pytest.raises(UserError, match="has shape"):
        checkpoints.load_to_use(other)


def test_a_preset_is_drawn_whole() -> None:
    model = checkpoints.load_to_use("bert-tiny", "masked", d_model=16, d_head=8, d_ff=32, vocab_size=50)
    assert all(float(p.detach().std()) > 0 for n, p in model.named_parameters() if n.endswith("proj.weight"))


def test_a_part_of_a_tensor_is_drawn_at_once() -> None:
    with DeferredWeights() as weights:
        table = torch.zeros(4, 3)
        table[:2].normal_()
        table[2:].copy_(torch.ones(2, 3))
    drawn = table.clone()
    weights.draw_missing()
    assert bool(drawn[:2].any())
    assert torch.equal(drawn, table)


def test_every_mechanism_is_filled_from_its_file(tmp_path: Path) -> None:
    for attention in ("additive", "linformer", "synthesizer", "performer"):
        sizes = {"d_model": 16, "d_head": 8, "d_ff": 32, "vocab_size": 50, "max_len": 16}
        model = checkpoints.load("bert-tiny", "masked", attention=attention, **sizes)
        saved = checkpoints.save(model, tmp_path / attention)
        again = checkpoints.load_to_use(saved, "masked")
        for name, tensor in model.state_dict().items():
            assert torch.equal(tensor, again.state_dict()[name]), (attention, name)
