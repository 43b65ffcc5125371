"""Data sets of the Hugging Face Hub, downloaded once and kept as Parquet files in the cache.

An id is that of the Hub (`imdb`, `owner/name`), with a configuration if it has several (`owner/name:config`).
Splits are found by their names, and labels have their names in place of numbers.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.data import cache
from heedful.data.names import find_split
from heedful.data.notices import notify
from heedful.errors import UserError, shorten

HUB_ID = re.compile(r"(?P<id>[\w.-]+(/[\w.-]+)?)(:(?P<config>[\w.+-]+))?", re.ASCII)
SECONDS_TO_CONNECT = 10


@dataclass(frozen=True)
class HubSource:
    """A data set on the Hub: its id, its columns under our names, and the number of its first label.

    Without `columns`, all columns are kept, and labels get their names.
    """

    id: str
    columns: dict[str, str] = field(default_factory=dict)
    first_label: int = 0
    config: str | None = None

    @property
    def title(self) -> str:
        return f"{self.id}:{self.config}" if self.config else self.id


def parse_hub_id(name: str) -> HubSource | None:
    match = HUB_ID.fullmatch(name)
    return HubSource(match["id"], config=match["config"]) if match else None


def download_from_hub(source: HubSource, absent: str, remedy: str = "") -> Path:
    """Download a data set once; return the folder of its files in the cache.

    `absent` and `remedy` say in an error why the Hub was asked and what else would help.
    """
    name = re.sub(r"[/:]", "-", source.title.rpartition("/")[2])

    def fill(folder: Path) -> None:
        parts, facts = load_hub_dataset(source, absent, remedy)
        target = folder if source.columns else folder / name
        target.mkdir(exist_ok=True)
        splits = {hub_split: find_split(str(hub_split)) for hub_split in parts}
        if "train" not in splits.values():
            raise UserError(
                f"{source.title}: no split is called train; there are {', '.join(map(str, splits))}"
            )
        if others := [str(hub_split) for hub_split, split in splits.items() if split is None]:
            notify(f"{source.title}: not used, because neither train, dev nor test: {', '.join(others)}")
        for hub_split, split in splits.items():
            if split is not None:
                write_split(parts[hub_split], source, target / f"{split}.parquet")
        (folder / "source.json").write_text(json.dumps(facts), "utf-8")

    parts = ["hub", 1, source.id, source.columns, source.first_label]
    folder = cache.build_once("hub", cache.digest(*parts, *filter(None, [source.config])), fill)
    return folder if source.columns else folder / name


def write_split(rows: Any, source: HubSource, path: Path) -> None:
    import pyarrow.parquet as pq

    from heedful.data.sources import read_hub_dataset

    if not source.columns:
        pq.write_table(read_hub_dataset(rows), path)
        return
    rows = rows.select_columns(list(source.columns)).rename_columns(source.columns)
    table = rows.with_format("arrow")[:]
    labels = table.column("label").to_pylist()
    place = table.column_names.index("label")
    if set(labels) == {-1}:
        table = table.remove_column(place)
    elif source.first_label:
        table = table.set_column(place, "label", [[label + source.first_label for label in labels]])
    pq.write_table(table, path)


def load_hub_dataset(source: HubSource, absent: str, remedy: str) -> tuple[Any, dict[str, Any]]:
    """Load a data set through `datasets` with its id and revision, or say in one line why that failed."""
    try:
        import datasets
        from huggingface_hub import HfApi
        from huggingface_hub.constants import HF_HUB_OFFLINE
    except ImportError:
        raise UserError(f"{absent}; data sets of the Hub need: pip install 'heedful[hub]'{remedy}") from None
    identity, revision = source.id, None
    try:
        if not HF_HUB_OFFLINE:
            # Ask first, because `datasets` retries for half a minute without a connection, and does not know
            # the old names that the Hub redirects, such as imdb.
            info = HfApi().dataset_info(source.id, timeout=SECONDS_TO_CONNECT)
            identity, revision = info.id, info.sha
        parts = datasets.load_dataset(identity, source.config, revision=revision)
    except Exception as error:  # each version of the Hub's libraries has errors of its own
        raise UserError(f"{absent}{explain_failure(source, identity, error)}{remedy}") from None
    return parts, {"id": identity, "config": source.config, "revision": revision}


def explain_failure(source: HubSource, identity: str, error: Exception) -> str:
    """Return why a download failed, as the end of a sentence."""
    import datasets
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    text = str(error)
    reasons = [error, error.__cause__, error.__context__]
    if any(isinstance(one, GatedRepoError) for one in reasons) or "is a gated" in text:
        return (
            f"; {source.id} is gated on the Hub: accept its terms on its page, then give a token "
            f"(hf auth login, or HF_TOKEN)"
        )
    if any(isinstance(one, RepositoryNotFoundError) for one in reasons):
        return f', and the Hub has no data set "{source.id}" (or it is private: HF_TOKEN)'
    if "onfig" in text:
        try:
            names = datasets.get_dataset_config_names(identity)
        except Exception:  # the names only improve the message
            names = []
        if names and source.config not in names:
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            return f"; {source.id} has the configurations {listed}: name one, as in {source.id}:{names[0]}"
    reason = text.strip().splitlines()[:1] or [type(error).__name__]
    return f" and {source.id} cannot be downloaded from the Hub ({shorten(reason[0], 80)})"
