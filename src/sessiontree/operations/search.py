"""Finding: ids by a part of them, and entries by what they say."""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError, ThreadNotFoundError
from sessiontree.model.record import moment
from sessiontree.operations.requests import Operation, Sources
from sessiontree.progress import Progress
from sessiontree.queries import FindEntries, FindThreads, Search
from sessiontree.search import SearchOrder, SearchPage

__all__ = ["entry_ids", "search", "thread_ids"]


def thread_ids(part: str, limit: int) -> Operation[list[str]]:
    found: list[str] = yield FindThreads(part=part, limit=_positive(limit))
    return found


def entry_ids(thread_id: str, part: str, limit: int) -> Operation[list[str]]:
    found: list[str] = yield FindEntries(thread_id=thread_id, part=part, limit=_positive(limit))
    return found


def search(
    sources: Sources,
    text: str,
    *,
    order: SearchOrder,
    limit: int,
    cursor: str | None,
    progress: Progress | None,
) -> Operation[SearchPage]:
    from sessiontree.search.parsing import parse_query  # noqa: PLC0415  its patterns are slow to build

    query = parse_query(text, now=moment(sources.clock()).astimezone())
    threads = yield from _whole_ids(query.threads)
    branches = yield from _whole_ids(query.branches)
    query = replace(query, threads=threads, branches=branches)
    page: SearchPage = yield Search(query=query, order=order, limit=_positive(limit), cursor=cursor, progress=progress)
    return page


def _whole_ids(parts: tuple[str, ...]) -> Operation[tuple[str, ...]]:
    whole: list[str] = []
    for part in parts:
        found = yield from thread_ids(part, 2)
        if not found:
            raise ThreadNotFoundError(part)
        if len(found) > 1:
            raise InvalidInputError(f"{part!r} is the start or end of more than one thread id; give more of it")
        whole += found
    return tuple(whole)


def _positive(limit: int) -> int:
    if limit < 1:
        raise InvalidInputError(f"limit must be at least 1, not {limit}")
    return limit
