"""Check an SQLite store: the integrity of the file, the checksum of every body, the common invariants; and repair it."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import suppress

from sessiontree.model import Lease, Move
from sessiontree.model._base import UNREADABLE, Progress
from sessiontree.model.codec import decode_thread
from sessiontree.stores.check import blob_findings, findings_in
from sessiontree.stores.commands import Draft
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.state import Node, ThreadState
from sessiontree.stores.sqlite.erasure import has_copies
from sessiontree.stores.sqlite.reads import read_transaction
from sessiontree.stores.sqlite.rows import NODE_COLUMNS, STATE_SELECT, lease_of, move_of, state_of
from sessiontree.stores.sqlite.schema import REPEATED_IDS
from sessiontree.stores.sqlite.view import SqliteView

__all__ = ["inspect", "rebuild"]


# An index can be rebuilt from its table; any other damage to a file is left alone.
_OF_AN_INDEX = re.compile(r"(row \d+ missing from|wrong # of entries in|non-unique entry in) index ")


_NEWEST_OF_THREADS = "(SELECT owner, max(key) AS key, created_ns FROM entry GROUP BY owner) AS tip"


def inspect(connection: sqlite3.Connection, place: str, progress: Progress | None = None) -> list[Finding]:
    """Return everything that is wrong with a store."""
    with read_transaction(connection):
        content = _WholeStore(connection)
        return [
            *_broken_pages(connection, place),
            *_changed_bodies(connection, place),
            *_missing_targets(connection, place),
            *_outdated_heads(connection, place),
            *_repeated_ids(connection, place),
            *_unreadable_threads(connection, place),
            *findings_in(content, place, progress),
            *_blobs(connection, place),
            *_copies(connection, place),
        ]


def rebuild(connection: sqlite3.Connection) -> None:
    """Rebuild the indexes from their tables, and point threads at their newest entries; no entry is changed."""
    connection.execute("BEGIN IMMEDIATE")
    indexes = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'").fetchall()
    for (name,) in indexes:
        # Fails where entries share an id; the other indexes can still be rebuilt.
        with suppress(sqlite3.IntegrityError):
            connection.execute(f'REINDEX "{name}"')
    connection.execute(
        "UPDATE thread SET leaf = tip.key, newest = tip.key, updated_ns = max(updated_ns, tip.created_ns)"
        f" FROM {_NEWEST_OF_THREADS} WHERE tip.owner = thread.key AND thread.newest < tip.key"
    )
    connection.execute("COMMIT")


class _WholeStore:
    """Everything in the file, in the shape that the common checks read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.states: dict[str, ThreadState] = {}
        self.leases: dict[int, Lease] = {}
        self.reflogs: dict[int, list[Move]] = {}
        for row in connection.execute(STATE_SELECT):
            state = state_of(row)
            self.states[state.meta.id] = state
        names = {state.key: state.meta.id for state in self.states.values()}
        for key, *rest in connection.execute("SELECT thread, token, turn_id, owner, created_ns, expires_ns FROM lease"):
            self.leases[key] = lease_of(names.get(key, ""), tuple(rest))
        moves = connection.execute(
            "SELECT thread, number, from_entry, to_entry, reason, at_ns FROM move ORDER BY thread, number"
        )
        for key, *rest in moves:
            self.reflogs.setdefault(key, []).append(move_of(names.get(key, ""), tuple(rest)))
        self.nodes = {row[0]: Node(*row) for row in connection.execute(f"SELECT {NODE_COLUMNS} FROM entry")}
        self._view = SqliteView(connection)

    def draft(self, node: Node) -> Draft:
        return self._view.draft(node)


def _blobs(connection: sqlite3.Connection, place: str) -> list[Finding]:
    view = SqliteView(connection)
    _, needed = view.blob_roots(())
    return blob_findings(needed, view, view.blob_hashes(), place)


def _copies(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    if has_copies(connection):
        problem = (
            "copies of deleted content are left in the log; end the programs that read the store, then open it again"
        )
        yield Finding(kind="erasure", place=place, problem=problem)


def _broken_pages(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    for (problem,) in connection.execute("PRAGMA integrity_check"):
        if problem != "ok":
            is_index = _OF_AN_INDEX.match(str(problem)) is not None
            yield Finding(kind="file", place=place, problem=str(problem), is_repairable=is_index)


def _changed_bodies(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    for entry_id, crc, body in connection.execute("SELECT id, crc, body FROM entry"):
        if not isinstance(body, bytes) or zlib.crc32(body) != crc:
            yield Finding(
                kind="checksum", place=place, problem="the body changed after it was written", entry_id=entry_id
            )


def _missing_targets(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    """Threads that point at missing entries: reads show them as empty."""
    for column, name in (("leaf", "leaf"), ("base", "fork point")):
        lost = connection.execute(
            f"SELECT id FROM thread WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT key FROM entry)"
        )
        for (thread_id,) in lost:
            yield Finding(kind="leaf", place=place, problem=f"the {name} is missing", thread_id=thread_id)


def _outdated_heads(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    """Threads whose row is older than their newest entry."""
    outdated = connection.execute(
        f"SELECT t.id FROM {_NEWEST_OF_THREADS} JOIN thread t ON t.key = tip.owner WHERE tip.key > t.newest"
    )
    for (thread_id,) in outdated:
        problem = "the thread does not point at its newest entry"
        yield Finding(kind="file", place=place, problem=problem, thread_id=thread_id, is_repairable=True)


def _repeated_ids(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    for (entry_id,) in connection.execute(REPEATED_IDS):
        yield Finding(kind="duplicate", place=place, problem="several entries have this id", entry_id=entry_id)


def _unreadable_threads(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    rows = connection.execute("SELECT t.id, m.body FROM thread t LEFT JOIN thread_meta m ON m.key = t.key")
    for thread_id, body in rows:
        try:
            decode_thread(body or b"")
        except (*UNREADABLE, TypeError) as error:
            yield Finding(kind="thread", place=place, problem=f"unreadable metadata: {error}", thread_id=thread_id)
