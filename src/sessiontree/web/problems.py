"""Answers that are data, and answers to errors: the status, and what went wrong in one sentence."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from sessiontree.errors import (
    ActiveTurnError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    SessionTreeError,
    StoreError,
)
from sessiontree.model import Record
from sessiontree.model.sanitize import for_terminal
from sessiontree.render.times import clock, day, moment_at
from sessiontree.web.frame import page
from sessiontree.web.markup import document, tag
from sessiontree.web.site import Visit

__all__ = ["Problem", "ReadOnlyError", "as_json", "problem_answer", "status_of", "too_large"]


_ENCODER = msgspec.json.Encoder(enc_hook=str)


class ReadOnlyError(SessionTreeError):
    """The viewer was started without the right to write."""


class Problem(Record, frozen=True, kw_only=True):
    """What went wrong; ``type`` is the name of the error."""

    type: str
    title: str
    status: int


def as_json(value: Any, status: int = 200) -> Response:
    """Return a record as an answer."""
    return Response(_ENCODER.encode(value), status, media_type="application/json")


def status_of(error: Exception) -> int:
    """Return the status of an error; 500 for one that nobody expects."""
    match error:
        case NotFoundError():
            return 404
        case ActiveTurnError():
            return 423
        case ConflictError():
            return 409
        case ReadOnlyError():
            return 403
        case InvalidInputError():
            return 422
        case StoreError():
            return 503
        case SessionTreeError():
            return 409
        case _:
            return 500


def problem_answer(error: Exception, visit: Visit, *, is_json: bool) -> Response:
    """Return the answer to an error of ours; any other one is raised again."""
    status = status_of(error)
    if status == 500:
        raise error
    problem = Problem(type=type(error).__name__, title=_title(error, visit), status=status)
    if is_json:
        return Response(_ENCODER.encode(problem), status, media_type="application/problem+json")
    heading = {404: "Not here", 422: "That cannot be asked"}.get(status, "That did not work")
    body = tag(
        "main", tag("h1", heading), tag("p", problem.title), tag("p", tag("a", "All threads", href="/", class_="u"))
    )
    return Response(
        document(page(visit, title=heading, body=tag("div", body, class_="plain"))), status, media_type="text/html"
    )


def _title(error: Exception, visit: Visit) -> str:
    """What went wrong, in the words of somebody who reads."""
    if not isinstance(error, ActiveTurnError):
        return for_terminal(str(error))
    until = moment_at(error.expires_ns, visit.now)
    is_today = until.date() == visit.now.date()
    shown = clock(until, visit.now) if is_today else f"{day(until, visit.now)}, {clock(until, visit.now)}"
    return (
        f"{for_terminal(error.owner)} is running a turn, until {shown} at most. The head can be moved when it is over."
    )


def too_large(most: int) -> Response:
    """Return the answer to a body that is too large."""
    problem = Problem(type="TooLarge", title=f"The body has more than {most:,} bytes.", status=413)
    return Response(_ENCODER.encode(problem), 413, media_type="application/problem+json")
