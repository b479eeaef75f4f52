"""The writing half of the backend: one process at a time behind the gate, the sync after it.

What goes wrong is told apart: a failed write is taken back and may be tried again; after a failed sync nobody knows
what is on the disk, so nothing more is acknowledged.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from sessiontree._engine.filelock import Gate
from sessiontree._engine.fs import Files
from sessiontree.commands import Command, DeleteThread, PutBlobs
from sessiontree.errors import (
    SessionTreeError,
    StoreError,
    StoreFullError,
    StorePoisonedError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sessiontree.queries import Finding
from sessiontree.rules import decide
from sessiontree.rules.blobs import put_blobs
from sessiontree.rules.state import DropBlobs, DropThread, PutPack
from sessiontree.store import Durability, Outcome
from sessiontree.stores.jsonl.batch import Batch
from sessiontree.stores.jsonl.catalogue import Catalogue
from sessiontree.stores.jsonl.doctor import mend
from sessiontree.stores.jsonl.layout import Layout
from sessiontree.stores.jsonl.mending import SyncFailedError, remove_thread
from sessiontree.stores.jsonl.packs import PackFolder
from sessiontree.stores.jsonl.shelf import Shelf

__all__ = ["Writer", "store_error"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def store_error(place: str, error: OSError) -> StoreError:
    """What the operating system said, as one of our errors."""
    if error.errno in _FULL:
        return StoreFullError(place)
    if error.errno in _READ_ONLY:
        return StoreReadOnlyError(place)
    return StoreUnavailableError(place, str(error))


class Writer:
    def __init__(
        self,
        *,
        layout: Layout,
        gate: Gate,
        shelf: Shelf,
        packs: PackFolder,
        catalogue: Catalogue,
        files: Files,
        durability: Durability,
        lock: threading.RLock,
    ) -> None:
        self.torn_ends_cut = 0
        self._layout = layout
        self._gate = gate
        self._shelf = shelf
        self._packs = packs
        self._catalogue = catalogue
        self._files = files
        self._is_synced = durability == "power_loss"
        self._lock = lock
        self._entering = threading.Lock()
        self._place = str(layout.folder)
        self._poison = ""
        self._deleted: list[tuple[str, tuple[int, ...]]] = []

    def take_deleted(self) -> list[tuple[str, tuple[int, ...]]]:
        """Trees that lost entries since the last call, and the numbers of these."""
        deleted, self._deleted = self._deleted, []
        return deleted

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Deletes and packs are files of their own that cannot be taken back: what stands between them is a group."""
        outcomes: list[Outcome] = []
        for is_alone, run in groupby(commands, key=lambda command: isinstance(command, DeleteThread | PutBlobs)):
            try:
                if is_alone:
                    outcomes += [self._carry_out_alone(command) for command in run]
                else:
                    outcomes += self._write(list(run))
            except StoreError as error:
                if not outcomes:
                    raise
                return outcomes + [error] * (len(commands) - len(outcomes))
        return outcomes

    def repair(self) -> list[Finding]:
        mended: list[Finding] = []
        with self._rewriting():
            for name, _ in list(self._shelf.names()):
                self._shelf.forget(name)
                tree = self._shelf.read(name)
                if tree is None:
                    continue
                try:
                    mended += mend(tree, self._layout, self._files)
                finally:
                    tree.close()
        return mended

    def save_catalogue(self) -> None:
        with self._alone(), self._lock:
            self._catalogue.save()

    def _write(self, commands: Sequence[Command]) -> list[Outcome]:
        batch = Batch(self._shelf, self._layout, self._files, is_synced=self._is_synced)
        with self._alone(), self._lock:
            self._check_sound()
            try:
                outcomes = [batch.carry_out(command) for command in commands]
                files = batch.append()
            except SyncFailedError as error:
                batch.undo()
                raise self._poisoned(error) from error
            except OSError as error:
                batch.undo()
                raise store_error(self._place, error) from error
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

    def _carry_out_alone(self, command: Command) -> Outcome:
        if isinstance(command, PutBlobs):
            return self._put_blobs(command)
        assert isinstance(command, DeleteThread)
        return self._delete(command)

    def _put_blobs(self, command: PutBlobs) -> Outcome:
        with self._rewriting():
            decision = put_blobs(command, self._packs)
            for fact in decision.facts:
                assert isinstance(fact, PutPack)
                self._packs.put(fact.pack)
        return decision.result

    def _delete(self, command: DeleteThread) -> Outcome:
        with self._rewriting():
            try:
                tree = self._shelf.holding(command.thread_id)
                tree.check_writable()
                decision = decide(command, tree.state)
            except SessionTreeError as refusal:
                return refusal
            drop = decision.facts[0]
            assert isinstance(drop, DropThread)
            # The cache goes first: a crash in between must not leave there what is gone from the tree.
            self._catalogue.forget(tree.name)
            try:
                remove_thread(tree, command.thread_id, drop.entries, self._layout, self._files)
            finally:
                self._shelf.forget(tree.name)
            self._deleted.append((tree.name, drop.entries))
            for fact in decision.facts[1:]:
                assert isinstance(fact, DropBlobs)
                self._packs.drop(fact.hashes)
            return decision.result

    @contextmanager
    def _rewriting(self) -> Iterator[None]:
        """Behind the gate; a failure other than a lack of space or rights may be a failed sync, and poisons."""
        with self._alone(), self._lock:
            self._check_sound()
            try:
                yield
            except OSError as error:
                known = store_error(self._place, error)
                if not isinstance(known, StoreUnavailableError):
                    raise known from error
                raise self._poisoned(error) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The only one at the files: of the threads here, and of all processes."""
        with self._entering, self._gate:
            yield

    def _poisoned(self, error: OSError) -> StorePoisonedError:
        self._poison = str(error)
        return StorePoisonedError(self._place, self._poison)

    def _check_sound(self) -> None:
        if self._poison:
            raise StorePoisonedError(self._place, self._poison)
