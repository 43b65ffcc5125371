"""The page on which a language model writes token by token."""

from __future__ import annotations

from heedful.studio.calls import work_route
from heedful.studio.pages.page import Page

API, WORK = "/api/language_model", "heedful.studio.work.language_model"

PAGE = Page(
    "language_model",
    "Language model",
    "language_model.html",
    routes=(
        work_route(f"{API}/describe", f"{WORK}:describe"),
        work_route(f"{API}/read", f"{WORK}:read_on"),
        work_route(f"{API}/person", f"{WORK}:describe_person"),
    ),
)
