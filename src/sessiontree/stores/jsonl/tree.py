"""One tree file that was read: its state in memory, its bodies on disk.

The trees that were read lately, each brought up to date before it is used.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from sessiontree.errors import DamagedDataError, NewerFormatError, ThreadNotFoundError
from sessiontree.model import Entry
from sessiontree.model.codec import decode_payload
from sessiontree.stores._tree_state import Stock
from sessiontree.stores.commands import Draft
from sessiontree.stores.jsonl.layout import TREE_SUFFIX, Layout, name_of
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    BadLineError,
    Damage,
    EntryLine,
    LineScan,
    Located,
    decode_line,
    read_spans,
)
from sessiontree.stores.jsonl.replay import FileState, Problem, Replay
from sessiontree.stores.rules.state import Node, ThreadState

__all__ = ["Tree", "TreeCache"]


_TAIL = 12
"""The last bytes of a line hold its checksum: they tell whether the file below us is still the one we read."""


class Tree:
    """Knows the file up to ``end``; ``catch_up`` reads on from there. Without a file it is a tree to be made."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.end = 0
        self.inode = 0
        self.spans: dict[int, tuple[int, int]] = {}
        self.drafts: dict[int, Draft] = {}
        """Entries of the running group that are not in the file yet."""
        self.state = FileState(self.draft)
        self.replay = Replay(self.state, self.spans)
        self.damage: list[Damage] = []
        self.torn: Damage | None = None
        self._mtime_ns = 0
        self._tail = b""
        self._file = -1

    @classmethod
    def read(cls, name: str, path: Path) -> Tree:
        """FileNotFoundError if there is none."""
        tree = cls(name, path)
        tree._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            tree.inode = os.fstat(tree._file).st_ino
            tree.catch_up()
        except BaseException:
            tree.close()
            raise
        return tree

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def tree_id(self) -> str | None:
        return self.replay.tree_id

    @property
    def problems(self) -> Sequence[Problem]:
        return self.replay.problems

    def catch_up(self) -> None:
        """Read what was appended since the last time."""
        self._mtime_ns = os.fstat(self._file).st_mtime_ns
        scan = LineScan(self._file, self.end)
        for group in scan.groups():
            self.replay.apply(group)
        self.damage += scan.damage
        self.torn = scan.torn
        self.grown_to(scan.end)

    def grown_to(self, end: int, tail: bytes | None = None) -> None:
        """The file is known up to ``end``; ``tail`` are its last bytes, where the caller wrote them."""
        self.end = end
        start = max(0, end - _TAIL)
        self._tail = tail[-_TAIL:] if tail is not None else os.pread(self._file, end - start, start)

    def is_current(self, now: os.stat_result) -> bool:
        return now.st_size == self.end and now.st_mtime_ns == self._mtime_ns

    def can_go_on(self, now: os.stat_result) -> bool:
        """Whether the file is the one that was read, perhaps with more at its end."""
        if now.st_ino != self.inode or now.st_size < self.end:
            return False
        start = max(0, self.end - _TAIL)
        return os.pread(self._file, self.end - start, start) == self._tail

    def check_writable(self) -> None:
        """Refuse to write behind damage, or into a file that a newer version made."""
        if self.replay.newer_format:
            raise NewerFormatError(self.place, self.replay.newer_format, FORMAT)
        if self.damage:
            first = self.damage[0]
            raise DamagedDataError(self.place, first.offset, first.problem)

    def draft(self, node: Node) -> Draft:
        fresh = self.drafts.get(node.key)
        if fresh is not None:
            return fresh
        line = self._lines([node])[0]
        body = bytes(line.payload)
        return Draft(
            id=line.id,
            payload=decode_payload(body),
            body=body,
            created_ns=line.at,
            turn_id=line.turn,
            messages=line.messages,
            tokens=line.tokens,
        )

    def entries(self, nodes: Iterable[Node]) -> list[Entry]:
        wanted = list(nodes)
        return [
            Entry(
                id=node.id,
                thread_id=line.thread,
                parent=None if node.parent is None else self.state.nodes[node.parent].id,
                created_ns=line.at,
                turn_id=line.turn,
                payload=decode_payload(bytes(line.payload)),
            )
            for node, line in zip(wanted, self._lines(wanted), strict=True)
        ]

    def bodies(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, EntryLine, bytes]]:
        """Entries as their lines and bodies, not taken apart."""
        for node, line in zip(nodes, self._lines(nodes), strict=True):
            yield node, line, bytes(line.payload)

    def path_to(self, leaf: Node | None, limit: int | None) -> list[Entry]:
        nodes = list(islice(self.state.upwards(leaf), limit))
        nodes.reverse()
        return self.entries(nodes)

    def groups(self) -> Iterator[Sequence[Located]]:
        """The whole file again, command by command."""
        return LineScan(self._file).groups()

    def text(self, offset: int, length: int) -> bytes:
        """The bytes of the file as they are."""
        return read_spans(self._file, [(offset, length)])[0]

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lines(self, nodes: Sequence[Node]) -> list[EntryLine]:
        spans = [self.spans[node.key] for node in nodes]
        texts = read_spans(self._file, spans)
        return [self._line(text, offset) for text, (offset, _) in zip(texts, spans, strict=True)]

    def _line(self, text: bytes, offset: int) -> EntryLine:
        try:
            line = decode_line(text)
        except BadLineError as error:
            raise DamagedDataError(self.place, offset, str(error)) from error
        assert isinstance(line, EntryLine)
        return line


_MOST_TREES = 256


class TreeCache:
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
