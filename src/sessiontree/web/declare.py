"""How a page is declared: what it asks for, what it answers, and how the answer looks.

One declaration gives the page, its ``.json`` and its line in the OpenAPI file. The parameters are a record: those named
in the path come from there, the others from the query.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import msgspec
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sessiontree.errors import InvalidInputError
from sessiontree.model import Record, convert
from sessiontree.web.addresses import id_in
from sessiontree.web.markup import Html, document
from sessiontree.web.problems import as_json, problem_answer, too_large
from sessiontree.web.site import Site, Visit

__all__ = ["Action", "Nothing", "Page", "path_names"]


A = TypeVar("A", bound=Record)
T = TypeVar("T", bound=Record)

_LARGEST_BODY = 1_000_000
_THEMES = ("light", "dark")


class Nothing(Record, frozen=True):
    """No parameters."""


class Page(Record, Generic[A, T], frozen=True, kw_only=True):
    """A page: ``load`` finds the answer, ``show`` draws it. ``asks`` and ``answer`` are their types."""

    path: str
    about: str
    asks: type[A]
    answer: type[T]
    load: Callable[[Visit, A], Awaitable[T]]
    show: Callable[[Visit, A, T], Html]

    def routes(self, site: Site) -> list[Route]:
        """Return the routes of the page and of its JSON."""

        async def as_page(request: Request) -> Response:
            visit = visit_of(site, request)
            try:
                asked = asked_in(self.asks, request.path_params, request.query_params)
                shown = self.show(visit, asked, await self.load(visit, asked))
            except Exception as error:  # noqa: BLE001  every error has an answer, or is raised again there
                return problem_answer(error, visit, is_json=False)
            is_whole = shown.startswith("<html")
            return Response(document(shown) if is_whole else shown, media_type="text/html")

        async def as_data(request: Request) -> Response:
            visit = visit_of(site, request)
            try:
                asked = asked_in(self.asks, request.path_params, request.query_params)
                return as_json(await self.load(visit, asked))
            except Exception as error:  # noqa: BLE001  every error has an answer, or is raised again there
                return problem_answer(error, visit, is_json=True)

        json_path = "/index.json" if self.path == "/" else f"{self.path}.json"
        return [Route(json_path, as_data, methods=["GET"]), Route(self.path, as_page, methods=["GET"])]


class Action(Record, Generic[A, T], frozen=True, kw_only=True):
    """A write: ``run`` does it and answers with what happened. It takes a form or JSON, and answers with JSON."""

    path: str
    about: str
    asks: type[A]
    answer: type[T]
    run: Callable[[Visit, A], Awaitable[T]]

    def routes(self, site: Site) -> list[Route]:
        """Return the route of the action."""

        async def act(request: Request) -> Response:
            visit = visit_of(site, request)
            try:
                body = await _body_of(request)
                if body is None:
                    return too_large(_LARGEST_BODY)
                asked = asked_in(self.asks, request.path_params, body)
                return as_json(await self.run(visit, asked))
            except Exception as error:  # noqa: BLE001  every error has an answer, or is raised again there
                return problem_answer(error, visit, is_json=True)

        return [Route(self.path, act, methods=["POST"])]


def visit_of(site: Site, request: Request) -> Visit:
    """Return the visit that a request makes."""
    theme = request.cookies.get("theme", "")
    return Visit(site=site, now=site.now(), path=request.url.path, theme=theme if theme in _THEMES else "")


def asked_in(kind: type[A], path: dict[str, Any], rest: QueryParams | FormData | dict[str, Any]) -> A:
    """Return the parameters of a request as a record. Raises InvalidInputError if they do not fit."""
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.name in path:
            given[field.name] = id_in(path[field.name])
        elif field.name in rest:
            kind_of_field = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
            is_list = get_origin(kind_of_field) is tuple and not isinstance(rest, dict)
            given[field.name] = rest.getlist(field.name) if is_list else rest[field.name]  # type: ignore[union-attr]
    try:
        return convert(given, kind, strict=isinstance(rest, dict))
    except msgspec.ValidationError as error:
        raise InvalidInputError(str(error)) from error


def path_names(path: str) -> list[str]:
    """Return the names of the parameters in a path."""
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


async def _body_of(request: Request) -> FormData | dict[str, Any] | None:
    """The body of a write; None if it is too large."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST_BODY:
            return None
    if not request.headers.get("content-type", "").startswith("application/json"):
        return FormData([*QueryParams(body.decode("utf-8", "replace")).multi_items()])
    try:
        value = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInputError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInputError("the body must be a JSON object")
    return value
