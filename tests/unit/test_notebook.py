"""What a notebook shows: text that is escaped, pictures without a network, and one bar."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import heedful
from heedful import lab
from heedful.progress import progress
from heedful.report.charts import bars
from made_runs import HOSTILE, answer, write_answering_run, write_language_run, write_run, write_study


def check(html: str) -> None:
    for part in ("<script", "<svg onload", "onerror='", "<b>"):
        assert part not in html
    assert 'src="http' not in html


@pytest.mark.parametrize("write", [write_run, write_language_run, write_answering_run])
def test_runs_show_themselves(write: Any, tmp_path: Path) -> None:
    html = heedful.RunResult(write(tmp_path / "run"))._repr_html_()
    assert "<table" in html
    assert "data:image/svg+xml;base64," in html
    check(html)
    run = heedful.RunResult(tmp_path / "run")
    for part in (run.results, run.checks):
        assert "<table" in part._repr_html_()
        check(part._repr_html_())


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    for number, word in enumerate(HOSTILE):
        run = write_run(tmp_path / f"run{number}", words=("no", word), note=word)
        check(heedful.RunResult(run)._repr_html_())
        check(answer(word)._repr_html_())
        check(heedful.StudyResult(write_study(tmp_path / f"study{number}", word))._repr_html_())


def test_findings_and_charts_show_themselves() -> None:
    finding = lab.copy()
    assert "conditions hold" in finding._repr_html_()
    check(finding._repr_html_())
    chart = bars([{"label": "a", "value": 1.0}], title="A chart", y_title="y")
    assert chart._repr_mimebundle_().keys() == {"image/svg+xml", "image/png", "text/plain"}
    assert chart._repr_mimebundle_()["text/plain"] == "A chart"


def test_progress_is_one_bar_that_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    displays: list[int] = []

    class Handle:
        def update(self, html: str) -> None:
            shown.append(html)

    def display(html: str, display_id: bool) -> Handle:
        shown.append(html)
        displays.append(1)
        return Handle()

    ipython, functions = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object(), execution_count=1)  # type: ignore[attr-defined]
    functions.HTML, functions.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", functions)
    monkeypatch.setattr("heedful.notebook_progress.UPDATE_SECONDS", 0.0)
    with progress("training <b>", 2) as outer:
        with progress("scoring") as inner:
            inner.advance()
            outer.advance()  # hidden by the inner one
        outer.advance(note="loss 0.5")
    with progress("checking"):
        pass
    assert "training &lt;b&gt;: 0 of 2" in shown[0]
    assert "scoring: 1" in shown[2]
    assert 'value="2" max="2"' in shown[3]
    assert "loss 0.5" in shown[3]
    assert shown[4] == ""
    assert "checking" in shown[5]
    assert displays == [1], "the next bar of a cell is where the first one was"
