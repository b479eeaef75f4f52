"""Search for entries, and threads by a part of their id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry, Label, Thread
from sessiontree.model.codec import decode_thread, stored_type
from sessiontree.search import Hit, SearchPage, SearchQuery, Term
from sessiontree.search.matching import searchable
from sessiontree.search.query import Cursor, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.search.words import tokens_of
from sessiontree.stores.postgres.rows import entries_of
from sessiontree.stores.postgres.search_index import catch_up
from sessiontree.stores.postgres.search_matches import Match, Scope, find_matches
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes, to_text
from sessiontree.stores.queries import ReadEntries, ReadPath, Search

__all__ = ["find_thread_ids", "search_entries"]


_MAX_LABELS = 1_000

_IDS = """
SELECT id FROM sessiontree.thread WHERE namespace = %(namespace)s AND (id = %(part)s
    OR substring(id FROM 1 FOR %(length)s) = %(part)s
    OR substring(id FROM greatest(length(id) - %(length)s + 1, 1)) = %(part)s)
ORDER BY id <> %(part)s, id LIMIT %(limit)s"""
_OWNERS = """
SELECT t.tree, t.key, t.body FROM unnest(%(trees)s::uuid[], %(owners)s::bigint[]) AS x (tree, owner)
JOIN sessiontree.thread t ON t.tree = x.tree AND t.key = x.owner AND t.namespace = %(namespace)s"""
_FAMILY = "SELECT id FROM sessiontree.thread WHERE tree = %(tree)s AND namespace = %(namespace)s ORDER BY key"


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
    """A page of entries that match, after indexing some of the new ones."""
    query = request.query
    done = yield from catch_up(namespace)
    if request.progress is not None:
        request.progress(done.indexed, done.indexed + done.left)
    start = cursor_of(request.cursor) or Cursor(0, 0)
    # Entries newer than the first page would shift the following pages.
    scope = Scope(ids=(yield from _scopes(reads, namespace, query)), upto_ns=start.upto or None)
    end = start.offset + request.limit
    found = yield from find_matches(namespace, query, scope, order=request.order, enough=end + 1)
    hits = yield from _hits(reads, namespace, query, found[start.offset : end])
    if len(found) <= end:
        return SearchPage(hits=hits, unsearched=done.left)
    following = Cursor(start.upto or max(match.created_ns for match in found), end)
    return SearchPage(hits=hits, cursor=encode_cursor(following), unsearched=done.left)


def _scopes(reads: Reader, namespace: str, query: SearchQuery) -> Steps[tuple[frozenset[bytes], ...]]:
    """The entries that the filters on threads, branches and labels allow, one set for each kind of filter."""
    scopes: dict[str, list[bytes]] = {}
    for name in query.threads:
        scopes.setdefault("threads", []).extend(_ids((yield from reads.entries(ReadEntries(thread_id=name)))))
    for name in query.branches:
        tip = (yield from reads.thread(name)).leaf
        scopes.setdefault("branches", []).extend(_ids((yield from reads.path(ReadPath(thread_id=name, leaf=tip)))))
    for label in query.labels:
        scopes.setdefault("labels", []).extend((yield from _labelled(reads, namespace, label)))
    return tuple(frozenset(ids) for ids in scopes.values())


def _labelled(reads: Reader, namespace: str, label: str) -> Steps[list[bytes]]:
    """Entries that have a label now, in every thread in which it was given."""
    words = tuple(tokens_of(label))
    query = SearchQuery(terms=(Term(alternatives=(words,)),) if words else ())
    scope = Scope(has_type=lambda body: stored_type(body) == "label")
    found = yield from find_matches(namespace, query, scope, order="newest", enough=_MAX_LABELS)
    hits = yield from _hits(reads, namespace, query, found)
    targets: list[bytes] = []
    for thread_id in sorted({hit.thread_id for hit in hits}):
        names: dict[str, str] = {}
        for entry in (yield from reads.entries(ReadEntries(thread_id=thread_id, types=frozenset({"label"})))):
            if isinstance(entry.payload, Label):
                names[entry.payload.target] = entry.payload.label
        targets += [to_bytes(target) for target, name in names.items() if name == label]
    return targets


def _ids(entries: Sequence[Entry]) -> list[bytes]:
    return [to_bytes(entry.id) for entry in entries]


def _hits(reads: Reader, namespace: str, query: SearchQuery, found: Sequence[Match]) -> Steps[tuple[Hit, ...]]:
    """The entries, each with the thread it was appended through, or if that was deleted with a fork that still sees it."""
    values = {"trees": [match.tree for match in found], "owners": [match.row[1] for match in found]}
    rows = (yield Statement(_OWNERS, {**values, "namespace": namespace})) if found else []
    owners: dict[tuple[UUID, int], Thread] = {(tree, key): decode_thread(body) for tree, key, body in rows}
    hits: list[Hit] = []
    for match in found:
        owner = owners.get((match.tree, match.row[1]))
        if owner is not None:
            (entry,) = entries_of([match.row], {match.row[1]: owner.id})
            hits.append(_hit(query, match, owner, entry))
        elif (seen := (yield from _seen_by_fork(reads, namespace, match))) is not None:
            hits.append(_hit(query, match, *seen))
    return tuple(hits)


def _hit(query: SearchQuery, match: Match, thread: Thread, entry: Entry) -> Hit:
    content = searchable(entry.payload)
    snippet = snippet_of(content.text if content else "", query)
    return Hit(thread_id=thread.id, title=thread.title, entry=entry, score=match.score, snippet=snippet)


def _seen_by_fork(reads: Reader, namespace: str, match: Match) -> Steps[tuple[Thread, Entry] | None]:
    for (name,) in (yield Statement(_FAMILY, {"tree": match.tree, "namespace": namespace})):
        thread_id = to_text(name)
        try:
            entry = yield from reads.entry(thread_id, to_text(match.row[0]))
            return (yield from reads.thread(thread_id)), entry
        except (EntryNotFoundError, ThreadNotFoundError):
            continue
    return None
