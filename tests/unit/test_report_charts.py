from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.report import charts, theme
from heedful.report.charts.heat_maps import choose_columns
from heedful.report.charts.histograms import choose_bin_edges
from heedful.report.charts.images import render_chart
from heedful.report.charts.vega import choose_colors

HOSTILE = "</script>&\"'\x00\x1b[31m\ud800\u2028"


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of data anywhere in a specification."""
    found: list[dict[str, Any]] = []
    if isinstance(spec, dict):
        found += spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
        for value in spec.values():
            found += rows_of(value)
    elif isinstance(spec, list):
        for item in spec:
            found += rows_of(item)
    return found


def samples(word: str = "word") -> dict[str, charts.Chart]:
    """One chart of each kind with everything in it."""
    return {
        "histogram": charts.histogram(
            {word: [1.5, 2], "b": [2, 3]}, title=word, x_title=word, rules={word: 2}
        ),
        "lines": charts.lines(
            {word: [(1, 0.5, 0.4, 0.6), (2, 0.7, 0.6, 0.8)], **{f"c{i}": [(1, i), (2, i)] for i in range(9)}},
            title=word,
            x_title=word,
            y_title=word,
            mark_best="max",
            rules={word: 1.5},
        ),
        "bars": charts.bars(
            [
                {"label": word, "value": 0.7, "low": 0.6, "high": 0.8, "group": word},
                {"label": "b", "value": None, "note": word, "group": "x"},
            ],
            title=word,
            x_title=word,
            y_title=word,
            group_title=word,
            rules={word: 0.5},
        ),
        "heat_map": charts.heat_map(
            [[0.1, None], [0.5, 1]],
            x_labels=[word, word],
            y_labels=["a", word],
            title=word,
            x_title=word,
            y_title=word,
            value_title=word,
            notes={(0, 1): word},
        ),
        "small_multiples": charts.small_multiples(
            {word: [[0, 1]], "b": [[-1, 2]]},
            x_labels=[word, word],
            y_labels=["a"],
            title=word,
            diverging=True,
        ),
        "scatter": charts.scatter(
            [
                {
                    "x": 10,
                    "y": 0.5,
                    "low": 0.4,
                    "high": 0.6,
                    "x_low": 5,
                    "x_high": 20,
                    "label": word,
                    "group": word,
                }
            ],
            title=word,
            x_title=word,
            y_title=word,
            log_x=True,
        ),
    }


@pytest.mark.parametrize("kind", samples())
@pytest.mark.parametrize("word", ["word", HOSTILE], ids=["harmless", "hostile"])
def test_every_kind_is_plain_json_and_draws_as_valid_svg(kind: str, word: str) -> None:
    import xml.etree.ElementTree as ElementTree

    chart = samples(word)[kind]
    assert json.loads(json.dumps(chart, allow_nan=False)) == chart
    svg = render_chart(chart, ".svg").decode()
    drawn = "".join(ElementTree.fromstring(svg).itertext())
    assert ("\\x1b[31m" in drawn) is (word == HOSTILE)
    assert "NaN" not in svg


def test_each_ending_gets_its_form(tmp_path: Path) -> None:
    chart = samples()["bars"]
    starts = {
        "png": b"\x89PNG",
        "svg": b"<svg",
        "pdf": b"%PDF",
        "html": b"\n<!DOCTYPE html>",
        "PNG": b"\x89PNG",
    }
    for ending, start in starts.items():
        path = charts.save_chart(chart, tmp_path / "new" / "folder" / f"chart.{ending}")
        assert path.read_bytes().lstrip().startswith(start.strip()), ending


def test_pictures_have_twice_the_pixels(tmp_path: Path) -> None:
    content = charts.save_chart(samples()["scatter"], tmp_path / "a.png").read_bytes()
    width, _ = struct.unpack(">II", content[16:24])
    assert width > 2 * 480


def test_a_wrong_ending_lists_the_right_ones_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r'a figure ends in \.png, \.svg, \.pdf, \.html, not in "\.jpeg"'):
        charts.save_chart(samples()["bars"], tmp_path / "x" / "chart.jpeg")
    assert list(tmp_path.iterdir()) == []


def test_light_and_dark_differ_only_in_colors() -> None:
    chart = samples()["lines"]
    light, dark = (render_chart(chart, ".svg", mode).decode() for mode in ("light", "dark"))  # type: ignore[arg-type]
    assert theme.DEFAULT.light.ink in light
    assert theme.DEFAULT.dark.ink in dark
    assert theme.DEFAULT.light.ink not in dark


def contrast(one: str, other: str) -> float:
    """The ratio of the Web Content Accessibility Guidelines."""

    def luminance(color: str) -> float:
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PALETTES = [(name, mode) for name in ("default", "contrast") for mode in ("light", "dark")]


@pytest.mark.parametrize(("name", "mode"), PALETTES)
def test_text_and_series_stand_out_from_the_paper(name: str, mode: str) -> None:
    palette: theme.Palette = getattr(theme.find_theme(name), mode)
    assert contrast(palette.ink, palette.paper) > 7
    assert contrast(palette.muted, palette.paper) > 4.5
    for color in (palette.good, palette.warning, palette.bad):
        assert contrast(color, palette.paper) > 4.5
    contrasts = [contrast(color, palette.paper) for color in palette.series]
    assert min(contrasts) > (4.5 if name == "contrast" else 2.2)
    assert sum(ratio >= 3 for ratio in contrasts) >= len(contrasts) - 1


@pytest.mark.parametrize("name", ["default", "contrast"])
def test_numbers_in_cells_stand_out_from_them(name: str) -> None:
    found = theme.find_theme(name)
    for scale in (found.sequential, found.diverging):
        for color in scale:
            assert max(contrast(found.low_ink, color), contrast(found.high_ink, color)) > 3.4


def test_a_theme_colors_every_kind_of_chart() -> None:
    series = tuple(f"#12345{i}" for i in range(8))
    light = replace(theme.DEFAULT.light, ink="#111213", paper="#fefdfc", series=series)
    own = replace(
        theme.DEFAULT,
        light=light,
        sequential=("#a1b2c3", "#c3b2a1"),
        low_ink="#010203",
        high_ink="#fcfdfe",
        font="Courier",
    )
    for kind, chart in samples().items():
        svg = render_chart(chart, ".svg", theme=own).decode()
        assert "#fefdfc" in svg, kind
        assert "#111213" in svg, kind
        assert "Courier" in svg, kind
        default = {theme.DEFAULT.light.ink, theme.DEFAULT.light.paper, *theme.DEFAULT.light.series}
        assert not [color for color in default if color in svg], kind
        if "heat" in kind:
            assert "#010203" in svg


def test_a_theme_has_a_color_for_each_of_eight_series() -> None:
    with pytest.raises(UserError, match="needs 8 colors for series, not 2"):
        replace(theme.DEFAULT.light, series=("red", "blue"))


def test_an_unknown_theme_lists_the_nearest() -> None:
    with pytest.raises(UserError, match='unknown theme "contrst"; did you mean "contrast"'):
        theme.find_theme("contrst")


def test_what_is_no_theme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(theme.THEMES.paths, "broken", "heedful.report.theme:make_vega_config")
    with pytest.raises(UserError, match=r'theme "broken" of the package heedful is a function; it must be a'):
        theme.find_theme("broken")


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=50), st.integers(1, 40))
def test_whole_numbers_get_bins_of_whole_width_that_hold_them_all(values: list[int], bins: int) -> None:
    edges = choose_bin_edges(np.asarray(values, dtype=float), bins)
    widths = set(np.diff(edges))
    assert len(widths) == 1
    assert widths.pop() == int(edges[1] - edges[0])
    assert np.histogram(values, edges)[0].sum() == len(values)
    assert len(edges) - 1 <= bins + 2


def test_a_histogram_counts_every_value_once() -> None:
    values = np.random.default_rng(0).normal(size=500)
    chart = charts.histogram(values, title="t", x_title="x", bins=12)
    assert sum(row["count"] for row in rows_of(chart)) == 500


def test_shares_of_each_sample_add_up_to_one() -> None:
    chart = charts.histogram({"a": [1, 2, 3], "b": [1] * 40}, title="t", x_title="x", share=True)
    for name in "ab":
        assert sum(r["y"] for r in rows_of(chart["layer"][0]) if r["series"] == name) == pytest.approx(1)


def test_several_samples_are_outlines_that_hide_nothing() -> None:
    values = {"a": [1, 1, 2, 5], "b": [2, 2, 3]}
    chart = charts.histogram(values, title="t", x_title="x")
    bars, lines = chart["layer"]
    assert bars["encoding"]["opacity"]["condition"]["value"] <= 0.15
    assert (lines["mark"]["type"], lines["mark"]["interpolate"]) == ("line", "step-after")
    assert lines["encoding"]["color"] == bars["encoding"]["color"]
    paths = {n: [(r["at"], r["height"]) for r in rows_of(lines) if r["series"] == n] for n in values}
    assert paths["a"] == [(0.5, 0), (0.5, 2), (1.5, 1), (2.5, 0), (4.5, 0), (4.5, 1), (5.5, 0)]
    assert paths["b"] == [(1.5, 0), (1.5, 2), (2.5, 1), (3.5, 0)]
    assert len(charts.histogram(values["a"], title="t", x_title="x")["layer"]) == 1


@pytest.mark.parametrize("values", [[], [5], [2.5, 2.5]])
def test_histograms_of_next_to_nothing_draw(values: list[float]) -> None:
    assert render_chart(charts.histogram(values, title="t", x_title="x"), ".svg").startswith(b"<svg")


def test_the_best_point_of_each_curve_is_marked_and_broken_ones_leave_gaps() -> None:
    series = {
        "a": [(1, 0.5), (2, 0.9), (3, math.nan)],
        "b": [(1, math.inf), (2, None)],
        "c": [(1, 3), (2, 1)],
    }
    best = [
        row
        for row in rows_of(charts.lines(series, title="", x_title="", y_title="", mark_best="max"))
        if "best" in row
    ]
    assert [(row["series"], row["y"]) for row in best] == [("a", 0.9), ("c", 3.0)]
    lowest = charts.lines(series, title="", x_title="", y_title="", mark_best="min", log_y=True)
    assert [row["y"] for row in rows_of(lowest) if "best" in row] == [0.5, 1.0]


def test_a_very_long_curve_keeps_its_ends_peaks_gaps_and_best() -> None:
    points: list[tuple[float, float | None]] = [(i, math.sin(i / 500)) for i in range(30_000)]
    points[12_345], points[20_000], points[25_000] = (12_345, 7.0), (20_000, -7.0), (25_000, None)
    chart = charts.lines({"a": points}, title="", x_title="", y_title="", mark_best="max")
    rows = rows_of(chart)
    kept = {row["x"]: row["y"] for row in rows}
    assert len(rows) < 1600
    assert {0, 12_345, 20_000, 25_000, 29_999} <= kept.keys()
    assert [row["x"] for row in rows if "best" in row] == [12_345]
    assert list(kept) == sorted(kept)


def test_what_a_logarithmic_axis_cannot_show_is_a_gap() -> None:
    chart = charts.lines(
        {"a": [(0, 1), (1, 0), (2, 4)]}, title="", x_title="", y_title="", log_x=True, log_y=True
    )
    assert [(row["x"], row["y"]) for row in rows_of(chart)] == [(None, 1.0), (1.0, None), (2.0, 4.0)]


def test_a_failed_bar_stands_at_zero_with_its_reason() -> None:
    chart = charts.bars(
        [
            {"label": "a", "value": 0.5},
            {"label": "b", "value": None, "note": "did not fit in 8 GB"},
            {"label": "c", "value": math.nan},
        ],
        title="",
        y_title="accuracy",
    )
    svg = render_chart(chart, ".svg").decode()
    assert "did not fit in 8 GB" in svg
    failed = {row["label"]: row for row in rows_of(chart) if row.get("failed")}
    assert {label: (row["value"], row["reason"]) for label, row in failed.items()} == {
        "b": (0.0, "did not fit in 8 GB"),
        "c": (0.0, "failed"),
    }


def test_a_reason_stands_once_for_bars_that_failed_together() -> None:
    long = "did not fit in the 8 GB of this machine, even with one example a step and its states made again"
    rows = [
        {"label": label, "group": group, "value": value, "note": note}
        for label, values, note in (
            ("a", (0.5, 0.6), ""),
            ("b", (None, None), long),
            ("c", (0.4, None), "lost"),
        )
        for group, value in zip(("dev", "test"), values, strict=True)
    ]
    svg = render_chart(charts.bars(rows, title="", y_title="accuracy"), ".svg").decode()
    assert svg.count(">did not fit in the 8 GB of this machine,<") == 1
    assert svg.count(">even with one example a step and its<") == 1
    assert svg.count(">states made again<") == 1
    assert svg.count(">lost<") == 1


def test_repeated_labels_keep_their_own_cells() -> None:
    chart = charts.heat_map([[1, 2], [3, 4]], x_labels=["the", "the"], y_labels=["cat", "cat"], title="t")
    assert len({(row["i"], row["j"]) for row in rows_of(chart)}) == 4
    assert render_chart(chart, ".svg").decode().count(">the</text>") == 2


def test_a_matrix_that_does_not_fit_its_labels_is_refused() -> None:
    with pytest.raises(UserError, match="2 x 2 labels"):
        charts.heat_map([[1, 2]], x_labels=["a", "b"], y_labels=["c", "d"], title="t")


def test_a_number_with_a_note_has_a_star_and_a_cell_without_number_has_none() -> None:
    labels: dict[str, Any] = {"x_labels": ["1", "2"], "y_labels": ["a"], "title": "t", "numbers": True}
    notes = {(0, 0): "collapsed", (0, 1): "did not fit"}
    for chart in (
        charts.heat_map([[0.5, None]], notes=notes, **labels),
        charts.small_multiples({"p": [[0.5, None]], "q": [[0.7, 0.8]]}, notes={"p": notes}, **labels),
    ):
        drawn = render_chart(chart, ".svg").decode()
        assert ">0.500*<" in drawn
        assert drawn.count("*<") == 1
        assert "* collapsed" in drawn
    assert "*" not in render_chart(charts.heat_map([[0.5, 0.6]], **labels), ".svg").decode()


def test_panels_share_one_scale() -> None:
    chart = charts.small_multiples({"a": [[0, 1]], "b": [[5, 9]]}, x_labels=[1, 2], y_labels=[1], title="t")
    assert chart["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0.0, 9.0]
    signed = charts.heat_map([[-1, 3]], x_labels=[1, 2], y_labels=[1], title="t", diverging=True)
    assert signed["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-3.0, 3.0]


def test_points_without_a_place_are_left_out() -> None:
    rows = [{"x": 0, "y": 1}, {"x": 1, "y": None}, {"x": 2, "y": 3}]
    assert [
        row["x"] for row in rows_of(charts.scatter(rows, title="", x_title="", y_title="", log_x=True))
    ] == [2.0]


def test_labels_of_points_that_lie_close_do_not_cover_each_other() -> None:
    rows = [{"x": x, "y": y, "label": f"a long name {x}"} for x, y in ((0.1, 0.5), (1.4, 0.3), (2.0, 0.3))]
    chart = charts.scatter(rows, title="t", x_title="x", y_title="y", log_x=True)
    texts = [layer for layer in chart["layer"] if layer["mark"]["type"] == "text"]
    corners = {
        (row["label"], layer["mark"]["align"], layer["mark"]["baseline"])
        for layer in texts
        for row in layer["data"]["values"]
    }
    assert corners == {
        ("a long name 0.1", "left", "bottom"),
        ("a long name 1.4", "right", "bottom"),
        ("a long name 2.0", "right", "top"),
    }


def test_nothing_at_all_still_draws() -> None:
    for chart in (
        charts.scatter([], title="t", x_title="x", y_title="y"),
        charts.lines({}, title="t", x_title="x", y_title="y"),
        charts.bars([], title="t", y_title="y"),
    ):
        assert render_chart(chart, ".svg").startswith(b"<svg")


def test_one_number_alone_stands_on_an_axis_that_shows_it() -> None:
    for chart in (
        charts.lines({"a": [(1, 0.14), (2, 0.14)]}, title="t", x_title="x", y_title="y"),
        charts.scatter([{"x": 1, "y": 0.14}], title="t", x_title="x", y_title="y"),
    ):
        drawn = render_chart(chart, ".svg").decode()
        assert ">0.14" in drawn
    nought = charts.lines({"a": [(1, 0.0)]}, title="t", x_title="x", y_title="y")
    assert ">1.0<" in render_chart(nought, ".svg").decode()


def test_whole_numbers_get_no_ticks_between_them_and_levels_that_touch_share_a_label() -> None:
    chart = charts.lines(
        {"a": [(1, 0.5), (2, 0.7), (3, 0.9)]}, title="t", x_title="epoch", y_title="y",
        levels={"low": 0.5, "near": 0.51, "far": 0.8}, guide=[(1, 0.5), (3, 0.9)],
    )  # fmt: skip
    first, *_ = [layer for layer in chart["layer"] if layer["mark"]["type"] == "circle"]
    assert first["encoding"]["x"]["axis"]["values"] == [1, 2, 3]
    labels = {row["label"] for layer in chart["layer"] for row in layer.get("data", {}).get("values", []) if "label" in row}  # fmt: skip
    assert labels == {"low, near", "far"}
    svg = render_chart(chart, ".svg").decode()
    assert "low, near" in svg
    assert svg.count("stroke-dasharray") >= 4  # three levels and the guide


def test_a_hundred_curves_draw_without_a_legend() -> None:
    chart = charts.lines(
        {f"run {i}": [(1, i), (2, i + 1)] for i in range(100)}, title="t", x_title="x", y_title="y"
    )
    svg = render_chart(chart, ".svg").decode()
    shown = "".join(part.split("<")[0] for part in svg.split(">"))  # what is written, without attributes
    assert "run 99" not in shown
    assert "x" in shown


def test_given_edges_are_the_ends_of_the_axis() -> None:
    chart = charts.histogram([0.01, 0.02], title="t", x_title="x", bins=[0, 0.1, 0.5, 1])
    assert chart["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.0, 1.0]


def test_bars_without_intervals_have_no_empty_whiskers() -> None:
    plain = charts.bars([{"label": "a", "value": 1}], title="t", y_title="y")
    spans = charts.bars([{"label": "a", "value": 1, "low": 0.5, "high": 2}], title="t", y_title="y")
    assert [sum(layer["mark"]["type"] == "rule" for layer in c["layer"]) for c in (plain, spans)] == [0, 1]


def test_shares_above_bars_have_three_digits_each_and_other_numbers_what_they_need() -> None:
    def written(*values: float) -> list[Any]:
        chart = charts.bars(
            [{"label": str(i), "value": v} for i, v in enumerate(values)], title="t", y_title="y"
        )
        layer = next(x for x in chart["layer"] if x.get("encoding", {}).get("text", {}).get("field"))
        text = layer["encoding"]["text"]
        return [row[text["field"]] for row in layer["data"]["values"]]

    assert written(0.5, 0.617) == ["0.500", "0.617"]
    assert written(0.5, 61.7) == [0.5, 61.7]


def test_a_logarithmic_axis_over_many_powers_of_ten_has_ticks_at_them_alone() -> None:
    def ticks(*values: float) -> Any:
        rows = [{"x": v, "y": 1.0, "label": str(v)} for v in values]
        chart = charts.scatter(rows, title="t", x_title="x", y_title="y", log_x=True)
        found = [
            layer["encoding"]["x"]["axis"] for layer in chart["layer"] if "x" in layer.get("encoding", {})
        ]
        return next(axis for axis in found if axis).get("values")

    assert ticks(770, 22_713_986) == [1e3, 1e4, 1e5, 1e6, 1e7]
    assert ticks(5.4, 644.0) is None
    assert len(ticks(1e-30, 1.0)) <= 11


@pytest.mark.parametrize(("n", "columns"), [(1, 1), (2, 2), (4, 2), (6, 3), (7, 3), (8, 4), (12, 4), (16, 4)])
def test_panels_are_nearly_a_square_with_full_rows_if_possible(n: int, columns: int) -> None:
    assert choose_columns(n) == columns
    panels = {f"head {i}": [[0.5]] for i in range(n)}
    assert charts.small_multiples(panels, x_labels=["a"], y_labels=["b"], title="")["columns"] == columns


def test_a_split_has_its_color_and_other_series_avoid_it() -> None:
    assert choose_colors(["dev", "test"]) == {"dev": 1, "test": 2}
    assert choose_colors(["train, while training", "train"]) == {"train, while training": 8, "train": 0}
    others = choose_colors([f"run {i}" for i in range(20)])
    assert not {0, 1, 2} & set(list(others.values())[:5])
    assert len(set(others.values())) == 20
    mixed = choose_colors(["dev", *(f"run {i}" for i in range(20))])
    assert len(set(mixed.values())) == 21


def test_a_calibration_plot_is_square() -> None:
    chart = charts.lines({"test": [(0.5, 0.6)]}, title="", x_title="", y_title="", square=True)
    assert chart["width"] == chart["height"]


def test_the_label_of_a_level_at_the_top_of_the_axis_is_below_it() -> None:
    levels = {"perfect": 1.0, "chance": 0.5}
    chart = charts.lines(
        {"a": [(0, 0.2), (1, 0.8)]}, title="", x_title="", y_title="", y_domain=(0, 1), levels=levels
    )
    texts = {
        row["label"]: layer["mark"]["baseline"]
        for layer in chart["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    }
    assert texts == {"perfect": "top", "chance": "bottom"}
