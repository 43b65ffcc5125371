"""A served studio over a folder with small real runs, and a browser in which every page must stay quiet."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
TOKEN = "token-of-the-tests"


@dataclass
class Served:
    """A studio that answers in a thread of this process; its worker is a process of its own."""

    folder: Path
    """The folder with `runs/reviews` (bert, classifies yes and no), `runs/words` (linear), `runs/lines` (gpt2, writes
    text), the model `models/tiny` and the data `data/train.csv`, `dev.csv` and `test.csv`."""
    url: str
    link: str
    app: Any


@pytest.fixture(scope="session")
def studio_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train three tiny runs; what a test adds is in a folder of its own."""
    from tests import tiny

    from heedful.cli import main

    root = tmp_path_factory.mktemp("studio")
    tiny.make_model(root / "models" / "tiny")
    data = tiny.make_task(root / "data")
    for name, model, options in (
        ("reviews", root / "models" / "tiny", ("--epochs", "2", "--lr", "1e-2", "--batch-size", "16")),
        ("words", "tfidf", ()),
    ):
        words = ["adapt", str(model), str(data), "--out", str(root / "runs" / name), *options]
        assert main(words) == 0
    lines = "\n".join(line.rpartition(",")[0] for line in (data / "train.csv").read_text().splitlines()[1:])
    (root / "lines.txt").write_text(lines * 4)
    words = [
        "pretrain",
        "gpt-nano",
        str(root / "lines.txt"),
        "--out",
        str(root / "runs" / "lines"),
        "--epochs",
        "1",
    ]
    assert main([*words, "--tokenizer", str(root / "models" / "tiny"), "--block", "32"]) == 0
    return root


@pytest.fixture(scope="module")
def studio(studio_folder: Path) -> Iterator[Served]:
    yield from serve(studio_folder)


def serve(folder: Path, token: str | None = TOKEN) -> Iterator[Served]:
    """Serve a folder on any free port until the generator is closed."""
    from heedful.server.listening import open_socket
    from heedful.studio.application import make_application
    from heedful.studio.folder import StudioFolder

    with open_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = make_application(StudioFolder.open(folder), token, loopback=True, port=port)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=2)
        )
        app.state.server = server
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        end = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        url = f"http://127.0.0.1:{port}"
        try:
            yield Served(folder, url, f"{url}/?token={token}", app)
        finally:
            server.should_exit = True
            thread.join(timeout=30)


class Tab:
    """A Playwright page of the studio. `check` fails after any console error or request that leaves the machine."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served
        self.log: list[str] = []
        self.requests: list[str] = []
        self.allowed: list[str] = []
        """Parts of console messages that the test expects, such as the status of a refused request."""
        page.on("console", self.record)
        page.on("pageerror", lambda error: self.log.append(f"{error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(served.link)

    def record(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.log.append(message.text)

    def open(self, path: str) -> Page:
        """Open a page of the studio, such as "/attention#model=minilm"."""
        self.page.goto("about:blank")
        self.page.goto(self.served.url + path)
        return self.page

    def wait(self, condition: str, seconds: float = 20) -> Any:
        """Wait until an expression is true in the page, and return its value."""
        end = time.monotonic() + seconds
        while not (value := self.page.evaluate(condition)):
            assert time.monotonic() < end, f"not true within {seconds} s: {condition}; console: {self.log}"
            self.page.wait_for_timeout(50)
        return value

    def overflows(self) -> bool:
        """Whether the page is wider than the window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def check(self) -> None:
        errors = [line for line in self.log if not any(part in line for part in self.allowed)]
        assert not errors, errors
        local = (self.served.url, "data:", "blob:", "about:")
        assert not [url for url in self.requests if not url.startswith(local)]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_tab(chromium: Browser, studio: Served) -> Iterator[Callable[..., Tab]]:
    """Open tabs: `new_tab(width=390, dark=True)`. Each is checked when the test ends."""
    tabs: list[Tab] = []

    def open_tab(
        width: int = 1280, height: int = 900, *, dark: bool = False, served: Served | None = None
    ) -> Tab:
        scheme: Any = "dark" if dark else "light"
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        tabs.append(Tab(context.new_page(), served or studio))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.page.wait_for_timeout(50)  # for what the console has yet to say
        tab.page.context.close()
    for tab in tabs:
        tab.check()


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    return new_tab()
