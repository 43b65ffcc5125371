"""Extension points: names that map to objects of this package and of packages that others install.

A registry lists its names without importing anything, so that `--help` and `heedful list` stay quick. An
object is imported when it is first used. Another package adds an object through an entry point in its
`pyproject.toml`:

    [project.entry-points."heedful.optimizers"]
    lion = "my_package:Lion"

A script or a notebook adds one for its own process: `OPTIMIZERS["lion"] = Lion`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from heedful.errors import UserError, unknown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Objects by name: the built-in ones, then those of installed packages.

    Parameters
    ----------
    kind
        What the objects are, in the singular, for error messages: "optimizer".
    built_in
        The import path, `module:attribute`, of each object of this package.
    group
        The entry-point group that other packages use; by default `heedful.` and the plural of `kind`.

    """

    def __init__(self, kind: str, built_in: Mapping[str, str], group: str | None = None) -> None:
        self.kind, self.group = kind, group or f"heedful.{kind}s"
        self.paths = dict(built_in)
        self.objects: dict[str, T] = {}
        self.added: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self.paths, *self.added, *installed(self.group)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.paths or name in self.added or name in installed(self.group)

    def __getitem__(self, name: str) -> T:
        if name not in self.objects:
            self.objects[name] = self.load(name)
        return self.objects[name]

    def __setitem__(self, name: str, new: T) -> None:
        self.objects[name] = new
        self.added[name] = None

    def find(self, name: str) -> T:
        """Return the object called `name`; an unknown name is a `UserError` that lists the nearest ones."""
        if name not in self:
            raise unknown(self.kind, name, self)
        return self[name]

    def load(self, name: str) -> T:
        if name in self.paths:
            module, _, attribute = self.paths[name].partition(":")
            built_in: T = getattr(import_module(module), attribute)
            return built_in
        point = installed(self.group)[name]
        try:
            outside: T = point.load()
        except Exception as error:
            raise UserError(
                f'{self.kind} "{name}" of the package {package_of(point)} cannot be imported: '
                f"{type(error).__name__}: {error}"
            ) from error
        return outside

    def package(self, name: str) -> str:
        """Return the name of the package that provides `name`; "" if it was added in this process."""
        if name in self.added:
            return ""
        return "heedful" if name in self.paths else package_of(installed(self.group)[name])


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, without importing their packages."""
    return {point.name: point for point in entry_points(group=group)}


def package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(":")[0]


def lazy_attributes(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` that imports a module when one of its names is first used.

    `modules` maps each module to its names, separated by spaces. With it a package can offer classes that
    need torch and a registry that does not.
    """
    origins = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(origins[name]), name)

    return get
