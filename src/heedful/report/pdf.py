"""Pages as PDF, printed by a browser of the Chromium family if one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from heedful.errors import UserError, shorten
from heedful.report.page import Page
from heedful.runs.files import write_bytes

CHROMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSERS = (*CHROMES, "microsoft-edge", "brave-browser")
OPTIONS = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking")
TIMEOUT_SECONDS = 300


def find_browser() -> str:
    for name in BROWSERS:
        if (path := shutil.which(name)) is not None:
            return path
    raise UserError(
        f"--pdf needs a browser to print with, and this machine has none of {', '.join(BROWSERS[:4])}, ...; "
        "install chromium, or open the HTML report and print it"
    )


def write_pdf(page: Page, pictures: Mapping[str, bytes], path: Path) -> Path:
    """Print a page whose figures are SVG pictures, by name; no script runs and nothing is loaded."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="heedful-", ignore_cleanup_errors=True) as folder:
        source, printed = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page.html(pictures), encoding="utf-8")
        command = [browser, *OPTIONS, f"--user-data-dir={folder}/profile", "--no-pdf-header-footer"]
        command += [f"--print-to-pdf={printed}", source.as_uri()]
        if os.geteuid() == 0:  # Chromium refuses to run as root otherwise; the page has no script
            command.insert(1, "--no-sandbox")
        try:
            process = subprocess.run(
                command, capture_output=True, timeout=TIMEOUT_SECONDS, errors="replace", check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"--pdf: {browser} did not finish within {TIMEOUT_SECONDS} s") from None
        if not printed.is_file():
            errors = [line for line in process.stderr.splitlines() if line.strip()]
            reason = shorten(errors[-1], 200) if errors else "it gave no reason"
            raise UserError(f"--pdf: {browser} printed nothing ({reason})")
        return write_bytes(path, printed.read_bytes())
