"""The page on which the topics of the lab are played with."""

from __future__ import annotations

from heedful.studio.calls import work_route
from heedful.studio.pages.page import Page

PAGE = Page(
    "lab",
    "Lab",
    "lab.html",
    (
        work_route("/api/lab/play", "heedful.studio.work.lab.play:play", group="lab play"),
        work_route("/api/lab/run", "heedful.studio.work.lab.play:play", group="lab run"),
    ),
)
