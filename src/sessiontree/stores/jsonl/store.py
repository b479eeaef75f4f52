"""The JSONL backend: readers take no lock between processes, writers queue at the gate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, UnsetType

from sessiontree.errors import DamagedDataError, StoreClosedError
from sessiontree.model import Entry, Lease, Move, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.search import SearchPage
from sessiontree.stores._io import Files
from sessiontree.stores.check import blob_findings
from sessiontree.stores.commands import Command
from sessiontree.stores.jsonl.layout import name_of, open_folder
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.repair import findings_of
from sessiontree.stores.jsonl.thread_index import Stamp, SummaryFile, ThreadIndex
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.jsonl.writer import Writer, store_error
from sessiontree.stores.listing import matching_ids, page_of
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding, NewEntries, Search, StoreStats
from sessiontree.stores.rules.state import Node, ThreadState

if TYPE_CHECKING:
    from sessiontree.stores.jsonl.search import JsonlSearch

__all__ = ["JsonlBackend"]


T = TypeVar("T")


class JsonlBackend:
    """Trees as files in a folder. A cursor of ``news`` is the number of an entry, as it stands in its line."""

    is_blocking = True

    def __init__(self, folder: Path, *, durability: Durability = "power_loss", files: Files | None = None) -> None:
        self.place = str(folder)
        files = files or Files()
        try:
            self._layout, self._gate = open_folder(folder, files)
        except OSError as error:
            raise store_error(self.place, error) from error
        self._lock = threading.RLock()
        self._packs = PackFolder(self._layout.blobs, files)
        self._shelf = TreeCache(self._layout, self._packs)
        self._catalogue = ThreadIndex(self._shelf, SummaryFile(self._layout.index))
        self._writer = Writer(
            layout=self._layout,
            gate=self._gate,
            shelf=self._shelf,
            packs=self._packs,
            catalogue=self._catalogue,
            files=files,
            durability=durability,
            lock=self._lock,
        )
        self._search: JsonlSearch | None = None
        self._is_closed = False

    @property
    def torn_ends_cut(self) -> int:
        """How many torn ends of files this object cut off (and kept aside) before it wrote."""
        return self._writer.torn_ends_cut

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        self._check_open()
        outcomes = self._writer.write(commands)
        for deleted in self._writer.take_deleted():
            self._searcher().forget(deleted)
        return outcomes

    def repair(self) -> list[Finding]:
        """Mend what can be mended and say what it was; what is cut out of a file is kept in ``torn/``. The index of the
        search is thrown away."""
        self._check_open()
        self._searcher().rebuild()
        return self._writer.repair()

    def mark(self, thread_id: str) -> object:
        home = self._layout.home_of_fork(thread_id)
        return self._stamp(thread_id), None if home is None else self._stamp(home)

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._shelf.clear()
            self._catalogue.close()
            if self._search is not None:
                self._search.close()
            self._gate.close()

    def thread(self, thread_id: str) -> Thread:
        return self._ask(thread_id, lambda _, state: state.public())

    def threads(self, query: ThreadQuery) -> Page:
        found = self._over_all(self._catalogue.threads)
        return page_of(found, query)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        def answer(tree: Tree, _: ThreadState) -> Entry:
            return tree.entries([tree.state.visible_node(thread_id, entry_id)])[0]

        return self._ask(thread_id, answer)

    def entries(self, thread_id: str, after: str | None, limit: int | None) -> list[Entry]:
        def answer(tree: Tree, state: ThreadState) -> list[Entry]:
            nodes = tree.state.visible_nodes(state)
            if after is not None:
                start = tree.state.visible_node(thread_id, after).key
                nodes = [node for node in nodes if node.key > start]
            return tree.entries(nodes[:limit])

        return self._ask(thread_id, answer)

    def path(self, thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> list[Entry]:
        def answer(tree: Tree, state: ThreadState) -> list[Entry]:
            return tree.path_to(_tip(tree, state, leaf), limit)

        return self._ask(thread_id, answer)

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        def answer(tree: Tree, state: ThreadState) -> list[Entry]:
            parent = None if entry_id is None else tree.state.visible_node(thread_id, entry_id).key
            return tree.entries(node for node in tree.state.visible_nodes(state) if node.parent == parent)

        return self._ask(thread_id, answer)

    def moves(self, thread_id: str) -> Sequence[Move]:
        return self._ask(thread_id, lambda tree, state: list(tree.state.moves(state)))

    def lease(self, thread_id: str) -> Lease | None:
        return self._ask(thread_id, lambda tree, state: tree.state.lease(state))

    def news(self, thread_id: str, cursor: int | None) -> NewEntries:
        def answer(tree: Tree, state: ThreadState) -> NewEntries:
            keys = tree.state.owned_keys.get(state.key, [])
            last = keys[-1] if keys else 0
            if cursor is None:
                return NewEntries(entries=(), cursor=last)
            fresh = tree.entries(tree.state.nodes[key] for key in keys if key > cursor)
            return NewEntries(entries=tuple(fresh), cursor=max(cursor, last))

        return self._ask(thread_id, answer)

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return self._of_packs(lambda: self._packs.missing_blobs(hashes))

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return self._of_packs(lambda: self._packs.blobs(hashes))

    def thread_ids(self, part: str, limit: int) -> list[str]:
        return matching_ids([thread.id for thread in self._over_all(self._catalogue.threads)], part)[:limit]

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        def answer(tree: Tree, state: ThreadState) -> list[str]:
            return matching_ids([node.id for node in tree.state.visible_nodes(state)], part)[:limit]

        return self._ask(thread_id, answer)

    def search(self, search: Search) -> SearchPage:
        self._check_open()
        try:
            return self._searcher().search(search)
        except OSError as error:
            raise store_error(self.place, error) from error

    def stats(self) -> StoreStats:
        summaries = self._over_all(self._catalogue.refresh).values()
        threads = [thread for summary in summaries for thread in summary.threads]
        return StoreStats(
            threads=len(threads),
            archived=sum(thread.is_archived for thread in threads),
            entries=sum(summary.entries for summary in summaries),
            moves=sum(summary.moves for summary in summaries),
            leases=sum(summary.leases for summary in summaries),
            bytes=sum(summary.stamp.size for summary in summaries) + self._of_packs(lambda: self._packs.size),
        )

    def inspect(self, progress: Progress | None = None) -> list[Finding]:
        """Pointers that lead nowhere are no finding: a crash may leave one before the fork is written."""
        findings: list[Finding] = []
        manifests: set[str] = set()
        with self._reading():
            sizes = {name: found.st_size for name, found in self._shelf.names()}
            total, done = sum(sizes.values()), 0
            for name, size in sizes.items():
                tree = self._shelf.read(name)
                if tree is not None:
                    try:
                        findings += findings_of(tree, self._layout, _share_of(progress, done, size, total))
                        manifests.update(tree.state.checkpoints.values())
                    finally:
                        tree.close()
                done += size
            findings += blob_findings(manifests, self._packs, list(self._packs.blob_hashes()), self.place)
        return findings

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            self._check_open()
            try:
                yield
            except OSError as error:
                raise store_error(self.place, error) from error

    def _searcher(self) -> JsonlSearch:
        from sessiontree.stores.jsonl.search import JsonlSearch  # noqa: PLC0415  most programs never search

        with self._lock:
            if self._search is None:
                self._search = JsonlSearch(self._layout, self._shelf, self._catalogue, self._lock)
            return self._search

    def _ask(self, thread_id: str, answer: Callable[[Tree, ThreadState], T]) -> T:
        with self._reading():
            try:
                return self._answer(thread_id, answer)
            except DamagedDataError:
                # A line went bad after it was read, or its write was taken back: a fresh look leaves it out.
                self._shelf.forget(self._shelf.holding(thread_id).name)
                return self._answer(thread_id, answer)

    def _answer(self, thread_id: str, answer: Callable[[Tree, ThreadState], T]) -> T:
        tree = self._shelf.holding(thread_id)
        return answer(tree, tree.state.states[thread_id])

    def _over_all(self, look: Callable[[], T]) -> T:
        with self._reading():
            found = look()
            has_unsaved = self._catalogue.has_unsaved
        if has_unsaved:
            self._writer.save_catalogue()
        return found

    def _of_packs(self, answer: Callable[[], T]) -> T:
        with self._reading():
            return answer()

    def _stamp(self, thread_id: str) -> Stamp | None:
        try:
            return Stamp.of(self._layout.tree(name_of(thread_id)).stat())
        except FileNotFoundError:
            return None

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(self.place)


def _share_of(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """What the entries of one file tell, in the bytes of all files."""
    if progress is None:
        return None
    return lambda done, entries: progress(before + size * done // max(entries, 1), total)


def _tip(tree: Tree, state: ThreadState, leaf: str | UnsetType | None) -> Node | None:
    if leaf is UNSET:
        return state.leaf
    if leaf is None:
        return None
    assert isinstance(leaf, str)
    return tree.state.visible_node(state.meta.id, leaf)
