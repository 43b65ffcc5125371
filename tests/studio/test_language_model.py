"""Language model: a person writes with a model, takes other tokens, and asks about people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from tests.made_runs import HOSTILE
from tests.studio.conftest import Served, serve

from heedful.data.world import make_task_folder
from heedful.inference.generation import Sampling, generate, pick_tokens
from heedful.inference.loading import load_run
from heedful.inference.networks import load_writer
from heedful.models import PRESETS, LanguageModel, build
from heedful.studio.folder import StudioFolder
from heedful.studio.model_store import ModelStore
from heedful.studio.work.language_model import describe, describe_person, read_on
from heedful.studio.work.token_reader import TokenReader, find_shares

chromium = pytest.mark.needs("chromium")
PROMPT = "the film was"
RUN = "runs/lines"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio of a model that has read biographies and answers questions; the study asked it."""
    from heedful.cli import main

    root = tmp_path_factory.mktemp("asked")
    world = make_task_folder("world/birthplaces", people=24)
    read = [
        "pretrain",
        "gpt-nano",
        str(world / "wiki.txt"),
        "--objective",
        "span",
        "--dev-share",
        "0",
        "--epochs",
        "2",
    ]
    small = ["--tokenizer", "bpe", "--vocab-size", "400", "--block", "64", "--train-eval-rows", "0"]
    assert main([*read, *small, "--out", str(root / "read")]) == 0
    ask = [
        "adapt",
        str(root / "read"),
        "birthplaces",
        "--data-dir",
        str(world),
        "--epochs",
        "2",
        "--lr",
        "3e-3",
    ]
    assert main([*ask, "--max-len", "64", "--out", str(root / "born")]) == 0
    yield from serve(root)


def quiet(share: float, message: str) -> None:
    """Take progress."""


def open_store(served: Served) -> ModelStore:
    return ModelStore(StudioFolder.open(served.folder))


def write_all(models: ModelStore, **params: Any) -> dict[str, Any]:
    """Write until the model ends, as the page does."""
    ids: list[int] = []
    while True:
        found = read_on({**params, "ids": ids, "choose": True}, models, quiet)
        ids = [token["id"] for token in found["tokens"]]
        if found["ended"] or found["full"]:
            return found


def test_what_is_read_again_is_what_was_read_before(studio: Served) -> None:
    writer = load_writer(studio.folder / RUN)
    reader, prompt = TokenReader(writer.model), writer.encode_prompt(PROMPT)
    for new in ([], [7], [7, 9, 11], [7, 9], [7, 9, 12, 13], [8], [], [7, 9, 12, 13, 14]):
        place = reader.read(prompt, new)
        with torch.inference_mode():
            logits = writer.model(torch.tensor([[*prompt, *new]]))[0]
        torch.testing.assert_close(place.logits, logits[-1], atol=1e-4, rtol=1e-4)
        logs = logits.log_softmax(-1)
        direct = [float(logs[len(prompt) - 1 + i, token]) for i, token in enumerate(new)]
        assert place.log_probabilities == pytest.approx(direct, abs=1e-4)


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("t5-mini", {}),
        ("gpt-nano", {"attention": "performer"}),
        ("gpt-nano", {"attention": "zero_after", "attention_options": {"unsafe": True}}),
    ],
    ids=["t5", "performer", "leaks"],
)
def test_models_of_other_kinds_write_what_generate_writes(preset: str, options: dict[str, Any]) -> None:
    config = PRESETS[preset].config.replace(
        vocab_size=60,
        d_model=24,
        n_layers=2,
        n_heads=3,
        d_head=8,
        d_ff=40,
        max_len=64,
        init_std=0.3,
        **options,
    )
    torch.manual_seed(0)
    model = build(config, head="causal" if config.kind == "decoder" else "text2text").eval()
    assert isinstance(model, LanguageModel)
    prompt, reader, ids = [5, 6, 7, 8], TokenReader(model), list[int]()
    direct = generate(model, [prompt], max_tokens=9)[0]
    while len(ids) < 9:
        ids.append(int(reader.read(prompt, ids).logits.argmax()))
    assert ids == direct.ids
    assert sum(reader.read(prompt, ids).log_probabilities) == pytest.approx(direct.log_probability, abs=1e-3)
    again, fresh = (one.read(prompt, [*ids[:4], 9]) for one in (reader, TokenReader(model)))
    assert again.log_probabilities == pytest.approx(fresh.log_probabilities, abs=1e-4)


def test_greedy_writing_is_that_of_generate(studio: Served) -> None:
    writer = load_writer(studio.folder / RUN)
    found = write_all(open_store(studio), model=RUN, text=PROMPT, temperature=0)
    direct = generate(
        writer.model, [writer.encode_prompt(PROMPT)], max_tokens=100, stop_ids=writer.stop_ids(())
    )[0]
    assert [token["id"] for token in found["tokens"]][: len(direct.ids)] == direct.ids
    assert found["probability"] == pytest.approx(math.exp(direct.log_probability), rel=1e-3)
    assert found["full"] or found["ended"]


@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.6}, {"temperature": 2.0, "top_k": 5, "top_p": 0.9}],
)
def test_shares_are_the_frequencies_of_what_is_drawn(options: dict[str, Any]) -> None:
    logits = torch.randn(12, generator=torch.Generator().manual_seed(3))
    sampling = Sampling(**options)
    numbers = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:-1]
    drawn = pick_tokens(logits.expand(len(numbers), -1), numbers, sampling)
    frequencies = torch.bincount(drawn, minlength=12) / len(numbers)
    assert find_shares(logits, sampling) == pytest.approx(frequencies.tolist(), abs=2e-3)


def test_an_answer_and_its_confidence_are_those_of_predict(asked: Served) -> None:
    models, predictor = open_store(asked), load_run(asked.folder / "born")
    for question in ("Where was Ada Lovelace born?", "Where was Nobody Atall born?"):
        direct = predictor.predict([question])[0]
        found = write_all(models, model="born", text=question, temperature=0)
        assert " ".join(found["text"].split()) == direct.label
        if found["ended"]:
            assert found["probability"] == pytest.approx(direct.confidence, rel=1e-3)
    assert describe({"model": "read"}, models, quiet)["fills"]
    gap = read_on({"model": "read", "text": "She was born in ___ in 1815."}, models, quiet)
    assert gap["prompt"].count("<mask>") == 2
    assert gap["prompt"][-1] == "<mask>"


def test_who_was_in_training_is_told_apart(asked: Served) -> None:
    from heedful.data import load_task

    task = load_task("birthplaces", data_dir=make_task_folder("world/birthplaces", people=24))
    models = open_store(asked)

    def tell(question: str) -> dict[str, Any]:
        return describe_person({"model": "born", "text": question}, models, quiet)

    for split, seen, words in (
        ("train", True, "this very question"),
        ("dev", True, "read in pretraining, 2 times"),
        ("unseen", False, "is in no text"),
    ):
        row = task.splits[split][0]
        found = tell(row.text)
        assert (found["split"], found["seen"], found["answer"]) == (split, seen, row.answer)
        assert words in found["sentence"]
    nobody = tell("Where was <b>Nobody</b> Atall born?")
    assert (nobody["seen"], nobody["answer"], nobody["mentions"]) == (False, None, 0)
    assert "invented" in nobody["sentence"]


@chromium
def test_a_person_writes_and_takes_another_token(tab: Any) -> None:
    page = tab.open("/language-model")
    page.get_by_role("textbox", name="Prompt").fill(PROMPT)
    tab.wait("document.querySelector('#distribution svg') !== null", 60)
    page.get_by_label("Tokens at once").fill("6")
    page.get_by_role("button", name="Write").click()
    tab.wait(
        "document.querySelectorAll('.token').length === 6 && document.getElementById('state').innerText !== ''",
        60,
    )
    assert "6 tokens written" in page.locator("#state").inner_text()
    first = page.url
    page.locator(".token").nth(2).click()
    page.get_by_text("Token 3 had a probability of").wait_for()
    bars = page.locator("#distribution .bar-row title").all_text_contents()
    expected = read_on(
        {"model": RUN, "text": PROMPT, "ids": ids_of(page.url)[:2]}, open_store(tab.served), quiet
    )["top"]
    assert [bar.split(": ")[0] for bar in bars[:5]] == [one["piece"] for one in expected[:5]]
    assert f"{100 * expected[0]['probability']:.1f} %" in bars[0]
    page.locator("#distribution .bar-row").nth(1).click()
    tab.wait("document.querySelectorAll('.token').length === 3")
    assert ids_of(page.url) == [*ids_of(first)[:2], expected[1]["id"]]
    page.get_by_role("button", name="One token").click()
    tab.wait("document.querySelectorAll('.token').length === 4")
    page.get_by_role("button", name="Take one back").click()
    tab.wait("document.querySelectorAll('.token').length === 3")
    page.go_back()
    tab.wait("document.querySelectorAll('.token').length === 6", 60)
    again = tab.open(first.removeprefix(tab.served.url))
    tab.wait("document.querySelectorAll('.token').length === 6", 60)
    with again.expect_download() as saved:
        again.get_by_role("button", name="Save this figure as SVG").click()
    assert Path(saved.value.path()).read_text().startswith("<svg")


def ids_of(url: str) -> list[int]:
    return [int(i) for i in url.partition("ids=")[2].partition("&")[0].split("%2C")]


@chromium
def test_the_same_seed_draws_the_same_tokens_and_settings_bound_them(tab: Any) -> None:
    drawn = []
    for seed in (3, 3, 4):
        page = tab.open(
            f"/language-model#model={quote(RUN, safe='')}&text={quote(PROMPT)}&seed={seed}&temperature=1.5&top_k=9"
        )
        tab.wait("document.querySelector('#distribution svg') !== null", 60)
        assert "9 tokens can be drawn" in page.locator("#place").inner_text()
        page.get_by_label("Tokens at once").fill("8")
        page.get_by_role("button", name="Write").click()
        tab.wait(
            "document.querySelector('.token') !== null && document.getElementById('write').innerText === 'Write'",
            60,
        )
        drawn.append(ids_of(page.url))
    assert drawn[0] == drawn[1] != drawn[2]
    tab.allowed.append("422")
    page.get_by_label("Top-p").fill("7")
    page.keyboard.press("Enter")
    page.get_by_text("is above 0 and at most 1").wait_for()


@chromium
def test_an_answer_shows_its_confidence_and_who_was_seen(asked: Served, new_tab: Any) -> None:
    tab = new_tab(served=asked)
    page = tab.open("/language-model#model=born")
    question = "Where was Nobody Atall born?"
    page.get_by_role("textbox", name="Question").fill(question)
    tab.wait("document.querySelector('#person .verdict')?.innerText.includes('invented')", 60)
    page.get_by_role("button", name="Answer").click()
    tab.wait("document.querySelector('#person .headline') !== null", 60)
    direct = load_run(asked.folder / "born").predict([question])[0]
    assert direct.label in page.locator("#person .headline").inner_text()
    page.get_by_role("textbox", name="Question").fill("Who was that?")
    tab.wait(
        "document.querySelector('#person').innerText.includes('only such a question names a person')", 60
    )


@chromium
@pytest.mark.parametrize(("width", "dark"), [(390, True), (2560, False)])
def test_the_page_fits_the_window_and_hostile_texts_are_inert(new_tab: Any, width: int, dark: bool) -> None:
    tab = new_tab(width, dark=dark)
    text = HOSTILE[0] + HOSTILE[1] + HOSTILE[2]
    page = tab.open(f"/language-model#model={quote(RUN, safe='')}&text={quote(text[-40:])}&ids=5,6,7,8&at=2")
    tab.wait("document.querySelectorAll('.token').length === 4", 60)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0
    assert not tab.overflows()
    tab.allowed.append("422")
    tab.open(f"/language-model#model={quote(RUN, safe='')}&text=a&ids=99999999")
    page.get_by_text("not in the vocabulary of this model").wait_for(timeout=60_000)
