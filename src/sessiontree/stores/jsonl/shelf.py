"""The trees that were read lately, each brought up to date before it is used."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator

from sessiontree.errors import ThreadNotFoundError
from sessiontree.rules.state import ThreadState
from sessiontree.stores.jsonl.layout import TREE_SUFFIX, Layout, name_of
from sessiontree.stores.jsonl.tree import Tree
from sessiontree.stores.tree_state import Stock

__all__ = ["Shelf"]

_MOST_TREES = 256


class Shelf:
    def __init__(self, layout: Layout, stock: Stock, most: int = _MOST_TREES) -> None:
        self._layout = layout
        self._stock = stock
        self._most = most
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._pinned: set[str] = set()

    def pin(self, tree: Tree) -> None:
        """Give out this tree as it is until ``unpin``: a running group changes it, its file does not know yet."""
        self._equip(tree)
        self._trees[tree.name] = tree
        self._pinned.add(tree.name)

    def unpin(self, name: str) -> None:
        self._pinned.discard(name)

    def get(self, name: str) -> Tree | None:
        """The tree as its file is now, or None where there is no file."""
        tree = self._refreshed(name)
        if tree is None:
            return None
        self._trees[name] = tree
        self._trees.move_to_end(name)
        self._evict()
        return tree

    def peek(self, name: str) -> Tree | None:
        """Like ``get``, for a walk over all trees: a tree that was not on the shelf is the caller's to close."""
        if name in self._trees:
            return self.get(name)
        return self.read(name)

    def read(self, name: str) -> Tree | None:
        """The whole file, read now, for the caller to close."""
        try:
            tree = Tree.read(name, self._layout.tree(name))
        except FileNotFoundError:
            return None
        self._equip(tree)
        return tree

    def release(self, tree: Tree) -> None:
        """The end of a ``peek``."""
        if self._trees.get(tree.name) is not tree:
            tree.close()

    def find(self, thread_id: str) -> Tree | None:
        """The tree that holds a thread: the one named after it, or the one that its pointer names."""
        tree = self.get(name_of(thread_id))
        if tree is not None and thread_id in tree.state.states:
            return tree
        home = self._layout.home_of_fork(thread_id)
        if home is None:
            return None
        tree = self.get(name_of(home))
        return tree if tree is not None and thread_id in tree.state.states else None

    def holding(self, thread_id: str) -> Tree:
        tree = self.find(thread_id)
        if tree is None:
            raise ThreadNotFoundError(thread_id)
        return tree

    def state_of(self, thread_id: str) -> ThreadState | None:
        tree = self.find(thread_id)
        return None if tree is None else tree.state.states[thread_id]

    def names(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every tree file and how it is now."""
        with os.scandir(self._layout.trees) as found:
            for item in found:
                if not item.name.endswith(TREE_SUFFIX) or not item.is_file():
                    continue
                try:
                    yield item.name.removesuffix(TREE_SUFFIX), item.stat()
                except FileNotFoundError:
                    continue

    def forget(self, name: str) -> None:
        self._pinned.discard(name)
        tree = self._trees.pop(name, None)
        if tree is not None:
            tree.close()

    def clear(self) -> None:
        for name in list(self._trees):
            self.forget(name)

    def _equip(self, tree: Tree) -> None:
        """Let the rules look beyond the tree's own file."""
        tree.state.elsewhere = self.state_of
        tree.state.stock = self._stock
        tree.state.manifests_elsewhere = lambda: self._manifests_besides(tree.name)

    def _manifests_besides(self, name: str) -> Iterator[str]:
        for other, _ in list(self.names()):
            tree = self.peek(other) if other != name else None
            if tree is not None:
                # Behind damage there may be a checkpoint that nobody can see now: then nothing must be collected.
                tree.check_writable()
                yield from tree.state.checkpoints.values()
                self.release(tree)

    def _evict(self) -> None:
        if len(self._trees) > self._most:
            oldest = next((name for name in self._trees if name not in self._pinned), None)
            if oldest is not None:
                self.forget(oldest)

    def _refreshed(self, name: str) -> Tree | None:
        tree = self._trees.get(name)
        if tree is None:
            return self.read(name)
        if name in self._pinned:
            return tree
        try:
            now = tree.path.stat()
        except FileNotFoundError:
            self.forget(name)
            return None
        if now.st_ino == tree.inode and tree.is_current(now):
            return tree
        if tree.can_go_on(now):
            tree.catch_up()
            return tree
        self.forget(name)
        return self.read(name)
