"""Good folders of every kind, which attacks spoil, and the server that runs them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [entry for entry in (str(HERE), str(HERE.parent)) if entry not in sys.path]

from trials import Trials  # noqa: E402

OLD_RUNS = HERE.parent / "old_runs"
PLACEHOLDER = b"@OLD_RUNS@"


def make_material(folder: Path, trials: Trials) -> Path:
    """Write the good folders: the runs of an earlier version, and what is made from them."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch
    from safetensors.torch import load_file

    shutil.copytree(OLD_RUNS, folder)
    for file in folder.rglob("*"):
        if file.is_file() and PLACEHOLDER in file.read_bytes():
            file.write_bytes(file.read_bytes().replace(PLACEHOLDER, os.fsencode(folder)))
    tensors = load_file(folder / "bert/model.safetensors")
    for name in ("shards", "binary"):
        (folder / name).mkdir()
        shutil.copy(folder / "bert/config.json", folder / name)
    shutil.copy(folder / "bert/model.safetensors", folder / "shards/part.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "part.safetensors")}
    (folder / "shards/model.safetensors.index.json").write_text(json.dumps(index))
    torch.save(tensors, folder / "binary/pytorch_model.bin")
    (folder / "ensemble/best/members/full").mkdir(parents=True)
    facts = {"format": 1, "weights": {"full": 0.5}, "thresholds": [0.5, 0.5]}
    (folder / "ensemble/best/ensemble.json").write_text(json.dumps(facts))
    (folder / "rows").mkdir()
    rows = [{"text": f"a text of number {i}", "label": "yes" if i % 2 else "no"} for i in range(40)]
    (folder / "rows/rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows/rows.parquet")
    (folder / "recipe").mkdir()
    recipe = 'command = "adapt"\n\n[adapt]\nmodel = "minilm"\ntask = "reviews.csv"\nepochs = 3\nlr = 1e-3\n'
    recipe += (
        'method = "lora"\nmethod_options = ["rank=8"]\nwarmup = 0.1\nseed = 1\ndropout = 0.1\nclip = 1.0\n'
    )
    (folder / "recipe/recipe.toml").write_text(recipe)
    done = trials.run(
        ["adapt", "tfidf", folder / "task", "--out", folder / "tfidf"], seconds=120, megabytes=4000
    )
    assert done.statuses == [0], done
    return folder


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    server = Trials({"HEEDFUL_CACHE": str(tmp_path_factory.mktemp("attacks-cache")), "HF_HUB_OFFLINE": "1"})
    yield server
    server.close()


@pytest.fixture(scope="session")
def material(trials: Trials, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_material(tmp_path_factory.mktemp("attacks") / "good", trials)
