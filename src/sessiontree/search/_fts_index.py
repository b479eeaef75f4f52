"""A full-text index in a file beside a store.

The index is disposable: a search brings it up to date first, and a damaged index is deleted and built again from the
store.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from sessiontree.errors import DamagedDataError
from sessiontree.model import Entry, Payload, UnknownPayload
from sessiontree.model._base import UNREADABLE, Progress, Record
from sessiontree.model.codec import decode_payload
from sessiontree.model.entry import Label
from sessiontree.search import _fts_query
from sessiontree.search._fts_query import BUSY_SECONDS, Match, Scope
from sessiontree.search.matching import searchable
from sessiontree.search.query import Cursor, Hit, SearchOrder, SearchPage, SearchQuery, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.search.words import index_words

__all__ = [
    "BUSY_SECONDS",
    "Match",
    "Scope",
    "SearchIndex",
    "Shown",
    "Source",
    "SourceState",
    "StoredEntry",
    "page_of_hits",
]


T = TypeVar("T")

_BATCH = 4096


class StoredEntry(NamedTuple):
    """An entry as it is stored. ``number`` grows with every commit to its source and is never reused."""

    number: int
    tree: int
    owner: int
    created_ns: int
    body: bytes


class SourceState(Record, frozen=True, kw_only=True):
    """One file of a store. ``version`` changes when entries are added, ``identity`` when entries are deleted."""

    name: str
    identity: str
    version: str
    last_number: int


class Source(Protocol):
    """What the index reads from its store."""

    def sources(self) -> Sequence[SourceState]:
        """Return the state of every source."""
        ...

    def items_after(self, name: str, number: int, limit: int) -> Sequence[StoredEntry]:
        """Return the next entries of a source after a number."""
        ...

    def items(self, name: str, numbers: Sequence[int]) -> Sequence[StoredEntry]:
        """Return the entries of a source with these numbers, as far as they exist."""
        ...

    def numbers(self, name: str) -> Iterable[int]:
        """Return the numbers of all entries of a source."""
        ...


class SearchIndex:
    """An index file that any number of processes use; each search brings it up to date."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    @property
    def exists(self) -> bool:
        """Whether there is an index yet."""
        return self._connection is not None or self._path.exists()

    def with_rebuild(self, work: Callable[[], T]) -> T:
        """Run a whole search or delete; if the index is damaged, delete it and run the work once more."""
        with self._lock:
            try:
                return work()
            except _BrokenIndexError:
                self._delete_files()
            try:
                return work()
            except _BrokenIndexError as error:
                problem = f"the search index cannot be built from the store: {error}"
                raise DamagedDataError(str(self._path), 0, problem) from error

    def catch_up(self, source: Source, progress: Progress | None = None) -> None:
        """Index everything that is in the store now."""
        with self._lock, _detecting_damage():
            self._catch_up(source, progress)

    def find(
        self,
        source: Source,
        query: SearchQuery,
        scopes: Sequence[Sequence[Scope]],
        *,
        order: SearchOrder,
        upto: int | None,
        most: int,
    ) -> list[Match]:
        """Return matches in the given order; ``best`` ranks the newest few thousand of them."""
        with self._lock, _detecting_damage(), self._reading(source) as connection:
            return _fts_query.find(connection, query, scopes, order=order, upto=upto, most=most)

    def newest(self) -> int:
        """Return the number of the last row."""
        with _detecting_damage():
            return int(self._run("SELECT coalesce(max(seq), 0) FROM doc").fetchone()[0])

    def labelled(self, names: Iterable[str]) -> list[tuple[str, int, str]]:
        """Return source, tree and id of the entries with one of the labels; the newest label of an entry is in force."""
        wanted = set(names)
        with _detecting_damage():
            rows = self._run(
                "SELECT s.name, l.tree, l.target, l.name, max(l.number) FROM label l JOIN source s ON s.key = l.source"
                " GROUP BY l.source, l.tree, l.target"
            ).fetchall()
        return [(source, tree, target) for source, tree, target, name, _ in rows if name in wanted]

    def forget(
        self, source: Source, state: SourceState, numbers: Sequence[int] = (), before: str | None = None
    ) -> bool:
        """Erase the deleted entries of a source from the file; return False if a reader is in the way.

        ``state`` is that of the source after the delete, with an empty identity if nothing is left of it. ``numbers`` are the
        deleted entries if its identity was ``before``; without them the index is compared with the source.
        """
        if not self.exists:
            return True
        return self.with_rebuild(lambda: self._forget(source, state, numbers, before))

    def rebuild(self) -> None:
        """Delete the index; the next search builds it again."""
        with self._lock:
            self._delete_files()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _catch_up(self, source: Source, progress: Progress | None) -> None:
        states = source.sources()
        known = {row[0]: row[1:] for row in self._run("SELECT name, identity, version, number FROM source")}
        for name in known.keys() - {state.name for state in states}:
            self._reconcile(source, SourceState(name=name, identity="", version="", last_number=0))
        changed = [state for state in states if known.get(state.name, ("", ""))[:2] != (state.identity, state.version)]
        counter = _ProgressCounter(
            progress, sum(state.last_number - known.get(state.name, ("", "", 0))[2] for state in changed)
        )
        for state in changed:
            if state.name not in known:
                self._add(state)
            elif known[state.name][0] != state.identity:
                self._reconcile(source, state)
            self._start_over_if_replaced(source, state.name)
            while self._pull(source, state, counter):
                pass
        self._refill(source)

    def _add(self, state: SourceState) -> None:
        self._run(
            "INSERT OR IGNORE INTO source (name, identity, version, number, anchor_ns) VALUES (?, ?, '', 0, 0)",
            (state.name, state.identity),
        )

    def _start_over_if_replaced(self, source: Source, name: str) -> None:
        """Drop what was indexed if the last indexed entry is not in the store: the file was replaced, e.g. by a backup."""
        with self._writing() as run:
            row = run("SELECT key, number, anchor_ns FROM source WHERE name = ?", (name,)).fetchone()
            if row is None or row[1] == 0:
                return
            key, number, anchor_ns = row
            if [item.created_ns for item in source.items(name, [number])] != [anchor_ns]:
                self._drop(key, sorted(self._indexed(key)))

    def _pull(self, source: Source, state: SourceState, counter: _ProgressCounter) -> bool:
        """Index one batch and return whether there may be more.

        The store is read while the index is locked, so that a concurrent delete finds in the index what was read here.
        """
        with self._writing() as run:
            row = run("SELECT key, number FROM source WHERE name = ?", (state.name,)).fetchone()
            if row is None:
                return False
            key, number = row
            items = source.items_after(state.name, number, _BATCH)
            self._put(key, items)
            is_done = len(items) < _BATCH
            run("UPDATE source SET version = ? WHERE key = ?", (state.version if is_done else "", key))
            last = items[-1].number if items else number
            if items:
                run("UPDATE source SET number = ?, anchor_ns = ? WHERE key = ?", (last, items[-1].created_ns, key))
        counter.add(last - number)
        return not is_done

    def _put(self, source: int, items: Sequence[StoredEntry]) -> None:
        seq = self.newest()
        documents: list[tuple[object, ...]] = []
        words: dict[int, list[tuple[int, str, str]]] = {}
        for item in items:
            payload = _payload_of(item)
            if isinstance(payload, Label):
                self._run(
                    "INSERT OR REPLACE INTO label VALUES (?, ?, ?, ?, ?)",
                    (source, item.number, item.tree, payload.target, payload.label),
                )
            content = searchable(payload)
            if content is None:
                continue
            seq += 1
            documents.append(
                (seq, source, item.number, item.tree, item.owner, item.created_ns,
                 content.role, content.tools, content.model, content.files)
            )  # fmt: skip
            words.setdefault(_fts_query.shard_of(seq), []).append((seq, *index_words(content.text)))
        self._open().executemany("INSERT INTO doc VALUES (?,?,?,?,?,?,?,?,?,?)", documents)
        for shard, rows in words.items():
            self._fill(shard, rows)

    def _fill(self, shard: int, rows: Sequence[tuple[int, str, str]]) -> None:
        _fts_query.create_shard(self._open(), shard)
        table = _fts_query.table_of(shard)
        self._open().executemany(f"INSERT INTO {table} (rowid, body, whole) VALUES (?, ?, ?)", rows)

    def _refill(self, source: Source) -> None:
        """Fill the shards that a delete dropped with the words of the remaining entries."""
        for (shard,) in self._run("SELECT shard FROM stale").fetchall():
            with self._writing() as run:
                if run("DELETE FROM stale WHERE shard = ?", (shard,)).rowcount == 0:
                    continue
                rows = run(
                    "SELECT s.name, d.number, d.seq FROM doc d JOIN source s ON s.key = d.source"
                    " WHERE d.seq >= ? AND d.seq < ? ORDER BY s.name",
                    (shard * _fts_query.SHARD, (shard + 1) * _fts_query.SHARD),
                ).fetchall()
                # Entries that were added after the delete are in the table already.
                run(f"DROP TABLE IF EXISTS {_fts_query.table_of(shard)}")
                self._fill(shard, [*self._words_again(source, rows)])

    def _words_again(self, source: Source, rows: Sequence[tuple[str, int, int]]) -> Iterator[tuple[int, str, str]]:
        by_source: dict[str, dict[int, int]] = {}
        for name, number, seq in rows:
            by_source.setdefault(name, {})[number] = seq
        for name, seqs in by_source.items():
            for item in source.items(name, list(seqs)):
                content = searchable(_payload_of(item))
                if content is not None:
                    yield seqs[item.number], *index_words(content.text)

    def _reconcile(self, source: Source, state: SourceState) -> None:
        """Compare with the store and drop what is gone, after a delete that was not reported to the index."""
        with self._writing() as run:
            row = run("SELECT key FROM source WHERE name = ?", (state.name,)).fetchone()
            if row is not None:
                self._drop(row[0], self._gone(source, state, row[0]))
                self._identify(row[0], state.identity)

    def _forget(self, source: Source, state: SourceState, numbers: Sequence[int], before: str | None) -> bool:
        with _detecting_damage():
            if not self._run("PRAGMA database_list").fetchone()[2]:
                return False  # the file could not be opened, and this is an index in memory
            with self._writing() as run:
                row = run("SELECT key, identity FROM source WHERE name = ?", (state.name,)).fetchone()
                if row is not None and row[1] != state.identity:
                    key, identity = row
                    self._drop(key, numbers if identity == before else self._gone(source, state, key))
                    self._identify(key, state.identity)
            return self._erase()

    def _gone(self, source: Source, state: SourceState, key: int) -> list[int]:
        """The numbers of entries that are indexed and not in the source any more."""
        live = set(source.numbers(state.name)) if state.identity else set()
        return sorted(self._indexed(key) - live)

    def _identify(self, source: int, identity: str) -> None:
        if identity:
            self._run("UPDATE source SET identity = ? WHERE key = ?", (identity, source))
        else:
            self._run("DELETE FROM source WHERE key = ?", (source,))

    def _indexed(self, source: int) -> set[int]:
        rows = self._run(
            "SELECT number FROM doc WHERE source = ?1 UNION SELECT number FROM label WHERE source = ?1", (source,)
        )
        return {number for (number,) in rows}

    def _drop(self, source: int, numbers: Sequence[int]) -> None:
        shards: set[int] = set()
        for number in numbers:
            row = self._run(
                "DELETE FROM doc WHERE source = ? AND number = ? RETURNING seq", (source, number)
            ).fetchone()
            if row is not None:
                shards.add(_fts_query.shard_of(row[0]))
            self._run("DELETE FROM label WHERE source = ? AND number = ?", (source, number))
        for shard in shards:
            self._run(f"DROP TABLE IF EXISTS {_fts_query.table_of(shard)}")
            self._run("INSERT OR IGNORE INTO stale VALUES (?)", (shard,))
        self._step_back(source)

    def _step_back(self, source: int) -> None:
        """Make the newest remaining entry the last indexed one."""
        self._run(
            "UPDATE source SET (number, anchor_ns) ="
            " (SELECT coalesce(max(number), 0), coalesce(created_ns, 0) FROM doc WHERE source = ?1) WHERE key = ?1",
            (source,),
        )

    def _erase(self) -> bool:
        """Empty the write-ahead log, which has older copies of dropped pages; the pages themselves are zeroed already."""
        return not self._run("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    @contextmanager
    def _reading(self, source: Source) -> Iterator[sqlite3.Connection]:
        """A read transaction in which every shard is filled: another process may delete between two statements."""
        connection = self._open()
        while True:
            connection.execute("BEGIN")
            try:
                if connection.execute("SELECT 1 FROM stale LIMIT 1").fetchone() is None:
                    yield connection
                    return
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._refill(source)

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection.execute
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._open().execute(statement, values)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _fts_query.open_index(self._path, self._busy_seconds)
        return self._connection

    def _delete_files(self) -> None:
        self.close()
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).unlink()


def _payload_of(item: StoredEntry) -> Payload:
    """Return the payload of an entry; a damaged one cannot be found, but does not stop the search."""
    try:
        return decode_payload(item.body)
    except (*UNREADABLE, TypeError):
        return UnknownPayload(type="damaged", body=b"")


class _BrokenIndexError(Exception):
    """The index file is damaged. Not one of SQLite's errors, so that it is not taken for an error of the store."""


@contextmanager
def _detecting_damage() -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not _is_broken(error):
            raise
        raise _BrokenIndexError(str(error)) from error


def _is_broken(error: sqlite3.DatabaseError | UnicodeDecodeError) -> bool:
    """Return whether the file itself is damaged; a full disk or a lock is not damage."""
    if isinstance(error, sqlite3.OperationalError):
        return any(words in str(error) for words in ("no such ", "Could not decode", "fts5"))
    return True


class _ProgressCounter:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done))


Shown = tuple[str, str, Entry]
"""The id and title of a thread in which an entry is visible, and the entry."""


def page_of_hits(
    index: SearchIndex,
    source: Source,
    query: SearchQuery,
    scopes: Sequence[Sequence[Scope]],
    *,
    order: SearchOrder,
    limit: int,
    cursor: str | None,
    fetch: Callable[[Match], Shown | None],
) -> SearchPage:
    """Search the index and return a page of hits; ``fetch`` reads the entry of a match, None if it is gone."""
    start = cursor_of(cursor) or Cursor(index.newest(), 0)
    found = index.find(source, query, scopes, order=order, upto=start.upto, most=start.offset + limit + 1)
    chosen = found[start.offset : start.offset + limit]
    hits = [hit for match in chosen if (hit := _hit(query, match, fetch(match))) is not None]
    has_more = len(found) > start.offset + limit
    following = encode_cursor(Cursor(start.upto, start.offset + limit)) if has_more else None
    return SearchPage(hits=tuple(hits), cursor=following)


def _hit(query: SearchQuery, match: Match, shown: Shown | None) -> Hit | None:
    """Return the hit of a match; None if the entry was deleted in the meantime."""
    if shown is None:
        return None
    thread_id, title, entry = shown
    content = searchable(entry.payload)
    snippet = snippet_of(content.text if content else "", query)
    return Hit(thread_id=thread_id, title=title, entry=entry, score=match.score, snippet=snippet)
