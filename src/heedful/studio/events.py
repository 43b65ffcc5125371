"""Server-sent events: answers that go on while a page is open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.responses import StreamingResponse

EVENTS = "text/event-stream"
KEEP_SECONDS = 15.0
"""A stream that has nothing to say says so this often, so that nothing between takes it for dead."""
KEEP = b": nothing new\n\n"


def write_event(data: Any, name: str = "message") -> bytes:
    """Return one event with JSON, in which no line can end the event."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f"event: {name}\ndata: {text}\n\n".encode()


def stream_events(events: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type=EVENTS, headers=headers)


def is_closing(app: Starlette) -> bool:
    """Whether the server is ending, which waits until streams have ended."""
    server = getattr(app.state, "server", None)
    return app.state.stopping.is_set() or (server is not None and bool(server.should_exit))
