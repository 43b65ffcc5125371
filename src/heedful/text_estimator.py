"""What the estimators share: a fit that leaves a run, and how they are saved, pickled and checked."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from heedful import __version__
from heedful.data.sources import materialize
from heedful.data.splits import content_key
from heedful.errors import UserError
from heedful.estimator_parameters import PARAMETERS, AdaptParameters
from heedful.estimator_targets import Targets
from heedful.inference.inputs import Texts, column_names, is_table, list_values, read_texts
from heedful.inference.loading import load_run
from heedful.inference.predictor import Predictor
from heedful.launch.processes import launch_training
from heedful.options.keywords import unknown_option
from heedful.options.solve import SolveOptions
from heedful.options.training import AdaptOptions
from heedful.process_state import keep_process_state
from heedful.results import RunResult
from heedful.runs.directory import CHECKPOINTS, CONFIG, ESTIMATOR, Run
from heedful.runs.files import new_folder, write_json
from heedful.runs.json_files import read_json

SOLVE_PARAMETERS = ("model", "metric", "seed", "split_seed", "threads")
"""Parameters that `method="auto"` has, beside `minutes`, `dev_share`, `kind` and `out`."""
LEAST_DEV_ROWS = 20
"""With fewer rows to hold out nothing is held out: chance would select the model."""
OWN = ("dev_share", "minutes", "kind")
"""Parameters that are no options of a run, or that `fit` decides."""


class TextEstimator(AdaptParameters):
    """An estimator of texts; a subclass says what y holds, and how predictions are returned."""

    run_: RunResult
    dev_rows_: int
    class_names_: list[str]
    classes_: npt.NDArray[Any]
    _form: str

    if not TYPE_CHECKING:  # editors read the parameters of __init__
        __signature__ = inspect.signature(AdaptParameters)

        def __new__(cls, *args, **parameters):
            """Answer a name that other tools use with ours, before Python refuses it."""
            known = cls.__signature__.parameters
            for name in parameters:
                if name not in known:
                    raise unknown_option(cls.__name__, name, known)
            return super().__new__(cls)

    @abstractmethod
    def read_targets(self, y: Any, rows: int) -> Targets:
        """Return what y holds for this number of texts."""

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Train on texts and their answers; what an earlier fit has learned is forgotten."""
        texts = read_columns(X)
        targets = self.read_targets(y, len(texts[0]))
        held_out = self.choose_dev_rows(texts, targets)
        splits = {"train": select(texts, targets, ~held_out)}
        if held_out.any():
            splits["dev"] = select(texts, targets, held_out)
        (options,) = PARAMETERS.parse(self.option_values())
        options = replace(options, kind=targets.kind)
        with keep_process_state():
            top = Path(options.out or tempfile.mkdtemp(prefix="heedful-"))
            try:
                train = self.solve_below if self.method == "auto" else self.train_run_below
                folder = train(options, splits, top)
            except BaseException:
                if options.out is None:
                    shutil.rmtree(top, ignore_errors=True)
                raise
        self.forget()
        if options.out is None:
            self._remove = weakref.finalize(self, shutil.rmtree, top, ignore_errors=True)
        self.run_, self.dev_rows_ = RunResult(folder), int(held_out.sum())
        self.class_names_, self._form = targets.names, targets.form
        self.__dict__.pop("classes_", None)
        if len(targets.classes):
            self.classes_ = targets.classes
        return self

    def train_run_below(self, options: AdaptOptions, splits: Mapping[str, Any], top: Path) -> Path:
        """Write the data below `top`, train, and return the folder of the run."""
        task, run = materialize(splits, folder=top / "data"), top / "run"
        options = replace(options, task=task, split="none", score_test=False, out=run, overwrite=run.is_dir())
        return launch_training(options).folder

    def solve_below(self, options: AdaptOptions, splits: Mapping[str, Any], top: Path) -> Path:
        """Write the data below `top`, find the best model in `minutes`, and return the folder of its run."""
        from heedful.solve.runner import solve

        for field in fields(AdaptOptions):
            given = getattr(options, field.name) != field.default
            if given and field.name not in (*SOLVE_PARAMETERS, "method", "kind", "out"):
                allowed = ", ".join(("minutes", "dev_share", "out", *SOLVE_PARAMETERS))
                raise UserError(
                    f'{field.name}: with method="auto" {type(self).__name__} takes only {allowed}'
                )
        if "dev" not in splits:
            raise UserError(
                f'method="auto" selects on held-out rows, and dev_share={self.dev_share} holds out none of '
                f"{len(splits['train'][1])}; use a larger dev_share or more rows"
            )
        task, out = materialize(splits, folder=top / "data"), top / "solve"
        chosen = {name: getattr(options, name) for name in SOLVE_PARAMETERS}
        solved, answer = solve(
            SolveOptions(
                **chosen, kind=options.kind, task=task, minutes=self.minutes, out=out, overwrite=True
            )
        )
        if not answer.finished:
            raise KeyboardInterrupt
        return Run.open(solved.path).path

    def option_values(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in OWN}

    def choose_dev_rows(self, texts: Texts, targets: Targets) -> npt.NDArray[np.bool_]:
        """Return which rows to hold out, by the hash of their content; every label stays in train."""
        if not 0 <= self.dev_share < 1:
            raise ValueError(f"dev_share {self.dev_share}: must be at least 0 and below 1")
        first, second = texts
        pairs: Sequence[str | None] = second or [None] * len(first)
        keys = [content_key(self.split_seed, *row) for row in zip(first, pairs, strict=True)]
        held_out = np.array([key >= (1 - self.dev_share) * 2**64 for key in keys], bool)
        for rows in targets.groups():
            if held_out[rows].all():
                held_out[rows] = False
        least = 1 if self.method == "auto" else LEAST_DEV_ROWS
        return held_out if held_out.sum() >= least else np.zeros(len(keys), bool)

    @property
    def predictor(self) -> Predictor:
        """The best model, loaded when it is first used."""
        self.check_is_fitted()
        if "predictor" not in vars(self.run_):  # kept there, since predicting changes no attribute
            vars(self.run_)["predictor"] = load_run(self.run_.folder, device=self.device)
        return self.run_.predictor

    def check_is_fitted(self) -> None:
        if "run_" not in vars(self):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit with texts and their answers"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return "run_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False  # of numbers; pairs of texts are two columns
        return tags

    def forget(self) -> None:
        """Remove the folder of an earlier fit if that is temporary."""
        remove = self.__dict__.pop("_remove", None)
        if remove is not None:
            remove()

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the estimator to a folder, which `heedful.load` reads, and every command that takes a run."""
        self.check_is_fitted()
        target = Path(folder)
        if target.is_file():
            raise UserError(f"{target}: is a file; name a folder")
        if target.exists() and any(target.iterdir()):
            if not overwrite:
                raise UserError(f"{target}: is not empty; overwrite=True replaces it")
            if not any((target / name).is_file() for name in (ESTIMATOR, CONFIG)):
                raise UserError(f"{target}: has other files than a saved estimator; name another folder")
        parameters = {name: simplify(value) for name, value in self.get_params(deep=False).items()}
        found = vars(self).get("classes_", np.empty(0))
        classes = {"type": found.dtype.str, "values": found.tolist()}
        facts = {"version": __version__, "estimator": type(self).__name__, "parameters": parameters}
        facts |= {"classes": classes, "form": self._form}
        with new_folder(target) as new:  # complete before it replaces anything, also what it is copied from
            skipped = shutil.ignore_patterns(CHECKPOINTS)
            shutil.copytree(self.run_.folder, new, dirs_exist_ok=True, ignore=skipped)
            write_json(new / ESTIMATOR, {**facts, "names": self.class_names_, "dev_rows": self.dev_rows_})
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read an estimator that `save` wrote. It uses the folder, which is not deleted with it."""
        facts = read_json(Path(folder) / ESTIMATOR)
        parameters = facts["parameters"] | ({} if device is None else {"device": device})
        estimator = cls(**parameters)
        estimator.run_ = RunResult(Run.open(Path(folder)).path)
        if facts["classes"]["values"]:
            estimator.classes_ = np.array(facts["classes"]["values"], facts["classes"]["type"])
        estimator.class_names_, estimator.dev_rows_ = list(facts["names"]), int(facts["dev_rows"])
        estimator._form = facts.get("form", "")
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters, and the files of the run, so that a pickle needs no folder."""
        state = {name: value for name, value in vars(self).items() if name != "_remove"}
        if "run_" in state:
            state["run_"] = read_run_files(self.run_.folder)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("run_", None)
        self.__dict__.update(state)
        if files is not None:
            top = Path(tempfile.mkdtemp(prefix="heedful-"))
            self._remove = weakref.finalize(self, shutil.rmtree, top, ignore_errors=True)
            for name, content in files.items():
                path = top / "run" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.run_ = RunResult(top / "run")


def read_columns(X: Any) -> Texts:  # noqa: N803
    """Return the texts and second texts of X: a table has one column, or two for pairs."""
    if not is_table(X):
        return read_texts(X)
    names = column_names(X)
    if len(names) > 2:
        listed = ", ".join(map(str, names[:8]))
        raise UserError(f"X has {len(names)} columns ({listed}); give one column of texts, or two for pairs")
    return read_texts(list_values(X[names[0]]), list_values(X[names[1]]) if len(names) == 2 else None)


def select(texts: Texts, targets: Targets, chosen: npt.NDArray[np.bool_]) -> tuple[list[Any], list[Any]]:
    """Return the chosen rows as texts, or pairs of texts, and their answers as a run takes them."""
    first, second = texts
    rows: Sequence[Any] = first if second is None else list(zip(first, second, strict=True))
    return [row for row, use in zip(rows, chosen, strict=True) if use], targets.pick(chosen)


def simplify(value: Any) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def read_run_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a run, without checkpoints, by their names in it."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    return {n: path.read_bytes() for n, path in names.items() if not n.startswith(f"{CHECKPOINTS}/")}
