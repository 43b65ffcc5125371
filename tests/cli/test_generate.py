"""heedful generate: what is streamed is what is written, and nothing that a model writes drives a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import write_decoder, write_task

from heedful.inference.writer import harmless


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("generate") / "task")


@pytest.fixture(scope="module")
def decoder(task: Path) -> Path:
    return write_decoder(task.parent / "tiny-gpt", task)


@pytest.fixture(scope="module")
def pieces(task: Path) -> Path:
    return write_decoder(task.parent / "tiny-bpe", task, "bpe")


def texts(done: Any) -> list[dict[str, Any]]:
    assert done.status == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["texts"]
    return found


@pytest.mark.parametrize("kind", ["decoder", "pieces"])
def test_what_is_streamed_is_what_is_written(
    kind: str, heedful: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(kind)
    (one,) = texts(heedful("generate", model, "Ada was", "--max-tokens", 30, "--json"))
    done = heedful("generate", model, "Ada was", "--max-tokens", 30)
    assert done.out == harmless("Ada was" + one["text"]) + "\n"
    assert "tokens" in done.err
    assert one["prompt"] == "Ada was"


def test_samples_differ_and_the_seed_decides_them(heedful: Callable[..., Any], decoder: Path) -> None:
    ask = ("generate", decoder, "Bo", "--samples", 3, "--max-tokens", 20, "--json")
    first, again, other = (texts(heedful(*ask, "--seed", seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert len({one["text"] for one in first}) == 3
    shown = heedful(*ask[:-1])
    assert [line.split()[0] for line in shown.out.splitlines() if line.startswith("[1.")] == [
        "[1.1]",
        "[1.2]",
        "[1.3]",
    ]


def test_a_file_of_prompts_gives_what_each_gives_alone(
    heedful: Callable[..., Any], decoder: Path, tmp_path: Path
) -> None:
    prompts = ["Ada Ash", "Bo", "Where was Cy Elm born?"]
    (tmp_path / "prompts.txt").write_text("\n".join([*prompts, "", ""]))
    greedy = ("--greedy", "--max-tokens", 8, "--json")
    together = texts(heedful("generate", decoder, "--in", tmp_path / "prompts.txt", *greedy))
    for prompt, one in zip(prompts, together, strict=True):
        assert texts(heedful("generate", decoder, prompt, *greedy))[0]["text"] == one["text"]


def test_a_stop_token_ends_the_text(heedful: Callable[..., Any], decoder: Path) -> None:
    options = ("--max-tokens", 50, "--json")
    (whole,) = texts(heedful("generate", decoder, "Ada", *options))
    stop = next(c for c in whole["text"] if c.isalpha())
    (one,) = texts(heedful("generate", decoder, "Ada", "--stop", stop, *options))
    assert one["stopped"] == "stop"
    assert whole["text"].startswith(one["text"] + stop)


def test_control_characters_are_shown_and_never_sent() -> None:
    assert harmless("a\x1b[31mb\x07\x9bc\u202ed\r") == "a\\x1b[31mb\\x07\\x9bc\\u202ed\\r"
    assert harmless("ä\n\té") == "ä\n\té"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Ada☃ ☃",), 'characters that the model does not know: "☃"'),
        (("A" * 65, "--no-slide"), "65 tokens; this model has room for 64"),
        (("",), "prompt is empty"),
        ((), "give one of them"),
        (("Ada", "--greedy", "--top-k", 3), "--greedy"),
        (("Ada", "--top-p", 2), "--top-p 2"),
        (("Ada", "--samples", 0), "--samples 0"),
        (("Ada", "--max-tokens", 0), "--max-tokens 0"),
        (("Ada", "--stop", "Ash"), "is 3 tokens"),
        (("--in", "no-such-file.txt"), "no such file"),
    ],
    ids=str,
)
def test_mistakes_are_told_in_one_line(
    arguments: tuple[Any, ...], words: str, heedful: Callable[..., Any], decoder: Path
) -> None:
    done = heedful("generate", decoder, *arguments)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert words in done.err


def test_a_prompt_longer_than_the_context_is_read_from_its_end(
    heedful: Callable[..., Any], decoder: Path
) -> None:
    long = heedful("generate", decoder, "Bo" * 20 + "A" * 32, "--greedy", "--max-tokens", 5, "--json")
    assert "a prompt has 72 tokens and the model's context 64; only the end of the prompt is read" in long.err
    short = heedful("generate", decoder, "A" * 32, "--greedy", "--max-tokens", 5, "--json")
    assert short.err == ""
    assert texts(long)[0]["text"] == texts(short)[0]["text"]


def test_models_that_write_nothing_are_refused(
    heedful: Callable[..., Any], tiny_bert: Path, run_of: Callable[[str], Path]
) -> None:
    for model, words in (
        (tiny_bert, "is an encoder"),
        (run_of("full"), "heedful predict"),
        ("char-gpt", "heedful pretrain"),
        ("no/such/model/folder", "no model folder"),
    ):
        done = heedful("generate", model, "Ada")
        assert (done.status, done.out) == (2, "")
        assert words in done.err
