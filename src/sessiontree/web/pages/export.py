"""A thread as a file: HTML, Markdown, JSON or JSONL."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sessiontree.model import Record, Scope
from sessiontree.render.html import PageContent, render_html
from sessiontree.render.threads import title_of
from sessiontree.web.declare import asked_in, visit_of
from sessiontree.web.problems import problem_answer
from sessiontree.web.site import Site, Visit

__all__ = ["ExportAsked", "export_routes"]


ExportFormat = Literal["html", "markdown", "json", "jsonl"]

_SUFFIXES = {"html": "html", "markdown": "md", "json": "json", "jsonl": "jsonl"}
_TYPES = {
    "html": "text/html",
    "markdown": "text/markdown",
    "json": "application/json",
    "jsonl": "application/jsonl",
}


class ExportAsked(Record, frozen=True, kw_only=True):
    """A thread and the format of the file; ``entry`` ends the branch that Markdown and JSON show."""

    thread: str
    format: ExportFormat = "html"
    entry: str = ""


def export_routes(site: Site) -> list[Route]:
    """The route of the file. It is always saved, never shown: it is not a page of ours."""

    async def export(request: Request) -> Response:
        visit = visit_of(site, request)
        try:
            asked = asked_in(ExportAsked, request.path_params, request.query_params)
            content, name = await _content(visit, asked)
        except Exception as error:  # noqa: BLE001  every error has an answer, or is raised again there
            return problem_answer(error, visit, is_json=False)
        headers = {"content-disposition": f'attachment; filename="{name}.{_SUFFIXES[asked.format]}"'}
        return Response(content, media_type=_TYPES[asked.format], headers=headers)

    return [Route("/t/{thread}/export", export, methods=["GET"])]


async def _content(visit: Visit, asked: ExportAsked) -> tuple[str, str]:
    thread = await visit.journal.thread(asked.thread)
    name = re.sub(r"[^A-Za-z0-9]+", "-", title_of(thread, visit.now)).strip("-")[:60] or "conversation"
    if asked.format != "html":
        scope: Scope | None = "path" if asked.format == "markdown" else None
        leaf = asked.entry or UNSET
        return await visit.journal.export(thread.id, format=asked.format, scope=scope, leaf=leaf), name
    entries = tuple(await visit.journal.entries(thread.id))
    labels = await visit.journal.labels(thread.id)
    return await asyncio.to_thread(render_html, PageContent(thread=thread, entries=entries, labels=labels)), name
