"""Who may ask: a token, the host name of the request, and the page that a request comes from."""

from __future__ import annotations

import secrets
from collections.abc import Container
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.server.errors import error_response

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Guard:
    """Middleware that refuses requests before the application sees them.

    Parameters
    ----------
    app
        The application.
    token
        What `Authorization: Bearer ...` must have; None if nobody needs one.
    loopback
        Whether the server listens on this machine alone. Then a request must be addressed to it by a name of
        this machine: another name that leads here is that of a page that tricks a browser (DNS rebinding).
    open_paths
        Paths that need no token, because they tell nothing.

    """

    app: ASGIApp
    token: str | None
    loopback: bool
    open_paths: Container[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        refusal = self.find_refusal(request.headers, scope["method"], scope["path"])
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, message = refusal
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        await error_response(status, message, headers)(scope, receive, send)

    def find_refusal(self, headers: Headers, method: str, path: str) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self.is_own_name(headers):
            return 403, f'this server is for this machine; "{host[:100]}" is not its name'
        if method not in SAFE_METHODS and not same_origin(headers, host):
            return 403, "the request comes from another site's page"
        if self.token is None or path in self.open_paths:
            return None
        if self.shows_token(headers):
            return None
        return 401, "the token is missing or wrong; send the printed one as Authorization: Bearer TOKEN"

    def is_own_name(self, headers: Headers) -> bool:
        """Whether a request is addressed to a name that this server may have."""
        host = headers.get("host", "")
        return not self.loopback or host.rpartition(":")[0] in LOOPBACK_NAMES or host in LOOPBACK_NAMES

    def shows_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return (
            self.token is not None
            and scheme.lower() == "bearer"
            and secrets.compare_digest(given.encode(), self.token.encode())
        )


def same_origin(headers: Headers, host: str) -> bool:
    """Whether a request comes from a page of this server, or from no page at all."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == host


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def make_token() -> str:
    return secrets.token_urlsafe(24)
