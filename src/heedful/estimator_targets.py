"""What y holds: one label per text, several, classes with an order, or numbers; and the way back."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from heedful.data.labels import LabelIndex, choose_label_names, parse_label
from heedful.errors import UserError
from heedful.inference.inputs import column_names, is_table

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
SetForm = Literal["indicator", "list", "tuple", "set"]
"""How several labels per text are given: a matrix of 0 and 1, or a list of lists, tuples or sets."""
BEGINS_WITH_NUMBER = re.compile(r"\s*[-+]?\d")


class Targets(ABC):
    """The answers in y, as a run takes them."""

    kind: str
    """The kind of problem, as for `--kind`."""
    classes: Array
    """The labels, in the order of the columns of probabilities; none for numbers."""
    names: list[str]
    """Their names in the run; "" for one that no text has."""
    form: str = ""
    """How several labels per text are given."""

    @abstractmethod
    def pick(self, chosen: Mask) -> list[Any]:
        """Return the answers of some rows."""

    @abstractmethod
    def groups(self) -> Iterable[Mask]:
        """Yield the rows that have a label, for each label: not all of them may be held out."""


class LabelTargets(Targets):
    """One label per text, or one of several classes with an order."""

    def __init__(self, y: Any, rows: int, *, ordered: bool = False) -> None:
        self.kind = "ordered" if ordered else "label"
        order = find_order(y) if ordered else None
        labels = read_column(y, rows, "TextClassifier")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if order is not None:
            keys = {value: number for number, value in enumerate(order)}
            order = [value for value in order if value in set(classes.tolist())]
            codes = np.array([keys[value] for value in labels.tolist()])
            codes = np.unique(codes, return_inverse=True)[1]
            classes = np.array(order, classes.dtype)
        if len(classes) < 2:
            raise ValueError(f"y has one class, {classes[:1].tolist()}; a classifier needs at least two")
        self.classes, self.codes = classes, codes
        counts = np.bincount(codes).tolist()
        self.names = name_ordered(classes, order) if ordered else name_classes(classes, counts)

    def pick(self, chosen: Mask) -> list[Any]:
        return [self.names[code] for code in self.codes[chosen]]

    def groups(self) -> Iterable[Mask]:
        return (self.codes == code for code in range(len(self.classes)))


class SetTargets(Targets):
    """Any number of labels per text."""

    kind = "labels"

    def __init__(self, y: Any, rows: int) -> None:
        self.form = find_set_form(y) or "list"
        columns: Sequence[Any] | None = None
        if self.form == "indicator":
            if is_table(y):
                columns = list(column_names(y))
                y = np.column_stack([np.asarray(y[name]) for name in columns])
            dense = y.toarray() if issparse(y) else np.asarray(y)
            self.matrix = dense.astype(np.uint8)
            self.classes = np.arange(dense.shape[1]) if columns is None else np.array(columns)
        else:
            self.classes, self.matrix = binarize(y)
        check_consistent_length(range(rows), self.matrix)
        present: Mask = np.asarray(self.matrix.any(axis=0), bool).reshape(-1)
        if present.sum() < 2:
            raise ValueError("y has fewer than two labels that occur; several labels per text need two")
        counts = self.matrix.sum(0, dtype=np.int64)[present].tolist()
        names = iter(name_classes(self.classes[present], counts))
        self.names = [next(names) if one else "" for one in present]

    def pick(self, chosen: Mask) -> list[Any]:
        return [[self.names[number] for number in np.flatnonzero(row)] for row in self.matrix[chosen]]

    def groups(self) -> Iterable[Mask]:
        return (column == 1 for column in self.matrix.T)


class NumberTargets(Targets):
    """A number per text."""

    kind = "number"

    def __init__(self, y: Any, rows: int) -> None:
        column = read_column(y, rows, "TextRegressor")
        try:
            self.numbers = column.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError("y holds what is no number; TextClassifier is for labels") from None
        if len(np.unique(self.numbers)) < 2:
            raise ValueError("y has the same number for every text; there is nothing to learn")
        self.classes, self.names = np.empty(0), []

    def pick(self, chosen: Mask) -> list[Any]:
        return [float(number) for number in self.numbers[chosen]]

    def groups(self) -> Iterable[Mask]:
        return ()


def read_column(y: Any, rows: int, estimator: str) -> Array:
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None")
    if isinstance(y, list | tuple) and any(one is None or one != one for one in y):
        raise ValueError(f"{estimator}: y has a missing value; leave those rows out")  # numpy writes "nan"
    column: Array = column_or_1d(y, warn=True)
    assert_all_finite(column, input_name="y")
    check_consistent_length(range(rows), column)
    return column


def find_set_form(y: Any) -> SetForm | None:
    """Return how y gives several labels per text; None if it gives one."""
    if issparse(y):
        return "indicator"
    if is_table(y):
        return "indicator" if len(column_names(y)) > 1 else None
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return "indicator" if y.shape[1] > 1 and np.isin(y, (0, 1)).all() else None
    first = next((one for one in y if one is not None), None) if isinstance(y, list | tuple) else None
    if first is None and isinstance(y, np.ndarray | list) and len(y):
        first = y[0]
    if isinstance(first, set | frozenset):
        return "set"
    if not isinstance(first, list | tuple | np.ndarray):
        return None
    lengths = {len(row) for row in y}
    if len(lengths) == 1 and lengths.pop() > 1 and all(value in (0, 1) for row in y for value in row):
        return "indicator"
    return "tuple" if isinstance(first, tuple) else "list"


def binarize(rows: Any) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Return the labels, sorted, and one 0 or 1 per row and label."""
    found = {label for row in rows for label in row}
    if len(set(map(type, found))) > 1:
        raise ValueError("y mixes labels of several types; make all of them strings or all of them numbers")
    classes = sorted(found)
    numbers = {label: number for number, label in enumerate(classes)}
    matrix = np.zeros((len(rows), len(classes)), np.uint8)
    for number, row in enumerate(rows):
        for label in row:
            matrix[number, numbers[label]] = 1
    return np.array(classes), matrix


def binarize_by(rows: Any, classes: Array) -> npt.NDArray[np.uint8]:
    """Return one 0 or 1 per row and known label, and in a last column 1 where a row has an unknown one."""
    known = {label: number for number, label in enumerate(classes.tolist())}
    matrix = np.zeros((len(rows), len(known) + 1), np.uint8)
    for number, row in enumerate(rows):
        for label in row:
            matrix[number, known.get(label, len(known))] = 1
    return matrix


def restore_sets(matrix: npt.NDArray[np.uint8], classes: Array, form: str) -> Any:
    """Return predicted labels in the form in which `fit` was given them."""
    if form == "indicator":
        return matrix.astype(np.int64)
    make = {"set": set, "tuple": tuple, "list": list}[form]
    values = classes.tolist()
    return [make(values[number] for number in np.flatnonzero(row)) for row in matrix]


def find_order(y: Any) -> list[Any] | None:
    """Return the order that a pandas categorical states; None if y states none."""
    dtype = getattr(y, "dtype", None)
    return list(getattr(dtype, "categories", ())) if getattr(dtype, "ordered", False) else None


def name_ordered(classes: Array, order: list[Any] | None) -> list[str]:
    """Return names of classes with an order, which begin with their place in it."""
    is_number = classes.dtype.kind in "iufb"
    if order is None and not is_number:
        unknown = [value for value in classes.tolist() if not BEGINS_WITH_NUMBER.match(str(value))]
        if unknown:
            raise ValueError(
                f'kind="ordered": the order of {unknown[0]!r} is not known; give numbers, names that '
                f"begin with one, or an ordered pandas Categorical"
            )
    return [f"{number} of {len(classes)}" for number in range(1, len(classes) + 1)]


def name_classes(classes: Array, counts: Sequence[int]) -> list[str]:
    """Return the names of the classes in the run: as they are, or numbered where a task refuses these."""
    numbered = [f"class {number}" for number in range(len(classes))]
    names = [parse_label(value) for value in classes.tolist()]
    if None in names or len(set(names)) < len(names):
        return numbered
    ids = {str(name): number for number, name in enumerate(names)}
    index = LabelIndex(ids, list(range(len(ids))), list(counts))
    try:
        choose_label_names(Path("y"), "row", index)
    except UserError:
        return numbered
    return [str(name) for name in names]
