"""The page that shows the attention of a model, and what changes when it is changed."""

from __future__ import annotations

from heedful.studio.calls import work_route
from heedful.studio.pages.page import Page

API, WORK = "/api/attention", "heedful.studio.work.attention"

PAGE = Page(
    "attention",
    "Attention",
    "attention.html",
    routes=(
        work_route(f"{API}/describe", f"{WORK}:describe"),
        work_route(f"{API}/look", f"{WORK}:look"),
        work_route(f"{API}/head", f"{WORK}:look", "attention head"),
        work_route(f"{API}/effects", f"{WORK}:find_effects"),
    ),
)
