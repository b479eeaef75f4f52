"""The SQLite store: WAL mode, one writer at a time under a process lock, readers on snapshots."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from sessiontree.errors import (
    CommitUnknownError,
    DamagedDataError,
    SessionTreeError,
    StoreClosedError,
    StorePoisonedError,
)
from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import EntryBody
from sessiontree.model.documents import StoredDocument
from sessiontree.model.thread import Direction
from sessiontree.search import SearchPage
from sessiontree.stores._io import FileLock, Files, ProcessLock, SyncFailedError, refuse_network
from sessiontree.stores._log import log_event
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.commands import Change, ChangeResult, Command, Committed, CommitTogether, appended_ids
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.forking import NOT_WHILE_FORKING
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding, NewEntries, ReadEntries, ReadPath, Search, StoreStats
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.sqlite import errors, schema
from sessiontree.stores.sqlite.copies import forget_copy, note_copy
from sessiontree.stores.sqlite.erasure import Erasure
from sessiontree.stores.sqlite.lineage import Lineage
from sessiontree.stores.sqlite.listing import list_threads
from sessiontree.stores.sqlite.reads import ReadSnapshot, read_transaction
from sessiontree.stores.sqlite.rows import missing_blobs
from sessiontree.stores.sqlite.upgrade import upgrade
from sessiontree.stores.sqlite.view import SqliteView
from sessiontree.stores.sqlite.wal import WalFile, WalGuard

if TYPE_CHECKING:
    from sessiontree.stores.sqlite.search import SqliteSearch

__all__ = ["SqliteBackend"]


T = TypeVar("T")


class SqliteBackend:
    """A store in one SQLite file. Several processes may open it at the same time."""

    is_blocking = True

    def __init__(self, path: Path, *, durability: Durability = "power_loss") -> None:
        self.place = str(path)
        self._path = path
        self._poison = ""
        self._is_closed = False
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        with self._translated():
            self._open(path, durability)
        NOT_WHILE_FORKING.in_the_child(self._abandon)

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Run the commands in order, as one transaction."""
        if self._is_closed:
            raise StoreClosedError(self.place)
        if self._poison:
            raise StorePoisonedError(self.place, self._poison)
        is_committed = False
        try:
            with self._process_lock:
                self._lineage.verify(self._writer)
                outcomes = self._commit(commands)
                is_committed = True
                # Once more: nothing is acknowledged that was committed while the file was being overwritten.
                self._lineage.verify(self._writer)
            # Without the lock, so that other processes commit meanwhile: the sync of one of them covers all before it. An
            # entry that is stored already is synced again, because whoever stored it may have died before its sync.
            if not all(isinstance(outcome, Exception) for outcome in outcomes):
                self._sync()
        except Exception as error:  # noqa: BLE001  a damaged file can raise any exception
            self._raise_outcome(error, commands, is_committed=is_committed)
        if self._view.has_deleted:
            self._erasure.note(*self._view.take_deleted())
        return outcomes

    def erase_copies(self) -> bool:
        """Erase deleted content from the WAL and the search index."""
        return self._erasure.run()

    def mark(self, thread_id: str) -> object:
        """Return a value that changes whenever another connection commits."""
        with self._watch_lock:
            if self._is_closed:
                return None
            with self._translated():
                return self._watcher.execute("PRAGMA data_version").fetchone()[0]

    def close(self) -> None:
        """Close all connections. The last process to close the store deletes the WAL."""
        with self._idle_lock, self._watch_lock:
            if self._is_closed:
                return
            self._is_closed = True
            with self._opened:
                self._erasure.close()
                # The log of a file that was overwritten must not be written into the new one, nor take another log away.
                if not self._lineage.is_replaced:
                    self._wal_guard.release()
                if self._search is not None:
                    self._search.close()
                idle, self._idle = self._idle, []
                for connection in idle:
                    connection.close()

    def _abandon(self) -> None:
        """Close the connections in the child of a fork, so that SQLite does not take their locks for those of the child.

        The guard of the log is closed and not released: the parent holds it too.
        """
        if not self._is_closed:
            self._is_closed = True
            with suppress(sqlite3.Error, OSError), self._opened:
                self._erasure.close()
                if self._search is not None:
                    self._search.close()
                for connection in self._idle:
                    connection.close()

    def thread(self, thread_id: str) -> Thread:
        return self._read(lambda snapshot: snapshot.state(thread_id).public())

    def threads(self, query: ThreadQuery) -> Page:
        with self._reader() as connection:
            return list_threads(connection, query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        return self._read(lambda snapshot: snapshot.entry(thread_id, entry_id))

    def entries(self, query: ReadEntries) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.entries(query))

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.entries_by_id(entry_ids, thread_id))

    def last_entries(self, thread_ids: tuple[str, ...]) -> dict[str, Entry]:
        return self._read(lambda snapshot: snapshot.last_entries(thread_ids))

    def path(self, query: ReadPath) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.path(query))

    def path_bodies(self, query: ReadPath) -> list[EntryBody]:
        return self._read(lambda snapshot: snapshot.path_bodies(query))

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        return self._read(lambda snapshot: snapshot.children(thread_id, entry_id))

    def moves(self, thread_id: str) -> Sequence[Move]:
        return self._read(lambda snapshot: snapshot.moves(thread_id))

    def next_move(self, thread_id: str, direction: Direction) -> NextMove:
        return self._read(lambda snapshot: snapshot.next_move(thread_id, direction))

    def lease(self, thread_id: str) -> Lease | None:
        return self._read(lambda snapshot: snapshot.lease(thread_id))

    def clock(self, now_ns: int) -> int:
        return now_ns

    def new_entries(self, thread_id: str, cursor: int | None) -> NewEntries:
        return self._read(lambda snapshot: snapshot.new_entries(thread_id, cursor))

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        with self._reader() as connection:
            return missing_blobs(connection, hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        # In one transaction: another process may rewrite a pack between the lookup of a blob and of its chunks.
        return self._read(lambda snapshot: snapshot.blobs(hashes))

    def thread_ids(self, part: str, limit: int) -> list[str]:
        return self._read(lambda snapshot: snapshot.thread_ids(part, limit))

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        return self._read(lambda snapshot: snapshot.entry_ids(thread_id, part, limit))

    def document(self, query: ReadDocument) -> StoredDocument | None:
        return self._read(lambda snapshot: snapshot.document(query))

    def scopes(self, query: ListScopes) -> list[str]:
        return self._read(lambda snapshot: snapshot.scopes(query))

    def documents(self, query: ListDocuments) -> list[StoredDocument]:
        return self._read(lambda snapshot: snapshot.documents(query))

    def search(self, search: Search) -> SearchPage:
        with self._translated():
            return self._searcher().search(search)

    def stats(self) -> StoreStats:
        return self._read(ReadSnapshot.stats)

    def thread_sizes(self) -> dict[str, int]:
        return self._read(ReadSnapshot.thread_sizes)

    def reclaim(self) -> int:
        """Rewrite the file without its free pages, and return how much smaller it is."""
        with self._translated():
            return self._erasure.vacuum()

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        """Return everything that is wrong with the store."""
        from sessiontree.stores.sqlite.doctor import inspect  # noqa: PLC0415  only check and doctor need it

        try:
            with self._reader() as connection:
                return inspect(connection, self.place, progress)
        except DamagedDataError as damage:
            return [Finding(kind="file", place=self.place, problem=damage.problem, offset=damage.offset)]

    def snapshot(self, request: SnapshotRequest) -> Snapshot:
        """Copy the store as it is at one moment."""
        from sessiontree.stores.sqlite.snapshot import take_snapshot  # noqa: PLC0415  only backups need it

        with self._reader() as connection:
            return take_snapshot(connection, self.place, request)

    def repair(self) -> list[Finding]:
        """Rebuild indexes and thread rows that do not match the entries, and the search index; return what was repaired.

        No entry is changed. A file with any other damage is left alone, because its pages may belong to two tables.
        """
        from sessiontree.stores.sqlite.doctor import rebuild  # noqa: PLC0415  only doctor needs it

        found = self.inspect()
        forget_copy(self._path)
        self._searcher().rebuild()
        damaged = [finding for finding in found if finding.kind == "file"]
        if not damaged or not all(finding.is_repairable for finding in damaged):
            return []
        with self._translated(), self._process_lock:
            self._lineage.verify(self._writer)
            rebuild(self._writer)
            self._view.reset()
            self._sync()
        remaining = self.inspect()
        return [finding for finding in found if finding not in remaining]

    def _open(self, path: Path, durability: Durability) -> None:
        refuse_network(path)
        schema.refuse_special_files(path)
        gate = path.with_name(path.name + "-gate")
        is_complete = schema.is_complete(path)
        if is_complete:
            note_copy(path)
        Files().make_folders(path.parent)
        with ExitStack() as opened:
            if not is_complete:
                with closing(FileLock(gate)) as lock, lock:
                    schema.create(path)
            self._process_lock = ProcessLock(gate, of=path)
            opened.callback(self._process_lock.close)
            with self._process_lock:
                self._wal_guard = WalGuard(path, schema.BUSY_SECONDS)
                opened.callback(self._wal_guard.close)
                self._writer = self._connect(opened)
                schema.prepare_writer(self._writer, durability, path)
                upgrade(self._writer, path)
                self._lineage = Lineage(path, self._wal_guard.number, self._writer)
                self._sync = self._take_over_syncs(opened, durability)
            self._watcher = self._connect(opened)
            erasing_lock = ProcessLock(gate, of=path)
            opened.callback(erasing_lock.close)
            self._erasure = Erasure(path, erasing_lock, durability, self._lineage)
            self._opened = opened.pop_all()
        self._view = SqliteView(self._writer)
        self._watch_lock = threading.Lock()
        self._search_lock = threading.Lock()
        self._search: SqliteSearch | None = None

    def _take_over_syncs(self, opened: ExitStack, durability: Durability) -> Callable[[], None]:
        """Let SQLite commit without a sync, and return what makes the commits durable."""
        log = WalFile(self._path)
        opened.callback(log.close)
        if log.is_in_doubt:
            self._writer.execute("BEGIN IMMEDIATE")
            log.sync_again()
            self._writer.execute("ROLLBACK")
        if durability == "process_crash":
            return _no_sync
        schema.prepare_writer(self._writer, "process_crash", self._path)
        log.sync()
        return log.sync

    def _connect(self, opened: ExitStack) -> sqlite3.Connection:
        connection = schema.connect(self._path)
        opened.callback(connection.close)
        return connection

    def _commit(self, commands: Sequence[Command]) -> list[Outcome]:
        try:
            return self._transact(commands)
        except sqlite3.IntegrityError:
            # A new id is taken already, because a random source repeated itself or a caller guessed the id. Once more
            # with a lookup of every new id, so that only the command with that id fails.
            return self._transact(commands, check_new_ids=True)

    def _transact(self, commands: Sequence[Command], *, check_new_ids: bool = False) -> list[Outcome]:
        try:
            if self._writer.in_transaction:
                self._view.reset()
                self._roll_back()
            self._writer.execute("BEGIN IMMEDIATE")
            self._view.begin(check_new_ids=check_new_ids)
            outcomes = [self._run(command) for command in commands]
            self._view.flush()
            self._lineage.mark(self._writer)
            if self._view.has_deleted:
                self._erasure.expect()
            self._writer.execute("COMMIT")
            self._lineage.committed()
        except BaseException:
            self._view.reset()
            self._roll_back()
            raise
        return outcomes

    def _roll_back(self) -> None:
        # An interrupt can leave a transaction open; after an error SQLite may have rolled back already. An error here
        # must not hide the first one.
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _run(self, command: Command) -> Outcome:
        if not isinstance(command, CommitTogether):
            return self._run_change(command)
        before = self._view.save_point()
        results: list[ChangeResult] = []
        for change in command.changes:
            outcome = self._run_change(change)
            if isinstance(outcome, Exception):
                self._view.roll_back(before)
                return outcome
            results.append(outcome)
        self._view.release()
        return Committed(results=tuple(results))

    def _run_change(self, command: Change) -> ChangeResult | Exception:
        try:
            decision = decide(command, self._view)
        except SessionTreeError as refusal:
            return refusal
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001  nothing is written yet, so the rest of the group is not affected
            translated = self._translate(error)
            if translated is not error:
                translated.__cause__ = error
            return translated
        for fact in decision.facts:
            self._view.apply(fact)
        return decision.result

    def _searcher(self) -> SqliteSearch:
        from sessiontree.stores.sqlite.search import SqliteSearch  # noqa: PLC0415  most programs never search

        with self._search_lock:
            if self._search is None:
                self._search = SqliteSearch(self._path, self._reader)
            return self._search

    def _read(self, query: Callable[[ReadSnapshot], T]) -> T:
        with self._reader() as connection, read_transaction(connection):
            return query(ReadSnapshot(connection))

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._translated():
            connection = self._take_reader()
            try:
                yield connection
            finally:
                self._return_reader(connection)

    def _take_reader(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._is_closed:
                raise StoreClosedError(self.place)
            if self._idle:
                return self._idle.pop()
        connection = schema.connect(self._path)
        connection.execute("PRAGMA query_only = 1")
        return connection

    def _return_reader(self, connection: sqlite3.Connection) -> None:
        with self._idle_lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of SQLite, and those that a damaged file causes."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  a damaged file can raise any exception
            self._raise_translated(error)

    def _raise_outcome(self, error: Exception, commands: Sequence[Command], *, is_committed: bool) -> NoReturn:
        """Raise what is known of commands after an error: it is open whether they took effect, or they did not."""
        is_disk_error = errors.is_disk_error(error)
        if is_disk_error:
            self._be_poisoned(error)
        if is_committed or is_disk_error:
            raise CommitUnknownError(self.place, self._poison or str(error), _entry_ids(commands)) from error
        self._raise_translated(error)

    def _raise_translated(self, error: Exception) -> NoReturn:
        if isinstance(error, SessionTreeError):
            raise error
        if isinstance(error, SyncFailedError):
            self._be_poisoned(error)
            raise StorePoisonedError(self.place, self._poison) from error
        translated = self._translate(error)
        if translated is error:
            raise error
        raise translated from error

    def _be_poisoned(self, error: Exception) -> None:
        self._poison = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
        log_event("store", "error", "a write to disk failed; nothing more is acknowledged", store=self.place)

    def _translate(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error | OSError | UnicodeDecodeError):
            return errors.translate_error(self.place, error)
        return self._damage_behind(error) or error

    def _damage_behind(self, error: Exception) -> DamagedDataError | None:
        """Return the damage that caused an exception, if the file has values of the wrong type; otherwise None."""
        try:
            with closing(schema.connect_read_only(self._path)) as connection:
                table = errors.misshapen_table(connection)
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            translated = errors.translate_error(self.place, fault)
            return translated if isinstance(translated, DamagedDataError) else None
        if not table:
            return None
        return DamagedDataError(self.place, 0, f"table {table} has values of the wrong type: {error}")


def _entry_ids(commands: Sequence[Command]) -> list[str]:
    return [entry_id for command in commands for entry_id in appended_ids(command)]


def _no_sync() -> None:
    """A commit survives a crash of the process without one."""
