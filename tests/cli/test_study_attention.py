"""heedful study attention: every variant on the same batches, and what each sees of the future."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.evaluation.leaks import draw_samples, measure_leak
from heedful.models import PRESETS, LanguageModel, build
from heedful.text import train as train_tokenizer

TEXTS = [
    f"the {a} {b} sees a {c} ." for a in ("old", "red") for b in ("dog", "cat", "owl") for c in "abcdefgh"
]


def decoder(attention: str, **options: Any) -> LanguageModel:
    torch.manual_seed(0)
    config = PRESETS["gpt-nano"].config.replace(
        vocab_size=30, max_len=16, attention=attention, attention_options=options
    )
    model = build(config, "causal").eval()
    for part in model.parameters():
        torch.nn.init.normal_(part, std=0.5)
    return model  # type: ignore[return-value]


@pytest.mark.parametrize("attention", ["softmax", "additive", "argmax", "performer", "bigbird"])
def test_safe_attention_gives_a_token_the_same_loss_from_its_prefix_alone(attention: str) -> None:
    texts = torch.randint(30, (4, 9), generator=torch.Generator().manual_seed(1)).tolist()
    found = measure_leak(decoder(attention), [*texts, texts[0][:3]])
    assert abs(found.size) <= found.largest < 1e-5
    assert found.tokens == 4 * 8 + 2


@pytest.mark.parametrize("attention", ["zero_after", "zero_scores"])
def test_a_leak_is_a_difference_between_the_two_losses(attention: str) -> None:
    texts = torch.randint(30, (4, 9), generator=torch.Generator().manual_seed(1)).tolist()
    found = measure_leak(decoder(attention, unsafe=True), texts)
    assert abs(found.size) > 1e-3


def test_samples_are_described_by_what_they_are_made_of() -> None:
    tokenizer = train_tokenizer(TEXTS, kind="word", min_count=1)
    torch.manual_seed(0)
    config = PRESETS["gpt-nano"].config.replace(vocab_size=tokenizer.vocab_size, max_len=32)
    model = build(config, "causal").eval()
    start = [tokenizer.encode("the").ids[0]]
    found = draw_samples(model, tokenizer, [start] * 6, max_tokens=12)  # type: ignore[arg-type]
    assert len(found.texts) == 6
    assert 0 < found.mean_length <= 12
    assert 0 < found.distinct <= 1
    assert 0 <= found.punctuation < 1
    assert found == draw_samples(model, tokenizer, [start] * 6, max_tokens=12)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    from heedful.cli import main

    folder = tmp_path_factory.mktemp("attention")
    (folder / "text.txt").write_text("\n".join(TEXTS))
    words = [
        "study",
        "attention",
        str(folder / "text.txt"),
        "--dev",
        str(folder / "text.txt"),
        "--test",
        str(folder / "text.txt"),
        "--min-count",
        "1",
    ]
    words += ["--samples", "3", "--jobs", "0", "--threads", "1", "--eval-every", "1", "--batch-size", "16"]
    words += ["--sentences", "the old dog sees a b .", "--out", str(folder / "study")]
    assert main(words) == 0
    return words, folder / "study"


def test_every_variant_has_its_row_and_leaks_are_named(
    study: tuple[list[str], Path], heedful: Callable[..., Any]
) -> None:
    _, folder = study
    answer = json.loads((folder / "answer.json").read_text())
    assert answer["finished"]
    facts = answer["facts"]
    assert list(facts) == ["softmax", "additive", "shared_qk", "shared_qkv", "zero_after", "zero_scores"]
    safe = {name for name, own in facts.items() if own["largest"] < 1e-5}
    assert safe == {"softmax", "additive", "shared_qk", "shared_qkv"}
    warned = [note["text"].split()[0] for note in answer["notes"] if note["kind"] == "warning"]
    assert warned == ["zero_after", "zero_scores"]
    columns = {column for table in answer["tables"] for column in table["columns"]}
    assert columns >= {
        "hides the future", "leak", "seconds", "train loss", "train perplexity", "dev perplexity",
        "test perplexity", "loss", "perplexity", "a sample", "mean length", "unknown", "punctuation", "distinct",
    }  # fmt: skip
    first = answer["tables"][0]
    hidden = {row[0]: row[first["columns"].index("hides the future")] for row in first["rows"]}
    assert {name for name, told in hidden.items() if told == "yes"} == safe
    curves = answer["figures"][0]["data"]
    assert curves.keys() == facts.keys()
    assert len({tuple(step for step, _ in curve) for curve in curves.values()}) == 1
    assert any("the old dog sees a b ." in row for table in answer["tables"] for row in table["rows"])


def test_the_same_command_does_nothing_again(
    study: tuple[list[str], Path], heedful: Callable[..., Any]
) -> None:
    words, folder = study
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("results.json")}
    assert heedful(*words).status == 0
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("results.json")}


def test_an_unknown_variant_is_refused_before_anything_is_written(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    done = heedful("study", "attention", "world/birthplaces", "--masking", "after", "--out", tmp_path / "s")
    assert done.status == 2
    assert 'unknown masking "after"' in done.err
    assert not (tmp_path / "s").exists()
