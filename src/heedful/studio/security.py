"""Who may use the studio, and what its pages may do in a browser."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.server.guard import Guard, same_origin

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; frame-src 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every answer says: scripts and styles come from files of the studio, and nothing from elsewhere."""
API = "/api/"
COOKIE_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True)
class StudioGuard(Guard):
    """A guard whose token is in a cookie, which the printed link sets."""

    cookie: str = "heedful"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and self.token is not None:
            request = HTTPConnection(scope)
            given = request.query_params.get("token")
            if given is not None and self.is_own_name(request.headers) and self.is_token(given):
                answer = RedirectResponse(scope["path"], 303)
                answer.set_cookie(
                    self.cookie, given, max_age=COOKIE_SECONDS, httponly=True, samesite="lax", path="/"
                )
                await answer(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def find_refusal(self, headers: Headers, method: str, path: str) -> tuple[int, str] | None:
        refusal = super().find_refusal(headers, method, path)
        if refusal is None and path.startswith(API) and not same_origin(headers, headers.get("host", "")):
            return 403, "the request comes from another site's page"
        if refusal is not None and refusal[0] == 401:
            return 401, "open the link that heedful ui printed: it has the token that this page lacks"
        return refusal

    def shows_token(self, headers: Headers) -> bool:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            morsel = None
        return (morsel is not None and self.is_token(morsel.value)) or super().shows_token(headers)

    def is_token(self, given: str) -> bool:
        return self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())


class AddHeaders:
    """Middleware that adds headers to every answer that does not have them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)
