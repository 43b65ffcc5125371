"""A real browser for tests: Debian's chromium, headless, driven over the DevTools protocol.

The websocket is written out with the standard library, because one local connection needs little of it.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class WebSocket:
    """A client's end of a websocket (RFC 6455), for text messages."""

    def __init__(self, url: str, timeout: float = 30) -> None:
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.stream = self.socket.makefile("rb")
        assert b" 101 " in self.stream.readline()
        while self.stream.readline() != b"\r\n":
            pass

    def send(self, text: str) -> None:
        payload, mask = text.encode(), os.urandom(4)
        size = len(payload)
        length = (
            bytes([0x80 | size])
            if size < 126
            else struct.pack(">BH" if size < 2**16 else ">BQ", 254 if size < 2**16 else 255, size)
        )
        masked = bytes(b ^ m for b, m in zip(payload, itertools.cycle(mask), strict=False))
        self.socket.sendall(b"\x81" + length + mask + masked)

    def receive(self) -> str:
        message = b""
        while True:
            first, second = self.stream.read(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
            payload = self.stream.read(size)
            if first & 0x0F in (0, 1):
                message += payload
                if first & 0x80:
                    return message.decode()

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


class Browser:
    """One page in a browser of its own; `log` holds what the console said, `requests` what the page asked for."""

    def __init__(self, profile: Path) -> None:
        self.process = subprocess.Popen(
            ["/usr/bin/chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = wait_for(lambda: (profile / "DevToolsActivePort").read_text().split()[0], 60)
            pages = wait_for(
                lambda: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10)),
                30,
            )
            address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            self.socket = WebSocket(address)
        except BaseException:
            self.stop()
            raise
        self.count = 0
        self.log: list[str] = []
        self.requests: list[str] = []
        self.events: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
            self.note(message)

    def note(self, message: dict[str, Any]) -> None:
        kind, data = message["method"], message["params"]
        self.events.append(kind)
        if kind == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.log.append(" ".join(str(a.get("value", a.get("description"))) for a in data["args"]))
        elif kind == "Runtime.exceptionThrown":
            self.log.append(str(data["exceptionDetails"].get("exception", {}).get("description")))
        elif kind == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            self.log.append(data["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requests.append(data["request"]["url"])

    def open(self, path: Path) -> None:
        """Open a file and wait until its figures are drawn."""
        self.log.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.as_uri())
        wait_for(lambda: self.run("document.documentElement.dataset.ready === 'yes'") or None, 60)

    def run(self, script: str) -> Any:
        """Evaluate a script in the page and give its value."""
        answer = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,  # what the page may not do, the test may not do in its name
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def click(self, selector: str, index: int = 0) -> None:
        """Click with the mouse, in the middle of an element."""
        place = json.dumps(selector)
        x, y = self.run(
            f"(() => {{ const e = document.querySelectorAll({place})[{index}]; e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def media(self, kind: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
        self.stop()


def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    """Look again until there is something to see."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = look()
        except (OSError, IndexError, RuntimeError):
            found = None
        if found is not None:
            return found
        if time.monotonic() > end:
            raise TimeoutError("the browser did not get ready")
        time.sleep(0.05)
