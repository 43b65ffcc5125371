"""`heedful tokenizer` as a person calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

Run = Callable[..., Any]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    lines = [
        f"the {a} {b}s the {c} near the {d}" for a in NOUNS for b in VERBS for c in NOUNS for d in NOUNS[:3]
    ]
    path = tmp_path / "notes.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


NOUNS = ["lantern", "harbour", "ferryman", "orchard", "chimney", "sparrow"]
VERBS = ["follow", "remember", "paint"]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "word", "char"])
def test_train_writes_what_show_and_compare_read(
    heedful: Run, notes: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "made"
    done = heedful("tokenizer", "train", notes, "--kind", kind, "--out", out)
    assert done.status == 0, done.err
    assert f"{kind} tokenizer in {out}" in done.out
    shown = json.loads(heedful("tokenizer", "show", out, "the lantern", "--json").out)
    assert shown["kind"] == kind
    assert len(shown["ids"]) == len(shown["pieces"]) == len(shown["types"])
    assert ("merges" in shown) == (kind == "bpe")
    found = json.loads(heedful("tokenizer", "compare", out, "--on", notes, "--json").out)
    assert [one["kind"] for one in found["tokenizers"]] == [kind, "bpe"]
    assert found["answer"]["train_own"] in ("no", "only from nothing", "yes")


def test_train_streams_several_sources_and_says_its_facts(heedful: Run, notes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "a.txt").write_text("zebra zebra quay quay\n")
    (tmp_path / "rows.csv").write_text("text,label\nwharf wharf,1\nwharf pier,0\n")
    done = heedful(
        *("tokenizer", "train", notes, folder, tmp_path / "rows.csv", "--kind", "word", "--json"),
        *("--out", tmp_path / "made", "--sentinels", 2, "--min-count", 2),
    )
    facts = json.loads(done.out)
    assert facts["special_tokens"] == {"<START>": 0, "<STOP>": 1, "<UNK>": 2, "<PAD>": 3}
    assert facts["sentinels"] == 2
    assert facts["folder"] == str(tmp_path / "made")
    vocabulary = json.loads((tmp_path / "made" / "tokenizer.json").read_text())["model"]["vocab"]
    assert {"zebra", "wharf", "lantern"} <= set(vocabulary)
    assert "pier" not in vocabulary
    assert facts["vocab_size"] == len(vocabulary)


def test_train_says_when_the_text_has_no_more(heedful: Run, notes: Path, tmp_path: Path) -> None:
    done = heedful("tokenizer", "train", notes, "--out", tmp_path / "made", "--vocab-size", 9000)
    assert "(asked for 9,000: the text has no more)" in done.out


def test_show_puts_ids_under_pieces_between_bars(heedful: Run, notes: Path, tmp_path: Path) -> None:
    heedful("tokenizer", "train", notes, "--kind", "word", "--out", tmp_path / "made")
    done = heedful("tokenizer", "show", tmp_path / "made", "the lantern", "the \x1b[31mred")
    first, pieces, ids = done.out.splitlines()
    assert first.startswith("word, ")
    assert [cell.strip() for cell in pieces.split("|")[1:-1]] == [
        *("<START>", "the", "lantern", "<STOP>", "the", "<UNK>", "<STOP>")
    ]
    assert [at for at, c in enumerate(pieces) if c == "|"] == [at for at, c in enumerate(ids) if c == "|"]
    assert [int(cell) for cell in ids.split("|")[1:-1]][:2] == [0, 4]


def test_show_lists_merges_in_the_order_they_were_applied(heedful: Run, notes: Path, tmp_path: Path) -> None:
    heedful("tokenizer", "train", notes, "--out", tmp_path / "made")
    done = heedful("tokenizer", "show", tmp_path / "made", "the lantern")
    lines = done.out.splitlines()
    assert "|<s>|the|␣lantern|</s>|" in lines
    start = lines.index("  ␣ l a n t e r n")
    numbers = [int(line.split(".")[0]) for line in lines[start + 1 :]]
    assert numbers == list(range(1, 8))
    assert lines[-1].endswith("␣lantern")
    facts = json.loads(heedful("tokenizer", "show", tmp_path / "made", "the lantern", "--json").out)
    assert facts["pieces"] == ["<s>", "the", "Ġlantern", "</s>"]
    assert [len(word["steps"]) for word in facts["merges"]] == [2, 7]


def test_show_never_sends_control_characters(heedful: Run, notes: Path, tmp_path: Path) -> None:
    heedful("tokenizer", "train", notes, "--out", tmp_path / "made")
    done = heedful("tokenizer", "show", tmp_path / "made", "a\x1b]0;title\x07 \u202e b\n[red]c")
    assert not set("\x1b\x07\u202e") & set(done.out)
    assert "\\x1b" in done.out
    done = heedful("tokenizer", "show", tmp_path / "made", "bytes of another encoding: \udcff")
    assert (done.status, len(done.err.splitlines())) == (2, 1)


def test_pieces_are_colored_in_turn_on_a_terminal_and_wrapped_to_its_width() -> None:
    from heedful.cli.tokenizer_show import STYLES, piece_lines

    cells = ["[CLS]", *(f"piece{i}" for i in range(12))]
    lines = piece_lines(cells, list(range(13)), [True] + [False] * 12, 40, colored=True)
    styles = [str(span.style) for line in lines[::2] for span in line.spans]
    assert styles[1:5] == list(STYLES)
    assert styles[0] not in STYLES
    assert len(lines) > 2
    assert all(line.cell_len <= 40 for line in lines)
    console = Console(force_terminal=True, color_system="standard", width=40)
    with console.capture() as captured:
        console.print(lines[0])
    assert "\x1b[" in captured.get()


def test_compare_answers_in_words(heedful: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("zyxwv utsrq\n" * 60)
    heedful("tokenizer", "train", tmp_path / "other.txt", "--out", tmp_path / "other", "--sentinels", 0)
    heedful("tokenizer", "train", notes, "--out", tmp_path / "own", "--sentinels", 0)
    done = heedful("tokenizer", "compare", tmp_path / "other", "--on", notes)
    assert "Should I train my own? Only if you pretrain from scratch:" in done.out
    assert "tokens per word" in done.out
    assert "trained on this text" in done.out
    done = heedful("tokenizer", "compare", tmp_path / "other", tmp_path / "own", "--on", notes)
    assert "Should I train my own? No:" in done.out
    assert "is a tokenizer of its own" in " ".join(done.out.split())
    assert "pretrained model" not in " ".join(done.out.split())
    done = heedful("tokenizer", "compare", tmp_path / "own" / "tokenizer.json", "--on", notes)
    assert "is a tokenizer of its own" in " ".join(done.out.split())
    found = json.loads(heedful("tokenizer", "compare", tmp_path / "own", "--on", notes, "--json").out)
    assert set(found["tokenizers"][0]) == {
        *("name", "kind", "vocab_size", "tokens_per_word", "unknown", "whole_words"),
        *("bytes_per_token", "vocab_used", "mb_per_second"),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "NOTES", "--out", "FULL"], "is not empty; choose another folder, or --overwrite"),
        (["train", "NOTES", "--out", "NOTES"], "is a file; a tokenizer is saved as a folder"),
        (["train", "NOTES", "--out", "NEW", "--vocab-size", "100"], "need 361; --sentinels 0 saves 100"),
        (["train", "NOTES", "--out", "NEW", "--kind", "bep"], 'Invalid value "bep" for --kind'),
        (["train", "EMPTY", "--out", "NEW"], "no text to train"),
        (["train", "NOTES/no.txt", "--out", "NEW"], "no such file"),
        (["train", "--out", "NEW"], "CORPUS"),
        (["train", "NOTES"], "--out"),
        (["show", "FULL", "text"], "has no tokenizer"),
        (["show", "NOTES", "text"], "is not a tokenizer's file"),
        (["compare", "FULL", "--on", "NOTES"], "has no tokenizer"),
        (["compare", "--on", "NOTES"], "TOKENIZER"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    heedful: Run, notes: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept.txt").write_text("kept")
    (tmp_path / "empty.txt").write_text("")
    places = {
        "NOTES": notes,
        "FULL": tmp_path / "full",
        "NEW": tmp_path / "new",
        "EMPTY": tmp_path / "empty.txt",
    }
    filled = [str(places.get(a, a)).replace("NOTES", str(notes)) for a in arguments]
    done = heedful("tokenizer", *filled)
    assert done.status == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["kept.txt"]


def test_overwrite_replaces_the_tokenizer_and_keeps_other_files(
    heedful: Run, notes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made"
    out.mkdir()
    (out / "README.md").write_text("mine")
    assert heedful("tokenizer", "train", notes, "--out", out, "--overwrite").status == 0
    assert (out / "README.md").read_text() == "mine"
    assert (out / "tokenizer.json").is_file()


def test_help_has_examples(heedful: Run) -> None:
    for command in ("train", "compare", "show"):
        done = heedful("tokenizer", command, "--help")
        assert f"heedful tokenizer {command} " in done.out.split("Examples:")[1]


def test_what_cannot_be_written_is_found_before_the_training(
    heedful: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful import text

    (tmp_path / "notes.txt").write_text("one two three\n" * 20)
    (tmp_path / "afile").write_text("")
    monkeypatch.setattr(text, "train", lambda *_, **__: pytest.fail("it was trained"))
    done = heedful("tokenizer", "train", tmp_path / "notes.txt", "--out", tmp_path / "afile" / "tok")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "cannot be written" in done.err
    monkeypatch.undo()
    missing = heedful("tokenizer", "train", tmp_path / "none.txt", "--out", tmp_path / "new")
    assert missing.status == 2
    assert not (tmp_path / "new").exists()
