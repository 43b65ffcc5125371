"""Options of `heedful serve`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    host: str = "127.0.0.1"
    port: int = 8765
    token: bool = True
    """Whether requests need a token."""
    wait_ms: float = 2.0
    queue: int = 4096
    max_bytes: int = 1 << 20
    device: str = "auto"
