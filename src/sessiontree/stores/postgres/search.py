"""Search for entries, and threads by a part of their id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry, Label, Payload, Thread
from sessiontree.search import Hit, SearchPage, SearchQuery, Term
from sessiontree.search.matching import searchable
from sessiontree.search.query import Cursor, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.search.words import compounds_of, tokens_of
from sessiontree.stores.postgres.search_index import FoundRow, IndexedText, catch_up, find
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes, to_text
from sessiontree.stores.queries import ReadEntries, ReadPath, Search

__all__ = ["find_thread_ids", "search_entries"]


_MAX_LABELS = 1_000
_WILDCARD = re.compile(r"\*|\?|\[!?(?P<set>\]?[^\]]*)\]|[^\w*?]|_")

_IDS = """
SELECT id FROM sessiontree.thread WHERE namespace = %(namespace)s AND (id = %(part)s
    OR substring(id FROM 1 FOR %(length)s) = %(part)s
    OR substring(id FROM greatest(length(id) - %(length)s + 1, 1)) = %(part)s)
ORDER BY id <> %(part)s, id LIMIT %(limit)s"""
_PLACE = """
SELECT e.id, array(SELECT t.id FROM sessiontree.thread t WHERE t.tree = %(tree)s ORDER BY t.key = e.owner DESC, t.key)
FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.owner = %(owner)s AND e.seq = %(seq)s"""
_WITHIN = """EXISTS (SELECT 1 FROM sessiontree.entry e WHERE e.tree = d.tree AND e.owner = d.owner AND e.seq = d.seq
    AND e.id = ANY(%({name})s))"""


class Reader(Protocol):
    """The reads that a search needs."""

    def thread(self, thread_id: str) -> Steps[Thread]: ...
    def entry(self, thread_id: str, entry_id: str) -> Steps[Entry]: ...
    def entries(self, query: ReadEntries) -> Steps[list[Entry]]: ...
    def path(self, query: ReadPath) -> Steps[list[Entry]]: ...


def find_thread_ids(namespace: str, part: str, limit: int) -> Steps[list[str]]:
    """Sorted ids that start or end with ``part``; only ``part`` if it is itself an id."""
    word = to_bytes(part)
    rows = yield Statement(_IDS, {"namespace": namespace, "part": word, "length": len(word), "limit": limit})
    names = [to_text(name) for (name,) in rows]
    return [part] if part in names else names


def search_entries(reads: Reader, namespace: str, request: Search) -> Steps[SearchPage]:
    """A page of entries that match, after bringing the index up to date."""
    query = request.query
    done = yield from catch_up(namespace, _document_of)
    if request.progress is not None:
        request.progress(done, done)
    start = cursor_of(request.cursor) or Cursor(0, 0)
    conditions, values = yield from _scope(reads, namespace, query)
    if start.upto:
        # Entries newer than the first page would shift the following pages.
        conditions.append("d.created_ns <= %(upto)s")
        values["upto"] = start.upto
    found = yield from find(
        namespace,
        query.terms,
        conditions=[*_filters(query, values), *conditions],
        values=values,
        order=request.order,
        limit=request.limit + 1,
        offset=start.offset,
    )
    hits: list[Hit] = []
    for place in found[: request.limit]:
        hit = yield from _hit(reads, query, place)
        if hit is not None:
            hits.append(hit)
    has_more = len(found) > request.limit
    if not has_more:
        return SearchPage(hits=tuple(hits))
    following = Cursor(start.upto or found[0].newest_ns, start.offset + request.limit)
    return SearchPage(hits=tuple(hits), cursor=encode_cursor(following))


def _document_of(payload: Payload) -> IndexedText | None:
    content = searchable(payload)
    if content is None:
        return None
    return IndexedText(
        tokens=tokens_of(content.text),
        compounds=compounds_of(content.text).split(),
        role=content.role,
        tools=content.tools,
        model=content.model,
        files=content.files,
    )


def _filters(query: SearchQuery, values: dict[str, Any]) -> list[str]:
    """The conditions of filters on a document's own columns; their values are added to ``values``."""
    values |= {"roles": list(query.roles), "models": _storable(query.models), "files": _storable(query.files)}
    values |= {"tools": [_line_pattern(tool) for tool in _storable(query.tools)]}
    values |= {"before": query.before_ns, "after": query.after_ns}
    terms = (
        ("d.role = ANY(%(roles)s)", query.roles),
        ("EXISTS (SELECT 1 FROM unnest(%(tools)s::text[]) p WHERE d.tools ~ p)", query.tools),
        ("EXISTS (SELECT 1 FROM unnest(%(models)s::text[]) p WHERE strpos(d.model, p) > 0)", query.models),
        ("EXISTS (SELECT 1 FROM unnest(%(files)s::text[]) p WHERE strpos(d.files, p) > 0)", query.files),
        ("d.created_ns < %(before)s", query.before_ns is not None),
        ("d.created_ns >= %(after)s", query.after_ns is not None),
    )
    return [term for term, is_asked in terms if is_asked]


def _storable(values: Sequence[str]) -> list[str]:
    """Replace NUL, which PostgreSQL's text cannot contain, by a blank, as in the documents."""
    return [value.replace("\0", " ") for value in values]


def _line_pattern(glob: str) -> str:
    """A shell pattern for one of several lines as a regular expression of PostgreSQL.

    >>> _line_pattern("read_*[!0-9]")
    '(?n)^read\\\\_[^\\\\n]*[^0-9]$'
    """
    return "(?n)^" + _WILDCARD.sub(_translated, glob) + "$"


def _translated(found: re.Match[str]) -> str:
    match found[0]:
        case "*":
            return r"[^\n]*"
        case "?":
            return r"[^\n]"
        case chosen if found["set"]:
            negation = "^" if chosen[1] == "!" else ""
            return "[" + negation + re.sub(r"[\\\[\]^]", r"\\\g<0>", found["set"]) + "]"
        case other:
            return "\\" + other


def _scope(reads: Reader, namespace: str, query: SearchQuery) -> Steps[tuple[list[str], dict[str, Any]]]:
    """Conditions and values for the filters on threads, branches and labels, as lists of entry ids."""
    scopes: dict[str, list[bytes]] = {}
    for name in query.threads:
        scopes.setdefault("threads", []).extend(_ids((yield from reads.entries(ReadEntries(thread_id=name)))))
    for name in query.branches:
        tip = (yield from reads.thread(name)).leaf
        scopes.setdefault("branches", []).extend(_ids((yield from reads.path(ReadPath(thread_id=name, leaf=tip)))))
    for label in query.labels:
        scopes.setdefault("labels", []).extend((yield from _labelled(reads, namespace, query, label)))
    return [_WITHIN.format(name=name) for name in scopes], dict(scopes)


def _labelled(reads: Reader, namespace: str, query: SearchQuery, label: str) -> Steps[list[bytes]]:
    """Entries that have a label now, in every thread in which it was given."""
    words = tuple(tokens_of(label))
    terms = [Term(alternatives=(words,))] if words else []
    found = yield from find(namespace, terms, order="newest", limit=_MAX_LABELS)
    threads: set[str] = set()
    for place in found:
        hit = yield from _hit(reads, query, place)
        if hit is not None and isinstance(hit.entry.payload, Label):
            threads.add(hit.thread_id)
    targets: list[bytes] = []
    for thread_id in sorted(threads):
        names: dict[str, str] = {}
        for entry in (yield from reads.entries(ReadEntries(thread_id=thread_id, types=frozenset({"label"})))):
            if isinstance(entry.payload, Label):
                names[entry.payload.target] = entry.payload.label
        targets += [to_bytes(target) for target, name in names.items() if name == label]
    return targets


def _ids(entries: Sequence[Entry]) -> list[bytes]:
    return [to_bytes(entry.id) for entry in entries]


def _hit(reads: Reader, query: SearchQuery, place: FoundRow) -> Steps[Hit | None]:
    """The entry, and the thread it was appended through or a fork that still sees it."""
    rows = yield Statement(_PLACE, {"tree": place.tree, "owner": place.owner, "seq": place.seq})
    if not rows:
        return None
    entry_id, names = rows[0]
    for name in names:
        thread_id = to_text(name)
        try:
            entry = yield from reads.entry(thread_id, to_text(entry_id))
            thread = yield from reads.thread(thread_id)
        except (EntryNotFoundError, ThreadNotFoundError):
            continue
        content = searchable(entry.payload)
        snippet = snippet_of(content.text if content else "", query)
        return Hit(thread_id=thread_id, title=thread.title, entry=entry, score=place.score, snippet=snippet)
    return None
