"""Every gate, with whatever hypothesis thinks of: a record, or one line; never another exception."""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.checkpoints.hub_reader import refuse_sizes
from heedful.checkpoints.schemas import (
    AdapterFacts,
    LoadableAdapter,
    ModelFacts,
    PeftFacts,
    SentenceSection,
    ShardIndex,
)
from heedful.errors import LONGEST_MESSAGE, UserError
from heedful.families import FAMILIES
from heedful.inference.decisions import Decision
from heedful.inference.ensemble import EnsembleFacts
from heedful.inference.loading import RunFacts, check_run_facts
from heedful.inference.onnx.predictor import OnnxFacts
from heedful.linear.model import LinearFacts
from heedful.models.config import TransformerConfig
from heedful.options.configuration import check_stored_options
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.options.types import Bounds
from heedful.options.values import convert_value, members, parse_value, type_hints
from heedful.paths import expand_path, names_file
from heedful.runs import memory
from heedful.runs.answers import Answer
from heedful.runs.json_files import (
    MAX_DEPTH,
    check_facts,
    check_regular,
    decode_record,
    read_json,
    read_record,
)
from heedful.runs.leases import Holder
from heedful.runs.schemas import Checks, Environment, Metrics, Prediction, Results, Timing
from heedful.runs.studies import StudyRecord
from heedful.runs.toml import read_toml
from heedful.text import sentencepiece
from heedful.text.schemas import AddedTokens, TokenizerSettings

TEXTS = st.text(max_size=8) | st.sampled_from(["\ud800", "x" * 300, "nan", "../x", "\0"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**30, 2**63, -1, 0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = (
    Results, Checks, Environment, Metrics, Timing, Prediction, Answer, StudyRecord, Holder, Decision, EnsembleFacts,
    LinearFacts,
)  # fmt: skip
FACTS = (
    ModelFacts, AdapterFacts, LoadableAdapter, PeftFacts, SentenceSection, ShardIndex, OnnxFacts, RunFacts,
    TokenizerSettings,
)  # fmt: skip
GATE = settings(
    max_examples=settings.default.max_examples // 5, deadline=None, suppress_health_check=list(HealthCheck)
)


def passes_or_says_why(gate: Callable[[], Any]) -> bool:
    message = None
    try:
        gate()
    except UserError as error:
        message = str(error)
    assert message is None or ("\n" not in message and 0 < len(message) <= LONGEST_MESSAGE)
    return message is None


def objects(kind: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with some of the record's own fields and any values."""
    names = st.sampled_from(sorted(type_hints(kind)))
    return st.dictionaries(names | TEXTS, VALUES, max_size=6)


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@GATE
@given(data=st.data())
def test_a_record_is_read_or_refused_in_one_line(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(VALUES | objects(kind))
    passes_or_says_why(lambda: decode_record(kind, value, "a file"))


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
@GATE
@given(data=st.data())
def test_foreign_facts_are_read_or_refused_in_one_line(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(VALUES | objects(kind))
    passes_or_says_why(lambda: check_facts(kind, value, "a file"))


@GATE
@given(value=VALUES)
def test_added_tokens_are_read_or_refused(value: Any) -> None:
    passes_or_says_why(lambda: check_facts(AddedTokens, value, "added_tokens.json"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [AdaptOptions, PretrainOptions])
@GATE
@given(data=st.data())
def test_stored_options_are_of_their_types_or_refused(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(VALUES | objects(kind))
    passes_or_says_why(lambda: check_stored_options(kind, value, "config.toml"))
    if isinstance(value, dict):
        passes_or_says_why(lambda: check_run_facts(value, "heedful.json"))


@pytest.mark.parametrize("kind", [AdaptOptions, PretrainOptions])
@GATE
@given(data=st.data())
def test_an_option_is_within_its_bounds_or_refused_alike_in_text_and_in_values(
    kind: type[Any], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(type_hints(kind))))
    hint, value = type_hints(kind)[name], data.draw(NUMBERS)
    accepted = passes_or_says_why(lambda: convert_value(hint, value, f"--{name}"))
    if {member for member, _ in members(hint)} & {int, float}:
        text = repr(value)
        assert passes_or_says_why(lambda: parse_value(hint, text, f"--{name}")) in (accepted, True)
        if accepted and not isinstance(value, bool):
            assert math.isfinite(value)
    passes_or_says_why(lambda: parse_value(hint, data.draw(TEXTS), f"--{name}"))


def test_every_number_among_the_options_has_bounds() -> None:
    for kind in (AdaptOptions, PretrainOptions):
        for name, hint in type_hints(kind).items():
            for member, bounds in members(hint):
                if member in (int, float):
                    assert any(isinstance(b, Bounds) for b in bounds), name


@pytest.mark.parametrize("name", sorted(FAMILIES))
@GATE
@given(data=st.data())
def test_a_familys_configuration_is_read_or_refused(name: str, data: st.DataObject) -> None:
    family = FAMILIES[name]
    good = {field.theirs: 4 if field.theirs != "model_type" else name for field in family.fields}
    fields = st.sampled_from([field.theirs for field in family.fields])
    changes = data.draw(st.dictionaries(fields, VALUES, max_size=4))
    passes_or_says_why(lambda: family.read_config({**good, **changes}, "config.json"))


@GATE
@given(changes=objects(TransformerConfig))
def test_our_own_configuration_is_read_or_refused(changes: dict[str, Any]) -> None:
    sizes = dict.fromkeys(("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len"), 4)
    passes_or_says_why(lambda: TransformerConfig.from_dict({"kind": "encoder", **sizes, **changes}))


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_no_sentencepiece_model_or_one(content: bytes) -> None:
    try:
        sentencepiece.parse(content)
    except (sentencepiece.MessageError, UnicodeDecodeError, sentencepiece.struct.error):
        return


@GATE
@given(text=TEXTS | st.text(max_size=600))
def test_a_path_is_expanded_or_refused(text: str) -> None:
    passes_or_says_why(lambda: expand_path(text))
    names_file(text)


@GATE
@given(content=st.binary(max_size=100) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_file_is_json_and_toml_or_refused(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    passes_or_says_why(lambda: read_json(path))
    passes_or_says_why(lambda: read_toml(path))
    passes_or_says_why(lambda: read_record(Results, path))


def test_what_is_nested_too_deeply_or_too_long_a_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("[" * 101 + "]" * 101, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 41, "-" + "9" * 50):
        path.write_text(text)
        with pytest.raises(UserError, match="nested too deeply, or a huge number"):
            read_json(path)
    for text in ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "1" + "0" * 30):
        path.write_text(text)
        read_json(path)


def test_only_regular_files_are_opened_and_none_beyond_the_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**42)
    for name in ("pipe", "zero", "socket", "sparse"):
        with pytest.raises(UserError, match=name):
            check_regular(tmp_path / name)


def test_sizes_are_compared_with_memory_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful import models

    monkeypatch.setattr(memory, "free_gb", lambda: 2.0)
    config = models.PRESETS["bert-tiny"].config.replace(n_layers=10_000, d_model=4096, n_heads=64, d_head=64)
    with pytest.raises(
        UserError, match=r"10,000 layers of width 4,096 .* needs [\d,.]+ GB of memory; 2.0 GB"
    ):
        models.build(config)


def test_a_size_with_several_names_counts_once() -> None:
    sizes = {"d_model": 1024, "hidden_size": 1024, "encoder_layers": 12, "num_hidden_layers": 12}
    refuse_sizes({**sizes, "intermediate_size": 4096, "hidden_dim": 4096}, "config.json")
    shared = {"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 10_000}
    refuse_sizes({**shared, "num_hidden_groups": 1}, "config.json")  # layers that share their weights
    with pytest.raises(UserError, match=r"a model of these sizes needs .* GB"):
        refuse_sizes(shared, "config.json")
