"""Write the content of another kind of store as a JSONL store, for its backups.

The order of the entries of one thread is known, but not in every store the order of those of several threads and of moves.
So entries are written parents first, as entries beside the path; the leaf of a thread then follows from its last move, or
from the one entry that is written as a plain append.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sessiontree.model import Lease, Move
from sessiontree.model.blobs import Blob, pack_of
from sessiontree.model.documents import StoredDocument
from sessiontree.stores._io import Files
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.check import Content
from sessiontree.stores.jsonl.documents import DocumentFolder
from sessiontree.stores.jsonl.layout import name_of, open_folder
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    EntryLine,
    LeaseLine,
    Line,
    MoveLine,
    ThreadLine,
    TreeLine,
    encode_line,
)
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.repair import point_to
from sessiontree.stores.jsonl.snapshot import take_snapshot
from sessiontree.stores.rules.state import Node, PutDocument, ThreadState

__all__ = ["Dump", "Owners"]


class Owners(msgspec.Struct, frozen=True):
    """What ``Content`` does not tell, by the key of an entry or thread.

    The tree of each entry, its number among the entries of its thread, and the names of threads, also of deleted ones.
    """

    trees: Mapping[int, int]
    numbers: Mapping[int, int]
    names: Mapping[int, str]


class Dump:
    """A JSONL store in the scratch folder of a backup."""

    def __init__(self, request: SnapshotRequest) -> None:
        self._request = request
        self._files = _UnsyncedFiles()
        folder = request.scratch / "store"
        shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was cut off
        self._layout, lock = open_folder(folder, self._files)
        lock.close()
        self._packs = PackFolder(self._layout.blobs, self._files)

    def add_content(self, content: Content, owners: Owners) -> None:
        """Write all threads and entries."""
        nodes: dict[int, list[Node]] = {}
        for node in content.nodes.values():
            nodes.setdefault(owners.trees[node.key], []).append(node)
        states: dict[int, list[ThreadState]] = {}
        for state in content.states.values():
            states.setdefault(state.tree, []).append(state)
        for tree, threads in states.items():
            tree_id = threads[0].meta.tree
            lines = _TreeLines(content, owners, threads, nodes.get(tree, [])).lines(tree_id)
            self._layout.tree(name_of(tree_id)).write_bytes(b"".join(map(encode_line, lines)))
            for thread in threads:
                if thread.meta.id != tree_id:
                    point_to(tree_id, thread.meta.id, self._layout, self._files)

    def add_blobs(self, blobs: Iterable[Blob]) -> None:
        """Write blobs, those with the same first digits into one pack: a new blob changes few packs."""
        for _, group in groupby(sorted(blobs, key=lambda blob: blob.hash), key=lambda blob: blob.hash[:2]):
            self._packs.put(pack_of(list(group)))

    def add_pending(self, hashes: Iterable[str]) -> None:
        """Write which artifacts no entry has referred to yet."""
        self._packs.put_pending(frozenset(hashes))

    def add_documents(self, documents: Iterable[StoredDocument]) -> None:
        """Write documents."""
        folder = DocumentFolder(self._layout.documents, self._files)
        for document in documents:
            folder.apply(PutDocument(document))

    def snapshot(self, place: str) -> Snapshot:
        """Return the files, of a store at ``place``. They are new, so they are always read."""
        found = take_snapshot(self._layout, self._request)
        return replace(found, place=place, files=tuple(replace(file, stamp="") for file in found.files))


class _UnsyncedFiles(Files):
    """Files that need not survive a crash."""

    def sync(self, file: int) -> None: ...

    def sync_folder(self, folder: Path) -> None: ...


class _TreeLines:
    """The lines of one tree."""

    def __init__(self, content: Content, owners: Owners, threads: list[ThreadState], nodes: list[Node]) -> None:
        self._content = content
        self._names = owners.names
        self._threads = sorted(threads, key=lambda state: state.meta.id)
        self._waiting: dict[int, deque[Node]] = {}
        for node in sorted(nodes, key=lambda node: (self._names[node.owner], owners.numbers[node.key])):
            self._waiting.setdefault(node.owner, deque()).append(node)
        self._living = {state.key for state in threads}
        self._last = {state.leaf.key: state for state in threads if state.leaf is not None and self._is_appended(state)}
        self._written: set[str] = set()
        self._begun: set[int] = set()
        self._moved: set[int] = set()

    def lines(self, tree_id: str) -> Iterator[Line]:
        yield TreeLine(format=FORMAT, tree=tree_id)
        has_progress = True
        while has_progress:
            has_progress = False
            yield from self._beginnings()
            for nodes in self._waiting.values():
                while nodes and self._is_ready(nodes[0]):
                    yield from self._entry(nodes.popleft())
                    has_progress = True
        for state in self._threads:
            yield from self._moves(state)
            yield from self._lease(state)
            yield ThreadLine(thread=state.meta, updated=state.updated_ns)

    def _is_appended(self, state: ThreadState) -> bool:
        """Whether the leaf is an entry of this thread that became the leaf by its append."""
        if state.leaf is None or state.leaf == state.base:
            return False
        moves = self._reflog(state)
        return not moves or moves[-1].to_entry != state.leaf.id

    def _is_ready(self, node: Node) -> bool:
        parent = None if node.parent is None else self._content.nodes[node.parent]
        if parent is not None and parent.id not in self._written:
            return False
        if node.owner in self._living and node.owner not in self._begun:
            return False
        state = self._last.get(node.key)
        return state is None or all(move.to_entry in self._written for move in self._reflog(state) if move.to_entry)

    def _beginnings(self) -> Iterator[Line]:
        for state in self._threads:
            if state.key not in self._begun and (state.base is None or state.base.id in self._written):
                self._begun.add(state.key)
                base = None if state.base is None else state.base.id
                yield ThreadLine(thread=replace(state.meta, updated_ns=0), base=base)

    def _entry(self, node: Node) -> Iterator[Line]:
        state = self._last.get(node.key)
        if state is not None:
            yield from self._moves(state)
        draft = self._content.draft(node)
        self._written.add(node.id)
        yield EntryLine(
            n=len(self._written),
            id=node.id,
            thread=self._names[node.owner],
            parent=None if node.parent is None else self._content.nodes[node.parent].id,
            at=draft.created_ns,
            turn=draft.turn_id,
            messages=draft.messages,
            tokens=draft.tokens,
            is_kept=node.owner not in self._living,
            is_aside=state is None,
            payload=msgspec.Raw(draft.body),
        )

    def _moves(self, state: ThreadState) -> Iterator[Line]:
        if state.key in self._moved:
            return
        self._moved.add(state.key)
        for move in self._reflog(state):
            yield MoveLine(
                thread=state.meta.id,
                number=move.number,
                from_entry=move.from_entry,
                to_entry=move.to_entry,
                reason=move.reason,
                at=move.at_ns,
            )

    def _lease(self, state: ThreadState) -> Iterator[Line]:
        """The lease, or one that has ended, so that tokens go on growing."""
        lease = self._content.leases.get(state.key)
        if lease is not None:
            yield LeaseLine(thread=state.meta.id, lease=lease)
        elif state.fence:
            ended = Lease(thread_id=state.meta.id, turn_id="", owner="", token=state.fence, created_ns=0, expires_ns=0)
            yield LeaseLine(thread=state.meta.id, lease=ended)
            yield LeaseLine(thread=state.meta.id)

    def _reflog(self, state: ThreadState) -> list[Move]:
        return list(self._content.reflogs.get(state.key, ()))
