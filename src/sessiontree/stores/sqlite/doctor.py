"""Doctor for the SQLite store: the file's own integrity, every body's checksum, and the common invariants."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator

import msgspec

from sessiontree.model import Lease, Move
from sessiontree.model._base import Progress
from sessiontree.model.codec import decode_thread
from sessiontree.stores.check import blob_findings, findings_in
from sessiontree.stores.commands import Draft
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.state import Node, ThreadState
from sessiontree.stores.sqlite.reads import read_transaction
from sessiontree.stores.sqlite.rows import NODE_COLUMNS, STATE_SELECT, lease_of, move_of, state_of
from sessiontree.stores.sqlite.tail import LATE_HEADS, NOT_IN_TABLE_OF_IDS, NOT_WHERE_ITS_ID_LEADS, REPEATED_IDS
from sessiontree.stores.sqlite.view import SqliteView

__all__ = ["inspect"]


# An index or the table of ids can be made anew from the entries; anything else in a file is left alone.
_OF_AN_INDEX = re.compile(r"(row \d+ missing from|wrong # of entries in|non-unique entry in) index ")


def inspect(connection: sqlite3.Connection, place: str, progress: Progress | None = None) -> list[Finding]:
    with read_transaction(connection):
        content = _WholeStore(connection)
        return [
            *_broken_pages(connection, place),
            *_changed_bodies(connection, place),
            *_lost_places(connection, place),
            *_unsettled(connection, place),
            *_unreadable_threads(connection, place),
            *findings_in(content, place, progress),
            *_blobs(connection, place),
        ]


class _WholeStore:
    """Everything in the file, as the checker wants to walk it."""

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
    return blob_findings(view.manifests(()).others, view, view.blob_hashes(), place)


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


def _lost_places(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    """Threads that point at entries that are not there: reads show them as empty."""
    for column, name in (("leaf", "leaf"), ("base", "fork point")):
        lost = connection.execute(
            f"SELECT id FROM thread WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT key FROM entry)"
        )
        for (thread_id,) in lost:
            yield Finding(kind="leaf", place=place, problem=f"the {name} is missing", thread_id=thread_id)


def _unsettled(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    """Ids and heads that do not fit the entries that they were made from."""
    for statement, problem in (
        (NOT_IN_TABLE_OF_IDS, "the entry is missing from the table of ids"),
        (NOT_WHERE_ITS_ID_LEADS, "the table of ids leads to another entry or to none"),
    ):
        for (entry_id,) in connection.execute(statement):
            yield Finding(kind="file", place=place, problem=problem, entry_id=entry_id, is_repairable=True)
    for (thread_id,) in connection.execute(LATE_HEADS):
        problem = "the thread does not know its newest entry"
        yield Finding(kind="file", place=place, problem=problem, thread_id=thread_id, is_repairable=True)
    for (entry_id,) in connection.execute(REPEATED_IDS):
        yield Finding(kind="duplicate", place=place, problem="several entries have this id", entry_id=entry_id)


def _unreadable_threads(connection: sqlite3.Connection, place: str) -> Iterator[Finding]:
    rows = connection.execute("SELECT t.id, m.body FROM thread t LEFT JOIN thread_meta m ON m.key = t.key")
    for thread_id, body in rows:
        try:
            decode_thread(body or b"")
        except (msgspec.MsgspecError, TypeError) as error:
            yield Finding(kind="thread", place=place, problem=f"unreadable metadata: {error}", thread_id=thread_id)
