"""Running the studio: what `heedful ui` does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError
from heedful.server.guard import is_loopback, make_token
from heedful.server.listening import open_socket, run_application
from heedful.server.serving import TOKEN_VARIABLE
from heedful.studio.application import make_application
from heedful.studio.folder import StudioFolder


@dataclass(frozen=True)
class StudioAddress:
    """Where the studio answers."""

    url: str
    port: int
    token: str | None

    @property
    def link(self) -> str:
        """The link that opens the studio: it sets a cookie and leads to an address without the token."""
        return self.url if self.token is None else f"{self.url}?token={self.token}"


def run_studio(
    path: Path, *, port: int, host: str, needs_token: bool, announce: Callable[[StudioAddress], None]
) -> None:
    """Answer requests until a signal stops the process.

    `announce` gets the address as soon as the studio listens there.
    """
    if not needs_token and not is_loopback(host):
        raise UserError(f"--no-token: anyone could use a studio on {host}; it is for 127.0.0.1 alone")
    if not 0 <= port < 2**16:
        raise UserError(f"--port {port}: is a number from 0 (any) to 65535")
    folder = StudioFolder.open(path)
    token = (os.environ.get(TOKEN_VARIABLE) or make_token()) if needs_token else None
    with open_socket(host, port) as listener:
        bound = listener.getsockname()[1]
        app = make_application(folder, token, loopback=is_loopback(host), port=bound)
        shown = f"[{host}]" if ":" in host else host
        announce(StudioAddress(f"http://{shown}:{bound}/", bound, token))
        run_application(app, listener)
