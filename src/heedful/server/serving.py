"""Serving a model: what `heedful serve` does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError
from heedful.options.serve import ServeOptions
from heedful.server.application import make_application
from heedful.server.guard import is_loopback, make_token
from heedful.server.listening import open_socket, run_application
from heedful.server.served_model import ServedModel

TOKEN_VARIABLE = "HEEDFUL_TOKEN"


@dataclass(frozen=True)
class Address:
    """Where a server answers."""

    url: str
    port: int
    token: str | None

    @property
    def page(self) -> str:
        """The address of the page, which has the token behind the #, where no log sees it."""
        return self.url if self.token is None else f"{self.url}#token={self.token}"


def serve_model(folder: Path, options: ServeOptions, announce: Callable[[Address], None]) -> None:
    """Load a model and answer requests until a signal stops the process.

    `announce` gets the address as soon as the server listens there.
    """
    if not options.token and not is_loopback(options.host):
        raise UserError(f"--no-token: anyone could use a server on {options.host}; it is for 127.0.0.1 alone")
    if not 0 <= options.port < 2**16:
        raise UserError(f"--port {options.port}: is a number from 0 (any) to 65535")
    token = (os.environ.get(TOKEN_VARIABLE) or make_token()) if options.token else None
    with open_socket(options.host, options.port) as listener:
        model = ServedModel(folder, device=options.device)
        app = make_application(model, options, token)
        port = listener.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        announce(Address(f"http://{host}:{port}/", port, token))
        run_application(app, listener)
