"""Running an application: the socket, the signals, and a clean end."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from heedful.errors import UserError

GRACE_SECONDS = 10
"""How long requests that are being answered may take after a signal to stop."""

IDLE_SECONDS = 75
"""How long a connection without a request stays open. A client that sends one as it is closed loses it, so
this is longer than clients are usually idle."""


class CleanServer(uvicorn.Server):
    """A server that answers what it has begun after SIGTERM or Ctrl-C, and ends with status 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"--host {host} --port {port}: cannot be listened to: {reason}") from None


def run_application(app: Starlette, listener: socket.socket) -> None:
    """Answer requests until a signal stops the process."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = CleanServer(config)
    app.state.server = server  # answers that go on for long look whether it is ending
    server.run(sockets=[listener])
