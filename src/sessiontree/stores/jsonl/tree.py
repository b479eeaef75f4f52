"""Loaded tree files (``Tree``) and the cache of them (``TreeCache``).

A loaded tree keeps threads, nodes and leases in memory; the contents of entries stay in the file.
"""

from __future__ import annotations

import os
import resource
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from sessiontree.errors import DamagedDataError, NewerFormatError, ThreadNotFoundError
from sessiontree.model import Entry
from sessiontree.model.codec import EntryBody, decode_stored_payload
from sessiontree.stores._io import Files
from sessiontree.stores._tree_state import BlobStore
from sessiontree.stores.commands import Draft
from sessiontree.stores.jsonl.layout import TREE_SUFFIX, Layout, name_of
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    BadLineError,
    Damage,
    EntryLine,
    LineScan,
    Located,
    Span,
    decode_line,
    read_spans,
)
from sessiontree.stores.jsonl.replay import FileState, Problem, Replay
from sessiontree.stores.rules.state import BlobRoots, Node, ThreadState

__all__ = ["Tree", "TreeCache"]


_MAX_TREES = 4_096
_FIRST_BATCH = 64
_LARGEST_BATCH = 16_384
_TAIL = 12
"""The last bytes of a line contain its checksum, so they show whether the file is still the one that was read."""


class Tree:
    """A tree file, loaded up to ``end``; ``catch_up`` reads on from there. Without a file, a tree to be created."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.place = str(path)
        self.end = 0
        self.inode = 0
        self.spans: dict[int, Span] = {}
        self.drafts: dict[int, Draft] = {}
        """Entries of the current batch that are not in the file yet."""
        self.state = FileState(self.draft)
        self.replay = Replay(self.state, self.spans)
        self.damage: list[Damage] = []
        self.torn: Damage | None = None
        self._mtime_ns = 0
        self._tail = b""
        self._file = -1
        self._is_for_appending = False

    @classmethod
    def read(cls, name: str, path: Path) -> Tree:
        """Load a file; raise FileNotFoundError if there is none."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        tree = cls(name, path)
        tree._file = file
        try:
            tree.inode = os.fstat(tree._file).st_ino
            tree.catch_up()
        except BaseException:
            tree.close()
            raise
        return tree

    @property
    def tree_id(self) -> str | None:
        """The id of the tree, as its header says."""
        return self.replay.tree_id

    @property
    def problems(self) -> Sequence[Problem]:
        """Lines that contradict the lines before them."""
        return self.replay.problems

    def catch_up(self) -> None:
        """Read what was appended since the last read."""
        self._mtime_ns = os.fstat(self._file).st_mtime_ns
        scan = LineScan(self._file, self.end)
        for group in scan.groups():
            self.replay.apply(group)
        self.damage += scan.damage
        self.torn = scan.torn
        self.end = scan.end
        start = max(0, scan.end - _TAIL)
        self._tail = os.pread(self._file, scan.end - start, start)

    def open_append(self, files: Files) -> int:
        """The file, open for appending until the tree is closed. It is created if there is none."""
        if not self._is_for_appending:
            file = files.open_append(self.path)
            self.close()
            self._file, self._is_for_appending = file, True
        return self._file

    def wrote(self, end: int, last_line: bytes, now: os.stat_result) -> None:
        """Note what the caller wrote, and what the file was like after it, so that it is not read again for that."""
        self.drafts.clear()
        self.end = end
        self.inode = now.st_ino
        self._mtime_ns = now.st_mtime_ns
        self._tail = last_line[-_TAIL:]

    def is_current(self, now: os.stat_result) -> bool:
        """Whether the file has neither grown nor changed since the last read."""
        return now.st_size == self.end and now.st_mtime_ns == self._mtime_ns

    def can_catch_up(self, now: os.stat_result) -> bool:
        """Whether the file is the one that was read, possibly with more lines."""
        if now.st_ino != self.inode or now.st_size < self.end:
            return False
        start = max(0, self.end - _TAIL)
        return os.pread(self._file, self.end - start, start) == self._tail

    def check_writable(self) -> None:
        """Raise if the file is damaged or in a newer format: nothing may be appended then."""
        if self.replay.newer_format:
            raise NewerFormatError(self.place, self.replay.newer_format, FORMAT)
        if self.damage:
            first = self.damage[0]
            raise DamagedDataError(self.place, first.offset, first.problem)

    def draft(self, node: Node) -> Draft:
        """The content of an entry."""
        fresh = self.drafts.get(node.key)
        if fresh is not None:
            return fresh
        line = self._lines([node])[0]
        body = bytes(line.payload)
        return Draft(
            id=line.id,
            payload=decode_stored_payload(body),
            body=body,
            created_ns=line.at,
            turn_id=line.turn,
            messages=line.messages,
            tokens=line.tokens,
        )

    def entries(self, nodes: Sequence[Node]) -> list[Entry]:
        """The entries at these nodes."""
        return [
            Entry(
                id=node.id,
                thread_id=line.thread,
                parent=None if node.parent is None else self.state.nodes[node.parent].id,
                created_ns=line.at,
                turn_id=line.turn,
                payload=decode_stored_payload(bytes(line.payload)),
            )
            for node, line in zip(nodes, self._lines(nodes), strict=True)
        ]

    def read_entries(self, nodes: Iterable[Node]) -> Iterator[Entry]:
        """Yield the entries at these nodes, read in growing batches."""
        for batch in _growing_batches(nodes):
            yield from self.entries(batch)

    def read_bodies(self, nodes: Iterable[Node]) -> Iterator[EntryBody]:
        """Yield the same as it is stored."""
        for batch in _growing_batches(nodes):
            for node, _, body in self.bodies(batch):
                yield EntryBody(id=node.id, body=body)

    def bodies(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, EntryLine, bytes]]:
        """Yield nodes with their lines and encoded payloads."""
        for node, line in zip(nodes, self._lines(nodes), strict=True):
            yield node, line, bytes(line.payload)

    def groups(self) -> Iterator[Sequence[Located]]:
        """Read the whole file again, command by command."""
        return LineScan(self._file).groups()

    def text(self, offset: int, length: int) -> bytes:
        """Bytes of the file."""
        return read_spans(self._file, [Span(offset, length)])[0]

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lines(self, nodes: Sequence[Node]) -> list[EntryLine]:
        spans = [self.spans[node.key] for node in nodes]
        texts = read_spans(self._file, spans)
        return [self._line(text, span.offset) for text, span in zip(texts, spans, strict=True)]

    def _line(self, text: bytes, offset: int) -> EntryLine:
        try:
            line = decode_line(text)
        except BadLineError as error:
            raise DamagedDataError(self.place, offset, str(error)) from error
        assert isinstance(line, EntryLine)
        return line


def _growing_batches(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    rest = iter(nodes)
    size = _FIRST_BATCH
    while batch := list(islice(rest, size)):
        yield batch
        size = min(2 * size, _LARGEST_BATCH)


class TreeCache:
    """The trees that were used most recently, each brought up to date before it is returned."""

    def __init__(self, layout: Layout, blob_store: BlobStore) -> None:
        self._layout = layout
        self._blob_store = blob_store
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._pinned: set[str] = set()
        self.most = _most_trees()

    def pin(self, tree: Tree) -> None:
        """Return this tree unchecked until ``unpin``: a batch changes it before its file."""
        self._trees[tree.name] = tree
        self._pinned.add(tree.name)

    def unpin(self, name: str) -> None:
        """End a ``pin``."""
        self._pinned.discard(name)

    def new(self, name: str) -> Tree:
        """A tree that has no file yet."""
        tree = Tree(name, self._layout.tree(name))
        self._connect(tree)
        return tree

    def get(self, name: str) -> Tree | None:
        """The tree, up to date with its file, or None if there is no file."""
        tree = self._refreshed(name)
        if tree is None:
            return None
        self._trees[name] = tree
        self._trees.move_to_end(name)
        self._evict()
        return tree

    def peek(self, name: str) -> Tree | None:
        """Like ``get``, but without caching, for a walk over all trees; call ``release`` afterwards."""
        if name in self._trees:
            return self.get(name)
        return self.read(name)

    def read(self, name: str) -> Tree | None:
        """Load a file that the caller closes; None if there is none."""
        try:
            tree = Tree.read(name, self._layout.tree(name))
        except FileNotFoundError:
            return None
        self._connect(tree)
        return tree

    def release(self, tree: Tree) -> None:
        """Close the tree of a ``peek``, unless it is cached."""
        if self._trees.get(tree.name) is not tree:
            tree.close()

    def find(self, thread_id: str) -> Tree | None:
        """The tree of a thread: the one named after it, or the one that its pointer names; else None."""
        tree = self.get(name_of(thread_id))
        if tree is not None and thread_id in tree.state.states:
            return tree
        return self._of_fork(thread_id)

    def find_or_new(self, thread_id: str) -> Tree:
        """The tree of a thread, or the one that the thread is to be created in."""
        tree = self.get(name_of(thread_id))
        if tree is not None and thread_id in tree.state.states:
            return tree
        return self._of_fork(thread_id) or tree or self.new(name_of(thread_id))

    def _of_fork(self, thread_id: str) -> Tree | None:
        tree_id = self._layout.tree_of_fork(thread_id)
        if tree_id is None:
            return None
        tree = self.get(name_of(tree_id))
        return tree if tree is not None and thread_id in tree.state.states else None

    def with_thread(self, thread_id: str) -> Tree:
        """The tree of a thread; raise ThreadNotFoundError if there is none."""
        tree = self.find(thread_id)
        if tree is None:
            raise ThreadNotFoundError(thread_id)
        return tree

    def state_of(self, thread_id: str) -> ThreadState | None:
        """The state of a thread in whichever file it is."""
        tree = self.find(thread_id)
        return None if tree is None else tree.state.states[thread_id]

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the name and the stat result of every tree file."""
        with os.scandir(self._layout.trees) as found:
            for item in found:
                if not item.name.endswith(TREE_SUFFIX) or not item.is_file():
                    continue
                try:
                    yield item.name.removesuffix(TREE_SUFFIX), item.stat()
                except FileNotFoundError:
                    continue

    def roots(self, *, outside: str = "") -> BlobRoots:
        """The blobs that entries refer to, except those in one file if it is given."""
        manifests: set[str] = set()
        artifacts: set[str] = set()
        for name, _ in list(self.files()):
            tree = self.peek(name) if name != outside else None
            if tree is not None:
                # A damaged part may contain a reference, so nothing may be collected then.
                tree.check_writable()
                found = tree.state.all_roots()
                manifests |= found.manifests
                artifacts |= found.artifacts
                self.release(tree)
        return BlobRoots(frozenset(manifests), frozenset(artifacts))

    def forget(self, name: str) -> None:
        """Drop a tree from the cache and close it."""
        self._pinned.discard(name)
        tree = self._trees.pop(name, None)
        if tree is not None:
            tree.close()

    def clear(self) -> None:
        """Drop every tree."""
        for name in list(self._trees):
            self.forget(name)

    def _connect(self, tree: Tree) -> None:
        """Let the rules read beyond the tree's own file."""
        tree.state.find_elsewhere = self.state_of
        tree.state.blob_store = self._blob_store
        tree.state.roots_elsewhere = lambda: self.roots(outside=tree.name)

    def _evict(self) -> None:
        if len(self._trees) > self.most:
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
            now = os.stat(tree.place)  # noqa: PTH116  on the path of every append, and a Path costs more than the call
        except FileNotFoundError:
            self.forget(name)
            return None
        if now.st_ino == tree.inode and tree.is_current(now):
            return tree
        if tree.can_catch_up(now):
            tree.catch_up()
            return tree
        self.forget(name)
        return self.read(name)


def _most_trees() -> int:
    """How many trees may have their files open: the program needs descriptors for other things too."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_TREES if descriptors == resource.RLIM_INFINITY else min(_MAX_TREES, descriptors // 4)
