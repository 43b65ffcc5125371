"""Lab: a person opens each topic, drags and slides, and reads what Python says of it."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studio.conftest import Served

from heedful import lab
from heedful.lab.arrays import compute_output, compute_weights
from heedful.lab.base import TOPICS
from heedful.lab.directions import Direction, direction, smallest

pytestmark = pytest.mark.needs("chromium")


def open_topic(tab: Any, topic: str, more: str = "") -> Any:
    page = tab.open(f"/lab#topic={topic}{more}")
    settle(tab, topic)
    return page


def settle(tab: Any, topic: str) -> None:
    """Wait until what is shown is what was asked last."""
    tab.page.wait_for_timeout(60)
    tab.wait(f"document.body.dataset.lab === '{topic}'", 60)


def read_state(tab: Any) -> dict[str, str]:
    state: dict[str, str] = tab.page.evaluate(
        "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    )
    return state


def read_vectors(text: str) -> list[list[float]]:
    return [[float(cell) for cell in row.split(",")] for row in text.split(";")]


def typed(page: Any, label: str) -> list[list[float]]:
    """Return the vectors in the box of a topic."""
    return read_vectors(page.locator(".topic:not([hidden])").get_by_label(label, exact=True).input_value())


def slide(page: Any, label: str, value: float) -> None:
    page.locator(".topic:not([hidden])").get_by_label(label, exact=True).fill(f"{value:g}")


def here(page: Any) -> Any:
    return page.locator(".topic:not([hidden]) .verdict.here")


def drag(page: Any, name: str, dx: float, dy: float) -> None:
    """Drag a point of a scene by this many of its units."""
    point = page.locator(f".topic:not([hidden]) .point[aria-label='{name}']").first
    point.scroll_into_view_if_needed()
    box = point.locator(".hit").bounding_box()
    scene = page.locator(".topic:not([hidden]) svg.scene").first.bounding_box()
    ends = float(point.get_attribute("aria-valuemax"))
    unit = (480 / 2 - 26) / ends * scene["width"] / 480
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx * unit / 2, y - dy * unit / 2)
    page.mouse.move(x + dx * unit, y - dy * unit)
    page.mouse.up()


def check_finding(page: Any, finding: Any) -> None:
    """Compare the verdict and every number that decides with Python's."""
    verdict, count = finding.verdict()
    assert f"{verdict}: {count} conditions hold" in page.locator("#claim-verdict").inner_text()
    shown = {
        cells[0]: cells[3]
        for row in page.locator("#numbers tr").all()
        if len(cells := row.locator("td").all_text_contents()) == 4
    }
    assert {n.name for n in finding.numbers} == set(shown)
    for number in finding.conditions:
        assert shown[number.name] == ("yes" if number.holds else "NO")


def test_copying_a_key_is_dragged_amid_the_others_and_no_query_copies_it(tab: Any) -> None:
    page = open_topic(tab, "copy")
    keys, query = typed(page, "Keys"), typed(page, "Query")
    needed = smallest(np.array(query[0]), np.array(keys), [0], 0.01)[0]
    assert f"{needed:.3g} times as long" in here(page).inner_text()
    page.get_by_role("button", name="Make it as long as needed").click()
    settle(tab, "copy")
    assert here(page).get_attribute("data-good") == "true"
    drag(page, "k₁", -1.7, -0.2)
    settle(tab, "copy")
    moved = read_vectors(read_state(tab)["keys"])
    assert moved[0] == pytest.approx([keys[0][0] - 1.7, keys[0][1] - 0.2], abs=0.05)
    assert moved[1:] == keys[1:]
    assert not isinstance(direction(np.array(moved), [0]), Direction)
    assert "No query can copy k₁" in here(page).inner_text()
    finding = lab.copy(keys=moved, values=typed(page, "Values"), query=typed(page, "Query")[0], key=1)
    check_finding(page, finding)


def test_a_point_with_the_focus_moves_with_the_arrow_keys_and_says_where_it_is(tab: Any) -> None:
    page = open_topic(tab, "copy")
    point = page.get_by_role("slider", name="q", exact=True)
    point.focus()
    for key in ("ArrowRight", "ArrowUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    settle(tab, "copy")
    assert read_vectors(read_state(tab)["query"]) == [[1.09, 0.7]]
    assert "1.09, 0.70" in point.get_attribute("aria-valuetext")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "q"
    page.get_by_role("button", name="Textbook's keys, in space").click()
    settle(tab, "copy")
    key = page.get_by_role("slider", name="k₁", exact=True)
    key.focus()
    page.keyboard.press("PageUp")
    settle(tab, "copy")
    assert read_vectors(read_state(tab)["keys"])[0] == [0, 1, 2.1]


def test_a_point_is_dragged_by_touch(new_tab: Any) -> None:
    tab = new_tab(390)
    page = open_topic(tab, "copy")
    point = page.locator(".topic:not([hidden]) .point[aria-label='q']")
    point.scroll_into_view_if_needed()
    box = point.locator(".hit").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in (20, 40):
        points = [{"x": x + step, "y": y - step}]
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    settle(tab, "copy")
    moved = read_vectors(read_state(tab)["query"])[0]
    assert moved[0] > 1.2
    assert moved[1] > 0.8


def test_what_moves_under_the_pointer_is_what_python_computes(tab: Any) -> None:
    page = open_topic(tab, "copy")
    rng = np.random.default_rng(0)
    for width in (2, 3):
        keys, values, query = rng.normal(size=(5, width)), rng.normal(size=(5, width)), rng.normal(size=width)
        given = [query.tolist(), keys.tolist(), values.tolist()]
        script = """async ([q, k, v]) => {
            const { weigh, mix, winners } = await import('/static/lab/math.js');
            const weights = weigh(q, k, 1.7);
            return [weights, mix(weights, v), q.length === 2 ? winners(k) : []];
        }"""
        weights, output, parts = page.evaluate(script, given)
        assert weights == pytest.approx(compute_weights(query[None], keys, scale=1.7)[0], abs=1e-14)
        assert output == pytest.approx(compute_output(query[None], keys, values, scale=1.7)[0], abs=1e-13)
        for key, start, end in parts:
            middle = (start + end) / 2
            scores = keys @ [math.cos(middle), math.sin(middle)]
            assert int(np.argmax(scores)) == key
        if parts:
            outside = {j for j in range(5) if isinstance(direction(keys, [j]), Direction)}
            assert {part[0] for part in parts} == outside


def test_hard_attention_jumps_has_no_gradient_and_does_not_learn(tab: Any) -> None:
    page = open_topic(tab, "argmax")
    drag(page, "q", -2, 0)
    settle(tab, "argmax")
    query = read_vectors(read_state(tab)["query"])[0]
    keys, values = np.array(typed(page, "keys")), np.array(typed(page, "values"))
    finding = lab.argmax(keys=keys, values=values, query=query, steps=0)
    check_finding(page, finding)
    said = here(page).inner_text()
    assert "exactly 0" in said
    assert f"Argmax takes v{'₀₁₂₃₄'[finding.results.selected]}" in said
    slide(page, "Scale (1 / temperature)", 1.6)
    settle(tab, "argmax")
    scale = float(read_state(tab)["scale"])
    assert scale == pytest.approx(10**1.6, rel=0.01)
    check_finding(page, lab.argmax(keys=keys, values=values, query=query, scale=scale, steps=0))
    page.get_by_role("button", name="Train the three models").click()
    tab.wait("document.querySelector('.topic:not([hidden]) table') !== null", 240)
    rows = [row.split("\t") for row in page.locator(".topic:not([hidden]) tbody tr").all_inner_texts()]
    learned = {row[0]: (float(row[1]), row[3]) for row in rows}
    assert learned["argmax"][1] == "0 of 2112"
    assert learned["argmax"][0] > 0.95 * math.log(8) > 2 * learned["softmax"][0]


def test_an_average_has_no_query_when_another_key_is_in_the_way(tab: Any) -> None:
    page = open_topic(tab, "average")
    slide_to = page.get_by_role("button", name="S = 100", exact=True)
    slide_to.click()
    settle(tab, "average")
    assert here(page).get_attribute("data-good") == "false"
    page.get_by_role("button", name="exact query").click()
    settle(tab, "average")
    assert here(page).get_attribute("data-good") == "true"
    drag(page, "k₃", 3.1, 0.4)
    settle(tab, "average")
    keys = read_vectors(read_state(tab)["keys"])
    finding = lab.average(keys=keys, values=typed(page, "values"))
    assert finding.results.obstacle is not None
    assert "No query averages k₁ and k₂" in here(page).inner_text()
    check_finding(page, finding)


def test_noise_grows_as_two_subspaces_close_until_no_matrix_is_left(tab: Any) -> None:
    page = open_topic(tab, "subspace")
    slide(page, "Angle between A and B", 10)
    settle(tab, "subspace")
    b = read_vectors(read_state(tab)["b"])
    case = lab.subspace(a=[[1, 0.2]], b=b, noise=0.05).results.cases["given"]
    assert case.angle == pytest.approx(10, abs=0.1)
    assert f"1 / sin = {case.amplification:.3g}" in here(page).inner_text()
    page.get_by_role("button", name="A common direction").click()
    settle(tab, "subspace")
    assert here(page).get_attribute("data-good") == "false"
    page.get_by_role("button", name="A plane and a line").click()
    settle(tab, "subspace")
    assert here(page).get_attribute("data-good") == "true"
    drag(page, "v_b", 0.3, 0.4)
    settle(tab, "subspace")
    assert here(page).get_attribute("data-good") == "true"


def test_noisy_keys_need_two_heads_when_one_varies_in_length(tab: Any) -> None:
    page = open_topic(tab, "noise")
    slide(page, "β, length of the query's parts", 0.8)
    settle(tab, "noise")
    assert "β is within the window" in here(page).inner_text()
    assert here(page).get_attribute("data-good") == "true"
    drag(page, "q", 0.3, 0.3)
    settle(tab, "noise")
    assert float(read_state(tab)["beta"]) == pytest.approx(1.8, abs=0.03), "ten times as long"
    assert "so noise decides" in here(page).inner_text()
    slide(page, "β, length of the query's parts", 0.8)
    page.get_by_role("button", name="and in the length of k_a").click()
    settle(tab, "noise")
    finding = lab.noise(alpha=1e-4, beta=float(f"{10**0.8:.10g}"), samples=4000)
    one, two = (finding.results.near_average[name][0] for name in ("one head", "two heads"))
    said = here(page).inner_text()
    assert f"one head in {100 * one:.1f} % of the samples, two heads in {100 * two:.1f} %" in said
    assert one < 0.1 < 0.6 < two
    check_finding(page, finding)


def test_the_puzzle_of_k_q_and_v_is_solved_wire_by_wire(tab: Any) -> None:
    page = open_topic(tab, "kqv")
    assert "x_2 keeps 100.0 % of its attention for itself" in here(page).inner_text()
    for wire in (
        "Q: u_a to p_1",
        "K: u_d to p_1",
        "Q: u_d to p_2",
        "K: u_c to p_2",
        "V: u_b to u_b",
        "V: u_c to u_c",
    ):
        page.get_by_role("button", name=f"{wire}: off").click()
    settle(tab, "kqv")
    assert here(page).get_attribute("data-good") == "false", "u_c is passed on with the wrong sign"
    page.get_by_role("button", name="V: u_c to u_c: on", exact=True).click()
    settle(tab, "kqv")
    results = lab.kqv(beta=3.0).results
    assert here(page).get_attribute("data-good") == "true"
    said = here(page).inner_text()
    assert f"{results.residual_1:.2e}".replace("e-0", "e-") in said
    assert f"{results.residual_2:.2e}".replace("e-0", "e-") in said
    slide(page, "β, length of u and of q and k", 1)
    settle(tab, "kqv")
    assert here(page).get_attribute("data-good") == "false"
    check_finding(page, lab.kqv(beta=1.0))


def test_two_of_four_masks_let_the_future_through(tab: Any) -> None:
    page = open_topic(tab, "masking")
    page.get_by_role("button", name="x5", exact=True).press("ArrowLeft")
    settle(tab, "masking")
    assert read_state(tab)["position"] == "4"
    results = lab.masking(size=6, steps=0).results
    for name, change in results.changes.items():
        line = page.locator(f".card[data-mask='{name}'] .verdict").inner_text()
        most = change[:3, 3].max()
        assert ("no earlier output moves" in line) == (most < 1e-9)
        if most > 1e-9:
            assert f"{most:.3g}" in line
    page.get_by_role("button", name="Train the four models").click()
    page.get_by_role("button", name="Stop").click()
    tab.wait("document.querySelector('.topic:not([hidden]) .progress') === null")


def test_a_length_is_counted_and_a_measurement_can_be_stopped(tab: Any) -> None:
    page = open_topic(tab, "scaling")
    slide(page, "Length n, in tokens", 12)
    settle(tab, "scaling")
    assert f"4,096 tokens have {4096**2:,} pairs" in here(page).inner_text()
    assert "512 MiB" in here(page).inner_text()
    page.get_by_role("button", name="Measure").last.click()
    page.get_by_text("measuring: ").wait_for(timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    tab.wait("document.querySelector('.topic:not([hidden]) .progress') === null")
    assert page.locator("#error").is_hidden(), "who stops is not told that it was stopped"


def test_approximations_get_worse_with_longer_vectors_and_better_with_layers(tab: Any) -> None:
    page = open_topic(tab, "approximation", "&part=bigbird")
    assert "It takes 23 layers" in here(page).inner_text(), "a window of three passes on one block per layer"
    slide(page, "Global blocks", 1)
    settle(tab, "approximation")
    assert "It takes 2 layers" in here(page).inner_text()
    page.get_by_role("button", name="Performer").click()
    settle(tab, "approximation")
    assert "no weight is negative" in here(page).inner_text()
    page.get_by_role("button", name="trigonometric, independent").click()
    slide(page, "Length of q and k", 3)
    settle(tab, "approximation")
    assert "of the weights are negative" in here(page).inner_text()
    page.get_by_role("button", name="Linformer").click()
    slide(page, "r, slots (the rank)", 64)
    settle(tab, "approximation")
    assert here(page).get_attribute("data-good") == "true"


def test_the_head_that_looks_at_the_previous_token_is_found_in_a_run(tab: Any) -> None:
    page = open_topic(tab, "heads", "&model=runs%2Freviews&text=the+film+was+lovely")
    folder = tab.served.folder / "runs" / "reviews"
    results = lab.heads("the film was lovely", model=str(folder)).results
    page.get_by_role("button", name="layer 1, head 1").focus()
    page.keyboard.press("ArrowRight")
    assert f"Without it the output changes by {100 * results.change[0, 1]:.1f} %" in here(page).inner_text()
    assert str(folder) not in page.content()
    assert page.locator("#claim-verdict").get_attribute("data-passed") is not None


def test_a_link_shows_the_same_again_and_figures_are_saved(new_tab: Any) -> None:
    tab = new_tab()
    page = open_topic(tab, "average")
    drag(page, "k₄", 0.5, -0.3)
    settle(tab, "average")
    said, address = here(page).inner_text(), page.url.removeprefix(tab.served.url)
    page.locator("#topics").get_by_role("link", name="Hard attention").click()
    settle(tab, "argmax")
    page.go_back()
    settle(tab, "average")
    assert here(page).inner_text() == said
    other = new_tab(dark=True)
    page = other.open(address)
    settle(other, "average")
    assert here(page).inner_text() == said
    for form, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            page.locator(".topic:not([hidden])").get_by_role(
                "button", name=f"Save this figure as {form}"
            ).first.click()
        content = Path(saved.value.path()).read_bytes()
        assert content.startswith(begins)
        assert b"var(" not in content


def test_settings_that_a_topic_refuses_are_explained(tab: Any) -> None:
    page = open_topic(tab, "subspace", "&a=1,0;2,0&one=1,1")
    assert "are not independent" in page.locator("#problem").inner_text()


@pytest.mark.parametrize(("width", "dark"), [(390, True), (2560, False)])
def test_every_topic_fits_the_window_and_opens_its_answer(new_tab: Any, width: int, dark: bool) -> None:
    tab = new_tab(width, dark=dark)
    for topic in TOPICS:
        page = open_topic(tab, topic)
        page.locator(".topic:not([hidden]) summary", has_text="The answer").click()
        assert page.locator(".topic:not([hidden]) .answer p").first.is_visible()
        assert not tab.overflows(), topic


SETTINGS: dict[str, dict[str, Any]] = {
    "copy": {
        "keys": [[1, 0], [0, 1], [-1, -0.5]],
        "values": [[1, 2], [3, 4], [5, 6]],
        "query": [[-1, 0.5]],
        "key": 3,
    },
    "argmax": {"keys": [[1, 0], [0, 1]], "values": [[-1, 2], [3, 4]], "query": [[-1, 0.5]], "scale": 2.5},
    "average": {"keys": [[1, 0], [0, 1.1], [-1, -1]], "values": [[1, 2], [3, 4], [5, 6]], "chosen": [1, 2]},
    "subspace": {"a": [[1, 0, 0], [0, 1, 0]], "b": [[-0.5, 1, 1]], "one": [[1, 1]], "other": [[1]]},
    "noise": {"alpha": -3.3, "beta": 0.7, "size": 5, "samples": 600, "seed": 2},
    "kqv": {"beta": 2.5, "scale": 0.7, "plain": True},
    "masking": {"size": 4, "seed": 3, "scale": 2},
    "heads": {"text": '-- the film was "lovely"', "model": "runs/reviews"},
}


@pytest.mark.parametrize("topic", SETTINGS)
def test_the_command_on_the_page_prints_the_numbers_on_the_page(
    topic: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, studio: Served
) -> None:
    from heedful.cli import main
    from heedful.studio.folder import StudioFolder
    from heedful.studio.model_store import ModelStore
    from heedful.studio.work.lab.play import play

    models = ModelStore(StudioFolder.open(studio.folder))
    shown = play({"topic": topic, **SETTINGS[topic]}, models, lambda share, message="": None)["finding"]
    program, command, name, *words = shlex.split(shown["command"])
    assert (program, command, name) == ("heedful", "lab", topic)
    monkeypatch.chdir(studio.folder)
    capsys.readouterr()
    status = main(["lab", topic, "--json", *words])
    facts = json.loads(capsys.readouterr().out)
    assert (status == 0) == shown["passed"] == facts["passed"]
    printed, listed = facts["numbers"], shown["numbers"]
    assert [(n["name"], n["holds"]) for n in printed] == [(n["name"], n["holds"]) for n in listed]
    for one, other in zip(printed, listed, strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-9, abs=1e-13)
