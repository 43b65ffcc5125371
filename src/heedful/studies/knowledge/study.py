"""What does a model know? Learn biographies, ask about birthplaces, separate memories from inventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

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
from heedful.paths import expand_path
from heedful.runs.answers import Answer, Note
from heedful.runs.config import load_pretrain_config, load_run_config
from heedful.runs.directory import CONFIG, Run
from heedful.runs.schemas import Prediction
from heedful.runs.studies import UNTRAINED, Configuration, Outcome
from heedful.studies.base import Study, StudyPlan
from heedful.studies.knowledge.answer import write_answer
from heedful.studies.knowledge.figures import Arm
from heedful.studies.shared import sentences
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
    "out", "resume", "overwrite", "score_test", "threads", "device", "branch", "corpus", "task", "data_dir",
    "seed",
)  # fmt: skip
"""Options of a recipe that the study decides."""


class Knowledge(Study):
    """What does a model know, and does its confidence separate memories from inventions?

    Pretrains a model on biographies, fine-tunes it on "Where was NAME born?",
    and compares it with the same model without pretraining and with a constant
    answer. Then asks about people of the fine-tuning questions, people it has
    only read about, and people who do not exist: how confident it is about
    each, and which rule its inventions follow. Predictions are in each run's
    folder, one per line. The same command continues a study that was stopped.

    Examples:
      heedful study knowledge
      heedful study knowledge birthplaces --pretrain read.toml --finetune ask.toml
      heedful study knowledge birthplaces --pretrain runs/born-read
      heedful study knowledge my/birthplaces --out studies/mine --json
    """

    name = "knowledge"
    options = KnowledgeOptions
    arguments: ClassVar[Mapping[str, str]] = {
        "data": "world/birthplaces (generated), birthplaces, or a folder with such a wiki.txt and questions."
    }

    @classmethod
    def plan(cls, options: KnowledgeOptions, run: None = None) -> StudyPlan:
        o = options
        pretrained = open_finished_run(o.pretrain)
        generated = o.data == WORLD
        signals = [0.0, o.name_signal] if generated and o.name_signal else [0.0]
        return StudyPlan(
            question="What does a model know, and does its confidence separate memories from inventions?",
            seed=o.seed,
            options={
                "data": absolute_value("task", o.data),
                "data_dir": None if o.data_dir is None else absolute_value("data_dir", o.data_dir),
                "people": o.people if generated else None,
                "risk": o.risk,
                "strangers": o.strangers,
                "pretrain": read_recipe(o.pretrain, PretrainOptions, PRETRAIN),
                "read": None if pretrained is None else absolute_value("model", str(pretrained)),
                "run": read_recipe(o.finetune, AdaptOptions, FINETUNE),
                "from_nothing_epochs": o.from_nothing_epochs,
                "device": o.device,
            },
            configurations=[c for signal in signals for c in list_arms(signal, pretrained is not None)],
            folder_words=(o.data,),
        )

    def check(self) -> None:
        from heedful.training.validation import validate

        for configuration in self.record.configurations:
            task = self.task(configuration)
            if task.corpus is None:
                raise UserError(f"{task.folder}: has no {BIRTHPLACES.corpus} with biographies")
            if task.splits["train"].answers is None or "dev" not in task.splits:
                raise UserError(f"{task.folder}: needs train and dev questions with their answers")
            pretrains = configuration.settings["arm"] == "pretrain"
            validate((self.pretrain_settings if pretrains else self.settings)(configuration))
            if (pretrained := self.given_run(configuration)) is not None:
                refuse_other_text(pretrained, task.corpus)

    def given_run(self, configuration: Configuration) -> Path | None:
        """Return the given run that has learned the biographies, for the arm that continues from it."""
        run = self.record.options.get("read")
        settings = configuration.settings
        return Path(run) if run and settings["arm"] == "pretrained" and not settings["name_signal"] else None

    def data(self, configuration: Configuration) -> Path:
        o = self.record.options
        if o["data"] == WORLD:
            signal = float(configuration.settings["name_signal"])
            return make_task_folder(WORLD, people=int(o["people"]), name_signal=signal)
        if o["data"] in TASKS:
            return find_named_folder(o["data"], None if o.get("data_dir") is None else Path(o["data_dir"]))
        if not Path(o["data"]).is_dir():
            remedy = "give one with wiki.txt and questions like birthplaces"
            raise UserError(f"{o['data']}: there is no such folder; {remedy}")
        return Path(o["data"])

    def task(self, configuration: Configuration) -> Task:
        return load_task("birthplaces", data_dir=self.data(configuration))

    def pretrain_settings(self, configuration: Configuration, threads: int | None = None) -> PretrainOptions:
        """Return how the biographies are learned, as options of `heedful pretrain`."""
        folder = self.data(configuration)
        table = {**self.record.options["pretrain"], "corpus": str(folder / "wiki.txt")}
        if table.get("questions"):
            table |= {"questions": "birthplaces", "data_dir": str(folder)}
        options = PretrainOptions(**check_table(PretrainOptions, table, str(self.folder.path)))
        return self.decide_options(options, configuration, threads)

    def settings(self, configuration: Configuration, threads: int | None = None) -> AdaptOptions:
        """Return how the questions are learned, as options of `heedful adapt`."""
        source = f"pretrain{'-signal' if configuration.settings['name_signal'] else ''}"
        model, epochs = self.given_run(configuration) or self.folder.run(source), None
        if configuration.settings["arm"] == "nothing":
            model, epochs = self.folder.path / UNTRAINED, self.record.options.get("from_nothing_epochs")
        table = {
            **self.record.options["run"],
            **({} if epochs is None else {"epochs": epochs, "steps": None}),
            "model": str(model),
            "task": "birthplaces",
            "data_dir": str(self.data(configuration)),
        }
        options = AdaptOptions(**check_table(AdaptOptions, table, str(self.folder.path)))
        return self.decide_options(options, configuration, threads)

    def decide_options(self, options: O, configuration: Configuration, threads: int | None) -> O:
        """Return the options with what the study decides; a run that was begun keeps its threads."""
        begun = self.folder.read_outcome(configuration).state == "begun"
        decided: dict[str, Any] = {"seed": self.record.seed, "device": self.record.options["device"]}
        decided |= {"out": self.folder.run(configuration.name), "resume": True, "score_test": False}
        return replace(options, **decided, threads=None if begun else threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        from heedful.training.train import train_run

        if configuration.settings["arm"] == "pretrain":
            train_run(self.pretrain_settings(configuration, threads))
            return
        begun = (self.folder.run(configuration.name) / CONFIG).is_file()
        if configuration.settings["arm"] == "nothing" and not begun:
            write_untrained(self.pretrain_settings(configuration), self.folder.path / UNTRAINED)
        train_run(self.settings(configuration, threads))

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.state == "finished" and outcome.configuration.settings["arm"] != "pretrain":
                self.ask(outcome)

    def ask(self, outcome: Outcome) -> None:
        """Write one model's answers about people it was asked about, people it may know, and strangers."""
        from heedful.evaluation.knowledge import invent_strangers
        from heedful.inference.loading import load_run

        task, run = self.task(outcome.configuration), Run.open(outcome.folder)
        assert task.corpus is not None
        train = task.splits["train"]
        rows = sorted(stream(self.record.seed, "seen").permutation(len(train))[:SEEN].tolist())
        everybody = [text for split in task.splits.values() for text in split.texts]
        count, seed = int(self.record.options["strangers"]), self.record.seed
        nobody = invent_strangers(everybody, read_file_texts(task.corpus), count=count, seed=seed)
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
            predictions = (
                Prediction(f"{name}-{i}", truth, a.label, a.probabilities, question)
                for i, ((question, truth), a) in enumerate(zip(asked, answers, strict=True))
            )
            run.write_predictions(name, predictions)
            run.write_answers(name, (a.label for a in answers))

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        train: dict[str, Counter[str]] = {}
        for o in outcomes:
            signal = str(o.configuration.settings["name_signal"])
            if signal not in train:
                answers = self.task(o.configuration).splits["train"].answers
                train[signal] = Counter(" ".join(a.split()) for a in answers or ())
        answer = write_answer(self.record, [self.read_replies(o) for o in outcomes], train)
        given_run = self.record.options.get("read")
        if not given_run:
            return answer
        results = Run(given_run).read_results()
        cost = {"steps": results.steps, "minutes": results.seconds / 60}
        note = Note(sentences.KNOWLEDGE_READ_BEFORE.format(run=given_run, **cost))
        return replace(answer, notes=(note, *answer.notes))

    def read_replies(self, outcome: Outcome) -> Arm:
        names = ("seen", "dev", "unseen", "strangers") if outcome.state == "finished" else ()
        written = [name for name in names if (outcome.folder / f"predictions_{name}.jsonl").is_file()]
        return Arm(outcome, {name: Run(outcome.folder).read_predictions(name) for name in written})


def open_finished_run(path: Path | None) -> Path | None:
    """Return the finished run of pretraining that is given in place of a recipe, if one is."""
    if path is None or not expand_path(path).is_dir():
        return None
    run = Run.open(expand_path(path))
    run.read_results()  # an error where the run has not finished
    return run.path


def list_arms(signal: float, pretrained: bool) -> list[Configuration]:
    """Return pretraining and fine-tuning as one job; and where names hint at nothing, fine-tuning alone.

    `pretrained` means that a given run has learned the biographies of the first world.
    """
    mark, settings = ("-signal" if signal else ""), {"name_signal": signal}
    names = [("pretrained", "")]
    if signal or not pretrained:
        names = [("pretrain", "pretrained"), ("pretrained", "pretrained")]
    names += [] if signal else [("nothing", "")]
    return [
        Configuration(f"{arm}{mark}", {"arm": arm, **settings}, f"{job}{mark}" if job else "")
        for arm, job in names
    ]


def read_recipe(path: Path | None, kind: type[LoopOptions], default: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe that the study does not decide, as study.json stores them."""
    if path is None:
        return dict(default)
    options = load_run_config(path)
    if type(options) is not kind:
        command = "pretrain" if kind is PretrainOptions else "adapt"
        raise UserError(f'{path}: is a recipe of another command; give one with command = "{command}"')
    return {
        f.name: absolute_value(f.name, value)
        for f in fields(kind)
        if f.name not in DECIDED and (value := getattr(options, f.name)) != f.default
    }


def refuse_other_text(run: Path, biographies: Path) -> None:
    """Refuse a run that has learned from another text than the study asks about."""
    options = load_pretrain_config(run)
    corpus = open_corpus(options.corpus, data_dir=options.data_dir)
    if corpus.fingerprint != Corpus("", (biographies,)).fingerprint:
        raise UserError(f"--pretrain {run}: has learned from {options.corpus}, not from {biographies}")
