"""The web application of the studio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from heedful import __version__
from heedful.report.page import load_vega
from heedful.report.theme import THEMES, make_page_palette, make_vega_config, write_css_variables
from heedful.studio.calls import ERROR_HANDLERS
from heedful.studio.folder import StudioFolder
from heedful.studio.offers import list_offers
from heedful.studio.pages import PAGES
from heedful.studio.pages.page import Page
from heedful.studio.security import AddHeaders, StudioGuard
from heedful.studio.worker import Worker

STATIC = Path(str(files("heedful.studio") / "static"))
REVALIDATE = {"Cache-Control": "no-cache"}
"""A browser asks whether a file has changed, so that nobody sees the pages of an older version."""


def make_application(folder: StudioFolder, token: str | None, *, loopback: bool, port: int = 0) -> Starlette:
    """Return the application; its worker starts with the first request that computes."""
    templates = make_templates()

    @asynccontextmanager
    async def run_background(app: Starlette) -> AsyncIterator[None]:
        app.state.worker = Worker(folder.root)
        app.state.stopping = asyncio.Event()
        try:
            yield
        finally:
            app.state.stopping.set()
            await asyncio.to_thread(app.state.worker.close)

    def page_route(page: Page) -> Route:
        async def show(request: Request) -> Response:
            content = templates.get_template(page.template).render(
                page=page,
                pages=PAGES,
                folder=folder.root.name or str(folder.root),
                version=__version__,
                has_style=(STATIC / f"{page.name}.css").is_file(),
            )
            return HTMLResponse(content, headers=REVALIDATE)

        return Route(page.path, show)

    async def open_first(request: Request) -> Response:
        return RedirectResponse(PAGES[0].path, 303)

    async def models(request: Request) -> Response:
        return JSONResponse({"models": await asyncio.to_thread(list_offers, folder)})

    async def vega(request: Request) -> Response:
        script = await asyncio.to_thread(load_vega)
        return Response(script, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    async def chart_theme(request: Request) -> Response:
        theme = THEMES["default"]
        return JSONResponse(make_vega_config(theme, make_page_palette(theme)))

    async def colors(request: Request) -> Response:
        return Response(write_colors(), media_type="text/css", headers=REVALIDATE)

    routes: list[Any] = [
        Route("/", open_first),
        *(page_route(page) for page in PAGES),
        *(route for page in PAGES for route in page.routes),
        Route("/api/models", models),
        Route("/api/chart-theme", chart_theme),
        Route("/vega.js", vega),
        Route("/colors.css", colors),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    guard: dict[str, Any] = {"token": token, "loopback": loopback, "cookie": f"heedful_{port}"}
    app = Starlette(
        routes=routes,
        middleware=[Middleware(AddHeaders), Middleware(StudioGuard, **guard)],
        exception_handlers=ERROR_HANDLERS,
        lifespan=run_background,
    )
    app.state.folder = folder
    return app


def make_templates() -> Environment:
    """Return the templates, which escape everything put into them."""
    return Environment(
        loader=PackageLoader("heedful.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_colors() -> str:
    """Return the colors of the charts' theme as CSS variables, for light and dark."""
    theme = THEMES["default"]
    light, dark = write_css_variables(theme.light), write_css_variables(theme.dark)
    return (
        f":root {{ {light}; color-scheme: light; --font: {theme.font} }}\n"
        "@media (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ {dark}; color-scheme: dark }} }}\n"
        f":root[data-theme=dark] {{ {dark}; color-scheme: dark }}\n"
    )
