"""What all pages share: the link with the token, the navigation, the theme."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.needs("chromium")


def test_the_printed_link_opens_the_studio_and_the_token_leaves_the_address(tab: Any) -> None:
    assert tab.page.url == f"{tab.served.url}/runs"
    assert tab.page.title() == "Runs - Heedful"


def test_the_switch_changes_the_theme_and_the_choice_stays(new_tab: Any) -> None:
    tab = new_tab(dark=True)
    dark = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.page.get_by_role("button", name="Switch between light and dark").click()
    light = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    tab.open("/runs")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == light
