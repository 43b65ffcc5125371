"""Studies that compare arms: what is chosen, what is repeated, and what may be said."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.options.studies import (
    CompareOptions,
    CompareRun,
    LabelsOptions,
    LabelsRun,
    OptimizersOptions,
    OptimizersRun,
)
from heedful.options.training import AdaptOptions
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Checks, Metrics, Prediction, Results, SplitResult
from heedful.runs.studies import StudyFolder
from heedful.studies import labels as labels_study
from heedful.studies.base import Study
from heedful.studies.compare import Compare
from heedful.studies.labels import Labels
from heedful.studies.optimizers import Optimizers
from heedful.studies.shared.runner import run_study
from heedful.training.validation import validate

N = 400
Score = Callable[[AdaptOptions], float]


class Laboratory:
    """In place of training: each run's share of right answers is a function of its options."""

    def __init__(self) -> None:
        self.score: Score = lambda options: 0.7
        self.made: list[AdaptOptions] = []
        self.tested: list[str] = []
        self.baselines: dict[str, float] | None = None

    def train(self, options: AdaptOptions, trackers: Sequence[object] = ()) -> None:
        assert options.out is not None
        assert not options.score_test
        self.made.append(options)
        value = self.score(options)
        run = Run.create(options.out, resume=True)
        run.write_config({"command": "adapt", "adapt": {}})
        with run.metrics_log() as log:
            for split in ("train_eval", "dev"):
                log.append(Metrics(10, 1.0, split, 1.0, value, N))
        status = "failed" if value == 0.5 else "passed"
        run.write_checks(Checks((Check("collapse", status, "."),)))  # type: ignore[arg-type]
        self.predict(run, "dev", value)
        dev = SplitResult("accuracy", value, N, (value, value), 1.0, baselines=self.baselines)
        run.write_results(
            Results("t", "m", options.method, None, options.seed, {"dev": dev}, 10, 20, 3.0, memory_gb=1.0, best_epoch=1.0)
        )  # fmt: skip

    def predict(self, run: Run, split: str, value: float) -> None:
        """The same examples are hard for everyone, but for a little chance of each run's own."""
        noise = np.random.default_rng(zlib.crc32(run.path.name.encode())).normal(0, 0.02, N)
        right = np.argsort(np.argsort(np.linspace(0, 1, N) + noise)) < round(value * N)
        run.write_predictions(
            split, (Prediction(str(i), "a", "a" if ok else "b") for i, ok in enumerate(right))
        )

    def add_split(self, path: Path, split: str) -> None:
        run = Run.open(path)
        results = run.read_results()
        assert split == "test"
        if split not in results.splits:
            self.tested.append(path.name)
            self.predict(run, split, results.splits["dev"].value or 0)
            run.write_results(replace(results, splits={**results.splits, "test": results.splits["dev"]}))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    from heedful.training import rescore, train

    made = Laboratory()
    monkeypatch.setattr(train, "train_run", made.train)
    monkeypatch.setattr(rescore, "add_split", made.add_split)
    monkeypatch.setattr(Study, "check", lambda self: None)
    monkeypatch.setattr(Study, "score_test", lambda self, outcome: made.add_split(outcome.folder, "test"))
    monkeypatch.setattr(labels_study, "count_rows", lambda options: 1000)
    return made


def compare(run: CompareRun, options: CompareOptions) -> tuple[StudyFolder, Answer]:
    return run_study(Compare, options, run)


def run_compare(out: Path, **options: Any) -> tuple[StudyFolder, Answer]:
    return compare(CompareRun(task="t"), CompareOptions(out=out, jobs=0, models="m", **options))


def test_each_arm_is_repeated_at_the_rate_that_dev_chose_and_tested_there_alone(
    lab: Laboratory, tmp_path: Path
) -> None:
    best = {"full": 1e-4, "head": 3e-3}
    lab.score = lambda o: 0.8 if o.lr == best[o.method] else 0.7
    folder, answer = run_compare(tmp_path / "s", methods="full,head", search=True, seeds=3)
    assert len(lab.made) == 2 * 3 + 2 * 2  # three rates each, then two further seeds
    assert sorted(lab.tested) == sorted(
        f"{m},lr={r},seed={s}" for m, r in (("full", "0.0001"), ("head", "0.003")) for s in range(3)
    )
    assert {o.name for o in folder.read_outcomes() if o.results and "test" in o.results.splits} == set(
        lab.tested
    )
    assert [row[:3] for row in answer.tables[0].rows] == [("full", 1e-4, 3), ("head", 3e-3, 3)]


def test_models_whose_names_are_alike_have_runs_of_their_own(lab: Laboratory, tmp_path: Path) -> None:
    long = "minilm-pretrained-on-hotel-reviews-wordpiece-30k-vocab/best"
    for i, models in enumerate(("exp/1/best,exp-1/best", f"2024/{long},2025/{long}", "a b,a-b")):
        one, two = models.split(",")
        lab.score = lambda o, one=one: 0.8 if o.model == one else 0.6  # type: ignore[misc]
        lab.made.clear()
        options = CompareOptions(out=tmp_path / str(i), jobs=0, models=models, methods="full", seeds=1)
        if i == 2:
            with pytest.raises(UserError, match="2 runs of this study would be called a-b-full"):
                compare(CompareRun(task="t"), options)
            continue
        _, answer = compare(CompareRun(task="t"), options)
        assert [o.model for o in lab.made] == [one, two]
        assert [row[0] for row in answer.tables[0].rows] == [f"{one} full", f"{two} full"]
        assert "is best" in answer.summary[0]


def test_one_rate_written_in_two_ways_is_one_rate(lab: Laboratory, tmp_path: Path) -> None:
    folder, _ = run_compare(tmp_path / "s", methods="full", search=True, rates="1e-4,0.0001", seeds=1)
    assert [o.name for o in folder.read_outcomes()] == ["full,lr=0.0001,seed=0"]


def test_the_command_of_a_comparison_can_be_typed_anywhere(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "reviews.csv").write_text("text,label\n")
    options = CompareOptions(out=Path("s"), jobs=0, models="mine,minilm", methods="full", epochs="7", seeds=1)
    folder, _ = compare(CompareRun(task="reviews.csv", lr=1e-4), options)
    words = folder.read().command
    assert words[:3] == ("study", "compare", str(tmp_path / "reviews.csv"))
    assert dict(word.split("=", 1) for word in words[3:]) == {
        "--out": str(tmp_path / "s"),
        "--jobs": "0",
        "--models": f"{tmp_path / 'mine'},minilm",
        "--methods": "full",
        "--epochs": "7",
        "--seeds": "1",
        "--lr": "0.0001",
    }
    assert sum(word.startswith("--epochs=") for word in words) == 1


def test_other_options_of_a_method_are_another_study(lab: Laboratory, tmp_path: Path) -> None:
    options = CompareOptions(out=tmp_path / "s", jobs=0, models="m", methods="lora,full", seeds=1)
    compare(CompareRun(task="t", method_options=("lora:rank=8",)), options)
    with pytest.raises(
        UserError, match=r"was begun with method-options \['rank=8'\], now it is \['rank=16'\]"
    ):
        compare(CompareRun(task="t", method_options=("lora:rank=16",)), options)


def test_one_example_compares_nothing_and_is_no_error(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.N", 1)
    lab.score = lambda o: 1.0 if o.method == "full" else 0.0
    _, answer = run_compare(tmp_path / "s", methods="full,head", seeds=2)
    assert answer.summary == ("On test there is one example: nothing can be compared.",)
    _, answer = run_study(
        Labels,
        LabelsOptions(out=tmp_path / "l", jobs=0, sizes="50", rates="1e-4", mlm_weights="0.1", seeds=2),
        LabelsRun(model="m", task="t"),
    )
    assert not any("told apart" in said for said in answer.summary)


def test_the_best_of_arms_that_learned_nothing_is_not_praised(lab: Laboratory, tmp_path: Path) -> None:
    level = {"full": 0.63, "head": 0.53}
    lab.score = lambda o: level[o.method]
    lab.baselines = {"majority": 0.64}
    _, answer = run_compare(tmp_path / "s", methods="full,head", seeds=1)
    assert "full is best" in answer.summary[0]
    assert answer.summary[0].endswith(
        "But none is shown to be better than always giving the most frequent label."
    )
    lab.baselines = {"majority": 0.4}
    _, answer = run_compare(tmp_path / "t", methods="full,head", seeds=1)
    assert not any("most frequent label" in said for said in answer.summary)


def test_the_best_run_is_named_first_whatever_the_order_of_the_arms(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.8 if o.method == "lora" and o.seed == 1 else 0.7
    _, answer = run_compare(tmp_path / "s", methods="full,lora,head", seeds=2)
    assert answer.runs[0] == "runs/lora,lr=0.0005,seed=1"
    assert len(set(answer.runs)) == 6


def test_an_arm_is_chosen_from_a_grid_of_rates_and_epochs(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.8 if (o.lr, o.epochs) == (1e-3, 7) else 0.7
    run = CompareRun(task="t", schedule="constant", warmup=10)
    grid = CompareOptions(
        out=tmp_path / "s", jobs=0, models="m", methods="full", search=True, rates="1e-4,1e-3", epochs="9,5,7",
        seeds=2,
    )  # fmt: skip
    folder, answer = compare(run, grid)
    assert [(o.lr, o.epochs, o.seed) for o in lab.made] == [
        *((rate, n, 0) for rate in (1e-4, 1e-3) for n in (5, 7, 9)),
        (1e-3, 7, 1),
    ]
    assert {o.select for o in lab.made} == {"last"}
    assert len({c.claim for c in folder.read().configurations}) == 2 + 1  # lengths of a rate are one job
    assert answer.tables[0].rows[0][:3] == ("full", 1e-3, 2)
    with pytest.raises(UserError, match="several numbers need --search"):
        run_compare(tmp_path / "n", methods="full", epochs="5,7")


def test_a_real_difference_is_called_one_and_a_small_one_is_not(lab: Laboratory, tmp_path: Path) -> None:
    level = {"full": 0.8, "lora": 0.79, "head": 0.6}
    lab.score = lambda o: level[o.method] + 0.005 * (o.seed - 1)
    _, answer = run_compare(tmp_path / "s", methods="full,lora,head", seeds=3)
    said = answer.summary[0]
    assert "full has the highest accuracy, 0.800, and beats head (0.600), but cannot be told apart" in said
    assert "cannot be told apart from lora" in said
    assert "more examples" in said or "more seed" in said
    told = {(row[0], row[1]): row[7] for row in answer.tables[1].rows}
    assert told == {("full", "lora"): "no", ("full", "head"): "yes", ("lora", "head"): "yes"}
    assert "corrected for 3 tests" in answer.tables[1].title


def test_what_fails_stands_at_zero_with_its_reason_and_in_no_test(lab: Laboratory, tmp_path: Path) -> None:
    def score(o: AdaptOptions) -> float:
        if o.method == "prefix":
            raise MemoryError
        if o.method == "head" and o.seed == 1:
            raise UserError("the loss is no longer a number")
        return 0.8 if o.method == "full" else 0.7

    lab.score = score
    _, answer = run_compare(tmp_path / "s", methods="full,head,prefix", seeds=2)
    bars = [row for row in answer.figures[0].data if row["label"] == "prefix"]
    assert [(row["value"], row["note"]) for row in bars] == [(None, "does not fit in memory")] * 2
    assert [row[2] for row in answer.tables[0].rows] == [2, 1, 0]  # a failed seed is in no mean
    assert answer.facts["arms"]["head"][0] == pytest.approx(0.7)
    assert "prefix" not in answer.facts["arms"]
    assert {note.text for note in answer.notes} == {
        "prefix has no result: does not fit in memory",
        "head,lr=0.001,seed=1 failed: the loss is no longer a number",
    }


def test_arms_that_all_collapsed_are_not_compared(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.5
    _, answer = run_compare(tmp_path / "s", methods="full,head", seeds=2)
    assert answer.summary[0].startswith("Every arm collapsed")


def test_seeds_that_collapsed_are_counted(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.5 if o.method == "full" and o.seed else 0.8
    _, answer = run_compare(tmp_path / "s", methods="full,head", seeds=3)
    assert [row[-1] for row in answer.tables[0].rows] == ["2 of 3 seeds collapsed", ""]
    assert any("full: 2 of 3 seeds collapsed: they give" in note.text for note in answer.notes)


def test_each_method_has_its_own_options(lab: Laboratory, tmp_path: Path) -> None:
    run = CompareRun(task="t", method_options=("lora:rank=8", "prompt:length=20"))
    compare(run, CompareOptions(out=tmp_path / "s", jobs=0, models="m", methods="full,lora,prompt", seeds=1))
    assert {o.method: o.method_options for o in lab.made} == {
        "full": (),
        "lora": ("rank=8",),
        "prompt": ("length=20",),
    }
    with pytest.raises(UserError, match="is not METHOD:option=value"):
        compare(CompareRun(task="t", method_options=("rank=8",)), CompareOptions(models="m"))


def test_models_of_one_name_are_told_apart_by_their_paths(lab: Laboratory, tmp_path: Path) -> None:
    options = CompareOptions(out=tmp_path / "s", jobs=0, models="a/bert,b/bert,gpt", methods="full", seeds=1)
    _, answer = compare(CompareRun(task="t"), options)
    assert [row[0] for row in answer.tables[0].rows] == ["a/bert full", "b/bert full", "gpt full"]


def test_an_interval_over_seeds_is_never_narrower_than_that_of_one_run(
    lab: Laboratory, tmp_path: Path
) -> None:
    lab.score = lambda o: 1.0
    _, answer = run_compare(tmp_path / "s", methods="full", seeds=3)
    value, low, high = answer.facts["arms"]["full"]
    assert value == high == 1.0
    assert 0.98 < low < 1.0


def run_optimizers(out: Path, lr: float | None = None, **options: Any) -> tuple[StudyFolder, Answer]:
    study = OptimizersOptions(out=out, jobs=0, **options)
    return run_study(Optimizers, study, OptimizersRun(model="m", task="t", lr=lr))


def test_an_optimizer_is_searched_until_its_best_rate_lies_inside(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.9 - 0.1 * abs(np.log10((o.lr or 1) / {"adamw": 1e-4, "sgd": 0.3}[o.optimizer]))
    _, answer = run_optimizers(tmp_path / "s", optimizers="adamw,sgd")
    rates = {name: sorted(o.lr or 0 for o in lab.made if o.optimizer == name) for name in ("adamw", "sgd")}
    assert rates["adamw"] == [3e-5, 1e-4, 3e-4]
    assert rates["sgd"] == pytest.approx([0.006, 0.02, 0.06, 0.19, 0.601])
    assert answer.facts["rates"]["sgd"] == pytest.approx(0.19)
    assert answer.notes == ()


def test_a_search_that_never_turns_ends_and_says_so(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.6 - 0.01 * np.log10(o.lr or 1)
    _, answer = run_optimizers(tmp_path / "s", optimizers="adamw")
    assert len(lab.made) == 6
    assert any("adamw is best at the lowest rate that was tried" in note.text for note in answer.notes)


def test_one_rate_for_all_is_no_comparison_of_optimizers(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.5 if o.optimizer == "sgd" else 0.8
    _, answer = run_optimizers(tmp_path / "s", lr=1e-3, optimizers="adamw,sgd,rmsprop", same_settings=True)
    assert {o.lr for o in lab.made} == {1e-3}
    assert answer.facts["collapsed"] == ["sgd"]
    assert "sgd collapsed. " in answer.summary[-1]
    assert "not the optimizers" in answer.summary[-1]
    assert [row[-1] for row in answer.tables[0].rows] == ["", "collapsed", ""]


def test_a_rate_at_which_nothing_was_learned_is_named_though_the_answers_vary(
    lab: Laboratory, tmp_path: Path
) -> None:
    lab.baselines = {"chance": 0.5, "majority": 0.55}
    lab.score = lambda o: 0.54 if o.optimizer == "sgd" else 0.8
    _, answer = run_optimizers(tmp_path / "s", lr=1e-3, optimizers="adamw,sgd", same_settings=True)
    assert answer.facts["collapsed"] == []
    assert "sgd learned nothing that shows: no better than the most frequent label" in answer.summary[-1]
    assert [row[-1] for row in answer.tables[0].rows] == ["", "no better than the most frequent label"]


def run_labels(out: Path, run: Mapping[str, Any] | None = None, **options: Any) -> tuple[StudyFolder, Answer]:
    given: dict[str, Any] = {
        "sizes": "50,all",
        "rates": "1e-4,1e-3",
        "mlm_weights": "0.1,1",
        "seeds": 3,
        **options,
    }
    shared = LabelsRun(model="m", task="t", batch_size=25, **(run or {}))
    return run_study(Labels, LabelsOptions(out=out, jobs=0, **given), shared)


def test_each_number_of_labels_and_arm_has_its_own_settings_and_enough_steps(
    lab: Laboratory, tmp_path: Path
) -> None:
    def score(o: AdaptOptions) -> float:
        few = o.train_rows == 50
        base = 0.6 if few else 0.9
        joint = 0.1 if o.objective == "joint" and few else 0.0
        return base + joint + (0.02 if (o.lr == 1e-3) == few else 0) + (0.0025 if o.mlm_weight == 1 else 0)

    lab.score = score
    _, answer = run_labels(tmp_path / "s")
    candidates = [o for o in lab.made if o.seed == 0]
    assert len(candidates) == 2 * (2 + 4)
    assert len(lab.made) == len(candidates) + 2 * 2 * 2
    assert {o.epochs for o in lab.made if o.train_rows == 50} == {100}  # two steps an epoch
    assert {o.epochs for o in lab.made if o.train_rows is None} == {5}  # forty steps an epoch
    assert [row[:6] for row in answer.tables[0].rows] == [
        ("50", "classify", 1e-3, "1 of 100", None, 3),
        ("50", "joint", 1e-3, "1 of 100", 1.0, 3),
        ("all", "classify", 1e-4, "1 of 5", None, 3),
        ("all", "joint", 1e-4, "1 of 5", 1.0, 3),
    ]
    assert answer.summary[0] == "joint is truly better with 50 labels."
    better, other, difference = answer.tables[1].rows[0][:3]
    assert (better, other) == ("joint with 50", "classify with 50")
    assert difference > 0
    assert answer.summary[1] == "With all labels the arms cannot be told apart."
    assert [point[0] for point in answer.figures[0].data["joint"]] == [50, 1000]


def test_one_seed_or_a_poor_score_is_not_called_truly_better(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.8 if o.objective == "joint" else 0.6
    _, once = run_labels(tmp_path / "once", seeds=1, sizes="50")
    assert once.summary[0].startswith(
        "joint is better with 50 labels on these examples; a single run per arm"
    )
    lab.baselines = {"majority": 0.85}
    _, poor = run_labels(tmp_path / "poor", sizes="50")
    assert poor.summary[0].startswith(
        "joint is better with 50 labels, but there it is not shown to be better than"
    )


def test_one_arm_with_one_number_of_labels_has_an_answer_too(lab: Laboratory, tmp_path: Path) -> None:
    lab.score = lambda o: 0.75
    _, answer = run_labels(tmp_path / "s", arms="classify", sizes="50", seeds=1)
    assert answer.summary == ("classify: accuracy on test is 0.750 with 50 labels.",)


def test_text_without_labels_goes_to_the_joint_arm_alone(lab: Laboratory, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("text\n")
    of_joint = {"unlabeled": tmp_path / "more.txt", "mlm_first": 5, "mlm_rate": 0.2}
    run_labels(tmp_path / "s", run=of_joint, sizes="50", seeds=2)
    for options in lab.made:
        validate(options)
        given = {name: getattr(options, name) for name in of_joint}
        joint = options.objective == "joint"
        assert given == (of_joint if joint else {"unlabeled": None, "mlm_first": 0, "mlm_rate": 0.15})
    assert {o.objective for o in lab.made} == {"classify", "joint"}


@pytest.mark.parametrize(("call", "line"), [
    (lambda p: run_labels(p, run={"mlm_first": 5}, arms="classify"), "--mlm-first: for the arm joint, which --arms classify does not have"),
    (lambda p: run_compare(p, methods="full,lorra"), 'unknown method "lorra"; did you mean "lora"?'),
    (lambda p: run_compare(p, methods=","), "--methods: is empty; give one or more names"),
    (lambda p: run_compare(p, seeds=0), "--seeds 0: must be at least 1"),
    (lambda p: run_compare(p, rates="1e-3"), "--rates needs --search"),
    (lambda p: run_optimizers(p, optimizers="adam"), 'did you mean "adamw"'),
    (lambda p: run_optimizers(p, lr=1e-3), "--lr needs --same-settings"),
    (lambda p: run_labels(p, sizes="50,5000"), "--sizes 5000: the training data has 1,000 rows"),
    (lambda p: run_labels(p, sizes="few"), '--sizes: "few" is not a whole number'),
    (lambda p: run_labels(p, arms="mlm"), 'unknown arm "mlm"'),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_leaves_nothing(
    lab: Laboratory, tmp_path: Path, call: Callable[[Path], Any], line: str
) -> None:
    with pytest.raises(UserError) as caught:
        call(tmp_path / "s")
    assert line in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_what_both_arms_have_is_the_same_for_both(lab: Laboratory, tmp_path: Path) -> None:
    run_labels(tmp_path / "s", run={"long_texts": "head-tail"}, sizes="50", seeds=1)
    assert {(o.objective, o.long_texts) for o in lab.made} == {
        ("classify", "head-tail"), ("joint", "head-tail"),
    }  # fmt: skip
