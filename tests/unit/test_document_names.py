"""The names of code and files in the documents exist, and README's list of modules is complete."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from heedful.plugins import Registry

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "handouts" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
QUOTED = re.compile(r"`([^`\n]+)`")
PARTS = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"} - {"__pycache__"}
FOLDERS = ("src", "tests", "docs", "recipes", "scripts", "benchmarks", "handouts")
CODE = re.compile(r"(?:heedful\.)?(\w+)((?:\.\w+)+)(?:\(.*\))?")
METHOD = re.compile(r"([A-Z]\w+)\.(\w+)(?:\(.*\))?")
FILE = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*|(?:{'|'.join(sorted(PARTS))})/[\w/]+\.py")
NOT_CODE = re.compile(
    r"heedful\.(?:toml|html|json)|.*\.(?:py|md|toml|json|jsonl|html|csv|txt|tsv|svg|png|zip|sh)"
)


def names(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """The quoted names of all pages that look like `pattern`, with their page."""
    found = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        found += [
            (page.name, name) for name in dict.fromkeys(QUOTED.findall(text)) if pattern.fullmatch(name)
        ]
    return found


def resolve(dotted: str) -> object:
    """The module, class, function or attribute called `heedful.<dotted>`."""
    value: object = heedful
    path = "heedful"
    for part in dotted.split("."):
        path += f".{part}"
        try:
            value = importlib.import_module(path)
        except ModuleNotFoundError:
            if part not in getattr(value, "__annotations__", {}):
                value = getattr(value, part)
    return value


def groups() -> set[str]:
    """The groups of entry points that the registries read."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if "Registry(" in (text := path.read_text("utf-8")) and path.stem != "plugins":
            module = ".".join(["heedful", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(
                ".__init__"
            )
            for name in re.findall(r"^(\w+): Registry\[", text, re.MULTILINE):
                registry = getattr(importlib.import_module(module), name)
                assert isinstance(registry, Registry)
                found.add(registry.group)
    return found


def test_every_dotted_name_in_the_documents_resolves() -> None:
    missing, known = [], groups()
    for page, name in names(CODE):
        match = CODE.fullmatch(name)
        assert match is not None
        whole = name.startswith("heedful.")
        if NOT_CODE.fullmatch(name) or name in known or (not whole and match[1] not in PARTS):
            continue
        try:
            resolve((match[1] + match[2]) if not whole or match[1] != "heedful" else match[2][1:])
        except AttributeError:
            missing.append(f"{page}: {name}")
    assert missing == []


def test_every_method_in_the_documents_exists() -> None:
    members: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(ast.unparse(base) for base in node.bases)
                members.setdefault(node.name, set()).update(
                    child.name if isinstance(child, ast.FunctionDef) else getattr(child.target, "id", "")
                    for child in node.body
                    if isinstance(child, ast.FunctionDef | ast.AnnAssign)
                )

    def has_member(owner: str, name: str) -> bool:
        inherited = (base for base in bases.get(owner, ()) if base != owner)
        return name in members.get(owner, ()) or any(has_member(base, name) for base in inherited)

    missing = []
    for page, name in names(METHOD):
        match = METHOD.fullmatch(name)
        assert match is not None
        if match[1] in members and not has_member(match[1], match[2]):
            missing.append(f"{page}: {name}")
    assert missing == []


def test_every_path_in_the_documents_exists() -> None:
    missing = [
        f"{page}: {name}"
        for page, name in names(FILE)
        if not (ROOT / name).exists() and not (SOURCE / name).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["training.loop.Loop.nothing", "nothing", "data.batches.nothing"])
def test_a_name_that_does_not_exist_is_noticed(name: str) -> None:
    with pytest.raises(AttributeError):
        resolve(name)


def test_the_map_in_the_readme_lists_every_module() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "module_map.py"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_file_is_too_long_to_read() -> None:
    limits = {"training/train.py": 150, "training/loop.py": 299}
    for path in SOURCE.rglob("*.py"):
        limit = limits.get(path.relative_to(SOURCE).as_posix(), 400)
        assert len(path.read_text("utf-8").splitlines()) <= limit, path
