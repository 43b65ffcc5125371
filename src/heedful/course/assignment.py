"""An assignment: what is checked, for how many points, and within which limits; from `assignment.toml`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from heedful.contracts.suite import SUITES, Claim, Suite
from heedful.course.sandbox import MIB, Limits
from heedful.errors import UserError, unknown
from heedful.runs.toml import read_toml

ASSIGNMENT = "assignment.toml"


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the grade: claims of a suite, each for the same share of the points."""

    name: str
    points: float
    suite: str
    claims: tuple[str, ...] = ()
    """Names of claims; without any, all of `claims_from`."""
    claims_from: str = ""
    """A Python file beside assignment.toml with a tuple CLAIMS; without it, the suite's own."""
    hidden: bool = False
    """Whether students do not get it."""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that a person grades."""

    name: str
    points: float
    guidance: str = ""
    """What a right answer says; only teachers see it."""


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the checks of one suite may use."""

    seconds: float = 120.0
    call_seconds: float = 30.0
    memory_mib: int = 3072
    processes: int = 64
    home_mib: int = 128

    def sandbox_limits(self) -> Limits:
        """Return the limits of the sandbox."""
        home = self.home_mib * MIB
        return Limits(self.seconds, self.memory_mib * MIB, self.processes, min(home, 64 * MIB), home)


class AssignmentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of assignment.toml."""

    title: str
    file: str
    """The name of the file that students hand in."""
    criteria: tuple[Criterion, ...]
    written: tuple[Written, ...] = ()
    data: str = ""
    """Which data `heedful course new` makes."""
    limits: LimitsTable = LimitsTable()


class Assignment:
    """An assignment's file, and the folder that it is in."""

    def __init__(self, path: Path) -> None:
        self.path = path / ASSIGNMENT if path.is_dir() else path
        self.folder = self.path.parent
        if not self.path.is_file():
            raise UserError(
                f"{self.path}: there is no such file; heedful course new NAME {path} writes an assignment"
            )
        try:
            self.table = msgspec.convert(read_toml(self.path), AssignmentFile)
        except msgspec.ValidationError as error:
            raise UserError(f"{self.path}: {error}") from None
        self.title, self.file = self.table.title, self.table.file
        self.check_names()

    def check_names(self) -> None:
        if not self.file.isidentifier() and not self.file.removesuffix(".py").isidentifier():
            raise UserError(f'{self.path}: file "{self.file}" is not the name of a Python file')
        parts: list[Criterion | Written] = [*self.table.criteria, *self.table.written]
        names = [each.name for each in parts]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f'{self.path}: two parts have the name "{name}"')
        if any(each.points < 0 for each in parts):
            raise UserError(f"{self.path}: points are at least 0")

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """What is checked."""
        return self.table.criteria

    @property
    def most(self) -> float:
        """The points that can be had by code."""
        return sum(each.points for each in self.criteria)

    def load_claims(self, criterion: Criterion) -> tuple[Claim, ...]:
        """Return the claims of a criterion."""
        suite = SUITES.find(criterion.suite)
        if not criterion.claims_from:
            return suite.select(criterion.claims or None)
        claims = load_claims(self.folder / criterion.claims_from)
        by_name = {claim.name: claim for claim in claims}
        for name in criterion.claims:
            if name not in by_name:
                raise unknown(f"claim of {criterion.claims_from}", name, by_name)
        return tuple(by_name[name] for name in criterion.claims) or claims

    def list_suites(self, criteria: Sequence[Criterion] | None = None) -> list[Suite]:
        """Return the suites to check, each with the claims that some criterion asks for."""
        claims: dict[str, dict[str, Claim]] = {}
        for criterion in self.criteria if criteria is None else criteria:
            for claim in self.load_claims(criterion):
                same = claims.setdefault(criterion.suite, {}).setdefault(claim.name, claim)
                if same.function is not claim.function:
                    raise UserError(
                        f'{self.path}: two claims of {criterion.suite} have the name "{claim.name}"'
                    )
        return [replace(SUITES.find(name), claims=tuple(each.values())) for name, each in claims.items()]

    def digest(self) -> str:
        """Return a hash of everything that decides about a grade."""
        digest = hashlib.sha256(self.path.read_bytes())
        for name in sorted({each.claims_from for each in self.criteria if each.claims_from}):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest()


def load_claims(path: Path) -> tuple[Claim, ...]:
    """Run a teacher's file and return its CLAIMS."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file, but {ASSIGNMENT} takes claims from it")
    digest = hashlib.sha256(str(path.resolve()).encode() + path.read_bytes()).hexdigest()[:16]
    name = f"heedful_claims_{digest}"
    module: Any = sys.modules.get(name)
    if module is None:
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        try:
            specification.loader.exec_module(module)
        except Exception as error:
            raise UserError(f"{path}: {type(error).__name__}: {error}") from error
        sys.modules[name] = module
    claims = getattr(module, "CLAIMS", None)
    if not isinstance(claims, tuple) or not claims or not all(isinstance(c, Claim) for c in claims):
        raise UserError(f"{path}: has no CLAIMS, a tuple of heedful.contracts.Claim")
    return claims
