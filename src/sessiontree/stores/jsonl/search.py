"""Search in the JSONL store: an FTS index file beside the trees, brought up to date tree by tree before each search."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from sessiontree.errors import StoreUnavailableError
from sessiontree.search import SearchPage, SearchQuery
from sessiontree.search._fts_index import BUSY_SECONDS, SearchIndex, Shown, SourceState, StoredEntry, page_of_hits
from sessiontree.search._fts_query import Match, Scope
from sessiontree.stores.jsonl.layout import Layout
from sessiontree.stores.jsonl.thread_index import ThreadIndex
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.queries import Search
from sessiontree.stores.rules.append import visible
from sessiontree.stores.rules.state import Node

__all__ = ["JsonlSearch"]


class JsonlSearch:
    """Searches, and the ``Source`` of the index.

    ``lock`` is the backend's. To avoid a deadlock it is never held while waiting for the index; the index may take it.
    """

    def __init__(
        self,
        layout: Layout,
        trees: TreeCache,
        threads: ThreadIndex,
        lock: threading.RLock,
        *,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._layout = layout
        self._index = SearchIndex(layout.search, busy_seconds=busy_seconds)
        self._place = str(layout.folder)
        self._trees = trees
        self._threads = threads
        self._lock = lock

    def search(self, search: Search) -> SearchPage:
        """Answer a search; an index that turns out broken is rebuilt once."""
        try:
            return self._index.with_rebuild(lambda: self._search(search))
        except sqlite3.Error as error:
            raise StoreUnavailableError(self._place, f"the search index failed: {error}") from error

    def rebuild(self) -> None:
        """Discard the index; the next search builds it again."""
        self._index.rebuild()

    def _search(self, search: Search) -> SearchPage:
        self._index.catch_up(self, search.progress)
        return page_of_hits(
            self._index,
            self,
            search.query,
            self._scopes(search.query),
            order=search.order,
            limit=search.limit,
            cursor=search.cursor,
            fetch=self._shown,
        )

    def forget(self, name: str) -> bool:
        """Erase the deleted entries of a tree from the index; return False if a reader is in the way."""
        try:
            identity = str(self._layout.tree(name).stat().st_ino)
        except FileNotFoundError:
            identity = ""
        return self._index.forget(self, SourceState(name=name, identity=identity, version="", last_number=0))

    def forget_all(self) -> bool:
        """Discard the index, because it is not known what is to be erased from it."""
        self._index.rebuild()
        return True

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def sources(self) -> Sequence[SourceState]:
        """The tree files and their versions."""
        with self._lock:
            summaries = self._threads.refresh()
        return [
            SourceState(
                name=name,
                identity=str(summary.stamp.inode),
                version=f"{summary.stamp.size}.{summary.stamp.mtime_ns}",
                last_number=summary.entries,
            )
            for name, summary in summaries.items()
        ]

    def items_after(self, name: str, number: int, limit: int) -> Sequence[StoredEntry]:
        """Entries of a tree after a number, in order."""
        with self._tree(name) as tree:
            keys = sorted(key for key in tree.state.nodes if key > number)[:limit] if tree else []
            return _items(tree, keys)

    def items(self, name: str, numbers: Sequence[int]) -> Sequence[StoredEntry]:
        """The entries of a tree with these numbers, as far as they exist."""
        with self._tree(name) as tree:
            return _items(tree, [number for number in numbers if tree and number in tree.state.nodes])

    def numbers(self, name: str) -> Iterable[int]:
        """The numbers of all entries of a tree that have their contents."""
        with self._tree(name) as tree:
            return tree.state.nodes.keys() - tree.state.erased if tree else []

    def _scopes(self, query: SearchQuery) -> list[list[Scope]]:
        scopes: list[list[Scope]] = []
        if query.threads:
            scopes.append([self._seen_by(name) for name in query.threads])
        if query.branches:
            scopes.append([self._path_of(name) for name in query.branches])
        if query.labels:
            scopes.append(
                [self._entry_named(source, target) for source, _, target in self._index.labelled(query.labels)]
            )
        return scopes

    def _seen_by(self, thread_id: str) -> Scope:
        with self._lock:
            tree = self._trees.with_thread(thread_id)
            nodes = tree.state.visible_nodes(tree.state.states[thread_id])
            return Scope(source=tree.name, numbers=tuple(node.key for node in nodes))

    def _path_of(self, thread_id: str) -> Scope:
        with self._lock:
            tree = self._trees.with_thread(thread_id)
            leaf = tree.state.states[thread_id].leaf
            return Scope(source=tree.name, numbers=tuple(node.key for node in tree.state.upwards(leaf)))

    def _entry_named(self, source: str, entry_id: str) -> Scope:
        with self._lock:
            tree = self._trees.get(source)
            keys = [node.key for node in tree.state.nodes.values() if node.id == entry_id] if tree else []
            return Scope(source=source, numbers=tuple(keys))

    def _shown(self, match: Match) -> Shown | None:
        # Cached, because the hits of a page are often in the same trees.
        with self._lock:
            tree = self._trees.get(match.source)
            node = tree.state.nodes.get(match.number) if tree else None
            return _shown(tree, node) if tree and node else None

    @contextmanager
    def _tree(self, name: str) -> Iterator[Tree | None]:
        with self._lock:
            tree = self._trees.peek(name)
            try:
                yield tree
            finally:
                if tree is not None:
                    self._trees.release(tree)


def _items(tree: Tree | None, keys: Sequence[int]) -> list[StoredEntry]:
    if tree is None or not keys:
        return []
    nodes = [tree.state.nodes[key] for key in keys]
    return [StoredEntry(node.key, 0, node.owner, line.at, body) for node, line, body in tree.bodies(nodes)]


def _shown(tree: Tree, node: Node) -> Shown | None:
    states = sorted(tree.state.states.values(), key=lambda state: state.key != node.owner)
    for state in states:
        if visible(tree.state, state, node.id) is not None:
            return state.meta.id, state.meta.title, tree.entries([node])[0]
    return None
