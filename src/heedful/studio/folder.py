"""The folder of the studio: every path that a page names is inside of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, shorten
from heedful.paths import expand_path


@dataclass(frozen=True)
class StudioFolder:
    """A folder whose links are followed only as long as they stay inside."""

    root: Path
    """Absolute, without links."""

    @classmethod
    def open(cls, path: str | Path) -> StudioFolder:
        folder = expand_path(path)
        if not folder.is_dir():
            reason = "is a file" if folder.exists() else "there is no such folder"
            raise UserError(f"{folder}: {reason}; give the folder that your runs are in")
        return cls(folder.resolve())

    def resolve(self, name: str) -> Path:
        """Return the path of something that exists below the folder, or the folder itself for ""."""
        refusal = UserError(f'"{shorten(name)}" is not in the folder of this studio')
        if "\0" in name or Path(name).is_absolute():
            raise refusal
        try:
            path = (self.root / name).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise refusal from None
        if not path.is_relative_to(self.root):
            raise refusal
        return path

    def name(self, path: Path) -> str:
        """Return how pages call a path below the folder."""
        return path.relative_to(self.root).as_posix()
