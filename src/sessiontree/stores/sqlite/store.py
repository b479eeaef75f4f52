"""The SQLite store: WAL, one writer behind the gate, readers on snapshots."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from msgspec import UnsetType

from sessiontree.errors import (
    CommitUnknownError,
    DamagedDataError,
    SessionTreeError,
    StoreClosedError,
    StoreGoneError,
    StorePoisonedError,
)
from sessiontree.model import Entry, Lease, Move, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.later import Later
from sessiontree.search import SearchPage
from sessiontree.stores._io import Files, ProcessLock, refuse_network
from sessiontree.stores.commands import Append, Command, Deleted
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding, NewEntries, Search, StoreStats
from sessiontree.stores.rules import decide
from sessiontree.stores.sqlite import schema
from sessiontree.stores.sqlite.listing import list_threads
from sessiontree.stores.sqlite.reads import ReadSnapshot, read_transaction
from sessiontree.stores.sqlite.rows import missing_blobs
from sessiontree.stores.sqlite.tail import settle_anew
from sessiontree.stores.sqlite.view import SqliteView
from sessiontree.stores.sqlite.wal import WalGuard, WalPreallocation

if TYPE_CHECKING:
    from sessiontree.stores.sqlite import errors
    from sessiontree.stores.sqlite.search import SqliteSearch
else:
    errors = Later("sessiontree.stores.sqlite.errors")

__all__ = ["SqliteBackend"]


T = TypeVar("T")

_ERASE_ATTEMPTS = 100
_ERASE_PAUSE_SECONDS = 0.02


class SqliteBackend:
    is_blocking = True

    def __init__(self, path: Path, *, durability: Durability = "power_loss") -> None:
        self.place = str(path)
        self._path = path
        self._poison = ""
        self._has_bytes_to_erase = False
        self._is_closed = False
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        with self._translated():
            self._open(path, durability)

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        if self._is_closed:
            raise StoreClosedError(self.place)
        if self._poison:
            raise StorePoisonedError(self.place, self._poison)
        try:
            with self._gate:
                outcomes = self._transact(commands)
        except Exception as error:  # noqa: BLE001  a damaged file can make any code stumble
            self._raise_in_our_words(error, commands)
        if self._view.dropped:
            self._forget(outcomes)
        if self._view.has_dropped:
            self._view.has_dropped = False
            self._erase(_ERASE_ATTEMPTS)
        elif self._has_bytes_to_erase:
            self._erase(1)
        return outcomes

    def mark(self, thread_id: str) -> object:
        with self._watch_lock:
            if self._is_closed:
                return None
            with self._translated():
                return self._watcher.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        with self._idle_lock, self._watch_lock:
            if self._is_closed:
                return
            self._is_closed = True
            with self._opened:
                if self._has_bytes_to_erase:
                    with suppress(StoreGoneError):
                        self._erase(1)
                self._log_hold.let_go()
                if self._search is not None:
                    self._search.close()
                idle, self._idle = self._idle, []
                for connection in idle:
                    connection.close()

    def thread(self, thread_id: str) -> Thread:
        return self._read(lambda snapshot: snapshot.state(thread_id).public())

    def threads(self, query: ThreadQuery) -> Page:
        with self._reader() as connection:
            return list_threads(connection, query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        return self._read(lambda snapshot: snapshot.entry(thread_id, entry_id))

    def entries(self, thread_id: str, after: str | None, limit: int | None) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.entries(thread_id, after, limit))

    def path(self, thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.path(thread_id, leaf, limit))

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.children(thread_id, entry_id))

    def moves(self, thread_id: str) -> Sequence[Move]:
        return self._read(lambda snapshot: snapshot.moves(thread_id))

    def lease(self, thread_id: str) -> Lease | None:
        return self._read(lambda snapshot: snapshot.lease(thread_id))

    def news(self, thread_id: str, cursor: int | None) -> NewEntries:
        return self._read(lambda snapshot: snapshot.news(thread_id, cursor))

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        with self._reader() as connection:
            return missing_blobs(connection, hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        # In one transaction: between the look at a place and at its rows another process may write packs anew.
        return self._read(lambda snapshot: snapshot.blobs(hashes))

    def thread_ids(self, part: str, limit: int) -> list[str]:
        return self._read(lambda snapshot: snapshot.thread_ids(part, limit))

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        return self._read(lambda snapshot: snapshot.entry_ids(thread_id, part, limit))

    def search(self, search: Search) -> SearchPage:
        with self._translated():
            return self._searcher().search(search)

    def stats(self) -> StoreStats:
        return self._read(ReadSnapshot.stats)

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        from sessiontree.stores.sqlite.doctor import inspect  # noqa: PLC0415  only check and doctor need it

        try:
            with self._reader() as connection:
                return inspect(connection, self.place, progress)
        except DamagedDataError as damage:
            return [Finding(kind="file", place=self.place, problem=damage.problem, offset=damage.offset)]

    def repair(self) -> list[Finding]:
        """Make indexes, ids and heads anew that do not fit the entries, and the index of the search; no entry is touched.

        In a file with any other damage even that is not safe: pages may belong to two tables.
        """
        found = self.inspect()
        self._searcher().rebuild()
        damaged = [finding for finding in found if finding.kind == "file"]
        if not damaged or not all(finding.is_repairable for finding in damaged):
            return []
        with self._translated(), self._gate:
            self._writer.execute("REINDEX")
            settle_anew(self._writer)
        left = self.inspect()
        return [finding for finding in found if finding not in left]

    def _open(self, path: Path, durability: Durability) -> None:
        refuse_network(path)
        schema.refuse_odd_neighbours(path)
        is_whole = schema.recognise(path)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        schema.touch(path)
        with ExitStack() as opened:
            self._gate = ProcessLock(path.with_name(path.name + "-gate"), of=path)
            opened.callback(self._gate.close)
            with self._gate:
                if not is_whole:
                    schema.create(path)
                    Files().sync_folder(path.parent)
                self._log_hold = WalGuard(path, schema.BUSY_SECONDS)
                opened.callback(self._log_hold.close)
                self._writer = self._connect_for_long(opened)
                schema.prepare_writer(self._writer, durability, path)
            self._log_room = WalPreallocation(path)
            opened.callback(self._log_room.close)
            self._watcher = self._connect_for_long(opened)
            self._opened = opened.pop_all()
        self._view = SqliteView(self._writer)
        self._watch_lock = threading.Lock()
        self._search_lock = threading.Lock()
        self._search: SqliteSearch | None = None

    def _connect_for_long(self, opened: ExitStack) -> sqlite3.Connection:
        connection = schema.connect(self._path)
        opened.callback(connection.close)
        return connection

    def _transact(self, commands: Sequence[Command]) -> list[Outcome]:
        try:
            if self._writer.in_transaction:
                self._view.forget()
                self._roll_back()
            self._writer.execute("BEGIN IMMEDIATE")
            self._view.begin()
            outcomes = [self._carry_out(command) for command in commands]
            self._view.flush()
            # Before the commit: it may go through and yet be interrupted.
            self._has_bytes_to_erase |= self._view.has_dropped
            self._log_room.make()
            self._writer.execute("COMMIT")
        except BaseException:
            self._view.forget()
            self._roll_back()
            raise
        return outcomes

    def _roll_back(self) -> None:
        # An interrupt may have left a transaction open. After an error SQLite may have rolled back by itself; the
        # first error is the one to tell.
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _carry_out(self, command: Command) -> Outcome:
        try:
            decision = decide(command, self._view)
        except SessionTreeError as refusal:
            return refusal
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001  nothing is written yet, so the neighbours are not concerned
            told = self._in_our_words(error)
            if told is not error:
                told.__cause__ = error
            return told
        for fact in decision.facts:
            self._view.apply(fact)
        return decision.result

    def _forget(self, outcomes: Sequence[Outcome]) -> None:
        keys, self._view.dropped = self._view.dropped, []
        deletes = sum(isinstance(outcome, Deleted) for outcome in outcomes)
        with self._translated():
            self._searcher().forget(keys, deletes)

    def _searcher(self) -> SqliteSearch:
        from sessiontree.stores.sqlite.search import SqliteSearch  # noqa: PLC0415  most programs never search

        with self._search_lock:
            if self._search is None:
                self._search = SqliteSearch(self._path, self._reader)
            return self._search

    def _erase(self, attempts: int) -> None:
        """Deleted bytes are zeroed in the pages; emptying the log takes away the older copies of those pages.

        A reader in the middle of a long read holds the log; then it is tried again with the next write or at the close.
        """
        for attempt in range(attempts):
            if attempt:
                time.sleep(_ERASE_PAUSE_SECONDS)
            with self._translated(), self._gate:
                self._has_bytes_to_erase = not self._empty_log()
            if not self._has_bytes_to_erase:
                return

    def _empty_log(self) -> bool:
        """Whether the log is empty now; a reader is not waited for, because everybody else waits at the gate."""
        try:
            self._writer.execute("PRAGMA busy_timeout = 0")
            return not self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:
            return False
        finally:
            self._writer.execute(f"PRAGMA busy_timeout = {int(schema.BUSY_SECONDS * 1000)}")

    def _read(self, question: Callable[[ReadSnapshot], T]) -> T:
        with self._reader() as connection, read_transaction(connection):
            return question(ReadSnapshot(connection))

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            connection = self._take_reader()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def _take_reader(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._is_closed:
                raise StoreClosedError(self.place)
            if self._idle:
                return self._idle.pop()
        connection = schema.connect(self._path)
        connection.execute("PRAGMA query_only = 1")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._idle_lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of SQLite, and those that a damaged file makes, in our words."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  a damaged file can make any code stumble
            self._raise_in_our_words(error)

    def _raise_in_our_words(self, error: Exception, commands: Sequence[Command] = ()) -> NoReturn:
        if isinstance(error, SessionTreeError):
            raise error
        if errors.is_of_the_disk(error) and commands:
            self._poison = f"{getattr(error, 'sqlite_errorname', '')}: {error}"
            ids = [draft.id for command in commands if isinstance(command, Append) for draft in command.drafts]
            raise CommitUnknownError(self.place, self._poison, ids) from error
        told = self._in_our_words(error)
        if told is error:
            raise error
        raise told from error

    def _in_our_words(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error | OSError | UnicodeDecodeError):
            return errors.translate_error(self.place, error)
        return self._damage_behind(error) or error

    def _damage_behind(self, error: Exception) -> DamagedDataError | None:
        """Code that stumbles over a value of the wrong type may have read it from a damaged file."""
        try:
            with closing(schema.connect_read_only(self._path)) as connection:
                table = errors.misshapen_table(connection)
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            told = errors.translate_error(self.place, fault)
            return told if isinstance(told, DamagedDataError) else None
        if not table:
            return None
        return DamagedDataError(self.place, 0, f"values in table {table} are not what was written there: {error}")
