"""Searches: cells that share their work are the separate runs, and the best is scored on test once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.evaluation.metrics import ACCURACY, METRICS
from heedful.objectives import features
from heedful.options.studies import SearchOptions, SearchRun
from heedful.options.training import AdaptOptions
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.files import write_json
from heedful.runs.schemas import Metrics, Results, SplitResult
from heedful.runs.studies import Configuration, Ended, Outcome, StudyFolder, StudyRecord
from heedful.studies.search.answer import write_answer
from heedful.studies.search.study import Search, plan_grid
from heedful.studies.shared import scores, search_space
from heedful.studies.shared.runner import run_study
from heedful.studies.shared.search_space import Range
from heedful.training.loop import Loop
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> SearchRun:
    root = tmp_path_factory.mktemp("tiny")
    return SearchRun(
        model=str(make_model(root / "model")), task=str(make_task(root / "task")), max_len=32,
        precision="float32", threads=1, warmup=3.0,
    )  # fmt: skip


Found = tuple[StudyFolder, Answer]


def search(run: SearchRun, options: SearchOptions) -> Found:
    return run_study(Search, options, run)


@pytest.fixture(scope="module")
def grid(base: SearchRun, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Two rates by three numbers of epochs, fine-tuned."""
    out = tmp_path_factory.mktemp("study") / "grid"
    asked = SearchOptions(lr="1e-3,1e-2", epochs="1,2,4", batch_size="16", out=out, jobs=0, keep="all")
    return search(base, asked)


def separate(base: SearchRun, out: Path, **settings: Any) -> Path:
    """The run of one cell, made alone."""
    shared = {f: getattr(base, f) for f in ("model", "task", "max_len", "precision", "threads", "warmup")}
    options = AdaptOptions(
        **shared, **settings, schedule="constant", select="last", score_test=False, out=out
    )
    return train_run(options).folder


@pytest.mark.parametrize("epochs", [2, 4])
def test_a_cell_that_goes_on_from_a_shorter_one_has_the_bits_of_a_run_of_its_own(
    base: SearchRun, grid: Found, tmp_path: Path, epochs: int
) -> None:
    cell = grid[0].run(f"lr=0.01,epochs={epochs}")
    alone = separate(base, tmp_path / "alone", lr=1e-2, epochs=epochs, batch_size=16)
    for name in ("metrics.jsonl", "predictions_dev.jsonl", "config.toml", "best/model.safetensors"):
        assert (cell / name).read_bytes() == (alone / name).read_bytes(), name
    assert Run(cell).read_results().best_epoch == epochs  # the last one, not the best


def test_the_shared_epochs_are_trained_once(grid: Found) -> None:
    _, answer = grid
    assert answer.facts["epochs"] == {"asked": 14, "trained": 8, "heads": 0}
    assert any("8 epochs were trained instead of 14" in sentence for sentence in answer.summary)


def test_test_is_scored_for_the_selected_run_alone(grid: Found) -> None:
    folder, answer = grid
    chosen = answer.facts["chosen"]
    for outcome in folder.read_outcomes():
        assert outcome.results is not None
        assert ("test" in outcome.results.splits) == (outcome.name == chosen)
        assert (outcome.folder / "predictions_test.jsonl").is_file() == (outcome.name == chosen)
    assert answer.runs[0] == f"runs/{chosen}"
    assert max(o.dev or 0 for o in folder.read_outcomes()) == answer.facts["dev"]


def test_the_same_search_again_trains_nothing(
    base: SearchRun, grid: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loop, "step", lambda *_: pytest.fail("a step was made"))
    options = SearchOptions(lr="1e-3,1e-2", epochs="1,2,4", batch_size="16", out=grid[0].path, jobs=0)
    assert search(base, options)[1].summary == grid[1].summary


def test_heads_without_kept_features_share_nothing(base: SearchRun, tmp_path: Path) -> None:
    options = SearchOptions(lr="1e-2,1e-1", epochs="1", method="head", out=tmp_path / "s", jobs=0)
    folder, answer = search(replace(base, cache_features=False), options)
    assert answer.facts["epochs"]["heads"] == 0
    assert not any("heads were trained" in said for said in answer.summary)
    assert {outcome.configuration.job for outcome in folder.read_outcomes()} == {""}


@pytest.mark.parametrize("head", ["auto", "family"])
def test_heads_that_share_features_have_the_bits_of_separate_runs(
    base: SearchRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    iterate, computed = features.iterate_by_length, []

    def count(lengths: Any, device: Any, label: str) -> Any:
        computed.append(label.removeprefix("features of "))
        return iterate(lengths, device, label)

    monkeypatch.setattr(features, "iterate_by_length", count)
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    run = replace(base, head=head)  # type: ignore[arg-type]
    options = SearchOptions(
        lr="1e-2,1e-1,1e30",
        epochs="1,3",
        batch_size="16",
        method="head",
        out=tmp_path / "s",
        jobs=0,
        keep="all",
    )
    folder, answer = search(run, options)
    assert sorted(computed) == ["dev", "test", "train"]  # each once for six runs; test for the best alone
    assert answer.facts["epochs"] == {"asked": 12, "trained": 9, "heads": 3}
    assert any("3 heads were trained on features computed once." in said for said in answer.summary)
    for lr in (1e-2, 1e-1):
        for epochs in (1, 3):
            cell = folder.run(f"lr={lr:g},epochs={epochs}")
            where = tmp_path / f"{lr}-{epochs}"
            alone = separate(base, where, lr=lr, epochs=epochs, batch_size=16, method="head", head=head)
            names = [path.relative_to(alone) for path in (alone / "best").rglob("*.safetensors")]
            assert names
            for name in ("config.toml", "metrics.jsonl", "predictions_dev.jsonl", *names):
                assert (cell / name).read_bytes() == (alone / name).read_bytes(), name
    overflowed = folder.read_outcomes()[-1]
    assert overflowed.state == "failed"
    assert overflowed.ended is not None
    assert "no longer a number" in overflowed.ended.reason


def test_random_draws_depend_on_the_seed_and_their_number_alone() -> None:
    space = search_space.read_space(
        {"lr": "2e-5:8e-5", "epochs": "10,15,20", "batch_size": "32,64", "method": "full"}, ranges=True
    )
    assert space["lr"] == Range(2e-5, 8e-5)
    draws = [search_space.draw(space, 0, i) for i in range(200)]
    assert search_space.draw(space, 0, 7) == draws[7]
    assert search_space.draw(space, 1, 7) != draws[7]
    rates = np.array([d["lr"] for d in draws], float)
    assert 2e-5 <= rates.min() < rates.max() <= 8e-5
    assert 0.4 < np.mean(rates < 4e-5) < 0.6  # half the logarithm of the range
    assert {d["epochs"] for d in draws} == {10, 15, 20}


def test_no_combination_of_lists_is_drawn_twice(base: SearchRun, tmp_path: Path) -> None:
    space: dict[str, search_space.Axis] = {
        "method": ("full",), "batch_size": (16, 32), "lr": (1e-4, 1e-3), "epochs": (1, 2)
    }  # fmt: skip
    drawn = list(search_space.draw_distinct(space, 0))
    assert len(drawn) == search_space.count_combinations(space) == 8
    assert len({tuple(d.values()) for d in drawn}) == 8
    assert list(search_space.draw_distinct(space, 1)) != drawn
    narrow = {**space, "batch_size": (16,), "epochs": (1,), "lr": Range(1e-4, 1.01e-4)}  # rounded: two rates
    assert len(list(islice(search_space.draw_distinct(narrow, 0), 9))) == 9
    asked = SearchOptions(tpe=4, lr="1e-3,1e-2", epochs="1,2", out=tmp_path / "a", jobs=0)
    folder, answer = search(base, asked)
    tried = {(s["lr"], s["epochs"]) for s in (o.configuration.settings for o in folder.read_outcomes())}
    assert tried == {(1e-3, 1), (1e-3, 2), (1e-2, 1), (1e-2, 2)}
    assert answer.tables[0].columns[:2] == ("learning rate", "epochs")


def test_what_was_searched_is_told_though_every_draw_has_the_same(base: SearchRun, tmp_path: Path) -> None:
    asked = SearchOptions(random=1, lr="1e-3,1e-2", epochs="1,2", out=tmp_path / "a", jobs=0)
    _, answer = search(base, asked)
    assert answer.tables[0].columns[:2] == ("learning rate", "epochs")
    assert answer.summary[0].startswith("Best on dev: learning rate 0.0")


def test_guided_draws_and_early_stopping_come_from_the_run_directories(
    base: SearchRun, tmp_path: Path
) -> None:
    asked = SearchOptions(tpe=3, prune=True, lr="1e-5:2e-2", epochs="2", out=tmp_path / "a", jobs=0)
    folder, answer = search(base, asked)
    outcomes = folder.read_outcomes()
    assert [o.name for o in outcomes] == [f"trial-{i:03d}" for i in range(3)]
    assert {o.state for o in outcomes} <= {"finished", "pruned"}
    assert answer.figures[0].kind == "scatter"
    again, _ = search(base, replace(asked, out=tmp_path / "b"))
    assert [o.configuration for o in again.read_outcomes()] == [o.configuration for o in outcomes]
    assert [o.state for o in again.read_outcomes()] == [o.state for o in outcomes]


def fake(folder: Path, name: str, curve: list[float], state: str) -> Outcome:
    """A run with given scores on dev."""
    run = Run.create(folder / name)
    run.write_config({"command": "adapt"})
    with run.metrics_log() as log:
        for epoch, value in enumerate(curve, 1):
            log.append(Metrics(epoch, float(epoch), "dev", 1.0, value, 10))
    results = None
    if state == "finished":
        results = Results(
            "t", "m", "full", None, 0, {"dev": SplitResult("accuracy", curve[-1], 10)}, 1, 1, 1.0
        )
    settings = {"lr": 1e-3, "epochs": 9, "batch_size": 32, "method": "full"}
    return Outcome(Configuration(name, settings), run.path, state, results)  # type: ignore[arg-type]


def test_hyperband_stops_the_run_that_falls_behind_and_no_other(tmp_path: Path) -> None:
    from heedful.studies.search.sampling import rebuild_study

    space = search_space.read_space(
        {"lr": "1e-4:1e-2", "epochs": "9", "batch_size": "32", "method": "full"}, ranges=True
    )
    others = [fake(tmp_path, f"good-{i}", [0.5 + e / 20 for e in range(9)], "finished") for i in range(8)]
    bad = fake(tmp_path, "bad", [0.1, 0.1, 0.1], "begun")
    good = fake(tmp_path, "better", [0.9, 0.9, 0.9], "begun")
    assert rebuild_study(ACCURACY, space, [*others, bad], 0, 0, "bad")[1]
    assert not rebuild_study(ACCURACY, space, [*others, good], 0, 0, "better")[1]


def test_a_metric_that_is_better_where_it_is_lower_is_minimized_before_any_run_has_ended() -> None:
    from heedful.studies.search.sampling import rebuild_study

    space = search_space.read_space({"lr": "1e-4:1e-2", "epochs": "9"}, ranges=True)
    assert rebuild_study(METRICS["perplexity"], space, [], 0, 0)[0].direction.name == "MINIMIZE"
    assert rebuild_study(ACCURACY, space, [], 0, 0)[0].direction.name == "MAXIMIZE"


@pytest.mark.parametrize(("options", "line"), [
    ({"lr": "1e-4:1e-3"}, "a range needs --random or --tpe"),
    ({"lr": "fast"}, '--lr: "fast" is not a number'),
    ({"epochs": "2.5"}, '--epochs: "2.5" is not a whole number'),
    ({"lr": "-1"}, "must be above 0"),
    ({"lr": "3:2", "random": 2}, "the first end of a range must be below the second"),
    ({"random": 2, "tpe": 2}, "exclude each other"),
    ({"random": 0}, "--random 0: must be at least 1"),
    ({"random": 5, "lr": "1e-4,1e-3", "epochs": "1,2"}, "--random 5: the lists have 4 combinations"),
    ({"prune": True}, "--prune needs --random or --tpe"),
    ({"tpe": 3, "method": "full,head"}, "several methods need a range"),
    ({"method": "lorra"}, 'did you mean "lora"'),
])  # fmt: skip
def test_a_mistake_in_the_space_gets_one_line_and_leaves_nothing(
    base: SearchRun, tmp_path: Path, options: dict[str, Any], line: str
) -> None:
    with pytest.raises(UserError) as caught:
        search(base, SearchOptions(out=tmp_path / "s", jobs=0, **options))
    assert line in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_only_what_does_not_change_the_bits_is_shared() -> None:
    space = search_space.read_space(
        {"lr": "1e-3", "epochs": "2,4", "batch_size": "8", "method": "full"}, ranges=False
    )
    jobs = {
        schedule: [
            c.job for c in plan_grid(space, {"model": "minilm", "schedule": schedule, "warmup": warmup})
        ]
        for schedule, warmup in (("constant", 10), ("linear", 10), ("cosine", 0))
    }
    assert jobs == {"constant": ["run", "run"], "linear": ["", ""], "cosine": ["", ""]}
    assert [c.job for c in plan_grid(space, {"model": "minilm", "schedule": "constant", "warmup": 0.1})] == [
        "",
        "",
    ]


def test_without_a_rate_each_method_is_searched_around_its_own(tmp_path: Path) -> None:
    space = search_space.read_space(
        {"lr": "", "epochs": "3", "batch_size": "8", "method": "full,head"}, ranges=False
    )
    config = {"model_type": "bert", "num_hidden_layers": 1, "num_attention_heads": 12, "vocab_size": 100}
    config |= {"intermediate_size": 8, "max_position_embeddings": 16, "type_vocab_size": 2}
    rates = {}
    for width in (384, 768):  # a wider model is trained with a lower rate
        (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_size": width}))
        cells = search_space.list_grid(space, str(tmp_path))
        rates[width] = {m: [c["lr"] for c in cells if c["method"] == m] for m in ("full", "head")}
    assert rates[384] == {"full": [3e-5, 1e-4, 3e-4], "head": [3e-4, 1e-3, 3e-3]}
    assert rates[768] == {"full": [1.5e-5, 5e-5, 1.5e-4], "head": [3e-4, 1e-3, 3e-3]}


@pytest.fixture
def cells(tmp_path: Path) -> Callable[..., list[Outcome]]:
    """A grid of fake runs: (lr, epochs) to a score, or to None when it failed."""

    def make(scores: dict[tuple[float, int], float | None], collapsed: bool = False) -> list[Outcome]:
        found = []
        for (lr, epochs), value in scores.items():
            settings = {"lr": lr, "epochs": epochs, "batch_size": 8, "method": "full"}
            name = f"lr={lr:g},epochs={epochs}"
            folder = tmp_path / name
            if value is None:
                ended = Ended("does not fit in memory")
                found.append(Outcome(Configuration(name, settings), folder, "failed", ended=ended))
                continue
            run = Run.create(folder, resume=True)
            with run.metrics_log() as log:
                log.append(Metrics(1, float(epochs), "dev", 1.0, value, 20))
            right = round(20 * value)
            rows = [{"id": str(i), "label": "a", "predicted": "a" if i < right else "b"} for i in range(20)]
            (folder / "predictions_dev.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
            status = "failed" if collapsed else "passed"
            write_json(
                folder / "checks.json", {"checks": [{"name": "collapse", "status": status, "message": ""}]}
            )
            dev = SplitResult("accuracy", value, 20, (value - 0.1, value + 0.1), 1.0)
            results = Results("t", "m", "full", None, 0, {"dev": dev}, 1, 1, 1.0)
            found.append(Outcome(Configuration(name, settings), folder, "finished", results))
        return found

    return make


RECORD = StudyRecord("search", "?", 0, {"lr": "1,2,3", "epochs": "5,7,9"})


def test_a_failed_cell_is_in_the_map_with_its_reason_and_never_the_best(cells: Callable[..., Any]) -> None:
    answer = write_answer(RECORD, cells({(1.0, 5): 0.5, (1.0, 7): 0.7, (2.0, 5): 0.6, (2.0, 7): None}))
    assert answer.facts["chosen"] == "lr=1,epochs=7"
    heat = answer.figures[0]
    assert heat.data == [[0.5, 0.7], [0.6, None]]
    assert heat.options["notes"] == [[1, 1, "failed: does not fit in memory"]]
    assert answer.facts["failed"] == {"lr=2,epochs=7": "does not fit in memory"}


def test_a_best_cell_on_the_edge_is_warned_about_and_one_inside_is_not(cells: Callable[..., Any]) -> None:
    scores = {(lr, e): 0.5 for lr in (1.0, 2.0, 3.0) for e in (5, 7, 9)}
    inside = write_answer(RECORD, cells(scores | {(2.0, 7): 0.9}))
    assert inside.notes == ()
    edge = write_answer(RECORD, cells({(1.0, 5): 0.5, (1.0, 7): 0.9, (2.0, 7): 0.5}))
    assert [note.text for note in edge.notes] == [
        "The best is on the edge of the grid: learning rate 1 is the lowest that was tried; "
        "a lower one may be better.",
        "The best is on the edge of the grid: 7 epochs is the highest number that was tried; more may be better.",
    ]


def test_a_grid_that_mostly_collapsed_is_warned_about(cells: Callable[..., Any]) -> None:
    answer = write_answer(RECORD, cells({(1.0, 5): 0.5, (2.0, 5): 0.5}, collapsed=True))
    assert any("Most runs collapsed: 2 of 2" in note.text for note in answer.notes)
    assert "nearly one answer to everything" in answer.summary[0]


def test_a_best_that_is_not_above_the_majority_says_so(cells: Callable[..., Any]) -> None:
    (outcome,) = cells({(1.0, 5): 0.6})
    assert outcome.results is not None
    dev = replace(outcome.results.splits["dev"], baselines={"majority": 0.55})
    scored = replace(outcome, results=replace(outcome.results, splits={"dev": dev}))
    answer = write_answer(RECORD, [scored])
    assert answer.summary[0].endswith("It is no better than the most frequent label, within chance.")
    better = replace(dev, baselines={"majority": 0.4})
    scored = replace(outcome, results=replace(outcome.results, splits={"dev": better}))
    assert "most frequent label" not in " ".join(write_answer(RECORD, [scored]).summary)


def test_the_edge_is_that_of_the_best_method_alone(cells: Callable[..., Any]) -> None:
    outcomes = cells({(1.0, 5): 0.5, (2.0, 5): 0.6, (3.0, 5): 0.5, (4.0, 5): 0.9, (5.0, 5): 0.5})
    for outcome in outcomes[3:]:
        outcome.configuration.settings["method"] = "head"
    answer = write_answer(replace(RECORD, options={"lr": "1,2,3", "method": "full,head"}), outcomes)
    assert any("learning rate 4 is the lowest that was tried" in note.text for note in answer.notes)


def test_answers_that_are_no_better_than_one_for_all_are_told(cells: Callable[..., Any]) -> None:
    (outcome,) = cells({(1.0, 5): 0.1})
    assert outcome.results is not None
    found = outcome.results.splits["dev"]
    dev = replace(found, metric="exact_match", baselines={"constant_answer": 0.1})
    scored = replace(outcome, results=replace(outcome.results, splits={"dev": dev}))
    answer = write_answer(RECORD, [scored])
    assert "It is no better than one answer to everything" in answer.summary[0]
    assert "with exact match 0.100" in answer.summary[0]
    assert any("dev exact match" in table.columns for table in answer.tables)


def test_equal_cells_are_seldom_called_worse_however_many_there_are(
    cells: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = cells({(float(i), 5): 0.5 for i in range(20)})
    rng = np.random.default_rng(0)
    truth, wrong = np.ones(500), 0
    for _ in range(40):
        right = {o.name: (rng.random(500) < 0.7).astype(float) for o in outcomes}
        monkeypatch.setattr(
            scores, "read_examples", lambda o, split="dev", right=right: (truth, right[o.name])
        )
        best = max(outcomes, key=lambda o: float(right[o.name].mean()))
        wrong += len(scores.find_tied(best, outcomes)) < len(outcomes) - 1
    assert wrong / 40 <= 0.1


def test_cells_that_chance_explains_are_not_called_worse(cells: Callable[..., Any]) -> None:
    answer = write_answer(RECORD, cells({(1.0, 5): 0.9, (2.0, 5): 0.85, (3.0, 5): 0.1}))
    assert answer.summary[1] == "1 of the other 2 cannot be told apart from it on dev."
