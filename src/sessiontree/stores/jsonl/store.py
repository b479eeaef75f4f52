"""The JSONL backend. Readers take no lock between processes; writers queue for the process lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sessiontree.errors import DamagedDataError, StoreClosedError, ThreadNotFoundError
from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import EntryBody
from sessiontree.model.documents import StoredDocument
from sessiontree.model.thread import Direction
from sessiontree.search import SearchPage
from sessiontree.stores._io import Files
from sessiontree.stores._os_errors import translate_error
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.check import blob_findings
from sessiontree.stores.commands import Command
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.forking import NOT_WHILE_FORKING
from sessiontree.stores.jsonl.commit_log import CommitLog
from sessiontree.stores.jsonl.documents import DocumentFolder
from sessiontree.stores.jsonl.erasure import ANYTHING, ErasureFolder, PendingErasure
from sessiontree.stores.jsonl.layout import name_of, open_folder
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.repair import findings_of
from sessiontree.stores.jsonl.thread_index import Stamp, SummaryFile, ThreadIndex
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.jsonl.writer import Writer
from sessiontree.stores.listing import matching_ids, page_of
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding, NewEntries, ReadEntries, ReadPath, Search, StoreStats
from sessiontree.stores.rules.leaf import next_move
from sessiontree.stores.rules.state import BlobRoots, ThreadState

if TYPE_CHECKING:
    from sessiontree.stores.jsonl.search import JsonlSearch

__all__ = ["JsonlBackend"]


T = TypeVar("T")


class JsonlBackend:
    """A ``Backend`` with one file for each tree in a folder.

    A cursor of ``new_entries`` is an entry number, as written in the entry's line.
    """

    is_blocking = True

    def __init__(self, folder: Path, *, durability: Durability = "power_loss", files: Files | None = None) -> None:
        self.place = str(folder)
        files = files or Files()
        try:
            self._layout, self._process_lock = open_folder(folder, files)
            with self._process_lock:
                log = CommitLog(self._layout, files)
        except OSError as error:
            raise translate_error(self.place, error) from error
        self._lock = threading.RLock()
        self._documents = DocumentFolder(self._layout.documents, files)
        self._packs = PackFolder(self._layout.blobs, files)
        self._trees = TreeCache(self._layout, self._packs)
        self._index = ThreadIndex(self._trees, SummaryFile(self._layout.index))
        self._erasures = ErasureFolder(self._layout, files)
        self._writer = Writer(
            layout=self._layout,
            process_lock=self._process_lock,
            log=log,
            trees=self._trees,
            packs=self._packs,
            documents=self._documents,
            index=self._index,
            erasures=self._erasures,
            files=files,
            durability=durability,
            lock=self._lock,
        )
        self._search: JsonlSearch | None = None
        self._is_closed = False
        self._writer.finish_commit()
        NOT_WHILE_FORKING.in_the_child(self._abandon)

    @property
    def torn_ends_cut(self) -> int:
        """How many torn file ends this object cut off (and kept in ``torn/``) before it wrote."""
        return self._writer.torn_ends_cut

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        self._check_open()
        return self._writer.write(commands)

    def erase_copies(self) -> bool:
        """Erase what deletes left in other files, and return whether all of it is gone."""
        try:
            pending = list(self._erasures.pending())
        except OSError:
            return False
        are_erased = [self._tries_to_erase(path, erasure) for path, erasure in pending]
        return all(are_erased)

    def _tries_to_erase(self, path: Path, erasure: PendingErasure) -> bool:
        try:
            return self._erase_copies(path, erasure)
        except Exception:  # noqa: BLE001  a damaged file can raise any exception
            return False

    def _erase_copies(self, path: Path, erasure: PendingErasure) -> bool:
        from sessiontree.stores.jsonl.search import JsonlSearch  # noqa: PLC0415  most programs never search

        self._writer.erase_copies(erasure)
        search = JsonlSearch(self._layout, self._trees, self._index, self._lock, busy_seconds=0)
        try:
            is_erased = search.forget_all() if erasure is ANYTHING else search.forget(erasure.tree)
        finally:
            search.close()
        if is_erased:
            self._erasures.complete(path)
        return is_erased

    def repair(self) -> list[Finding]:
        """Repair what can be repaired and return it. Bytes that are cut out of a file are kept in ``torn/``.

        The search index is discarded; the next search builds it again.
        """
        self._check_open()
        self._searcher().rebuild()
        with self._translated():
            return self._writer.repair()

    def mark(self, thread_id: str) -> object:
        tree_id = self._layout.tree_of_fork(thread_id)
        return self._stamp(thread_id), None if tree_id is None else self._stamp(tree_id)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._writer.close()
            self._trees.clear()
            self._index.close()
            if self._search is not None:
                self._search.close()
            self._process_lock.close()

    def _abandon(self) -> None:
        """Close the search index in the child of a fork, which cannot use connections of its parent."""
        if self._search is not None:
            self._search.close()

    def thread(self, thread_id: str) -> Thread:
        return self._read(thread_id, lambda _, state: state.public())

    def threads(self, query: ThreadQuery) -> Page:
        return page_of(self._read_index(self._index.threads), query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        return self._read(thread_id, lambda tree, state: tree.entries([tree.state.visible_node(state, entry_id)])[0])

    def entries(self, query: ReadEntries) -> list[Entry]:
        def answer(tree: Tree, state: ThreadState) -> list[Entry]:
            nodes = tree.state.candidates(state, query)
            return query.select(tree.read_entries(nodes if query.is_filtered else islice(nodes, query.limit)))

        return self._read(query.thread_id, answer)

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> list[Entry]:
        if thread_id is not None:
            return self._read(thread_id, lambda tree, state: tree.entries(list(tree.state.found(entry_ids, state))))
        return self._search_ids(entry_ids)

    def last_entries(self, thread_ids: tuple[str, ...]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for thread_id in thread_ids:
            with suppress(ThreadNotFoundError):
                for entry in self.path(ReadPath(thread_id=thread_id, limit=1)):
                    found[thread_id] = entry
        return found

    def path(self, query: ReadPath) -> list[Entry]:
        return self._read(
            query.thread_id,
            lambda tree, state: query.select(tree.read_entries(tree.state.path_back(state, query))),
        )

    def path_bodies(self, query: ReadPath) -> list[EntryBody]:
        return self._read(
            query.thread_id,
            lambda tree, state: query.select(tree.read_bodies(tree.state.path_back(state, query))),
        )

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        return self._read(thread_id, lambda tree, state: tree.entries(tree.state.children(state, entry_id)))

    def moves(self, thread_id: str) -> Sequence[Move]:
        return self._read(thread_id, lambda tree, state: list(tree.state.moves(state)))

    def next_move(self, thread_id: str, direction: Direction) -> NextMove:
        return self._read(thread_id, lambda tree, state: next_move(tree.state, state, direction))

    def lease(self, thread_id: str) -> Lease | None:
        return self._read(thread_id, lambda tree, state: tree.state.lease(state))

    def clock(self, now_ns: int) -> int:
        return now_ns

    def new_entries(self, thread_id: str, cursor: int | None) -> NewEntries:
        def answer(tree: Tree, state: ThreadState) -> NewEntries:
            nodes, end = tree.state.appended_after(state, cursor)
            return NewEntries(entries=tuple(tree.entries(nodes)), cursor=end)

        return self._read(thread_id, answer)

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        with self._reading():
            return self._packs.missing_blobs(hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        with self._reading():
            return self._packs.blobs(hashes)

    def thread_ids(self, part: str, limit: int) -> list[str]:
        return matching_ids([thread.id for thread in self._read_index(self._index.threads)], part)[:limit]

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        def answer(tree: Tree, state: ThreadState) -> list[str]:
            return matching_ids([node.id for node in tree.state.visible_nodes(state)], part)[:limit]

        return self._read(thread_id, answer)

    def document(self, query: ReadDocument) -> StoredDocument | None:
        with self._reading():
            found = self._documents.document(query.scope, query.key)
            return None if found is None or found.is_expired(query.now_ns) else found

    def scopes(self, query: ListScopes) -> list[str]:
        with self._reading():
            return query.select(self._documents.all())

    def documents(self, query: ListDocuments) -> list[StoredDocument]:
        with self._reading():
            return query.select(self._documents.of_scope(query.scope))

    def search(self, search: Search) -> SearchPage:
        self._check_open()
        with self._translated():
            found = self._searcher().search(search)
        self._save_index()
        return found

    def stats(self) -> StoreStats:
        summaries = self._read_index(self._index.refresh).values()
        threads = [thread for summary in summaries for thread in summary.threads]
        with self._reading():
            pack_bytes = self._packs.size
        return StoreStats(
            threads=len(threads),
            archived=sum(thread.is_archived for thread in threads),
            entries=sum(summary.entries for summary in summaries),
            moves=sum(summary.moves for summary in summaries),
            leases=sum(summary.leases for summary in summaries),
            bytes=sum(summary.stamp.size for summary in summaries) + pack_bytes,
        )

    def thread_sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._reading():
            for name, _ in sorted(self._trees.files()):
                tree = self._trees.peek(name)
                if tree is not None:
                    for state in tree.state.states.values():
                        keys = tree.state.owned_keys.get(state.key, ())
                        found[state.meta.id] = sum(tree.spans[key].length for key in keys)
                    self._trees.release(tree)
        return found

    def reclaim(self) -> int:
        """Return 0: a delete has already made the file smaller."""
        return 0

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        """Check every file. A pointer to a missing fork is not a finding: a crash before the fork is written leaves one."""
        findings: list[Finding] = []
        manifests: set[str] = set()
        artifacts: set[str] = set()
        with self._reading():
            sizes = {name: found.st_size for name, found in self._trees.files()}
            total, done = sum(sizes.values()), 0
            for name, size in sizes.items():
                tree = self._trees.read(name)
                if tree is not None:
                    try:
                        findings += findings_of(tree, self._layout, _share_of(progress, done, size, total))
                        roots = tree.state.all_roots()
                        manifests |= roots.manifests
                        artifacts |= roots.artifacts
                    finally:
                        tree.close()
                done += size
            findings += self._blob_findings(BlobRoots(frozenset(manifests), frozenset(artifacts)))
            findings += [
                Finding(
                    kind="erasure", place=str(path), problem="copies of deleted content are left; open the store again"
                )
                for path, _ in self._erasures.pending()
            ]
        return findings

    def snapshot(self, request: SnapshotRequest) -> Snapshot:
        """List the files of the store as they are at one moment."""
        self._check_open()
        return self._writer.snapshot(request)

    def _blob_findings(self, needed: BlobRoots) -> list[Finding]:
        try:
            return blob_findings(needed, self._packs, list(self._packs.blob_hashes()), self.place)
        except DamagedDataError as damage:
            return [Finding(kind="blob", place=damage.place, problem=damage.problem, offset=damage.offset)]

    def _search_ids(self, entry_ids: tuple[str, ...]) -> list[Entry]:
        """Read every tree: no index knows ids without their thread."""
        found: dict[str, list[Entry]] = {}
        with self._reading():
            for name, _ in sorted(self._trees.files()):
                tree = self._trees.peek(name)
                if tree is not None:
                    for entry in tree.entries(list(tree.state.found(entry_ids, None))):
                        found.setdefault(entry.id, []).append(entry)
                    self._trees.release(tree)
        return [entry for entry_id in entry_ids for entry in found.get(entry_id, ())]

    def _read(self, thread_id: str, answer: Callable[[Tree, ThreadState], T]) -> T:
        with self._reading():
            try:
                return self._read_once(thread_id, answer)
            except DamagedDataError:
                # A line was damaged, or its write undone, after the tree was loaded: load it again, without the line.
                self._trees.forget(self._trees.with_thread(thread_id).name)
                return self._read_once(thread_id, answer)

    def _read_once(self, thread_id: str, answer: Callable[[Tree, ThreadState], T]) -> T:
        tree = self._trees.with_thread(thread_id)
        return answer(tree, tree.state.states[thread_id])

    def _read_index(self, read: Callable[[], T]) -> T:
        with self._reading():
            found = read()
        self._save_index()
        return found

    def _save_index(self) -> None:
        with self._lock:
            has_unsaved = self._index.has_unsaved
        if has_unsaved:
            with self._translated():
                self._writer.save_index()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._translated():
            self._check_open()
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise translate_error(self.place, error) from error
        except OverflowError as error:
            # No caller can give such numbers, so a file has them.
            raise DamagedDataError(self.place, 0, f"a number has more than 64 bits: {error}") from error

    def _searcher(self) -> JsonlSearch:
        from sessiontree.stores.jsonl.search import JsonlSearch  # noqa: PLC0415  most programs never search

        with self._lock:
            if self._search is None:
                self._search = JsonlSearch(self._layout, self._trees, self._index, self._lock)
            return self._search

    def _stamp(self, tree_id: str) -> Stamp | None:
        try:
            return Stamp.of(self._layout.tree(name_of(tree_id)).stat())
        except FileNotFoundError:
            return None

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(self.place)


def _share_of(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """Report the entries checked in one file as bytes of all files."""
    if progress is None:
        return None
    return lambda done, entries: progress(before + size * done // max(entries, 1), total)
