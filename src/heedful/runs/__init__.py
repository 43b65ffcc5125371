"""The run directory: schemas, atomic reading and writing. Standard library and numpy only."""

from heedful.runs.checksums import damage, file_checksum, folder_checksum, seal
from heedful.runs.directory import Run, new_run_path
from heedful.runs.environment import environment
from heedful.runs.files import JsonLines, WriteError, new_folder, read_json, read_jsonl, write_json
from heedful.runs.leases import Lease, holder_of
from heedful.runs.schemas import (
    Check,
    Checks,
    Environment,
    Metrics,
    Prediction,
    Results,
    SplitResult,
    Timing,
)
from heedful.runs.toml import read_toml, to_toml, write_toml

__all__ = [
    "Check",
    "Checks",
    "Environment",
    "JsonLines",
    "Lease",
    "Metrics",
    "Prediction",
    "Results",
    "Run",
    "SplitResult",
    "Timing",
    "WriteError",
    "damage",
    "environment",
    "file_checksum",
    "folder_checksum",
    "holder_of",
    "new_folder",
    "new_run_path",
    "read_json",
    "read_jsonl",
    "read_toml",
    "seal",
    "to_toml",
    "write_json",
    "write_toml",
]
