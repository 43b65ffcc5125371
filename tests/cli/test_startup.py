"""What each command imports before its work: the time of a short command is the time of its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import heedful

LIST = """
import json, sys
from heedful.cli import main
sys.stdout = sys.stderr
try:
    status = main(sys.argv[1:])
except SystemExit as end:
    status = end.code
sys.stdout = sys.__stdout__
print(json.dumps([status or 0, sorted(sys.modules)]))
"""
UNUSED = ("heedful.training", "heedful.evaluation", "heedful.studies", "heedful.report", "heedful.solve",
          "heedful.data.tasks", "heedful.data.world", "heedful.methods.base", "optuna", "sklearn", "scipy",
          "pyarrow", "psutil", "transformers", "huggingface_hub")  # fmt: skip
"""What labeling one text with an encoder does without."""
MOST_MODULES = 130
"""Modules of heedful that labeling one text may import; each costs about a millisecond."""


def imported(*arguments: object) -> set[str]:
    """Run a command in a process of its own; return the modules that it has imported at its end."""
    command = [sys.executable, "-c", LIST, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    status, names = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stderr
    return set(names)


@pytest.mark.parametrize("arguments", ["--help", "predict --help", "adapt --help"])
def test_help_imports_no_torch(arguments: str) -> None:
    names = imported(*arguments.split())
    assert not names & {"torch", "scipy", "sklearn", "optuna", "pyarrow", "transformers"}


def test_labeling_a_text_imports_what_it_needs(run_of: Callable[[str], Path]) -> None:
    names = imported("predict", run_of("full"), "a lovely film")
    assert "torch" in names
    assert sorted(names & set(UNUSED)) == []
    assert sum(name.startswith("heedful") for name in names) <= MOST_MODULES


def test_a_linear_model_labels_a_text_without_torch(tiny_task: Path, tmp_path: Path) -> None:
    run = heedful.adapt("tfidf", tiny_task, out=tmp_path / "run").folder
    names = imported("predict", run, "a lovely film")
    assert not names & {"torch", "heedful.training", "sklearn", "optuna", "pyarrow"}


def test_a_run_imports_no_compiler_no_pandas_and_no_search(
    tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    options = (
        "--steps",
        2,
        "--max-len",
        16,
        "--threads",
        1,
        "--precision",
        "float32",
        "--out",
        tmp_path / "run",
    )
    names = imported("adapt", tiny_bert, tiny_task, *options)
    assert "torch.optim.adamw" in names
    assert not names & {
        "torch._dynamo",
        "sympy",
        "pandas",
        "optuna",
        "sklearn",
        "transformers",
        "scipy.optimize",
    }


def test_a_run_says_what_begins_before_it_imports_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from heedful.cli import main\n"
        "class Screen:\n"
        "    def write(self, text):\n"
        "        if 'loading' in text:\n"
        "            print(text.strip(), 'torch' in sys.modules, flush=True)\n"
        "            sys.exit(0)\n"
        "    def flush(self): pass\n"
        "    def isatty(self): return False\n"
        "sys.stderr = Screen()\n"
        "main(['adapt', 'minilm', 'reviews.csv'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "minilm on reviews: loading False"
