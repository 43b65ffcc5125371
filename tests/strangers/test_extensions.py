"""The package that docs/extending.md describes is installed as it is written there, and everything in it works.

Nothing of heedful is edited: its commands find the package through its entry points.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful.plugins import installed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
BLOCK = re.compile(r'^```(\w+) title="(.+?)"\n(.*?)^```', re.DOTALL | re.MULTILINE)
SECTIONS = {
    section.partition("\n")[0]: BLOCK.findall(section)
    for section in PAGE.read_text("utf-8").split("\n## ")
    if BLOCK.search(section)
}
FILES = {title: text for blocks in SECTIONS.values() for _, title, text in blocks if title != "commands"}
POINTS = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
LISTS = {group: group.removeprefix("heedful.") for group in POINTS}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which pip has installed the package of the page."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for title, text in FILES.items():
        (source / title).parent.mkdir(exist_ok=True)
        (source / title).write_text(text, "utf-8")
    (source / "my_package" / "__init__.py").touch()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target), str(source)]
    subprocess.run(pip, check=True)
    return target


def with_site(site: Path) -> str:
    return os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))


@pytest.fixture
def package(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package can be imported, and its entry points are found, in this process."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", with_site(site))  # for the processes that a command starts
    installed.cache_clear()
    sys.modules.pop("heedful.cli.study", None)  # it lists the studies when it is imported
    yield
    installed.cache_clear()
    sys.modules.pop("heedful.cli.study", None)
    for name in [name for name in sys.modules if name.split(".")[0] == "my_package"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def test_the_page_has_every_extension_point() -> None:
    assert {
        f"my_package/{path.partition(':')[0].split('.')[1]}.py"
        for g in POINTS.values()
        for path in g.values()
    } == {title for title in FILES if title.endswith(".py")}
    table = re.findall(r"^\| \[.*?\]\(#(.*?)\) \| `(heedful\.\w+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [anchor.replace("-", " ").capitalize() for anchor, _ in table] == list(SECTIONS)[1:]
    assert {group for _, group in table} == set(POINTS)


def test_names_are_listed_without_importing_the_package_and_help_without_torch(site: Path) -> None:
    code = (
        "import contextlib, io, json, sys\n"
        "from heedful.cli import main\n"
        "def output(*words):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "        assert main(list(words)) == 0, words\n"
        "    return out.getvalue()\n"
        "for command in ('adapt', 'pretrain', 'report', 'study', 'study optimizers', 'list'):\n"
        "    output(*command.split(), '--help')\n"
        "torch = 'torch' in sys.modules\n"
        f"lists = {{group: json.loads(output('list', group, '--json')) for group in {list(LISTS.values())!r}}}\n"
        "every = json.loads(output('list', '--json'))\n"
        "imported = [name for name in sys.modules if name.split('.')[0] == 'my_package']\n"
        "print(json.dumps([lists, every, imported, torch]))\n"
    )
    environment = os.environ | {"PYTHONPATH": with_site(site)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lists, every, imported, torch = json.loads(done.stdout.splitlines()[-1])
    for group, names in POINTS.items():
        packages = {row["name"]: row["package"] for row in lists[LISTS[group]]}
        assert {packages.get(name) for name in names} == {"my-package"}, group
        assert set(names) <= set(every[LISTS[group]])
    assert imported == []
    assert not torch


@pytest.mark.needs("minilm")
@pytest.mark.parametrize(
    "section", [name for name, blocks in SECTIONS.items() if "commands" in [b[1] for b in blocks]]
)
def test_every_command_of_the_page_works(
    section: str, package: None, work: Path, heedful: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    for kind, title, text in SECTIONS[section]:
        if title == "commands" and kind == "python":
            exec(compile(text, PAGE.name, "exec"), {})
        for command in text.splitlines() if kind == "bash" else ():
            done = heedful(*shlex.split(command)[1:])
            assert done.status == 0, f"{command}\n{done.err}"
            assert done.out, command
