"""Grades a class of generated submissions: right ones, known mistakes and hostile ones.

    python -m benchmarks.course_class FOLDER [--number 40] [--jobs 2]

prints the time, and each verdict that is not as planted; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import stat
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.course.bugs import attention as functions
from heedful.course.bugs import self_attention as modules
from heedful.course.grade import Grades, grade_class
from heedful.course.grade_one import Result
from heedful.course.new import write_assignment

FILE = "attention.py"
LIMITS = "[limits]\nseconds = 90\ncall_seconds = 8\nmemory_mib = 1500\nprocesses = 24\nhome_mib = 32\n"
DOT, ADDITIVE, MODULE = "Dot-product attention", "Additive attention", "Causal self-attention with heads"
HIDDEN = "Dot-product attention on other inputs"
QUESTIONS = ("Questions 1 to 5", "Questions 6 and 7")
ALL = (DOT, ADDITIVE, MODULE, HIDDEN, *QUESTIONS)


@dataclass(frozen=True)
class Planted:
    """A submission, and what it must get."""

    name: str
    files: dict[str, str | bytes]
    """A zip or a file if it is a single one, else a folder."""
    broken: tuple[str, ...] = ()
    """Criteria that must not have all points."""
    whole: tuple[str, ...] = ()
    """Criteria that must have all points."""
    mistakes: tuple[str, ...] = ()
    reason: str = ""
    """What must be found in the reason why it was stopped or not graded."""
    links: tuple[tuple[str, str], ...] = ()

    def write(self, folder: Path) -> None:
        """Write it as a student would hand it in."""
        if len(self.files) == 1 and not self.links:
            name, content = next(iter(self.files.items()))
            if name.endswith(".zip"):
                (folder / f"{self.name}.zip").write_bytes(as_bytes(content))
                return
        target = folder / self.name
        target.mkdir()
        for name, content in self.files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(as_bytes(content))
        for name, to in self.links:
            (target / name).symlink_to(to)

    def find_errors(self, result: Result) -> Iterator[str]:
        """Yield what is not as planted."""
        full = {score.name for score in result.criteria if score.points == score.most}
        for name in self.broken:
            if name in full:
                yield f"{self.name}: has all points of {name}"
        for name in self.whole:
            if name not in full:
                yield f"{self.name}: has not all points of {name}"
        if sorted(result.mistakes) != sorted(self.mistakes):
            yield f"{self.name}: mistakes {result.mistakes} instead of {list(self.mistakes)}"
        reason = "; ".join(filter(None, (result.problem, *result.stopped)))
        if not self.reason and reason:
            yield f"{self.name}: marked as {reason}"
        if self.reason and not re.search(self.reason, reason):
            yield f"{self.name}: marked as {reason!r}, not as {self.reason!r}"


def as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def make_zip(files: dict[str, str | bytes], links: dict[str, str] | None = None) -> bytes:
    """Return a zip, with symbolic links if asked for."""
    from io import BytesIO

    memory = BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, target)
    return memory.getvalue()


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in ALL if name not in names)


HANG = "\ndef dot_product_attention(q, k, v, mask=None):\n    while True:\n        pass\n"
FORK = """
import os
def dot_product_attention(q, k, v, mask=None):
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""
FILL = """
import os
def dot_product_attention(q, k, v, mask=None):
    for i in range(10**6):
        with open(os.path.join(os.environ["HOME"], str(i)), "wb") as file:
            file.write(bytes(2**20))
"""
PRINT = """
def dot_product_attention(q, k, v, mask=None):
    for _ in range(2**14):
        print("x" * 2**16)
    return v
"""
DELETE = """
import os, shutil
for folder in ("/", os.path.dirname(os.path.abspath(__file__)), os.path.expanduser("~")):
    shutil.rmtree(folder, ignore_errors=True)
os.remove(os.path.abspath(__file__))
"""
PATCH = """
import heedful.contracts.asking, heedful.contracts.suite, heedful.contracts.verdicts, torch
import heedful.course.child, heedful.contracts.operations
heedful.contracts.asking.relative = lambda a, b: 0.0
heedful.contracts.asking.difference = lambda a, b: 0.0
heedful.contracts.suite.judge = None
heedful.contracts.verdicts.Verdict.passed = True
torch.equal = torch.allclose = lambda *a, **k: True
def dot_product_attention(q, k, v, mask=None):
    return v
"""
EXIT = "\nimport os\ndef dot_product_attention(q, k, v, mask=None):\n    os._exit(0)\n"
EXIT_IMPORT = "\nimport os\nos._exit(0)\n"
FORGE = """
import os, heedful.course.wire as wire
frame = wire.encode({"outputs": {}, "passed": True, "points": 100, "verdicts": []})
for descriptor in range(3, 40):
    try:
        os.write(descriptor, frame)
    except OSError:
        pass
"""
MEMORY = """
def dot_product_attention(q, k, v, mask=None):
    return v + len(bytearray(2**33))
"""
NETWORK = '\nimport socket\nsocket.create_connection(("1.1.1.1", 53), 5)\n'
SPY = """
import heedful.course, glob, os
folder = os.path.dirname(heedful.course.__file__)
found = glob.glob(folder + "/assignments/**/*.py", recursive=True) + glob.glob(folder + "/bugs/*.py")
found += glob.glob("ASSIGNMENT/*") + glob.glob(os.path.dirname(os.getcwd()) + "/*/*/attention.py")
if not found:
    raise FileNotFoundError("nothing to copy")
"""
FAKE_TYPES = '\ndef dot_product_attention(q, k, v, mask=None):\n    return {"out": lambda: 1}\n'


def plant_hostile(solution: str, assignment: Path) -> list[Planted]:
    """Return submissions that harm themselves only."""
    bomb = make_zip({"attention.py": b"\0" * (80 * 2**20)})
    return [
        Planted("hangs", {FILE: solution + HANG}, (DOT, HIDDEN), QUESTIONS, reason="longer than"),
        Planted("forks", {FILE: solution + FORK}, (DOT, HIDDEN), QUESTIONS, reason="more than|longer than"),
        Planted("prints", {FILE: solution + PRINT}, (DOT, HIDDEN), QUESTIONS, reason="printed more than 1 MiB"),
        Planted("exits", {FILE: solution + EXIT}, (DOT, HIDDEN), QUESTIONS, reason="ended with status 0"),
        Planted("fills", {FILE: solution + FILL}, (DOT, HIDDEN), without(DOT, HIDDEN)),
        Planted("deletes", {FILE: solution + DELETE}, ALL),
        Planted("patches", {FILE: solution + PATCH}, (DOT, HIDDEN), without(DOT, HIDDEN)),
        Planted("forges", {FILE: solution + FORGE}, ALL, reason="something else|not a message"),
        Planted("exits-at-once", {FILE: solution + EXIT_IMPORT}, ALL, reason="ended with status 0"),
        Planted("memory", {FILE: solution + MEMORY}, (DOT, HIDDEN), without(DOT, HIDDEN)),
        Planted("network", {FILE: solution + NETWORK}, ALL),
        Planted("spies", {FILE: solution + SPY.replace("ASSIGNMENT", str(assignment.resolve()))}, ALL),
        Planted("other-types", {FILE: solution + FAKE_TYPES}, (DOT, HIDDEN), without(DOT, HIDDEN)),
        Planted("bomb", {"bomb.zip": bomb}, ALL, reason="more than 50 MiB"),
        Planted("escapes", {"e.zip": make_zip({"../../attention.py": solution})}, ALL, reason="leads out of"),
        Planted("zipped-link", {"l.zip": make_zip({}, {FILE: "/etc/passwd"})}, ALL, reason="is a link"),
        Planted("link", {"notes.txt": "see"}, ALL, reason="is a link", links=((FILE, "/etc/passwd"),)),
    ]  # fmt: skip


def plant_right(solution: str, starter: str) -> list[Planted]:
    """Return right submissions in the forms in which they are handed in, and honest failures."""
    loops = "scores = torch.einsum('bqd,bkd->bqk', q, k) / math.sqrt(q.shape[-1])"
    einsum = solution.replace("scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])", loops)
    return [
        Planted("right", {FILE: solution}, whole=ALL),
        Planted("right-zip", {"a.zip": make_zip({FILE: einsum, "answers.md": "8. Because."})}, whole=ALL),
        Planted("right-in-folder", {"b.zip": make_zip({f"a1/{FILE}": solution, f"__MACOSX/._{FILE}": "x"})}, whole=ALL),
        Planted("=cmd|'calc'!A1", {FILE: solution}, whole=ALL),
        Planted("starter", {FILE: starter}, ALL),
        Planted("nothing", {"notes.txt": "I was ill."}, ALL, reason="there is no attention.py"),
        Planted("syntax", {FILE: solution + "\ndef ("}, ALL),
    ]  # fmt: skip


def plant_bugs(solution: str, number: int) -> list[Planted]:
    """Return submissions with known mistakes: the last definition of a name in a file counts."""
    bugs = [bug for pair in zip(functions.BUGS, modules.BUGS, strict=False) for bug in pair]
    criteria = {functions.DOT: (DOT,), functions.ADDITIVE: (ADDITIVE,), modules.MODULE: (MODULE,)}
    planted = []
    for i, bug in enumerate(bugs[:number]):
        broken = criteria[bug.twin]
        whole = without(*broken, HIDDEN) if broken == (DOT,) else without(*broken)
        name = f"student-{i + 1:02}"
        planted.append(Planted(name, {FILE: f"{solution}\n{bug.source}"}, broken, whole, (bug.name,)))
    return planted


def plant_class(
    folder: Path, number: int = 40, names: Sequence[str] = ()
) -> tuple[Path, Path, list[Planted]]:
    """Write an assignment and a class (or those of it with these names); return both folders and what is planted."""
    assignment = folder / "assignment"
    write_assignment("attention", assignment, seed=5)
    path = assignment / "assignment.toml"
    path.write_text(path.read_text("utf-8").partition("[limits]")[0] + LIMITS, "utf-8")
    solution = (assignment / "solution.py").read_text("utf-8")
    starter = (assignment / "starter" / FILE).read_text("utf-8")
    right, hostile = plant_right(solution, starter), plant_hostile(solution, assignment)
    first = ["right-zip", "hangs", "forks", "prints", "exits", "patches"]
    ordered = sorted([*right, *hostile], key=lambda p: first.index(p.name) if p.name in first else len(first))
    if names:
        planted = [p for p in ordered if p.name in names]
    else:
        others = [*ordered[:6], *plant_bugs(solution, 2), *ordered[6:]]
        planted = others[:number]
        if number > len(others):
            planted = [*ordered, *plant_bugs(solution, number - len(ordered))]
    submissions = folder / "submissions"
    submissions.mkdir()
    for each in planted:
        each.write(submissions)
    return assignment, submissions, planted


def find_errors(planted: Sequence[Planted], grades: Grades) -> list[str]:
    """Return every verdict that is not as planted."""
    results = {result.student: result for result in grades.results}
    return [error for each in planted for error in each.find_errors(results[each.name])]


def main() -> int:
    """Grade a class, and print the time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    assignment, submissions, planted = plant_class(arguments.folder, arguments.number)
    begin = time.perf_counter()
    grades = grade_class(submissions, assignment, arguments.folder / "grades", jobs=arguments.jobs)
    seconds = time.perf_counter() - begin
    errors = find_errors(planted, grades)
    for error in errors:
        print(error)
    print(f"{len(planted)} submissions in {seconds:.0f} s with {arguments.jobs} jobs; "
          f"{len(planted) - len({e.partition(':')[0] for e in errors})} as planted; {grades.page}")  # fmt: skip
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
