"""The writes of the JSONL store.

``Writer`` holds the process lock while a ``Batch`` decides commands one after the other and appends the lines of each
tree with one call; the sync follows after the lock is released. A failed write is undone and may be tried again. After
a failed sync it is unknown what is on the disk, so the store is poisoned and acknowledges nothing more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from sessiontree.errors import (
    CommitUnknownError,
    SessionTreeError,
    StoreError,
    StoreFullError,
    StorePoisonedError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sessiontree.stores._io import Files, ProcessLock, SyncFailedError
from sessiontree.stores._log import log_event
from sessiontree.stores._os_errors import translate_error
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.commands import (
    Change,
    Command,
    Committed,
    CommitTogether,
    DeleteDocument,
    DeleteThread,
    EraseContents,
    PurgeDocuments,
    PutBlobs,
    SetDocument,
    appended_ids,
)
from sessiontree.stores.jsonl.batch import Batch, texts_of
from sessiontree.stores.jsonl.commit_log import CommitLog
from sessiontree.stores.jsonl.commit_plan import CommitPlan, PlannedCommit, carry_out, planned
from sessiontree.stores.jsonl.documents import DocumentFolder
from sessiontree.stores.jsonl.erasure import ErasureFolder, PendingErasure, erase_copies
from sessiontree.stores.jsonl.layout import Layout
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.repair import cut_torn_end, erase_entries, removal_of, remove_thread, repair_tree
from sessiontree.stores.jsonl.thread_index import ThreadIndex
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.jsonl.unsynced import note_unsynced, write_unsynced
from sessiontree.stores.protocol import Durability, Outcome
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.append import put_blobs
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.rules.documents import delete_document, purge_documents, set_document
from sessiontree.stores.rules.state import (
    DropBlobs,
    DropThread,
    PutErased,
    PutPack,
    PutPending,
)

__all__ = ["Writer"]


_ALONE = (DeleteThread, EraseContents, PutBlobs, SetDocument, DeleteDocument, PurgeDocuments, CommitTogether)
"""Commands that replace or create whole files."""


class Writer:
    """Runs the commands of this process, one batch at a time."""

    def __init__(
        self,
        *,
        layout: Layout,
        process_lock: ProcessLock,
        log: CommitLog,
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
        self._log = log
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
                    changes = [one for one in run if not isinstance(one, CommitTogether)]
                    # Each command may open a file.
                    for start in range(0, len(changes), self._trees.most):
                        outcomes += self._write_batch(changes[start : start + self._trees.most])
            except StoreError as error:
                if not outcomes:
                    raise
                return outcomes + [error] * (len(commands) - len(outcomes))
        return outcomes

    def repair(self) -> list[Finding]:
        """Repair every tree file and return what was repaired."""
        repaired: list[Finding] = []
        with self._rewriting():
            self._log.empty()
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

    def snapshot(self, request: SnapshotRequest) -> Snapshot:
        """List the files of the store while nothing is being written."""
        from sessiontree.stores.jsonl.snapshot import take_snapshot  # noqa: PLC0415  only backups need it

        try:
            with self._exclusive():
                self._check_not_poisoned()
                return take_snapshot(self._layout, request)
        except OSError as error:
            raise translate_error(self._place, error) from error

    def save_index(self) -> None:
        """Write the cached summaries of trees. They stay unsaved if the store cannot be locked: reads do not need them."""
        try:
            with self._exclusive(), self._lock:
                self._index.save()
        except StoreUnavailableError as error:
            log_event("store", "warning", f"the index of threads was not saved: {error}", store=self._place)

    def _write_batch(self, commands: Sequence[Change]) -> list[Outcome]:
        with self._exclusive(), self._lock:
            self._check_not_poisoned()
            batch = Batch(self._trees, self._layout, self._log, self._files, is_synced=self._is_synced)
            try:
                outcomes = [batch.execute(command) for command in commands]
                # Before the entries are written: a crash in between only means that an artifact must be put again.
                if batch.artifacts:
                    self._packs.drop_pending(batch.artifacts)
                batch.append()
            except SyncFailedError as error:
                batch.undo()
                raise self._poisoned(error) from error
            except OSError as error:
                batch.undo()
                raise translate_error(self._place, error) from error
            except BaseException:
                batch.undo()
                raise
            self._note_torn_ends(batch.torn_ends)
        try:
            self._sync(batch)
        finally:
            batch.close()
        return outcomes

    def _note_torn_ends(self, number: int) -> None:
        if number:
            self.torn_ends_cut += number
            log_event("store", "warning", f"cut {number} torn ends of files, kept in torn/", store=self._place)

    def _sync(self, batch: Batch) -> None:
        if not self._is_synced:
            return
        try:
            for file in batch.unsynced:
                self._files.sync(file)
            if batch.has_log:
                self._log.sync()
        except OSError as error:
            note_unsynced(self._layout, batch.trees)
            raise self._poisoned(error) from error
        if batch.has_log and self._log.is_large:
            self._empty_log()

    def _empty_log(self) -> None:
        """Empty the log; what is in it is durable already, so a failure stops only what comes after."""
        try:
            with self._exclusive():
                self._log.empty()
        except OSError as error:
            self._poisoned(error)
        except StoreError:
            return

    def close(self) -> None:
        """Empty the log if this process wrote to it, and close it. If that fails, the next open does it."""
        if self._log.is_used and not self._poison:
            self._empty_log()
        self._log.close()

    def _write_alone(self, command: Command) -> Outcome:
        match command:
            case CommitTogether():
                return self._write_together(command)
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

    def _write_together(self, command: CommitTogether) -> Outcome:
        with self._rewriting():
            self._log.empty()
            batch = Batch(self._trees, self._layout, self._log, self._files, is_synced=self._is_synced)
            commit = PlannedCommit(batch, self._documents)
            try:
                results = tuple([commit.run(change) for change in command.changes])
                for pending in batch.pending:
                    for removal in pending.removals:
                        self._prepare_delete(pending.tree, removal.thread_id, has_blobs=pending.has_garbage)
                plan = commit.write(self._layout, self._files)
            except SessionTreeError as refusal:
                return refusal
            finally:
                # The plan is carried out on the files; the trees are loaded again.
                self.torn_ends_cut += batch.torn_ends
                batch.undo()
            try:
                self._carry_out(plan)
            except OSError as error:
                raise CommitUnknownError(self._place, str(error), appended_ids(command)) from error
        return Committed(results=results)

    def finish_commit(self) -> None:
        """Carry out what is left of a commit whose process died."""
        with self._exclusive():
            return

    def _finish_writes(self) -> None:
        """Finish what another process could not: files whose sync failed, and a commit of several files."""
        try:
            write_unsynced(self._layout, self._files)
        except OSError as error:
            raise self._poisoned(error) from error
        plan = planned(self._layout)
        if plan is None:
            return
        self._check_not_poisoned()
        try:
            with self._lock:
                self._log.empty()
                self._carry_out(plan)
        except OSError as error:
            raise translate_error(self._place, error) from error

    def _carry_out(self, plan: CommitPlan) -> None:
        names = (*(lines.tree for lines in plan.lines), *plan.rewritten, *plan.removed)
        try:
            carry_out(plan, self._layout, self._files, self._documents, self._packs)
        finally:
            for name in names:
                self._trees.forget(name)
                self._log.forget(name)

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
            self._prepare_delete(tree, command.thread_id, has_blobs=bool(blob_facts))
            try:
                remove_thread(tree, removal_of(drop, tree.state), self._layout, self._files)
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
            self._prepare_delete(tree, command.thread_id, has_blobs=has_blobs)
            try:
                if tree.torn is not None:
                    cut_torn_end(tree, self._layout, self._files)
                    self._note_torn_ends(1)
                erase_entries(tree, erased, texts_of(facts), self._files)
            finally:
                self._trees.forget(tree.name)
            return decision.result

    def _prepare_delete(self, tree: Tree, thread_id: str, *, has_blobs: bool) -> None:
        """Record what has to be erased, and remove what the log, which has offsets, and the index know about a file."""
        self._erasures.add(PendingErasure(tree=tree.name, thread_id=thread_id, has_blobs=has_blobs))
        self._log.empty()
        self._log.forget(tree.name)
        self._index.forget(tree.name)

    @contextmanager
    def _rewriting(self) -> Iterator[None]:
        """Replace whole files. A failure other than missing space or rights may be a failed sync, so it poisons."""
        with self._exclusive(), self._lock:
            self._check_not_poisoned()
            try:
                yield
            except SyncFailedError as error:
                raise self._poisoned(error) from error
            except OSError as error:
                known = translate_error(self._place, error)
                if isinstance(known, StoreFullError | StoreReadOnlyError):
                    raise known from error
                raise self._poisoned(error) from error

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Exclude all other writers: the threads of this process, and other processes."""
        with self._thread_lock, self._process_lock:
            self._finish_writes()
            yield

    def _poisoned(self, error: OSError) -> StorePoisonedError:
        self._poison = str(error)
        log_event("store", "error", "a write to disk failed; nothing more is acknowledged", store=self._place)
        return StorePoisonedError(self._place, self._poison)

    def _check_not_poisoned(self) -> None:
        if self._poison:
            raise StorePoisonedError(self._place, self._poison)
