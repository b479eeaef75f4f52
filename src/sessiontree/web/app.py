"""The application: its pages, actions and files behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from sessiontree.errors import SessionTreeError
from sessiontree.web.assets import asset_routes
from sessiontree.web.live import live_routes
from sessiontree.web.openapi import openapi
from sessiontree.web.pages import ACTIONS, PAGES
from sessiontree.web.pages.export import export_routes
from sessiontree.web.problems import as_json
from sessiontree.web.safety import Access, Guard
from sessiontree.web.site import Site

__all__ = ["make_app"]


def make_app(site: Site, access: Access) -> Starlette:
    """Return the application of a site."""

    async def is_alive(_request: Request) -> Response:
        return PlainTextResponse("alive")

    async def is_ready(_request: Request) -> Response:
        try:
            await site.journal.list_threads(limit=1)
        except SessionTreeError:
            return PlainTextResponse("not ready", 503)
        return PlainTextResponse("ready")

    async def description(_request: Request) -> Response:
        return as_json(openapi(PAGES, () if site.is_read_only else ACTIONS, version("sessiontree")))

    routes: list[BaseRoute] = [
        Route("/openapi.json", description),
        Route("/healthz", is_alive),
        Route("/readyz", is_ready),
    ]
    routes += asset_routes()
    routes += live_routes(site)
    routes += export_routes(site)
    for page in PAGES:
        routes += page.routes(site)
    for action in () if site.is_read_only else ACTIONS:
        routes += action.routes(site)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with site:
            yield

    return Starlette(routes=routes, middleware=[Middleware(Guard, access=access)], lifespan=lifespan)
