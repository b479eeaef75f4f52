"""Full-text search of the SQLite store. The index is a separate file, so that appends never wait for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from sessiontree.search import SearchPage, SearchQuery
from sessiontree.search._fts_index import BUSY_SECONDS, SearchIndex, Shown, SourceState, StoredEntry, page_of_hits
from sessiontree.search._fts_query import Match, Scope
from sessiontree.stores.queries import Search
from sessiontree.stores.rules.state import ERASED_BODY
from sessiontree.stores.sqlite.reads import ReadSnapshot, read_transaction

__all__ = ["SqliteSearch"]


_WHOLE = ""
"""The name of the only source, the file."""

_ITEM = "SELECT key, tree, owner, created_ns, body FROM entry"


class SqliteSearch:
    """Keeps the index current and answers searches from it. ``reader`` provides connections to the store."""

    def __init__(
        self,
        store: Path,
        reader: Callable[[], AbstractContextManager[sqlite3.Connection]],
        *,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._index = SearchIndex(store.with_name(store.name + "-search"), busy_seconds=busy_seconds)
        self._reader = reader

    def search(self, search: Search) -> SearchPage:
        return self._index.with_rebuild(lambda: self._search(search))

    def rebuild(self) -> None:
        self._index.rebuild()

    def _search(self, search: Search) -> SearchPage:
        self._index.catch_up(self, search.progress)
        with self._reader() as connection, read_transaction(connection):
            snapshot = ReadSnapshot(connection)
            return page_of_hits(
                self._index,
                self,
                search.query,
                self._scopes(connection, search.query),
                order=search.order,
                limit=search.limit,
                cursor=search.cursor,
                fetch=lambda match: _shown(connection, snapshot, match),
            )

    def forget(self, keys: Sequence[int], before: str, after: str) -> bool:
        """Erase deleted entries from the index; return False if a reader is in the way.

        ``keys`` are those that were deleted while the count of deletions went from ``before`` to ``after``.
        """
        return self._index.forget(
            self, SourceState(name=_WHOLE, identity=after, version="", last_number=0), keys, before
        )

    def close(self) -> None:
        self._index.close()

    def sources(self) -> Sequence[SourceState]:
        with self._reader() as connection:
            deletions, last, last_id = connection.execute(
                "SELECT deletions, coalesce(key, 0), coalesce(id, '') FROM store_meta"
                " LEFT JOIN entry ON key = (SELECT max(key) FROM entry)"
            ).fetchone()
        return [SourceState(name=_WHOLE, identity=str(deletions), version=f"{last} {last_id}", last_number=last)]

    def items_after(self, name: str, number: int, limit: int) -> Sequence[StoredEntry]:
        with self._reader() as connection:
            rows = connection.execute(f"{_ITEM} WHERE key > ? ORDER BY key LIMIT ?", (number, limit))
            return [StoredEntry(*row) for row in rows]

    def items(self, name: str, numbers: Sequence[int]) -> Sequence[StoredEntry]:
        with self._reader() as connection:
            rows = connection.execute(
                f"{_ITEM} WHERE key IN (SELECT value FROM json_each(?))", (msgspec.json.encode(list(numbers)).decode(),)
            )
            return [StoredEntry(*row) for row in rows]

    def numbers(self, name: str) -> Iterable[int]:
        with self._reader() as connection:
            rows = connection.execute("SELECT key FROM entry WHERE body <> ?", (ERASED_BODY,))
            return [key for (key,) in rows]

    def _scopes(self, connection: sqlite3.Connection, query: SearchQuery) -> list[list[Scope]]:
        """Return one list per kind of filter: an entry must be in one scope of every list."""
        snapshot = ReadSnapshot(connection)
        scopes: list[list[Scope]] = []
        if query.threads:
            scopes.append([_seen_by(snapshot, name) for name in query.threads])
        if query.branches:
            scopes.append([Scope(source=_WHOLE, numbers=snapshot.path_keys(name)) for name in query.branches])
        if query.labels:
            places = [(tree, target) for _, tree, target in self._index.labelled(query.labels)]
            scopes.append([Scope(source=_WHOLE, numbers=_keys(connection, places))])
        return scopes


def _seen_by(snapshot: ReadSnapshot, thread_id: str) -> Scope:
    return Scope(source=_WHOLE, owner=snapshot.state(thread_id).key, numbers=snapshot.inherited_keys(thread_id))


def _keys(connection: sqlite3.Connection, places: Iterable[tuple[int, str]]) -> tuple[int, ...]:
    rows = (
        connection.execute("SELECT key FROM entry WHERE id = ? AND tree = ?", (target, tree)).fetchone()
        for tree, target in places
    )
    return tuple(row[0] for row in rows if row is not None)


def _shown(connection: sqlite3.Connection, snapshot: ReadSnapshot, match: Match) -> Shown | None:
    place = connection.execute("SELECT tree, owner, id FROM entry WHERE key = ?", (match.number,)).fetchone()
    if place is None:
        return None
    tree, owner, entry_id = place
    thread_id = _owner_or_fork(connection, snapshot, tree, owner, entry_id)
    if thread_id is None:
        return None
    return thread_id, snapshot.state(thread_id).meta.title, snapshot.entry_at(match.number)


def _owner_or_fork(
    connection: sqlite3.Connection, snapshot: ReadSnapshot, tree: int, owner: int, entry_id: str
) -> str | None:
    """Return the thread that an entry was appended through, or if that was deleted, a fork that still shows it."""
    row = connection.execute("SELECT id FROM thread WHERE key = ?", (owner,)).fetchone()
    if row is not None:
        return str(row[0])
    family = connection.execute("SELECT id FROM thread WHERE tree = ? ORDER BY key", (tree,)).fetchall()
    return next((name for (name,) in family if snapshot.sees(name, entry_id)), None)
