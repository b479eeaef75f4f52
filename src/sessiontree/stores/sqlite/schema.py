"""The tables of the SQLite store, and how a file is recognized, created or refused."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path

from sessiontree.errors import ForeignStoreError, NewerFormatError, StoreError, StoreReadOnlyError
from sessiontree.stores._io import FileDescriptor, Files, kind_of
from sessiontree.stores.protocol import Durability
from sessiontree.stores.queries import RARE_MARKS
from sessiontree.stores.sqlite.lineage import new_stamp

__all__ = [
    "APPLICATION_ID",
    "BRANCHES",
    "DOCUMENTS",
    "IS_BRANCH",
    "IS_RARE",
    "LAYOUT",
    "OLDEST_LAYOUT",
    "RECENT_THREADS",
    "REPEATED_IDS",
    "STORE_META",
    "connect",
    "connect_read_only",
    "create",
    "is_complete",
    "layout_of",
    "prepare_writer",
    "refuse_special_files",
]


APPLICATION_ID = 0x53545245
_MAGIC = b"SQLite format 3\x00"
_WAL_MODE = b"\x02\x02"
_SIDE_FILES = ("-journal", "-wal", "-shm")
BUSY_SECONDS = 30.0

LAYOUT = 9
"""Version of the tables, stored as ``user_version``. Older layouts are upgraded when a file is opened."""
OLDEST_LAYOUT = 1

# Larger than SQLite's default of 4096, because messages are long: a group of appends writes fewer pages, and a lone
# append is as fast.
_PAGE_SIZE = 8192

STORE_META = """
CREATE TABLE store_meta (
    last_entry_key INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    erased INTEGER NOT NULL,
    stamp TEXT NOT NULL
)
"""

# The columns of ``thread`` that every append changes are kept apart from the metadata, so that the row stays short.
# Keys are integers. The parent of an entry always has a smaller key, so chains cannot loop. The entries of one thread
# form a chain from ``thread.newest`` through ``entry.previous``; it replaces an index on the owner, which every append
# would have to write. The id comes first in ``entry_id``, because ids are ordered by time: the index grows at its end,
# and 64 threads that append at once write one page of it instead of 64. Most appends write neither ``entry_branch`` nor
# ``entry_rare``.
IS_BRANCH = "parent IS NOT previous"
"""Selects the entries that do not continue what was appended through their thread before: roots, branches, starts of forks."""

BRANCHES = f"CREATE INDEX entry_branch ON entry (parent, tree) WHERE {IS_BRANCH}"

RECENT_THREADS = "CREATE INDEX thread_updated ON thread (updated_ns DESC, id)"

IS_RARE = f"instr(x'{b'|'.join(RARE_MARKS).hex()}', substr(body, 10, 5)) > 0"
"""Selects the entries of rare types, in exactly this form: only then SQLite uses the index.

A list after ``IN`` would be built again with every insert. Bodies that are too short to have a type are selected too.
"""

DOCUMENTS = """CREATE TABLE json_document (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_ns INTEGER NOT NULL,
    expires_ns INTEGER,
    body BLOB NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID"""

_TABLES = f"""
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
{RECENT_THREADS};
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
CREATE TABLE deleted_thread (key INTEGER PRIMARY KEY, tree INTEGER NOT NULL, newest INTEGER NOT NULL, id TEXT NOT NULL);
CREATE INDEX deleted_thread_tree ON deleted_thread (tree);
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
CREATE UNIQUE INDEX entry_id ON entry (id, tree);
{BRANCHES};
CREATE INDEX entry_rare ON entry (owner) WHERE {IS_RARE};
CREATE TABLE move (
    thread INTEGER NOT NULL,
    number INTEGER NOT NULL,
    from_entry TEXT,
    to_entry TEXT,
    reason TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    undo INTEGER,
    redo INTEGER,
    redo_below INTEGER,
    PRIMARY KEY (thread, number)
) WITHOUT ROWID;
CREATE TABLE checkpoint (entry INTEGER PRIMARY KEY, manifest TEXT NOT NULL);
CREATE TABLE artifact (entry INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (entry, hash)) WITHOUT ROWID;
CREATE TABLE pending_artifact (hash BLOB PRIMARY KEY) WITHOUT ROWID;
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
{DOCUMENTS};
CREATE TABLE lease (
    thread INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL
);
"""


# Without the index, because it can be what is damaged.
REPEATED_IDS = "SELECT min(id) FROM entry NOT INDEXED GROUP BY tree, id HAVING count(*) > 1"


def refuse_special_files(path: Path) -> None:
    """Refuse a pipe or folder where SQLite expects a side file: opening a pipe would block forever."""
    for suffix in (*_SIDE_FILES, "-gate", "-new", "-unsynced"):
        file = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise StoreError(str(path), f"{file.name} next to it is not a regular file; move it away and try again")


def is_complete(path: Path) -> bool:
    """Return whether a complete store is at a path; False if it is missing or its creation was interrupted.

    Reads the header only, so that a file of another program or of a newer layout is refused untouched.
    """
    header = _header(path)
    if not header:
        return False
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise ForeignStoreError(str(path), "not an SQLite file")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise ForeignStoreError(str(path), "an SQLite file of another program")
    _refuse_layout(path, int.from_bytes(header[60:64]))
    return header[18:20] == _WAL_MODE


def _header(path: Path) -> bytes:
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
    """Open a connection; refuse a newer layout, which the header may not show while it is in the WAL only."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _refuse_layout(path, layout_of(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a connection that neither creates nor changes the file."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)


def create(path: Path) -> None:
    """Create the store at a path where there is none. The caller holds a lock on the file beside it.

    The file is made under another name, complete and synced, and renamed: after a crash there is all of it or nothing.
    """
    if is_complete(path) or _completed(path):
        return
    target = Path(os.path.realpath(path))
    new = target.with_name(target.name + "-new")
    _remove(new, "", *_SIDE_FILES)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    _fill(new)
    # SQLite would take the log of a store that was deleted for the log of the new one.
    _remove(target, *_SIDE_FILES)
    Files().replace(new, target)


def _fill(new: Path) -> None:
    with closing(connect(new)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in (*_TABLES.split(";"), STORE_META):
            connection.execute(statement)
        connection.execute("INSERT INTO store_meta VALUES (0, 0, 0, ?)", (new_stamp(),))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = wal").fetchone()
    file = FileDescriptor(new, os.O_RDWR)
    try:
        Files().sync(file.number)
    finally:
        file.close()


def _completed(path: Path) -> bool:
    """Switch a store that is not in WAL mode to it; return False if there are no tables.

    Another program changed the mode, or a release that did not create stores in one step was interrupted.
    """
    try:
        if path.stat().st_size == 0:
            return False
    except FileNotFoundError:
        return False
    with closing(connect(path)) as connection:
        if layout_of(connection) == 0:
            return False
        connection.execute("PRAGMA journal_mode = wal").fetchone()
    return True


def _remove(path: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def prepare_writer(connection: sqlite3.Connection, durability: Durability, path: Path) -> None:
    """Set the pragmas that durability needs and read them back: SQLite does not raise if it ignores one."""
    synchronous = {"power_loss": 2, "process_crash": 1}[durability]
    pragmas = (
        ("journal_mode", "wal", "wal"),
        ("synchronous", str(synchronous), synchronous),
        ("secure_delete", "1", 1),
    )
    for name, value, expected in pragmas:
        connection.execute(f"PRAGMA {name} = {value}").fetchone()
        actual = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if actual != expected:
            raise StoreError(str(path), f"SQLite reports {name}={actual!r}, but {expected!r} is required")


def layout_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 if there are none yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _refuse_layout(path: Path, layout: int) -> None:
    if layout > LAYOUT:
        raise NewerFormatError(str(path), layout, LAYOUT)
