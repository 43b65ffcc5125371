"""The page of runs and studies, while they are made and after."""

from __future__ import annotations

from heedful.studio.pages.page import Page

PAGE = Page("runs", "Runs", "runs.html")
