"""The pages of the studio, in the order of the navigation."""

from __future__ import annotations

from heedful.studio.pages import attention, lab, language_model, runs, solve, try_it
from heedful.studio.pages.page import Page

PAGES: tuple[Page, ...] = (
    runs.PAGE,
    solve.PAGE,
    try_it.PAGE,
    attention.PAGE,
    lab.PAGE,
    language_model.PAGE,
)
