"""What a page of the studio is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute


@dataclass(frozen=True)
class Page:
    """A page: `templates/TEMPLATE`, `static/NAME.js`, `static/NAME.css` and its routes."""

    name: str
    """Its module in `heedful.studio.pages`; its path is `/NAME`, with hyphens."""
    title: str
    template: str
    routes: Sequence[BaseRoute] = ()
    """What the page asks for, below /api/NAME/."""

    @property
    def path(self) -> str:
        return "/" + self.name.replace("_", "-")
