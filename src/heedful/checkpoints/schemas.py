"""The fields of model and adapter folders' JSON files that heedful reads, with their types and bounds.

A file may have others, which are read by those who know them: a family's table, or transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

LONGEST_NAME = 2000
MOST_CLASSES = 1_000_000

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
ClassNumber = Annotated[str, Meta(pattern=r"^[0-9]{1,9}$")]
"""The key of a class in `id2label`, which JSON has as text."""
ClassName = Annotated[str, Meta(max_length=100_000)]
Labels = Annotated[list[ClassName], Meta(max_length=MOST_CLASSES)]
Share = Annotated[float, Meta(ge=0, le=1)]
Small = Annotated[int, Meta(ge=1, le=1_000_000)]
Dropout = Annotated[float, Meta(ge=0, lt=1)]
Factor = Annotated[float, Meta(ge=-1e9, le=1e9)]
Head = Literal["classify", "masked", "causal", "text2text"]
Pool = Literal["first", "mean", "apart"]


@dataclass(frozen=True)
class ModelFacts:
    """config.json, whoever wrote it."""

    model_type: Name | None = None
    id2label: Annotated[dict[ClassNumber, ClassName | int | float], Meta(max_length=MOST_CLASSES)] | None = (
        None
    )
    problem_type: Name | None = None
    heedful_thresholds: Annotated[list[Share], Meta(max_length=MOST_CLASSES)] | None = None
    heedful_trained_length: int | None = None
    heedful: dict[str, Any] | None = None
    hub: dict[str, Any] | None = None
    head: Head | None = None
    head_form: Name | None = None
    labels: Labels | None = None


@dataclass(frozen=True)
class SentenceSection:
    """The section `heedful` of a sentence-transformers folder's config.json."""

    pool: Pool | None = None
    head_form: Name | None = None


@dataclass(frozen=True)
class ShardIndex:
    """model.safetensors.index.json: the file of each tensor."""

    weight_map: Annotated[dict[Name, Name], Meta(min_length=1, max_length=1_000_000)]


@dataclass(frozen=True)
class AdapterFacts:
    """heedful.json beside an adapter; each field is absent in an adapter that peft wrote alone."""

    head: Head | None = None
    head_form: Name | None = None
    pool: Pool | None = None
    labels: Labels | None = None
    method: Name | None = None
    options: dict[str, Any] | None = None
    base: Name | None = None
    base_fingerprint: Name | None = None
    problem_type: Name | None = None
    heedful_thresholds: Annotated[list[Share], Meta(max_length=MOST_CLASSES)] | None = None


@dataclass(frozen=True)
class LoadableAdapter:
    """heedful.json of a run or an export, from which the model is built before the adapter is read."""

    head: Head
    head_form: Name | None
    labels: Labels | None
    pool: Pool | None = None


@dataclass(frozen=True)
class PeftFacts:
    """adapter_config.json: the fields that heedful reads."""

    peft_type: Name
    r: Small | None = None
    lora_alpha: Factor = 1.0
    lora_dropout: Dropout | None = None
    use_rslora: bool | None = None
    alpha_pattern: Mapping[Name, Factor] | None = None
