"""From matches to a page of hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sessiontree.model import Entry
from sessiontree.search.content import searchable
from sessiontree.search.query import SearchQuery
from sessiontree.search.results import Cursor, Hit, SearchOrder, SearchPage, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.stores.fts.index import Found, Scope, SearchIndex, Source

__all__ = ["Shown", "page_of_hits"]

Shown = tuple[str, str, Entry]
"""A thread that shows an entry, its title, and the entry."""


def page_of_hits(
    index: SearchIndex,
    source: Source,
    query: SearchQuery,
    scopes: Sequence[Sequence[Scope]],
    *,
    order: SearchOrder,
    limit: int,
    cursor: str | None,
    fetch: Callable[[Found], Shown | None],
) -> SearchPage:
    start = cursor_of(cursor) or Cursor(index.newest(), 0)
    found = index.find(source, query, scopes, order=order, upto=start.upto, most=start.offset + limit + 1)
    chosen = found[start.offset : start.offset + limit]
    hits = [hit for match in chosen if (hit := _hit(query, match, fetch(match))) is not None]
    has_more = len(found) > start.offset + limit
    following = encode_cursor(Cursor(start.upto, start.offset + limit)) if has_more else None
    return SearchPage(hits=tuple(hits), cursor=following)


def _hit(query: SearchQuery, match: Found, shown: Shown | None) -> Hit | None:
    """None if the entry was deleted between the two looks."""
    if shown is None:
        return None
    thread_id, title, entry = shown
    content = searchable(entry.payload)
    snippet = snippet_of(content.text if content else "", query)
    return Hit(thread_id=thread_id, title=title, entry=entry, score=match.score, snippet=snippet)
