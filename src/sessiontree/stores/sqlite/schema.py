"""Tables of the SQLite store, and how a file is opened, recognised, created or refused."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

from sessiontree.errors import ForeignStoreError, NewerFormatError, StoreError, StoreReadOnlyError
from sessiontree.stores._io import kind_of
from sessiontree.stores.protocol import Durability

__all__ = [
    "APPLICATION_ID",
    "connect",
    "connect_read_only",
    "create",
    "prepare_writer",
    "recognise",
    "refuse_odd_neighbours",
    "touch",
]


APPLICATION_ID = 0x53545245
_MAGIC = b"SQLite format 3\x00"
_WAL_MODE = b"\x02\x02"
BUSY_SECONDS = 30.0

_LAYOUT = 2
"""Version of the tables. The first one was never released."""

# Messages are longer than what SQLite's default of 4096 is made for: twice that takes fewer pages for a group of them,
# and is no slower for one.
_PAGE_SIZE = 8192

# Heads of threads stand apart from their metadata, so that an append rewrites a short row. Keys are integers;
# an entry's parent is always an older key, so chains cannot loop. The entries of one thread are chained backwards
# from thread.newest through entry.previous: that takes the place of an index, which every append would have to write.
# Ids are ordered by time, so with the id first their table grows at its end. It and the heads may be behind: tail.py.
_TABLES = """
CREATE TABLE thread (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tree INTEGER NOT NULL,
    leaf INTEGER,
    base INTEGER,
    updated_ns INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    moves INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    is_archived INTEGER NOT NULL
);
CREATE INDEX thread_tree ON thread (tree);
CREATE TABLE thread_meta (
    key INTEGER PRIMARY KEY,
    created_ns INTEGER NOT NULL,
    tree_id TEXT NOT NULL,
    title_folded TEXT NOT NULL,
    workspace TEXT NOT NULL,
    vendor TEXT NOT NULL,
    model TEXT NOT NULL,
    agent TEXT NOT NULL,
    channel TEXT NOT NULL,
    peer TEXT NOT NULL,
    key_thread TEXT NOT NULL,
    state TEXT NOT NULL,
    status TEXT NOT NULL,
    parent_thread TEXT NOT NULL,
    forked_from_thread TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX thread_created ON thread_meta (created_ns);
CREATE INDEX thread_tree_id ON thread_meta (tree_id);
CREATE INDEX thread_key ON thread_meta (agent, channel, peer, key_thread);
CREATE TABLE thread_tag (tag TEXT NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (tag, key)) WITHOUT ROWID;
CREATE TABLE departed (key INTEGER PRIMARY KEY, tree INTEGER NOT NULL, newest INTEGER NOT NULL, id TEXT NOT NULL);
CREATE INDEX departed_tree ON departed (tree);
CREATE TABLE floor (entry_key INTEGER NOT NULL, drops INTEGER NOT NULL, settled INTEGER NOT NULL);
INSERT INTO floor VALUES (0, 0, 0);
CREATE TABLE entry (
    key INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    id TEXT NOT NULL,
    parent INTEGER,
    depth INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE entry_id (
    id TEXT NOT NULL,
    tree INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (id, tree)
) WITHOUT ROWID;
CREATE TABLE move (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,
    from_entry TEXT,
    to_entry TEXT,
    reason TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;
CREATE TABLE checkpoint (entry INTEGER PRIMARY KEY, manifest TEXT NOT NULL);
CREATE TABLE blob (
    hash BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    pack INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE chunk (
    pack INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (pack, number)
);
CREATE TABLE lease (
    thread INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL
);
"""


def refuse_odd_neighbours(path: Path) -> None:
    """A pipe in the place of a file beside the store would be waited for without end."""
    for suffix in ("-wal", "-shm", "-journal", "-gate"):
        file = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise StoreError(str(path), f"{file.name} beside it is no file; move it away and open the store again")


def recognise(path: Path) -> bool:
    """Whether a whole store is there; a file that is not ours or is too new is refused before anything touches it."""
    head = _head(path)
    if not head:
        return False
    if not head.startswith(_MAGIC) or len(head) < 100:
        raise ForeignStoreError(str(path), "it is no SQLite file")
    if int.from_bytes(head[68:72]) != APPLICATION_ID:
        raise ForeignStoreError(str(path), "it is an SQLite file of another program")
    _refuse_other_layout(path, int.from_bytes(head[60:64]))
    return head[18:20] == _WAL_MODE


def _head(path: Path) -> bytes:
    try:
        kind = kind_of(path)
        if kind not in ("nothing", "file"):
            raise ForeignStoreError(str(path), f"it is a {kind}")
        with path.open("rb") as file:
            return file.read(100)
    except FileNotFoundError:
        return b""
    except NotADirectoryError:
        raise ForeignStoreError(str(path), "a part of its path is a file") from None
    except PermissionError as error:
        raise StoreReadOnlyError(str(path)) from error


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _refuse_other_layout(path, int(connection.execute("PRAGMA user_version").fetchone()[0]))
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Neither makes the file nor changes it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def create(path: Path) -> None:
    """Make what is not there yet; the caller holds the gate. The tables come first: so the file's head names the store.

    The log comes last, because nobody may be there who holds it.
    """
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("BEGIN IMMEDIATE")
        if int(connection.execute("PRAGMA user_version").fetchone()[0]) == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_LAYOUT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = wal").fetchone()


def prepare_writer(connection: sqlite3.Connection, durability: Durability, path: Path) -> None:
    """Set what durability means, and read it back: a pragma that fails tells so only in its row."""
    synchronous = {"power_loss": 2, "process_crash": 1}[durability]
    wanted = (("journal_mode", "wal", "wal"), ("synchronous", str(synchronous), synchronous), ("secure_delete", "1", 1))
    for name, value, expected in wanted:
        connection.execute(f"PRAGMA {name} = {value}").fetchone()
        actual = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if actual != expected:
            raise StoreError(str(path), f"SQLite answers {name}={actual!r} where {expected!r} is needed")


def touch(path: Path) -> None:
    """Create the file for its owner alone; SQLite gives its side files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _refuse_other_layout(path: Path, version: int) -> None:
    """0 is a file that has no tables yet."""
    if version > _LAYOUT:
        raise NewerFormatError(str(path), version, _LAYOUT)
    if 0 < version < _LAYOUT:
        raise ForeignStoreError(str(path), f"layout {version}, of a build before the first release: export it there")
