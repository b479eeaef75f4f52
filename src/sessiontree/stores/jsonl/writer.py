"""The writes of the JSONL store.

``Writer`` holds the process lock while a ``Batch`` decides commands one after the other and appends the lines of each
tree with one call; the sync follows after the lock is released. A failed write is undone and may be tried again. After
a failed sync it is unknown what is on the disk, so the store is poisoned and acknowledges nothing more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

import msgspec
from msgspec.structs import replace

from sessiontree.errors import (
    CommitUnknownError,
    SessionTreeError,
    StoreError,
    StorePoisonedError,
    StoreUnavailableError,
)
from sessiontree.model import Thread
from sessiontree.stores._io import Files, ProcessLock
from sessiontree.stores.commands import (
    Append,
    Command,
    CreateThread,
    DeleteDocument,
    DeleteThread,
    EraseContents,
    Fork,
    ImportThread,
    PurgeDocuments,
    PutBlobs,
    SetDocument,
)
from sessiontree.stores.jsonl.documents import DocumentFolder
from sessiontree.stores.jsonl.erasure import ErasureFolder, PendingErasure, erase_copies
from sessiontree.stores.jsonl.errors import SyncFailedError, syncing, translate_error
from sessiontree.stores.jsonl.layout import Layout, name_of
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
from sessiontree.stores.jsonl.repair import cut_torn_end, erase_entries, point_to, remove_thread, repair_tree
from sessiontree.stores.jsonl.thread_index import ThreadIndex
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules import decide
from sessiontree.stores.rules.append import put_blobs
from sessiontree.stores.rules.documents import delete_document, purge_documents, set_document
from sessiontree.stores.rules.state import (
    DropBlobs,
    DropThread,
    Fact,
    PutEntry,
    PutErased,
    PutLease,
    PutMove,
    PutPack,
    PutPending,
    PutThread,
    ThreadState,
)

__all__ = ["Batch", "Writer"]


_ALONE = (DeleteThread, EraseContents, PutBlobs, SetDocument, DeleteDocument, PurgeDocuments)
"""Commands that replace or create whole files."""


class Writer:
    """Runs the commands of this process, one batch at a time."""

    def __init__(
        self,
        *,
        layout: Layout,
        process_lock: ProcessLock,
        trees: TreeCache,
        packs: PackFolder,
        documents: DocumentFolder,
        index: ThreadIndex,
        erasures: ErasureFolder,
        files: Files,
        durability: Durability,
        lock: threading.RLock,
    ) -> None:
        self.torn_ends_cut = 0
        self._layout = layout
        self._process_lock = process_lock
        self._trees = trees
        self._packs = packs
        self._documents = documents
        self._index = index
        self._erasures = erasures
        self._files = files
        self._is_synced = durability == "power_loss"
        self._lock = lock
        self._thread_lock = threading.Lock()
        self._place = str(layout.folder)
        self._poison = ""

    def erase_copies(self, erasure: PendingErasure) -> None:
        """Erase what a delete left outside its tree file and the search index."""
        with self._exclusive(), self._lock:
            erase_copies(erasure, self._layout, self._files, trees=self._trees, index=self._index, packs=self._packs)

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Run commands in order.

        Deletes, erasures and packs replace or create whole files and cannot be undone, so they run one by one; the commands
        between them are batches.
        """
        outcomes: list[Outcome] = []
        for is_alone, run in groupby(commands, key=lambda command: isinstance(command, _ALONE)):
            try:
                if is_alone:
                    outcomes += [self._write_alone(command) for command in run]
                else:
                    outcomes += self._write_batch(list(run))
            except StoreError as error:
                if not outcomes:
                    raise
                return outcomes + [error] * (len(commands) - len(outcomes))
        return outcomes

    def repair(self) -> list[Finding]:
        """Repair every tree file and return what was repaired."""
        repaired: list[Finding] = []
        with self._rewriting():
            for name, _ in list(self._trees.files()):
                self._trees.forget(name)
                tree = self._trees.read(name)
                if tree is None:
                    continue
                try:
                    repaired += repair_tree(tree, self._layout, self._files)
                finally:
                    tree.close()
        return repaired

    def save_index(self) -> None:
        """Write the cached summaries of trees."""
        with self._exclusive(), self._lock:
            self._index.save()

    def _write_batch(self, commands: Sequence[Command]) -> list[Outcome]:
        batch = Batch(self._trees, self._layout, self._files, is_synced=self._is_synced)
        with self._exclusive(), self._lock:
            self._check_not_poisoned()
            try:
                outcomes = [batch.execute(command) for command in commands]
                # Before the entries are written: a crash in between only means that an artifact must be put again.
                if batch.artifacts:
                    self._packs.drop_pending(batch.artifacts)
                files = batch.append()
            except SyncFailedError as error:
                batch.undo()
                raise self._poisoned(error) from error
            except OSError as error:
                batch.undo()
                raise translate_error(self._place, error) from error
            except BaseException:
                batch.undo()
                raise
            self.torn_ends_cut += batch.torn_ends
        self._sync(files)
        return outcomes

    def _sync(self, files: Sequence[int]) -> None:
        try:
            if self._is_synced:
                for file in files:
                    self._files.sync(file)
        except OSError as error:
            raise self._poisoned(error) from error
        finally:
            for file in files:
                os.close(file)

    def _write_alone(self, command: Command) -> Outcome:
        match command:
            case PutBlobs():
                return self._put_blobs(command)
            case EraseContents():
                return self._erase(command)
            case SetDocument() | DeleteDocument() | PurgeDocuments():
                return self._change_documents(command)
            case _:
                assert isinstance(command, DeleteThread)
                return self._delete(command)

    def _change_documents(self, command: SetDocument | DeleteDocument | PurgeDocuments) -> Outcome:
        with self._rewriting():
            try:
                match command:
                    case SetDocument():
                        decision = set_document(command, self._documents)
                    case DeleteDocument():
                        decision = delete_document(command, self._documents)
                    case PurgeDocuments():
                        decision = purge_documents(command)
            except SessionTreeError as refusal:
                return refusal
            for fact in decision.facts:
                self._documents.apply(fact)
        return decision.result

    def _put_blobs(self, command: PutBlobs) -> Outcome:
        with self._rewriting():
            decision = put_blobs(command, self._packs)
            for fact in decision.facts:
                match fact:
                    case PutPack(pack=pack):
                        self._packs.put(pack)
                    case PutPending(hashes=hashes):
                        self._packs.put_pending(hashes)
        return decision.result

    def _delete(self, command: DeleteThread) -> Outcome:
        with self._rewriting():
            try:
                tree = self._trees.with_thread(command.thread_id)
                tree.check_writable()
                decision = decide(command, tree.state)
            except SessionTreeError as refusal:
                return refusal
            drop, *blob_facts = decision.facts
            assert isinstance(drop, DropThread)
            self._erasures.add(PendingErasure(tree=tree.name, thread_id=command.thread_id, has_blobs=bool(blob_facts)))
            self._index.forget(tree.name)
            try:
                remove_thread(tree, command.thread_id, drop.entries, self._layout, self._files)
            finally:
                self._trees.forget(tree.name)
            return decision.result

    def _erase(self, command: EraseContents) -> Outcome:
        with self._rewriting():
            try:
                tree = self._trees.with_thread(command.thread_id)
                tree.check_writable()
                decision = decide(command, tree.state)
            except SessionTreeError as refusal:
                return refusal
            if not decision.facts:
                return decision.result
            erased, *facts = decision.facts
            assert isinstance(erased, PutErased)
            has_blobs = any(isinstance(fact, DropBlobs) for fact in facts)
            self._erasures.add(PendingErasure(tree=tree.name, thread_id=command.thread_id, has_blobs=has_blobs))
            self._index.forget(tree.name)
            try:
                if tree.torn is not None:
                    cut_torn_end(tree, self._layout, self._files)
                    self.torn_ends_cut += 1
                erase_entries(tree, erased, _texts_of(facts), self._files)
            finally:
                self._trees.forget(tree.name)
            return decision.result

    @contextmanager
    def _rewriting(self) -> Iterator[None]:
        """Replace whole files. A failure other than missing space or rights may be a failed sync, so it poisons."""
        with self._exclusive(), self._lock:
            self._check_not_poisoned()
            try:
                yield
            except OSError as error:
                known = translate_error(self._place, error)
                if not isinstance(known, StoreUnavailableError):
                    raise known from error
                raise self._poisoned(error) from error

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Exclude all other writers: the threads of this process, and other processes."""
        with self._thread_lock, self._process_lock:
            yield

    def _poisoned(self, error: OSError) -> StorePoisonedError:
        self._poison = str(error)
        return StorePoisonedError(self._place, self._poison)

    def _check_not_poisoned(self) -> None:
        if self._poison:
            raise StorePoisonedError(self._place, self._poison)


class Batch:
    """Commands that are written together, under the process lock.

    Call ``execute`` for each command, then ``append``; on any failure ``undo``.
    """

    def __init__(self, trees: TreeCache, layout: Layout, files: Files, *, is_synced: bool) -> None:
        self.torn_ends = 0
        self.artifacts: set[str] = set()
        self._trees = trees
        self._layout = layout
        self._files = files
        self._is_synced = is_synced
        self._pending: dict[str, _PendingLines] = {}
        self._opened: list[tuple[int, int]] = []
        self._entry_ids: list[str] = []

    def execute(self, command: Command) -> Outcome:
        """Decide a command and keep its lines for ``append``; return its result or the refusal."""
        try:
            pending = self._pending_for(command)
            tree = pending.tree
            decision = decide(command, tree.state)
            texts = _texts_of(decision.facts)
        except OSError:
            raise
        except Exception as refusal:  # noqa: BLE001  nothing is written yet; the other commands of the batch go on
            return refusal
        for fact, text in zip(decision.facts, texts, strict=True):
            self._apply(fact, text, pending)
        if isinstance(command, Append):
            self._entry_ids += [draft.id for draft in command.drafts]
        return decision.result

    def append(self) -> list[int]:
        """Write the lines of every tree and return the open files, for the caller to sync and close.

        A tree without new lines is synced too: a result may depend on a line that another process has not synced yet.
        """
        for pending in self._pending.values():
            if pending.texts or pending.tree.end:
                self._append_lines(pending)
        for name, pending in self._pending.items():
            self._trees.unpin(name)
            if pending.tree.end == 0:
                self._trees.forget(name)
            elif pending.texts:
                pending.tree.drafts.clear()
                pending.tree.grown_to(pending.end, pending.texts[-1])
        return [file for file, _ in self._opened]

    def undo(self) -> None:
        """Cut the files to their former size and forget the loaded trees."""
        for name in self._pending:
            self._trees.forget(name)
        try:
            for file, size in self._opened:
                self._files.truncate(file, size)
        except OSError as error:
            raise CommitUnknownError(str(self._layout.folder), str(error), self._entry_ids) from error
        finally:
            for file, _ in self._opened:
                os.close(file)
            self._opened.clear()

    def _append_lines(self, pending: _PendingLines) -> None:
        tree = pending.tree
        file = self._files.open_append(tree.path)
        self._opened.append((file, tree.end))
        # Before the first line is written: the next append assumes that the file name is durable.
        if tree.end == 0 and self._is_synced:
            with syncing():
                self._files.sync_folder(tree.path.parent)
        if pending.texts:
            self._files.append(file, b"".join(pending.texts))

    def _pending_for(self, command: Command) -> _PendingLines:
        tree = self._tree_for(command)
        pending = self._pending.get(tree.name)
        if pending is None:
            tree.check_writable()
            if tree.torn is not None:
                cut_torn_end(tree, self._layout, self._files)
                self.torn_ends += 1
            self._trees.pin(tree)
            pending = self._pending[tree.name] = _PendingLines(tree)
        return pending

    def _tree_for(self, command: Command) -> Tree:
        match command:
            case CreateThread(thread=thread) | Append(create=Thread() as thread):
                name = name_of(thread.id)
                found = self._trees.find(thread.id) or self._trees.get(name)
                return found or Tree(name, self._layout.tree(name))
            case ImportThread(thread=thread):
                name = name_of(thread.tree)
                return self._trees.get(name) or Tree(name, self._layout.tree(name))
            case Fork(source_id=thread_id):
                return self._trees.with_thread(thread_id)
            case PutBlobs() | SetDocument() | DeleteDocument() | PurgeDocuments():
                raise AssertionError("blobs and documents are written by Writer: they belong to no tree")
            case _:
                return self._trees.with_thread(command.thread_id)

    def _apply(self, fact: Fact, text: bytes, pending: _PendingLines) -> None:
        tree = pending.tree
        match fact:
            case PutThread(state=state):
                self._write_first(state, pending)
            case PutEntry(node=node, draft=draft):
                tree.drafts[node.key] = draft
                tree.spans[node.key] = (pending.end, len(text) - 1)
                self.artifacts.update(draft.artifacts)
        tree.state.apply(fact)
        if text:
            pending.add(text)

    def _write_first(self, state: ThreadState, pending: _PendingLines) -> None:
        """Write what must precede a thread's first line: the header of a new file, the pointer to a fork."""
        thread_id, tree_id = state.meta.id, state.meta.tree
        if pending.end == 0:
            pending.add(encode_line(TreeLine(format=FORMAT, tree=tree_id)))
        if thread_id != tree_id and thread_id not in pending.tree.state.states:
            point_to(tree_id, thread_id, self._layout, self._files)


class _PendingLines:
    """The lines that a tree file is about to get."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.texts: list[bytes] = []
        self.end = tree.end

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.end += len(text)


def _texts_of(facts: Sequence[Fact]) -> list[bytes]:
    """The line of each fact, empty if it needs none; the first line has the number of lines."""
    lines = [_line_of(fact) for fact in facts]
    count = sum(line is not None for line in lines)
    texts: list[bytes] = []
    for line in lines:
        is_first = line is not None and not any(texts)
        texts.append(b"" if line is None else encode_line(replace(line, lines=count) if is_first else line))
    return texts


def _line_of(fact: Fact) -> Line | None:
    match fact:
        case PutThread(state=state):
            base = state.base.id if state.base else None
            return ThreadLine(thread=state.meta, base=base, updated=state.updated_ns)
        case PutEntry(state=state, node=node, parent_id=parent_id, draft=draft, is_aside=is_aside):
            return EntryLine(
                n=node.key,
                id=draft.id,
                thread=state.meta.id,
                parent=parent_id,
                at=draft.created_ns,
                turn=draft.turn_id,
                messages=draft.messages,
                tokens=draft.tokens,
                is_aside=is_aside,
                payload=msgspec.Raw(draft.body),
            )
        case PutMove(move=move):
            return MoveLine(
                thread=move.thread_id,
                number=move.number,
                from_entry=move.from_entry,
                to_entry=move.to_entry,
                reason=move.reason,
                at=move.at_ns,
            )
        case PutLease(state=state, lease=lease):
            return LeaseLine(thread=state.meta.id, lease=lease)
        case _:
            return None
