"""Bring a store of an older layout to this one. The old file is kept beside it until the new tables are verified."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path

from sessiontree.errors import ForeignStoreError, StoreError
from sessiontree.stores._io import FileDescriptor, Files
from sessiontree.stores._log import log_event
from sessiontree.stores.sqlite.schema import (
    BRANCHES,
    DOCUMENTS,
    IS_RARE,
    LAYOUT,
    OLDEST_LAYOUT,
    RECENT_THREADS,
    REPEATED_IDS,
    STORE_META,
    connect_read_only,
    layout_of,
)

__all__ = ["UPGRADES", "VERIFICATION", "upgrade"]


_UPGRADE_FROM_1 = (
    "ALTER TABLE departed RENAME TO deleted_thread",
    "DROP INDEX departed_tree",
    "CREATE INDEX deleted_thread_tree ON deleted_thread (tree)",
    "CREATE TABLE store_meta (last_entry_key INTEGER NOT NULL, deletions INTEGER NOT NULL)",
    "INSERT INTO store_meta SELECT entry_key, drops FROM floor",
    "DROP TABLE floor",
    "PRAGMA user_version = 3",
)

# In layout 2 the newest entries were in their table only: ids and heads followed later, up to ``floor.settled``.
_UPGRADE_FROM_2 = (
    "ALTER TABLE departed RENAME TO deleted_thread",
    "DROP INDEX departed_tree",
    "CREATE INDEX deleted_thread_tree ON deleted_thread (tree)",
    """UPDATE thread SET leaf = tip.key, newest = tip.key, updated_ns = tip.created_ns
    FROM (
        SELECT owner, max(key) AS key, created_ns FROM entry
        WHERE key > (SELECT settled FROM floor) GROUP BY owner
    ) AS tip
    WHERE thread.key = tip.owner AND thread.newest < tip.key""",
    "CREATE TABLE store_meta (last_entry_key INTEGER NOT NULL, deletions INTEGER NOT NULL)",
    "INSERT INTO store_meta SELECT entry_key, drops FROM floor",
    "DROP TABLE floor",
    "DROP TABLE entry_id",
    "CREATE UNIQUE INDEX entry_id ON entry (id, tree)",
    "PRAGMA user_version = 3",
)

_UPGRADE_FROM_3 = (
    "CREATE TABLE artifact (entry INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (entry, hash)) WITHOUT ROWID",
    "CREATE TABLE pending_artifact (hash BLOB PRIMARY KEY) WITHOUT ROWID",
    "PRAGMA user_version = 4",
)

# Children, entries of rare types, and what can be undone are found by an index since layout 5.
_UPGRADE_FROM_4 = (
    "CREATE INDEX entry_parent ON entry (parent, tree)",
    f"CREATE INDEX entry_rare ON entry (owner) WHERE {IS_RARE}",
    *(f"ALTER TABLE move ADD COLUMN {name} INTEGER" for name in ("undo", "redo", "redo_below")),
    DOCUMENTS,
    "PRAGMA user_version = 5",
)

_UPGRADE_FROM_5 = (
    "ALTER TABLE store_meta RENAME TO former_meta",
    STORE_META,
    """INSERT INTO store_meta SELECT last_entry_key, deletions, 0,
    'sessiontree ' || lower(hex(randomblob(16))) || ' 0000000000000000' FROM former_meta""",
    "DROP TABLE former_meta",
    "PRAGMA user_version = 6",
)

# The condition of the index was written in another form before: queries name the index, and the conditions must be equal.
_UPGRADE_FROM_6 = (
    "DROP INDEX entry_rare",
    f"CREATE INDEX entry_rare ON entry (owner) WHERE {IS_RARE}",
    "PRAGMA user_version = 7",
)

_UPGRADE_FROM_7 = (
    "CREATE INDEX thread_updated ON thread (updated_ns)",
    "PRAGMA user_version = 8",
)

# Entries that continue their thread are in no index of parents, and threads of equal times are indexed in their order.
_UPGRADE_FROM_8 = (
    "DROP INDEX entry_parent",
    BRANCHES,
    "DROP INDEX thread_updated",
    RECENT_THREADS,
    "PRAGMA user_version = 9",
)

UPGRADES = {
    1: (3, _UPGRADE_FROM_1),
    2: (3, _UPGRADE_FROM_2),
    3: (4, _UPGRADE_FROM_3),
    4: (5, _UPGRADE_FROM_4),
    5: (6, _UPGRADE_FROM_5),
    6: (7, _UPGRADE_FROM_6),
    7: (8, _UPGRADE_FROM_7),
    8: (9, _UPGRADE_FROM_8),
}
"""For each older layout the next one, and the statements that lead there."""

VERIFICATION = (
    "SELECT count(*), total(crc), total(depth), total(created_ns) FROM entry",
    "SELECT count(*) FROM thread",
    "SELECT count(*) FROM thread_meta",
    "SELECT count(*), total(at_ns) FROM move",
    "SELECT count(*) FROM checkpoint",
    "SELECT count(*), total(size) FROM blob",
)
"""What must be the same before and after an upgrade."""


def upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade a file in one transaction. The caller holds the process lock.

    The old file stays beside it as ``…-layout5`` until the new tables have been verified and committed. A process of an
    older release that has the file open gets errors from then on, because tables that it reads are gone; nothing is lost.
    """
    layout = layout_of(connection)
    if layout == LAYOUT:
        _remove_kept(path)
        return
    _refuse_unreleased(connection, path, layout)
    _keep(path, layout)
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = _figures(connection)
        for statement in _statements(layout):
            connection.execute(statement)
        problem = _problem(connection, before)
    except sqlite3.DatabaseError as error:
        _roll_back(connection, path)
        if not error.sqlite_errorname.startswith(("SQLITE_CORRUPT", "SQLITE_CONSTRAINT")):
            raise
        raise _cannot_upgrade(path, _damage(connection, error)) from error
    if problem:
        _roll_back(connection, path)
        raise _cannot_upgrade(path, problem)
    connection.execute("COMMIT")
    _remove_kept(path)
    log_event("store", "info", f"upgraded from layout {layout} to {LAYOUT}", store=str(path))


def _statements(layout: int) -> list[str]:
    found: list[tuple[str, ...]] = []
    while layout < LAYOUT:
        layout, statements = UPGRADES[layout]
        found.append(statements)
    return list(chain.from_iterable(found))


def _figures(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return [connection.execute(question).fetchone() for question in VERIFICATION]


def _problem(connection: sqlite3.Connection, before: list[tuple[object, ...]]) -> str:
    """What is wrong with the upgraded tables, or ""."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        return str(found)
    return "" if _figures(connection) == before else "the new tables do not hold what the old ones held"


def _roll_back(connection: sqlite3.Connection, path: Path) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    _remove_kept(path)


def _cannot_upgrade(path: Path, damage: str) -> StoreError:
    return StoreError(
        str(path),
        f"it is damaged: {damage}, so it cannot be upgraded to layout {LAYOUT};"
        " it was left unchanged, export its threads with the release that wrote it",
    )


def _damage(connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> str:
    repeated = connection.execute(REPEATED_IDS).fetchone() if isinstance(error, sqlite3.IntegrityError) else None
    return f"several entries have the id {repeated[0]!r}" if repeated else str(error)


def _refuse_unreleased(connection: sqlite3.Connection, path: Path, layout: int) -> None:
    """Refuse the first builds, whose tables changed without a number."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(entry)")}
    is_known = layout > 1 or ("previous" in columns and connection.execute("PRAGMA table_info(checkpoint)").fetchone())
    if not is_known:
        raise ForeignStoreError(
            str(path), f"layout {layout} of a build before the first release; export it with that build"
        )


def _kept(path: Path, layout: int) -> Path:
    return path.with_name(f"{path.name}-layout{layout}")


def _keep(path: Path, layout: int) -> None:
    """Copy the file as it is, complete and synced, under another name."""
    kept = _kept(path, layout)
    new = kept.with_name(kept.name + "-new")
    new.unlink(missing_ok=True)
    with closing(connect_read_only(path)) as source, closing(sqlite3.connect(new)) as target:
        target.execute("PRAGMA journal_mode = OFF")
        source.backup(target)
    new.chmod(0o600)
    file = FileDescriptor(new, os.O_RDWR)
    try:
        Files().sync(file.number)
    finally:
        file.close()
    Files().replace(new, kept)


def _remove_kept(path: Path) -> None:
    """Remove old files: this one is upgraded and verified, or it is still what it was."""
    for layout in range(OLDEST_LAYOUT, LAYOUT):
        for kept in (_kept(path, layout), _kept(path, layout).with_name(f"{path.name}-layout{layout}-new")):
            kept.unlink(missing_ok=True)
