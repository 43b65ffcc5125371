"""What does a model know? Learn biographies, ask about birth places, tell memories from inventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.data import Task, load_task
from heedful.data.corpus import Corpus, open_corpus, read_file_texts
from heedful.data.named_tasks import BIRTHPLACES, TASKS, find_named_folder
from heedful.data.random import stream
from heedful.data.run_options import absolute_value
from heedful.data.world import make_task_folder
from heedful.errors import UserError
from heedful.options.configuration import check_table
from heedful.options.studies import KnowledgeOptions
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer, Note
from heedful.runs.config import load_pretrain_config, load_run_config
from heedful.runs.directory import CONFIG, Run
from heedful.runs.schemas import Prediction
from heedful.runs.studies import UNTRAINED, Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.base import Study
from heedful.studies.commands import study_command
from heedful.studies.knowledge.answer import tell
from heedful.studies.knowledge.figures import Asked
from heedful.studies.shared.runner import run
from heedful.studies.shared.untrained_model import write_untrained

O = TypeVar("O", bound=LoopOptions)  # noqa: E741
WORLD = "world/birthplaces"
SEEN = 300
"""People of train who are asked about again."""
PRETRAIN: dict[str, Any] = {
    "model": "modern-gpt",
    "model_options": ["n_layers=3", "d_model=128"],
    "objective": "span",
    "span_form": "window",
    "tokenizer": "bpe",
    "vocab_size": 1024,
    "block": 128,
    "batch_size": 64,
    "epochs": 100,
    "optimizer": "muon",
    "lr": 0.02,
    "schedule": "wsd",
    "dev_share": 0.0,
    "train_eval_rows": 0,
}
"""The recipe for the generated world: some minutes on one core."""
FINETUNE: dict[str, Any] = {"epochs": 10, "lr": 1e-3, "max_len": 128, "select": "last"}
"""The last epoch, not the best one on dev: dev is what everything is measured on."""
DECIDED = (
    "out",
    "resume",
    "overwrite",
    "score_test",
    "threads",
    "device",
    "branch",
    "corpus",
    "task",
    "data_dir",
    "seed",
)
"""Of a recipe: what the study decides."""


def knowledge(options: KnowledgeOptions) -> tuple[StudyFolder, Answer]:
    """Make the whole experiment, and give what was found."""
    o = options
    check_bounds(o)
    read = finished_run(o.pretrain)
    generated = o.data == WORLD
    signals = [0.0, o.name_signal] if generated and o.name_signal else [0.0]
    record = StudyRecord(
        kind="knowledge",
        question="What does a model know, and can its memories be told from its inventions?",
        seed=o.seed,
        options={
            "data": absolute_value("task", o.data),
            "data_dir": None if o.data_dir is None else absolute_value("data_dir", o.data_dir),
            "people": o.people if generated else None,
            "risk": o.risk,
            "strangers": o.strangers,
            "pretrain": recipe(o.pretrain, PretrainOptions, PRETRAIN),
            "read": None if read is None else absolute_value("model", str(read)),
            "run": recipe(o.finetune, AdaptOptions, FINETUNE),
            "from_nothing_epochs": o.from_nothing_epochs,
            "device": o.device,
        },
        configurations=tuple(c for signal in signals for c in arms(signal, read is not None)),
        command=study_command("knowledge", (o.data,), o),
    )
    return run(record, o, (o.data,), o.threads)


def finished_run(path: Path | None) -> Path | None:
    """The run of pretraining that is given in place of a recipe, if one is."""
    if path is None or not path.expanduser().is_dir():
        return None
    found = Run.open(path.expanduser())
    found.results()  # says so where the run has not finished
    return found.path


def arms(signal: float, read: bool) -> list[Configuration]:
    """Pretraining and fine-tuning after it, one job; and where names tell nothing, fine-tuning alone.

    `read` says that the first world's biographies were learnt before.
    """
    mark, settings = ("-signal" if signal else ""), {"name_signal": signal}
    names = [("pretrain", "pretrained"), ("pretrained", "pretrained")] if signal or not read else []
    names = names or [("pretrained", "")]
    names += [] if signal else [("nothing", "")]
    return [
        Configuration(f"{arm}{mark}", {"arm": arm, **settings}, f"{job}{mark}" if job else "")
        for arm, job in names
    ]


def recipe(path: Path | None, kind: type[LoopOptions], default: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe that are its own to decide, as study.json keeps them."""
    if path is None:
        return dict(default)
    read = load_run_config(path)
    if type(read) is not kind:
        wanted = "pretrain" if kind is PretrainOptions else "adapt"
        raise UserError(f'{path}: is a recipe of another command; command = "{wanted}" is wanted here')
    return {
        f.name: absolute_value(f.name, value)
        for f in fields(kind)
        if f.name not in DECIDED and (value := getattr(read, f.name)) != f.default
    }


def refuse_other_text(run: Path, biographies: Path) -> None:
    """Refuse a run that has learnt from another text than the study asks about."""
    read = load_pretrain_config(run)
    if open_corpus(read.corpus, data_dir=read.data_dir).fingerprint != Corpus("", (biographies,)).fingerprint:
        raise UserError(f"--pretrain {run}: has learnt from {read.corpus}, not from {biographies}")


class Knowledge(Study):
    """Three arms on the same questions; then all are asked about: seen, unseen, and people nobody knows."""

    kind = "knowledge"

    def check(self) -> None:
        """Find mistakes in data and recipes before the first run."""
        from heedful.training.validation import validate

        for configuration in self.record.configurations:
            task = self.task(configuration)
            if task.corpus is None:
                raise UserError(f"{task.folder}: has no {BIRTHPLACES.corpus} to learn lives from")
            if task.splits["train"].answers is None or "dev" not in task.splits:
                raise UserError(f"{task.folder}: needs train and dev questions with their answers")
            if configuration.settings["arm"] == "pretrain":
                validate(self.pretraining(configuration))
            else:
                validate(self.options(configuration))
            read = self.reading(configuration)
            if read is not None:
                refuse_other_text(read, task.corpus)

    def reading(self, configuration: Configuration) -> Path | None:
        """The run that learnt the biographies before this study, of the arm that goes on from it."""
        read = self.record.options.get("read")
        own = configuration.settings["arm"] == "pretrained" and not configuration.settings["name_signal"]
        return Path(read) if read and own else None

    def data(self, configuration: Configuration) -> Path:
        """The folder with the biographies and the questions."""
        o = self.record.options
        if o["data"] == WORLD:
            signal = float(configuration.settings["name_signal"])
            return make_task_folder(WORLD, people=int(o["people"]), name_signal=signal)
        if o["data"] in TASKS:
            return find_named_folder(o["data"], None if o.get("data_dir") is None else Path(o["data_dir"]))
        if not Path(o["data"]).is_dir():
            raise UserError(f"{o['data']}: no such folder; it has wiki.txt and questions as birthplaces has")
        return Path(o["data"])

    def task(self, configuration: Configuration) -> Task:
        """The questions."""
        return load_task("birthplaces", data_dir=self.data(configuration))

    def pretraining(self, configuration: Configuration, threads: int | None = None) -> PretrainOptions:
        """How the biographies are learnt."""
        folder = self.data(configuration)
        given = {**self.record.options["pretrain"], "corpus": str(folder / "wiki.txt")}
        if given.get("questions"):
            given |= {"questions": "birthplaces", "data_dir": str(folder)}
        options = PretrainOptions(**check_table(PretrainOptions, given, str(self.folder.path)))
        return self.placed(options, configuration, threads)

    def options(self, configuration: Configuration, threads: int | None = None) -> AdaptOptions:
        """How the questions are learnt."""
        source = f"pretrain{'-signal' if configuration.settings['name_signal'] else ''}"
        model, epochs = self.reading(configuration) or self.folder.run(source), None
        if configuration.settings["arm"] == "nothing":
            model, epochs = self.untrained, self.record.options.get("from_nothing_epochs")
        given = {
            **self.record.options["run"],
            **({} if epochs is None else {"epochs": epochs, "steps": None}),
            "model": str(model),
            "task": "birthplaces",
            "data_dir": str(self.data(configuration)),
        }
        options = AdaptOptions(**check_table(AdaptOptions, given, str(self.folder.path)))
        return self.placed(options, configuration, threads)

    def placed(self, options: O, configuration: Configuration, threads: int | None) -> O:
        """Options with the run's folder; a run that was begun keeps the threads of its beginning."""
        begun = self.folder.outcome(configuration).state == "begun"
        decided: dict[str, Any] = {
            "out": self.folder.run(configuration.name),
            "resume": True,
            "score_test": False,
            "seed": self.record.seed,
            "device": self.record.options["device"],
            "threads": None if begun else threads,
        }
        return replace(options, **decided)

    @property
    def untrained(self) -> Path:
        """Where the model is kept that has read nothing."""
        return self.folder.path / UNTRAINED

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """Make one run in its folder, or continue it."""
        from heedful.training.train import train

        if configuration.settings["arm"] == "pretrain":
            train(self.pretraining(configuration, threads))
            return
        if configuration.settings["arm"] == "nothing" and not self.begun(configuration):
            write_untrained(self.pretraining(configuration), self.untrained)
        train(self.options(configuration, threads))

    def begun(self, configuration: Configuration) -> bool:
        """Whether a run has its configuration."""
        return (self.folder.run(configuration.name) / CONFIG).is_file()

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Ask every model about everybody."""
        for outcome in outcomes:
            if outcome.state == "finished" and outcome.configuration.settings["arm"] != "pretrain":
                self.ask(outcome)

    def ask(self, outcome: Outcome) -> None:
        """Answers of one model to people it was asked about before, people it may know, and strangers."""
        from heedful.evaluation.knowledge import strangers
        from heedful.inference.loading import load_run

        task, made = self.task(outcome.configuration), Run.open(outcome.folder)
        assert task.corpus is not None
        train = task.splits["train"]
        rows = sorted(stream(self.record.seed, "seen").permutation(len(train))[:SEEN].tolist())
        everybody = [text for split in task.splits.values() for text in split.texts]
        nobody = strangers(
            everybody,
            read_file_texts(task.corpus),
            count=int(self.record.options["strangers"]),
            seed=self.record.seed,
        )
        groups: dict[str, list[tuple[str, str | None]]] = {
            "seen": [(train[i].text, train[i].answer) for i in rows],
            "strangers": [(stranger.question, None) for stranger in nobody],
        }
        for name in ("unseen", "test"):
            if name in task.splits:
                groups[name] = [(example.text, example.answer) for example in task.splits[name]]
        adapted = load_run(outcome.folder, device=str(self.record.options["device"]))
        for name, asked in groups.items():
            answers = adapted.predict([question for question, _ in asked])
            made.write_predictions(
                name,
                (
                    Prediction(f"{name}-{i}", truth, a.label, a.probabilities, question)
                    for i, ((question, truth), a) in enumerate(zip(asked, answers, strict=True))
                ),
            )
            made.write_answers(name, (a.label for a in answers))

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """What was found, from the run directories and the questions alone."""
        train: dict[str, Counter[str]] = {}
        for o in outcomes:
            signal = str(o.configuration.settings["name_signal"])
            if signal not in train:
                answers = self.task(o.configuration).splits["train"].answers
                train[signal] = Counter(" ".join(a.split()) for a in answers or ())
        told = tell(self.record, [self.asked(o) for o in outcomes], train)
        read = self.record.options.get("read")
        if not read:
            return told
        r = Run(read).results()
        cost = f"{r.steps:,} steps in {r.seconds / 60:.1f} minutes"
        said = f"The biographies were learnt before, in {read}: {cost}."
        return replace(told, notes=(Note(said), *told.notes))

    def asked(self, outcome: Outcome) -> Asked:
        """A run's answers so far."""
        made = Run(outcome.folder)
        return Asked(
            outcome,
            {
                name: made.predictions(name)
                for name in ("seen", "dev", "unseen", "strangers")
                if outcome.state == "finished" and (outcome.folder / f"predictions_{name}.jsonl").is_file()
            },
        )
