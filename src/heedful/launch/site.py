"""What is true of a whole site: the table [slurm] of heedful.toml, here and in the configuration home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from heedful.launch.options import LaunchOptions

L = TypeVar("L", bound="LaunchOptions")
NAME = "heedful.toml"
SLURM = "slurm"


def places() -> list[Path]:
    """Where a person's defaults are looked for; the first that has an option wins."""
    if os.environ.get("HEEDFUL_TOML") == "none":
        return []
    home = os.environ.get("XDG_CONFIG_HOME")
    above = Path(home).expanduser() if home else Path.home() / ".config"
    return [Path(NAME), above / "heedful" / NAME]


def settled(options: L) -> L:
    """The options, with what the files say about this cluster: flags first, then the nearer file."""
    from heedful.launch.options import with_site
    from heedful.runs.toml import read_toml

    for path in places():
        table = read_toml(path).get(SLURM) if path.is_file() else None
        if isinstance(table, dict):
            options = with_site(options, table, str(path))
    return options
