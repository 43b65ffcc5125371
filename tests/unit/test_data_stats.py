"""Facts about a task, each against a count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.data import load_task, stats


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    train = [
        *({"text": f"word{n} " * (n + 1), "label": "ab"[n % 2]} for n in range(10)),
        {"text": "seen twice", "label": "a"},
        {"text": "seen twice", "label": "b"},
        {"text": "said thrice", "label": "b"},
        {"text": "said thrice", "label": "b"},
        {"text": "said thrice", "label": "b"},
    ]
    dev = [{"text": "seen twice", "label": "a"}, {"text": "new \x1b[31m words\nhere", "label": "b"}]
    for name, rows in (("train", train), ("dev", dev)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = load_task(str(tmp_path))
    counted = {name: stats.count_tokens(split, None) for name, split in task.splits.items()}
    return stats.describe_task(task, counted, max_len=5, batch_size=4)


def test_sizes_and_lengths_are_counted(facts: dict[str, dict[str, dict[str, object]]]) -> None:
    train = facts["splits"]["train"]
    assert (train["rows"], train["tokens"], train["unique_tokens"]) == (15, 55 + 10, 14)
    assert train["lengths"] == {"min": 1, "mean": 4.3, "p50": 3, "p90": 8, "p95": 9, "p99": 9, "max": 10}
    assert train["truncated"] == 5 / 15
    assert train["label_counts"] == {"a": 6, "b": 9}


def test_duplicates_and_contradictions_are_counted(facts: dict[str, dict[str, dict[str, object]]]) -> None:
    assert facts["splits"]["train"]["duplicates"] == 3
    assert facts["splits"]["train"]["contradictions"] == 1
    assert facts["splits"]["dev"]["duplicates"] == 0
    assert facts["shared"] == {"train and dev": {"rows": 1}}


def test_three_examples_a_label_are_chosen(facts: dict[str, dict[str, list[str]]]) -> None:
    assert {label: len(texts) for label, texts in facts["examples"].items()} == {"a": 3, "b": 3}
    assert all(text.isprintable() for texts in facts["examples"].values() for text in texts)


def test_padding_waste_has_every_strategy(facts: dict[str, dict[str, float]]) -> None:
    waste = facts["padding_waste"]
    assert waste["length-grouped"] < waste["shuffled"] < waste["all to the longest"]


def test_the_texts_of_pairs_are_compared_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    for name, start in (("train", 0), ("dev", 5)):
        rows = [
            {"question": f"question {name} {n}", "passage": f"passage {n}", "label": n % 2}
            for n in range(start, start + 10)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = load_task(str(tmp_path))
    found = stats.count_shared_rows(task, {name: split.hashes() for name, split in task.splits.items()})
    assert found == {"train and dev": {"rows": 0, "first texts": 0, "second texts": 5}}


def test_tokens_exclude_special_ones_and_lengths_include_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.text import train

    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    lines = [f"one two three {n}\t{n % 2}" for n in range(60)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    split = load_task(str(tmp_path / "a.txt")).splits["train"]
    tokenizer = train(list(split.texts), kind="word", min_count=1)
    found = stats.count_tokens(split, tokenizer)
    assert set(found.lengths.tolist()) == {4 + len(tokenizer.encode("").ids)}
    assert (found.tokens, found.unique) == (4 * len(split), 3 + len(split))
