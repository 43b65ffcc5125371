"""Gradescope: results.json, and the zip of an autograder that grades with Heedful."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import heedful
from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment
from heedful.course.grade_one import Result
from heedful.errors import UserError
from heedful.runs.files import write_bytes

EXECUTABLE, PLAIN = 0o755, 0o644
ENTRY_POINTS = "[console_scripts]\nheedful = heedful.cli:main\n"


def to_gradescope(result: Result) -> dict[str, Any]:
    """Return results.json: a test per claim; hidden ones are shown when the grades are published."""
    tests = []
    for score in result.criteria:
        most = score.most / max(1, len(score.verdicts))
        for verdict in score.verdicts:
            passed = verdict.status == "passed"
            tests.append(
                {
                    "name": f"{score.name}: {verdict.claim}",
                    "score": round(most if passed else 0.0, 4),
                    "max_score": round(most, 4),
                    "status": "passed" if passed else "failed",
                    "output": explain(verdict),
                    "output_format": "text",
                    "visibility": "after_published" if score.hidden else "visible",
                }
            )
    problems = "\n".join(filter(None, (result.problem, *result.stopped)))
    return {
        "score": result.points,
        "execution_time": result.seconds,
        "output": problems or f"{result.points:g} of {result.most:g} points",
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def explain(verdict: Verdict) -> str:
    """Return what a student reads about a claim."""
    lines = [verdict.sentence, verdict.message]
    if verdict.status != "passed":
        if verdict.mistake:
            lines.append(f"This looks like a known mistake: {verdict.mistake}.")
        lines.append(verdict.hint)
    return "\n".join(line for line in lines if line)


def write_autograder(assignment: Assignment, out: Path) -> Path:
    """Write the zip that is uploaded to Gradescope: Heedful itself, the assignment, and two scripts."""
    if out.suffix != ".zip":
        raise UserError(f"--out {out}: is the name of a .zip file")
    wheel_name, wheel = build_wheel()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            text = (files("heedful.course") / "templates" / name).read_text(encoding="utf-8")
            add(archive, name, text.encode(), EXECUTABLE)
        add(archive, wheel_name, wheel, PLAIN)
        claims = {each.claims_from for each in assignment.criteria if each.claims_from}
        for name in sorted({assignment.path.name, *claims}):
            add(archive, f"assignment/{name}", (assignment.folder / name).read_bytes(), PLAIN)
    return write_bytes(out, memory.getvalue())


def add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    """Add a file with its mode; the time is always the same, so that equal inputs give equal bytes."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def build_wheel() -> tuple[str, bytes]:
    """Return the name and the contents of a wheel of the package that runs now."""
    try:
        about = metadata.distribution("heedful").read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        raise UserError("heedful is not installed, so that it cannot be packed; pip install it") from None
    version = next(
        (line[9:] for line in about.splitlines() if line.startswith("Version: ")), heedful.__version__
    )
    root = Path(heedful.__file__).parent
    content = {
        f"heedful/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    info = f"heedful-{version}.dist-info"
    tag = "Wheel-Version: 1.0\nGenerator: heedful\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content |= {
        f"{info}/METADATA": about.encode(),
        f"{info}/WHEEL": tag.encode(),
        f"{info}/entry_points.txt": ENTRY_POINTS.encode(),
    }
    record = [f"{name},sha256={digest_of(data)},{len(data)}" for name, data in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            add(archive, name, data, PLAIN)
    return f"heedful-{version}-py3-none-any.whl", memory.getvalue()


def digest_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
