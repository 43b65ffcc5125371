"""The run directory: schemas, atomic reading and writing. Standard library and numpy only."""

from heedful.runs.answers import Answer, Figure, Note, Table, read_answer, write_answer
from heedful.runs.checksums import file_checksum, find_damage, seal
from heedful.runs.directory import Run, new_run_path
from heedful.runs.environment import environment
from heedful.runs.files import JsonLines, WriteError, new_folder, write_json
from heedful.runs.json_files import read_json, read_jsonl
from heedful.runs.leases import Lease, holder_of
from heedful.runs.schemas import Check, Checks, Environment, Metrics, Prediction, Results, SplitResult, Timing
from heedful.runs.toml import read_toml, to_toml, write_toml

__all__ = [
    "Answer",
    "Check",
    "Checks",
    "Environment",
    "Figure",
    "JsonLines",
    "Lease",
    "Metrics",
    "Note",
    "Prediction",
    "Results",
    "Run",
    "SplitResult",
    "Table",
    "Timing",
    "WriteError",
    "environment",
    "file_checksum",
    "find_damage",
    "holder_of",
    "new_folder",
    "new_run_path",
    "read_answer",
    "read_json",
    "read_jsonl",
    "read_toml",
    "seal",
    "to_toml",
    "write_answer",
    "write_json",
    "write_toml",
]
