"""Bad checkpoints: one clear line each, nothing executed, nothing half-loaded."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful import checkpoints, models
from heedful.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good little BERT."""
    config = models.PRESETS["bert-tiny"].config.replace(
        vocab_size=50, d_model=16, d_ff=32, d_head=8, max_len=20
    )
    return checkpoints.export(models.build(config, "classify", 2), tmp_path / "model")


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def edit_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    path = folder / "model.safetensors"
    state = load_file(path)
    change(state)
    save_file(state, path, {"format": "pt"})


def cut(folder: Path, share: float) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def corrupt_header(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[9:40] = b"\xff" * 31
    path.write_bytes(data)


class Bomb:
    """A pickle that would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/heedful-was-attacked",)


def plant_bomb(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"embeddings": Bomb()}))


def plant_torch_bomb(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"embeddings": Bomb()}, folder / "pytorch_model.bin")


def bad_index(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))


LAYER = "bert.encoder.layer.0.attention.self.query.weight"
WORDS = "bert.embeddings.word_embeddings.weight"
CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated weights": (lambda f: cut(f, 0.5), "model.safetensors: is damaged"),
    "almost empty weights": (lambda f: cut(f, 0.001), "model.safetensors: is damaged"),
    "empty weights": (lambda f: cut(f, 0), "model.safetensors: is damaged"),
    "corrupt header": (corrupt_header, "model.safetensors: is damaged"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    "no config": (lambda f: (f / "config.json").unlink(), "config.json: there is no such file"),
    "config is not JSON": (lambda f: (f / "config.json").write_text('{"a": 1,\n}'), "config.json line 2: is not JSON"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "is not a JSON object"),
    "config is not UTF-8": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe"), "is not UTF-8"),
    "a field is missing": (lambda f: edit_config(f, hidden_size=...), 'has no "hidden_size"'),
    "a field is a word": (lambda f: edit_config(f, hidden_size="big"), "hidden_size = 'big' is not a positive"),
    "no family": (lambda f: edit_config(f, model_type=...), 'has no "model_type"; known families: bert'),
    "unknown family": (lambda f: edit_config(f, model_type="mamba"), 'family "mamba" is not known'),
    "unknown activation": (lambda f: edit_config(f, hidden_act="silu"), "hidden_act = 'silu' is not supported"),
    "relative BERT": (lambda f: edit_config(f, position_embedding_type="relative_key"), "is not supported for bert"),
    "heads do not divide": (lambda f: edit_config(f, num_attention_heads=3), "not a multiple of n_heads 3"),
    "another width": (lambda f: edit_config(f, hidden_size=32), "config.json calls for"),
    "another vocabulary": (lambda f: edit_config(f, vocab_size=51), f'"{WORDS[5:]}" has shape (50, 16)'),
    "more layers than weights": (lambda f: edit_config(f, num_hidden_layers=3), 'the weights lack "encoder.layer.2'),
    "fewer layers than weights": (lambda f: edit_config(f, num_hidden_layers=1), "is unknown in a bert with 1 layers"),
    "a tensor is missing": (lambda f: edit_weights(f, lambda s: s.pop(LAYER)), "the weights lack"),
    "a tensor is unknown": (
        lambda f: edit_weights(f, lambda s: s.update({LAYER.replace("query", "rotary"): torch.zeros(1)})),
        "self.rotary.weight\" is unknown",
    ),
    "more memory than there is": (lambda f: edit_config(f, vocab_size=10**9), "config.json calls for (1000000000, 16)"),
    "dropout of 2": (lambda f: edit_config(f, hidden_dropout_prob=2), "config.json: dropout 2: must be at least 0 and below 1"),
    "eps is a word": (lambda f: edit_config(f, layer_norm_eps="x"), 'norm_eps "x": must be a number'),
    "half a head": (lambda f: edit_weights(f, lambda s: s.pop("classifier.bias")), 'the classify head lacks "classifier.bias"'),
    "a shape does not fit": (lambda f: edit_weights(f, lambda s: s.update({LAYER: torch.zeros(16, 15)})), "(16, 15)"),
    "a pickle with code": (plant_bomb, "holds something other than tensors"),
    "a torch file with code": (plant_torch_bomb, "holds something other than tensors"),
    "an index that leads away": (lambda f: bad_index(f, "../../etc/passwd"), "is not a plain file name"),
    "an index to nothing": (lambda f: bad_index(f, "none.safetensors"), "is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_checkpoint_gives_one_line(case: str, folder: Path) -> None:
    spoil, expected = CASES[case]
    spoil(folder)
    with pytest.raises(UserError) as caught:
        models.load(folder, head="classify")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not Path("/tmp/heedful-was-attacked").exists()


def test_the_command_shows_the_line_and_status_two(folder: Path, heedful: Callable[..., object]) -> None:
    cut(folder, 0.5)
    done = heedful("inspect", folder)
    assert done.status == 2
    assert done.err.startswith("heedful: ")
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_export_never_touches_a_folder_in_use(folder: Path, tmp_path: Path) -> None:
    model = models.load(folder, head="classify")
    used = tmp_path / "used"
    used.mkdir()
    (used / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty"):
        checkpoints.export(model, used)
    assert [p.name for p in used.iterdir()] == ["precious.txt"]


def test_a_failed_export_leaves_nothing_behind(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.checkpoints import files

    def full_disk(*args: object) -> None:
        raise OSError(28, "No space left on device")

    model = models.load(folder, head="classify")
    monkeypatch.setattr(files, "save_file", full_disk)
    with pytest.raises(UserError, match="No space left"):
        checkpoints.export(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
