"""The baseline of birth places as students write it: a function of a file or of lists, or a script that prints."""

from __future__ import annotations

import ast
import inspect
import io
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, simplify

NAMES = ["london_baseline", "baseline", "london_accuracy", "constant_baseline", "evaluate_baseline", "evaluate_london", "evaluate_places",
         "score_baseline", "accuracy", "compute_accuracy", "score", "evaluate"]  # fmt: skip
FILES = (
    "path",
    "file",
    "filename",
    "filepath",
    "evalcorpuspath",
    "evalpath",
    "data",
    "datapath",
    "corpus",
    "fname",
    "tsv",
    "devpath",
    "evalfile",
)
PREDICTIONS = (
    "predictedplaces",
    "predictions",
    "predicted",
    "preds",
    "pred",
    "guesses",
    "answers",
    "predictionlist",
)
GOLD = (
    "gold",
    "labels",
    "places",
    "goldplaces",
    "targets",
    "truth",
    "golds",
    "y",
    "birthplaces",
    "trueplaces",
    "references",
    "ytrue",
)
ANSWERS = ("answer", "place", "constant", "guess", "city", "prediction", "default")
USUAL_FILE = "birth_dev.tsv"


def read_text(text: str) -> dict[str, Any]:
    """Return the numbers that were printed: `Correct: 25 out of 500: 5.0%`, or parts of it."""
    found: dict[str, Any] = {"text": text[-300:]}
    if counts := re.search(r"(\d+(?:\.0)?)\s*(?:out of|/|of)\s*(\d+(?:\.0)?)", text):
        found |= {"correct": float(counts[1]), "total": float(counts[2])}
    if percent := re.search(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*%", text):
        found["percent"] = float(percent[1])
    elif "correct" not in found and (numbers := re.findall(r"-?\d+\.\d+|\b[01]\b", text)):
        found["percent"] = float(numbers[-1]) * (100 if abs(float(numbers[-1])) <= 1 else 1)
    return found


def read_value(value: Any, text: str) -> dict[str, Any]:
    """Return the numbers among what a function returned: a pair of counts, a share, or a percentage."""
    if (
        isinstance(value, tuple | list)
        and len(value) >= len(("total", "correct"))
        and all(isinstance(v, int | float) for v in value[:2])
    ):
        large, small = max(value[:2]), min(value[:2])
        return {"total": float(large), "correct": float(small)}
    if isinstance(value, bool) or not isinstance(value, int | float):
        return read_text(text)
    return {"percent": float(value) * (100 if abs(value) <= 1 else 1)}


class BaselineForm:
    """How to call one student's function or script with a file."""

    def __init__(self, file: StudentFile, function: Callable[..., Any] | None) -> None:
        self.file, self.function = file, function

    def score(self, file: str, answer: str, **_: Any) -> dict[str, Any]:
        """Carry out the operation `score`, in a folder of its own that has the file under its usual name."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / USUAL_FILE
            path.write_text(file, "utf-8")
            with working_folder(Path(folder)):
                printed = io.StringIO()
                with redirect_stdout(printed):
                    value = (
                        self.run_script(path)
                        if self.function is None
                        else self.call_function(path, file, answer)
                    )
        return read_value(value, printed.getvalue())

    def call_function(self, path: Path, text: str, answer: str) -> Any:
        assert self.function is not None
        rows = [line.split("\t") for line in text.split("\n") if line]
        places = [row[1] for row in rows if len(row) > 1]
        arguments: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            simple = simplify(name)
            if simple in FILES:
                arguments[name] = str(path)
            elif simple in PREDICTIONS:
                arguments[name] = [answer] * len(rows)
            elif simple in GOLD:
                arguments[name] = places
            elif simple in ANSWERS:
                arguments[name] = answer
            elif parameter.default is parameter.empty:
                raise NotApplicable(f"the meaning of its parameter {name} is unknown")
        return self.function(**arguments)

    def run_script(self, path: Path) -> Any:
        """Run the file as a script with the name of the table, and without it if it takes none."""
        for arguments in ([str(path)], [], ["--eval_corpus_path", str(path)]):
            saved = sys.argv
            sys.argv = [str(self.file.path), *arguments]
            try:
                self.execute()
                return None
            except SystemExit as ended:
                if ended.code in (None, 0):
                    return None
            finally:
                sys.argv = saved
        raise RuntimeError("as a script it ends with an error, with the file's name and without")

    def execute(self) -> None:
        if self.file.path.is_file():
            runpy.run_path(str(self.file.path), run_name="__main__")
        else:
            exec(self.file.source or "", {"__name__": "__main__"})


@contextmanager
def working_folder(folder: Path) -> Any:
    """Work in a folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def is_script(source: str) -> bool:
    """Whether a file does something when it is run: a main block, or a call of print."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            return True
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and "print" in ast.unparse(node.value.func)
        ):
            return True
    return False


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `score`, of a function or of the file as a script."""
    function = file.find(NAMES, kind="function")
    if function is not None and not inspect.signature(function).parameters:
        function = None
    if function is None and not (file.source and is_script(file.source)):
        return {}
    form = BaselineForm(file, function)
    return {
        "score": Operation(form.score, {"found": "the script" if function is None else function.__name__})
    }
