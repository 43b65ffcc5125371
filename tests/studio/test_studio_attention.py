"""Attention: a person looks at heads, changes how they attend, and switches them off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.made_runs import HOSTILE

from heedful.inference.loading import load_run
from heedful.studio.folder import StudioFolder
from heedful.studio.model_store import ModelStore
from heedful.studio.work.attention_reading import Reading
from heedful.studio.work.attention_view import AttentionView, read_view

pytestmark = pytest.mark.needs("chromium")
TEXT = "the film was lovely and the music rather dull"
SHOWN = "document.querySelector('.thumb') !== null && document.querySelector('#answer .headline') !== null"


def show(tab: Any, model: str = "runs/reviews", text: str = TEXT, more: str = "") -> Any:
    page = tab.open(f"/attention#model={quote(model, safe='')}&text={quote(text)}{more}")
    tab.wait(SHOWN, 60)
    return page


def answer(tab: Any) -> str:
    return str(tab.page.locator("#answer .bars").inner_text())


def read(tab: Any, model: str = "runs/reviews", **params: Any) -> tuple[Reading, Any]:
    """What the page must show, computed here."""
    models = ModelStore(StudioFolder.open(tab.served.folder))
    reading = Reading(models.network(model), TEXT, None)
    view = read_view(params, reading.body) if params else AttentionView()
    return reading, reading.look(view, lambda share, message: None)


def test_a_person_looks_at_a_head_in_three_ways(tab: Any) -> None:
    page = tab.open("/attention")
    tab.wait(SHOWN, 60)
    assert page.locator("#model").input_value() == "runs/reviews", "there is something to see at once"
    page.get_by_role("textbox", name="Text", exact=True).fill(TEXT)
    tab.wait(f"location.hash.includes('text={TEXT.replace(' ', '+')}')")
    page.get_by_role("button", name="layer 2, head 1", exact=True).click()
    page.get_by_role("heading", name="Layer 2, head 1").wait_for()
    weights = read(tab)[1].parts["self"].layers[1][0]
    assert page.locator(".thumb").count() == 2 * 4
    page.get_by_role("button", name="Lines", exact=True).click()
    canvas = page.locator("#figure canvas")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 24 * 2 + 12)
    words = page.locator("#readout")
    row = weights[2]
    best = int(row.argmax())
    tokens = read(tab)[0].encoded.pieces
    tab.wait("document.getElementById('readout').innerText.includes('attends to')")
    assert (
        f"“film” (3) attends to “{tokens[best]}” ({best + 1}) with {float(row[best]):.3f}"
        in words.inner_text()
    )
    page.get_by_role("button", name="Text", exact=True).click()
    page.locator(".word").nth(4).click()
    shown = [float(label.rsplit(", ", 1)[1]) for label in page.locator(".word").evaluate_all(
        "words => words.map((word) => word.getAttribute('aria-label'))")]  # fmt: skip
    assert shown == pytest.approx(weights[4].tolist(), abs=6e-4)
    page.get_by_role("button", name="Matrix", exact=True).click()
    again = tab.open(page.url.removeprefix(tab.served.url))
    again.get_by_role("heading", name="Layer 2, head 1").wait_for(timeout=60_000)
    assert "“lo” (5) attends the most to" in again.locator("#readout").inner_text()


def test_the_matrix_is_read_with_the_keyboard(tab: Any) -> None:
    page = show(tab, more="&layer=1&head=2")
    page.locator(".viewport").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    weight = float(read(tab)[1].parts["self"].layers[0][1][2, 1])
    tab.wait("document.getElementById('readout').innerText.includes('attends to')")
    assert f"“film” (3) attends to “the” (2) with {weight:.3f}" in page.locator("#readout").inner_text()
    page.keyboard.press("Enter")
    assert "token=3" in page.url


def test_changes_are_seen_at_once_and_the_link_repeats_them(tab: Any) -> None:
    page = show(tab, "runs/reviews", more="&layer=2&head=2")
    direct = load_run(tab.served.folder / "runs" / "reviews").predict_proba([TEXT])[0]
    assert f"{100 * max(direct):.1f} %" in page.locator("#answer .headline").inner_text()
    for label, choice, params in (
        ("Mechanism", "performer", {"mechanism": "performer"}),
        ("Masking", "causal", {"mechanism": "performer", "masking": "causal"}),
        ("Masking", "zero_after", {"masking": "zero_after"}),
    ):
        page.get_by_label(label).select_option(choice)
        seen = read(tab, **params)[1]
        wanted = seen.raw.softmax(-1).tolist()
        tab.wait(f"document.querySelector('#answer').innerText.includes('{100 * max(wanted):.1f} %')")
    assert page.get_by_label("Mechanism").is_disabled()
    assert "stay in the denominator" in page.locator("#note").inner_text()
    assert "A dashed line marks the unchanged model" in page.locator("#answer").inner_text()
    page.get_by_label("Temperature").fill("1")
    tab.wait("location.hash.includes('temperature=10')")
    hot = read(tab, masking="zero_after", temperature=10)[1].raw.softmax(-1)
    tab.wait(f"document.querySelector('#answer').innerText.includes('{100 * float(hot.max()):.1f} %')")
    again = tab.open(page.url.removeprefix(tab.served.url))
    tab.wait(SHOWN, 60)
    assert f"{100 * float(hot.max()):.1f} %" in again.locator("#answer").inner_text()
    again.get_by_role("button", name="As it was made").click()
    tab.wait("!document.querySelector('#answer').innerText.includes('dashed')")
    assert f"{100 * max(direct):.1f} %" in again.locator("#answer .headline").inner_text()


def test_options_of_a_mechanism_are_its_own(tab: Any) -> None:
    page = show(tab, more="&mechanism=bigbird&layer=1&head=1&view=text&token=1")
    page.get_by_label("block").fill("1")
    page.get_by_label("window").fill("1")
    for name in ("global", "random"):
        page.get_by_label(name, exact=True).fill("0")
        page.keyboard.press("Tab")
    tab.wait("document.querySelectorAll('.word[aria-label$=\", 0.000\"]').length === 16")
    assert page.locator(".word").first.get_attribute("aria-label") == "[CLS], 1.000"
    tab.allowed.append("422")
    page.get_by_label("window").fill("2")
    page.keyboard.press("Enter")
    page.get_by_text("window is an odd number of blocks, not 2").wait_for()


def test_heads_are_switched_off_and_ranked(tab: Any) -> None:
    page = show(tab)
    page.get_by_role("button", name="Switch them off one by one").click()
    tab.wait("document.querySelectorAll('#effects .bar-row').length === 4", 60)
    reading, seen = read(tab)
    now = seen.raw.softmax(-1)
    best = int(now.argmax())
    changes = {
        f"layer {layer + 1}, head {head + 1}": float(raw.softmax(-1)[best] - now[best])
        for (_, layer), outputs in reading.without_heads(AttentionView(), lambda *_: None).items()
        for head, raw in enumerate(outputs)
    }
    rows = page.locator("#effects .bar-row title").all_text_contents()
    assert [row.split(":")[0] for row in rows] == sorted(changes, key=lambda name: -abs(changes[name]))
    largest = rows[0].split(":")[0]
    number = float(re.search(r"([−+][\d.]+) pp", rows[0]).group(1).replace("−", "-"))  # type: ignore[union-attr]
    assert number == pytest.approx(100 * changes[largest], abs=0.06)
    page.locator("#effects .bar-row").first.click()
    tab.wait("document.querySelectorAll('#effects .bar-row').length === 3", 60)
    without = float(now[best]) + changes[largest]
    assert f"{100 * max(without, 1 - without):.1f} %" in page.locator("#answer").inner_text()
    thumb = page.get_by_role("button", name=f"{largest}, off")
    thumb.focus()
    page.keyboard.press("x")
    tab.wait("document.querySelectorAll('.thumb.off').length === 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    tab.wait("location.hash.includes('off=')")
    page.get_by_role("button", name="Switch all heads on").click()
    tab.wait("!location.hash.includes('off=')")


def test_figures_are_saved(tab: Any) -> None:
    page = show(tab, more="&view=lines&layer=2&head=rollout")
    page.get_by_role("heading", name="Roll-out to layer 2").wait_for()
    for part, words in (("#head-save", "music"), ("#grid-save", "roll-out")):
        with page.expect_download() as saved:
            page.locator(part).get_by_role("button", name="Save this figure as SVG").click()
        picture = Path(saved.value.path()).read_text()
        assert picture.startswith("<svg")
        assert words in picture
        assert "var(" not in picture
        with page.expect_download() as saved:
            page.locator(part).get_by_role("button", name="Save this figure as PNG").click()
        assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    page.get_by_role("button", name="Matrix", exact=True).click()
    with page.expect_download() as saved:
        page.locator("#head-save").get_by_role("button", name="Save this figure as SVG").click()
    assert Path(saved.value.path()).read_text().count("<rect") == 17 * 17 + 1


@pytest.mark.needs("minilm")
def test_long_texts_scroll_on_a_canvas_that_stays_small(tab: Any) -> None:
    page = show(
        tab, "minilm", "the cat sat on a mat and ran away because it was tired " * 60, "&zoom=12&token=300"
    )
    tab.wait("document.querySelector('#figure canvas')?.width > 300", 60)
    assert page.locator(".sizer").evaluate("box => box.offsetWidth") > 512 * 12
    assert page.locator("#figure canvas").evaluate("canvas => canvas.width") < 1300
    assert "tokens are not read" in page.locator("#answer").inner_text()
    page.locator(".viewport").evaluate("box => { box.scrollTop = 5000; box.scrollLeft = 5000; }")
    box = page.locator("#figure canvas").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    tab.wait(r"/\((4\d\d)\) attends to “.*” \((4\d\d)\)/.test(document.getElementById('readout').innerText)")


@pytest.mark.parametrize("view", ["matrix", "lines", "text"])
def test_hostile_texts_are_shown_as_they_are(tab: Any, view: str) -> None:
    page = show(tab, "runs/reviews", "".join(HOSTILE[:4]), f"&view={view}&token=2&off=1.1")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0
    tab.allowed.append("422")
    tab.open("/attention#model=runs%2Freviews&text=a&off=%3Cimg%20src%3Dx%3E")
    page.get_by_text("is not a head of this model").wait_for(timeout=60_000)
    assert page.locator("main img, #error img").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(390, True), (2560, False)])
def test_the_page_fits_the_window(new_tab: Any, width: int, dark: bool) -> None:
    tab = new_tab(width, dark=dark)
    show(tab, "runs/lines", "film " * 40 + "x" * 300, "&view=lines&rank=1&masking=none")
    tab.wait("document.querySelector('#effects svg') !== null", 60)
    assert not tab.overflows()
