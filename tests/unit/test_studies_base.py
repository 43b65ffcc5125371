"""Studies: claims, failures, stopping and going on, whatever the question."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.leases import Lease
from heedful.runs.processes import process_name
from heedful.runs.schemas import Results, SplitResult
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord, begin
from heedful.studies import STUDIES, base, open_study
from heedful.studies.base import Study, StudyPlan, failure_notes, find_best
from heedful.studies.shared import worker
from heedful.studies.shared.live_table import count_work, describe_progress, list_rows
from heedful.training.signals import StoppedError

THREE = tuple(Configuration(f"run-{i}", {"value": i}) for i in range(3))


def results(value: float) -> Results:
    return Results(
        "task", "model", "full", "linear", 0, {"dev": SplitResult("accuracy", value, 10)}, 1, 1, 2.0
    )


class Fake(Study):
    """Runs that take no time; `errors` says what happens at each value."""

    name = "fake"
    errors: ClassVar[dict[int, Exception]] = {}
    made: ClassVar[list[str]] = []
    finished = 0
    more = 0

    @classmethod
    def plan(cls, options: object, run: object) -> StudyPlan:
        raise NotImplementedError

    def check(self) -> None:
        pass

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        Fake.made.append(configuration.name)
        value = configuration.settings["value"]
        if value in self.errors:
            raise self.errors[value]
        run = Run.create(self.folder.run(configuration.name), resume=True)
        run.write_config({"command": "fake"})
        run.best.mkdir()
        run.write_results(results(value / 10))

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        if self.more and all(o.over for o in outcomes) and len(outcomes) == 3:
            top = find_best(outcomes)
            assert top is not None
            return [Configuration("after", {"value": 10 * top.configuration.settings["value"]})]
        return ()

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        Fake.finished += 1

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        top = find_best(outcomes)
        said = top.name if top else "nothing"
        return Answer("fake", "?", (said,), notes=tuple(failure_notes(outcomes)))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFolder:
    monkeypatch.setitem(STUDIES.objects, "fake", Fake)
    monkeypatch.setitem(STUDIES.paths, "fake", f"{__name__}:Fake")
    monkeypatch.setattr(Fake, "errors", {})
    monkeypatch.setattr(Fake, "made", [])
    monkeypatch.setattr(Fake, "finished", 0)
    monkeypatch.setattr(Fake, "more", 0)
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.01)
    return begin(record(), tmp_path / "study", ["a"])


def record(**options: Any) -> StudyRecord:
    return StudyRecord("fake", "?", 0, {"run": options}, THREE)


def states(study: StudyFolder) -> dict[str, str]:
    return {o.name: o.state for o in study.read_outcomes()}


def test_every_configuration_is_run_once_and_a_finished_study_is_left_alone(study: StudyFolder) -> None:
    worker.work(study.path)
    assert Fake.made == ["run-0", "run-1", "run-2"]
    answer = study.find_answer()
    assert answer is not None
    assert answer.finished
    assert answer.summary == ("run-2",)
    worker.work(study.path)
    assert Fake.made == ["run-0", "run-1", "run-2"]
    assert Fake.finished == 1


@pytest.mark.parametrize(("keep", "kept"), [("best", [2]), ("all", [0, 1, 2]), ("none", [])])
def test_the_weights_that_were_asked_for_stay_and_no_run_is_made_again(
    study: StudyFolder, keep: Any, kept: list[int]
) -> None:
    study.write(replace(study.read(), keep=keep))
    Fake.errors = {1: UserError("not yet")}
    worker.work(study.path)
    Fake.errors = {}
    study.retry()
    worker.work(study.path)
    assert Fake.made == ["run-0", "run-1", "run-2", "run-1"]
    assert [i for i in range(3) if Run(study.run(f"run-{i}")).best.is_dir()] == kept
    assert set(states(study).values()) == {"finished"}


def test_a_run_without_its_weights_says_how_to_make_them_again(study: StudyFolder) -> None:
    study.write(replace(study.read(), keep="best"))
    worker.work(study.path)
    with pytest.raises(UserError, match=r"run-0: its weights were not kept; heedful run .*run-0 makes"):
        load_run(study.run("run-0"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UserError("the loss is no longer a number"), "the loss is no longer a number"),
        (MemoryError(), "does not fit in memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "does not fit in memory"),
        (RuntimeError("CUDA out of memory. Tried to"), "does not fit in memory"),
        (ValueError("odd\nmore"), "ValueError: odd"),
    ],
)
def test_a_failed_run_has_its_reason_and_no_part_in_the_choice(
    study: StudyFolder, error: Exception, reason: str
) -> None:
    Fake.errors = {2: error}
    worker.work(study.path)
    assert states(study) == {"run-0": "finished", "run-1": "finished", "run-2": "failed"}
    ended = study.read_outcomes()[2].ended
    assert ended is not None
    assert ended.reason == reason
    answer = study.find_answer()
    assert answer is not None
    assert answer.summary == ("run-1",)
    assert reason in answer.notes[0].text
    Fake.errors = {}
    worker.work(study.path)  # not tried again without being told
    assert Fake.made.count("run-2") == 1
    study.retry()
    worker.work(study.path)
    assert states(study)["run-2"] == "finished"
    assert Fake.made.count("run-0") == 1


def test_a_study_whose_runs_all_fail_says_why(study: StudyFolder) -> None:
    Fake.errors = dict.fromkeys(range(3), UserError("no such thing"))
    with pytest.raises(UserError, match="every run failed: no such thing"):
        worker.work(study.path)


def test_a_study_that_is_stopped_goes_on_where_it_was(study: StudyFolder) -> None:
    Fake.errors = {1: StoppedError("stopped by SIGTERM")}
    with pytest.raises(StoppedError):
        worker.work(study.path)
    assert states(study) == {"run-0": "finished", "run-1": "waiting", "run-2": "waiting"}
    partial = study.find_answer()
    assert partial is not None
    assert not partial.finished
    Fake.errors = {}
    worker.work(study.path)
    assert Fake.made == ["run-0", "run-1", "run-1", "run-2"]
    assert study.concluded


def test_what_another_worker_holds_is_waited_for_and_taken_over_when_it_dies(study: StudyFolder) -> None:
    lease = Lease.claim(study.lease("run-0"), "another machine process 1", 1000)
    assert lease is not None
    fake = open_study(study)
    while worker.work_on_next(fake, None):
        pass
    assert Fake.made == ["run-1", "run-2"]
    assert [line.state for line in list_rows(study, study.read_outcomes())] == [
        "waiting",
        "finished",
        "finished",
    ]
    os.utime(lease.file, (0, 0))  # its heart stopped beating long ago
    worker.work(study.path)
    assert Fake.made == ["run-1", "run-2", "run-0"]


def test_a_run_whose_process_dies_twice_has_failed(study: StudyFolder) -> None:
    for _ in range(2):
        lease = Lease.claim(study.lease("run-1"), "another machine process 1", 1000)
        assert lease is not None
        os.utime(lease.file, (0, 0))
        fake = open_study(study)
        while worker.work_on_next(fake, None):
            if "run-1" in Fake.made:
                (study.run("run-1") / "results.json").unlink(missing_ok=True)
                break
    ended = study.read_outcomes()[1].ended
    assert ended is not None
    assert "killed 2 times" in ended.reason
    assert "memory" in ended.reason


def test_runs_that_others_ask_for_come_after_them(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fake, "more", 1)
    worker.work(study.path)
    assert Fake.made[-1] == "after"
    assert study.read_outcomes()[3].configuration.settings == {"value": 20}


@pytest.mark.parametrize("planned", [THREE, ()])
def test_nobody_concludes_while_another_plans(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, planned: tuple[Configuration, ...]
) -> None:
    monkeypatch.setattr(Fake, "more", 1)
    study.write(replace(study.read(), configurations=planned))
    other = Lease.claim(study.lease(worker.PLAN), process_name(os.getpid()), 1000)
    assert other is not None
    waited = []

    def sleep(seconds: float) -> None:
        assert not study.concluded
        waited.append(seconds)
        if len(waited) == 3:
            study.add([Configuration("planned", {"value": 5})])
            other.release()

    monkeypatch.setattr(worker.time, "sleep", sleep)
    worker.work(study.path)
    assert "planned" in Fake.made
    assert study.concluded
    assert len(waited) == 3


def test_what_was_added_after_the_last_look_is_made_before_the_end(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = open_study(study)
    while worker.work_on_next(fake, None):
        pass
    monkeypatch.setattr(Fake, "more", 1)
    worker.conclude(fake)  # as by a worker that had seen all over, and nothing more to come
    assert not study.concluded
    assert states(study)["after"] == "waiting"
    worker.conclude(fake)
    assert not study.concluded
    worker.work(study.path)
    assert study.concluded
    assert Fake.made[-1] == "after"


def test_the_same_study_is_continued_and_another_is_refused(study: StudyFolder) -> None:
    assert begin(record(), study.path, ["a"]).path == study.path
    with pytest.raises(UserError, match=r"was begun with lr not given, now it is 0\.1"):
        begin(record(lr=0.1), study.path, ["a"])
    (study.run("run-0")).mkdir()
    begin(record(lr=0.1), study.path, ["a"], overwrite=True)
    assert not study.run("run-0").exists()
    (study.path.parent / "mine").mkdir()
    (study.path.parent / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds files but no study"):
        begin(record(), study.path.parent / "mine", ["a"], overwrite=True)
    assert (study.path.parent / "mine" / "notes.txt").is_file()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ((replace(THREE[0], settings={"value": 7}), *THREE[1:]), "was begun with value 0, now it is 7"),
        (THREE[:2], "was begun with value 2, now it is not given"),
        ((*THREE, Configuration("more", {"value": 3})), "was begun with value not given, now it is 3"),
        ((Configuration("other", {"value": 0}), *THREE[1:]), "was begun with run run-0, now it is other"),
    ],
)
def test_what_stands_in_the_configurations_alone_must_be_the_same_too(
    study: StudyFolder, plan: tuple[Configuration, ...], said: str
) -> None:
    study.add([Configuration("grown", {"value": 9})])
    begin(record(), study.path, ["a"])
    with pytest.raises(UserError, match=said):
        begin(replace(record(), configurations=plan), study.path, ["a"])


def test_weights_that_may_be_gone_are_not_promised(study: StudyFolder) -> None:
    study.write(replace(study.read(), keep="best"))
    begin(replace(record(), keep="none"), study.path, ["a"])
    assert study.read().keep == "best"
    with pytest.raises(UserError, match="was begun with keep best, now it is all"):
        begin(replace(record(), keep="all"), study.path, ["a"])


def test_overwriting_leaves_a_persons_files_and_nothing_else(study: StudyFolder) -> None:
    worker.work(study.path)
    (study.path / "report.html").write_text("mine")
    (study.path / "untrained").mkdir()
    begin(record(lr=0.1), study.path, ["a"], overwrite=True)
    assert sorted(p.name for p in study.path.iterdir()) == ["report.html", "runs", "study.json"]
    begin(record(lr=0.1), study.path, ["a"])


def test_two_runs_of_one_name_are_refused(study: StudyFolder) -> None:
    with pytest.raises(UserError, match="2 runs of this study would be called run-1"):
        begin(replace(record(), configurations=(*THREE, THREE[1])), study.path.parent / "other", ["a"])


def test_without_a_folder_the_same_options_find_the_same_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["/data/my task.csv", "../models/m"]
    first = begin(record(), None, names)
    assert first.path == Path("studies/fake-my-task.csv-m")
    assert begin(record(lr=1.0), None, names).path == Path("studies/fake-my-task.csv-m-2")
    assert begin(record(), None, names).path == first.path


def test_the_headline_tells_runs_failures_and_the_best(study: StudyFolder) -> None:
    Fake.errors = {2: UserError("no")}
    worker.work(study.path)
    assert describe_progress(study.read_outcomes(), 200.0) == (
        "3 of 3 runs done (1 failed), best so far run-1 with 0.100 on dev, about 3 min left"
    )


def at(epoch: float | None, job: str = "", **settings: Any) -> Any:
    """A run after so many epochs, or at its end."""
    name = f"{job}-{settings}"
    rows = [SimpleNamespace(epoch=epoch)] if epoch else []
    return SimpleNamespace(
        name=name,
        configuration=Configuration(name, settings, job),
        over=epoch is None,
        state="finished" if epoch is None else "begun" if epoch else "waiting",
        find_metrics=lambda: rows,
    )


def test_the_time_left_counts_epochs_that_runs_share_once() -> None:
    shared = [at(None, "a", lr=1, epochs=5), at(6.0, "a", lr=1, epochs=7), at(0, "a", lr=1, epochs=9)]
    assert count_work(shared) == (6.0, 9.0)
    assert count_work([*shared, at(2.0, "a", lr=2, epochs=5)]) == (8.0, 14.0)
    assert count_work([at(None, epochs=10), at(5.0, epochs=20)]) == (15.0, 30.0)
    few_and_all = [at(100.0, epochs=200, train_rows=50), at(0, epochs=1)]
    assert count_work(few_and_all) == (0.5, 2.0)
    assert count_work([at(None, value=1), at(0, value=2)]) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("labels", "answers", "scored"), [([0], None, 1), (None, ["Rome"], 1), (None, None, 0)]
)
def test_a_test_split_is_scored_where_it_can_be(
    study: StudyFolder, monkeypatch: pytest.MonkeyPatch, labels: object, answers: object, scored: int
) -> None:
    from heedful.training import rescore

    asked: list[str] = []
    test = SimpleNamespace(labels=labels, targets=labels, answers=answers)
    monkeypatch.setattr(base, "load_run_task", lambda options: SimpleNamespace(splits={"test": test}))
    monkeypatch.setattr(rescore, "add_split", lambda folder, split: asked.append(split))
    own = Fake(study)
    monkeypatch.setattr(own, "settings", lambda configuration: None)
    own.score_test(study.read_outcomes()[0])
    assert asked == ["test"] * scored
