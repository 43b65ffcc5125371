"""The Hub through its real clients, against a small server on loopback: only the address differs from online use."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hub_server import TOKEN, HubClient, HubServer

LARGE = bytes(range(256)) * 2**16 + bytes(2**23)
"""Longer than what the client writes at once, which is what it can continue from."""
README = """---
configs:
{configs}---
# A data set
"""


def write_dataset(folder: Path, parts: dict[str, dict[str, Any]], config: str = "plain") -> str:
    """Write the Parquet files of one configuration; return what README.md says about it."""
    lines = [f"- config_name: {config}", "  data_files:"]
    for split, columns in parts.items():
        path = folder / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
        lines += [f"  - split: {split}", f"    path: {config}/{split}-*"]
    return "\n".join(lines) + "\n"


def columns(split: str, rows: int = 60, **changes: Any) -> dict[str, Any]:
    texts = [f"{split} text number {n}" for n in range(rows)]
    return {"text": texts, "label": [n % 2 for n in range(rows)], **changes}


NAMED = """dataset_info:
  config_name: plain
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': neg
          '1': pos
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    root = tmp_path_factory.mktemp("hub")
    movies = root / "datasets" / "stanford" / "imdb"
    splits = {"train": columns("train"), "test": columns("test"), "unsupervised": columns("unsupervised")}
    movies_card = write_dataset(movies, splits)
    (movies / "README.md").write_text(
        README.format(configs=movies_card).replace("configs:", NAMED + "configs:", 1)
    )
    several = root / "datasets" / "owner" / "several"
    words = [("no", "yes")[n % 2] for n in range(60)]
    cards = write_dataset(several, {"train": columns("a"), "validation": columns("b")}, "first")
    cards += write_dataset(
        several, {"train": columns("c", label=words), "valid": columns("d", label=words)}, "second"
    )
    (several / "README.md").write_text(README.format(configs=cards))
    secret = root / "datasets" / "owner" / "secret"
    (secret / "README.md").parent.mkdir(parents=True)
    (secret / "README.md").write_text(
        README.format(configs=write_dataset(secret, {"train": columns("train")}))
    )
    odd = root / "datasets" / "owner" / "odd"
    (odd / "README.md").parent.mkdir(parents=True)
    (odd / "README.md").write_text(README.format(configs=write_dataset(odd, {"part1": columns("part1")})))
    for name, weights in {
        "plain": {"model.safetensors": b"weights" * 50},
        "sharded": {
            "model-00001-of-00002.safetensors": b"first" * 99,
            "model-00002-of-00002.safetensors": b"second" * 99,
            "model.safetensors.index.json": b"{}",
        },
        "gated": {"model.safetensors": b"weights" * 50},
        "interrupted": {"interrupted.safetensors": LARGE},
        "damaged": {"damaged.safetensors": b"right" * 99},
    }.items():
        folder = root / "models" / "owner" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.py").write_text("raise SystemExit('never fetched, never run')")
        for file, content in weights.items():
            (folder / file).write_bytes(content)
    with HubServer(root) as server:
        server.moved["imdb"] = "stanford/imdb"
        server.gated |= {"owner/secret", "owner/gated"}
        yield server


@pytest.fixture(scope="module")
def client(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubClient]:
    with HubClient(hub, tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest.mark.needs("datasets")
def test_an_old_name_is_followed_and_labels_have_names(hub: HubServer, client: HubClient) -> None:
    task = client.ask("task", "imdb")
    assert task["name"] == "imdb"
    assert task["labels"] == ["neg", "pos"]
    assert list(task["splits"]) == ["train", "dev", "test"]
    assert task["splits"]["train"][0] + task["splits"]["dev"][0] == 60
    assert task["splits"]["test"] == [60, "test text number 0"]
    before = hub.requests.total()
    assert client.ask("task", "imdb") == task
    assert hub.requests.total() == before, "a data set is downloaded once"


@pytest.mark.needs("datasets")
def test_one_of_several_configurations_is_named(client: HubClient) -> None:
    error = client.ask("task", "owner/several")
    assert "owner/several has the configurations first, second: name one, as in owner/several:first" in error
    assert "configurations first, second" in client.ask("task", "owner/several:third")
    second = client.ask("task", "owner/several:second")
    assert second["name"] == "several-second"
    assert second["labels"] == ["no", "yes"]
    assert second["splits"] == {"train": [60, "c text number 0"], "dev": [60, "d text number 0"]}


@pytest.mark.needs("datasets")
def test_data_sets_that_cannot_be_had_say_why_in_one_line(
    hub: HubServer, client: HubClient, tmp_path: Path
) -> None:
    error = client.ask("task", "owner/absent")
    assert 'the Hub has no data set "owner/absent" (or it is private: HF_TOKEN)' in error
    assert error.startswith('"owner/absent" is no file, folder or named task here (boolq, sst2, ')
    assert "is gated on the Hub: accept its terms" in client.ask("task", "owner/secret")
    assert "no split is called train; there are part1" in client.ask("task", "owner/odd")
    with HubClient(hub, tmp_path, TOKEN) as allowed:
        assert allowed.ask("task", "owner/secret")["labels"] == ["0", "1"]


def test_models_come_whole_or_in_shards_and_without_code(client: HubClient) -> None:
    plain = client.ask("model", "owner/plain")
    assert list(plain) == ["config.json", "model.safetensors"]
    assert plain["model.safetensors"] == sha256(b"weights" * 50).hexdigest()
    sharded = client.ask("model", "owner/sharded")
    assert [name for name in sharded if name.endswith(".safetensors")] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    assert "model.safetensors.index.json" in sharded


def test_models_that_cannot_be_had_say_why_in_one_line(
    hub: HubServer, client: HubClient, tmp_path: Path
) -> None:
    assert client.ask("model", "owner/absent").startswith('the Hub has no model "owner/absent"')
    assert 'model "owner/gated" is gated on the Hub: accept its terms' in client.ask("model", "owner/gated")
    with HubClient(hub, tmp_path, "hf_" + "x" * 34) as refused:  # 403, not 401
        assert 'model "owner/gated" is gated on the Hub' in refused.ask("model", "owner/gated")
    with HubClient(hub, tmp_path, TOKEN) as allowed:
        assert "model.safetensors" in allowed.ask("model", "owner/gated")


def test_an_interrupted_download_continues_where_it_broke_off(hub: HubServer, client: HubClient) -> None:
    hub.cut["interrupted.safetensors"] = 21 * 2**20
    hub.ranges.clear()
    model = client.ask("model", "owner/interrupted")
    assert model["interrupted.safetensors"] == sha256(LARGE).hexdigest()
    assert [int(wanted.removeprefix("bytes=").rstrip("-")) > 0 for wanted in hub.ranges] == [True]


def test_a_damaged_file_is_refused_and_fetched_again(hub: HubServer, client: HubClient) -> None:
    hub.corrupt.add("damaged.safetensors")
    error = client.ask("model", "owner/damaged")
    assert (
        error == 'model "owner/damaged": damaged.safetensors was damaged on its way from the Hub; try again'
    )
    hub.corrupt.clear()
    model = client.ask("model", "owner/damaged")
    assert model["damaged.safetensors"] == sha256(b"right" * 99).hexdigest()


def test_what_is_here_needs_no_hub(hub: HubServer, client: HubClient) -> None:
    model = client.ask("model", "owner/plain")
    hub.down = True
    try:
        assert client.ask("model", "owner/plain") == model
        assert 'model "owner/other" is not here and the Hub cannot be reached' in client.ask(
            "model", "owner/other"
        )
    finally:
        hub.down = False
