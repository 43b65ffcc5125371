"""The audit: a known vulnerability fails, an index that cannot be reached is said loudly, and is no failure."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


class Index(BaseHTTPRequestHandler):
    advisories: ClassVar[dict[str, list[dict[str, Any]]]] = {}

    def do_GET(self) -> None:
        name = self.path.split("/")[2]
        body = json.dumps({"vulnerabilities": self.advisories.get(name, [])}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import audit

    yield audit
    sys.modules.pop("audit")


@pytest.fixture
def index(audit: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Index]]:
    server = HTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(audit, "INDEX", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(Index, "advisories", {})
    yield Index
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_known_vulnerability_is_named_and_fails(audit: Any, index: type[Index], capsys: Any) -> None:
    assert audit.main() == 0
    index.advisories["numpy"] = [
        {"id": "PYSEC-1", "fixed_in": ["9.9"]},
        {"id": "PYSEC-2", "withdrawn": "2026-01-01"},
    ]
    assert audit.main() == 1
    printed = capsys.readouterr().err
    assert "numpy" in printed
    assert "PYSEC-1: mended in 9.9" in printed
    assert "PYSEC-2" not in printed


def test_without_an_index_the_audit_is_skipped_loudly(audit: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(audit, "INDEX", "http://127.0.0.1:9")
    assert audit.main() == 0
    assert "audit: SKIPPED" in capsys.readouterr().err


def test_the_bill_of_materials_has_what_heedful_needs(audit: Any) -> None:
    from bill_of_materials import bill_of_materials

    names = {component["name"] for component in bill_of_materials()["components"]}
    assert {"torch", "numpy", "safetensors", "msgspec", "markupsafe"} <= names
    assert not {"pytest", "heedful"} & names
