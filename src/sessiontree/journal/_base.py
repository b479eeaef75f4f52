# Generated from _base_async.py by tools/async_to_sync.py; do not edit.
"""The base class of a journal's verbs: the store, the runtime, and a way to run an operation."""

from __future__ import annotations

import os
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from sessiontree.journal.documents import Documents
from sessiontree.journal.driver import drive
from sessiontree.journal.operations import reads
from sessiontree.journal.operations.requests import Backoff, Operation, Runtime
from sessiontree.model._base import Progress
from sessiontree.model.ids import Clock, IdSource, RandomSource, system_clock
from sessiontree.model.observed import Observer
from sessiontree.stores.protocol import Store
from sessiontree.stores.queries import Finding, StoreStats
from sessiontree.workspace import Settings

if TYPE_CHECKING:
    from sessiontree.journal.workspace import Workspace
    from sessiontree.stores.backup.manifest import BackupReport

__all__ = ["Verbs"]

T = TypeVar("T")


class Verbs:
    """Base class of the groups of verbs. ``run`` runs operations on ``store``; they share the journal's ``runtime``."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = system_clock,
        random: RandomSource = os.urandom,
        workspace_settings: Settings | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.store = store
        self._observer = observer
        self._workspace_settings = workspace_settings
        self.runtime = Runtime(clock=clock, ids=IdSource(clock, random), backoff=Backoff())

    @property
    def clock(self) -> Clock:
        """The source of times, in nanoseconds since the epoch."""
        return self.runtime.clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def workspace(self) -> Workspace:
        """Checkpoints of folders: snapshot, plan, restore, diff, recover."""
        from sessiontree.journal.workspace import Workspace  # noqa: PLC0415  only programs with files load it

        return Workspace(self, self._workspace_settings)

    @cached_property
    def documents(self) -> Documents:
        """Small JSON documents: put, get, delete, list."""
        return Documents(self)

    def stats(self) -> StoreStats:
        """Return how much is in the store."""
        return self.run(reads.stats())

    def check(self, *, progress: Progress | None = None) -> list[Finding]:
        """Return everything in the store that breaks an invariant; an empty list if nothing does.

        ``progress(done, total)`` is called with numbers of entries, or of bytes of files.
        """
        return self.run(reads.check(progress))

    def repair(self) -> list[Finding]:
        """Repair what can be repaired in place, and return what was repaired. Writes wait until it is done.

        JSONL: torn lines are moved aside. SQLite: indexes, ids and heads are rebuilt. Both discard the search index,
        which the next search rebuilds. Other damage stays; ``copy_store`` saves what is readable into a new store.
        """
        return self.store.repair()

    def backup(
        self, target: str | os.PathLike[str], *, keep: int | None = None, progress: Progress | None = None
    ) -> BackupReport:
        """Back up the store into a folder, while it is being used; every entry acknowledged before the call is in it.

        The folder holds any number of backups of one store. What an earlier one has already is not copied again, and an
        interrupted backup is completed by the next. ``keep`` removes all but the last backups afterwards.
        ``progress(done, total)`` is called with byte counts. ``restore_backup`` makes a store of it again. Raises
        BackupError, and leaves earlier backups alone, if the folder is in use for something else.
        """
        from sessiontree.journal.operations.backup import backup  # noqa: PLC0415  few programs make backups

        return self.run(backup(self.runtime, self.store.place, target, keep, progress))

    def freeze(self, folder: str | os.PathLike[str]) -> str:
        """Write the store as it is at one moment into an empty folder, and return the address of that store.

        For programs that read a whole store while others write to it, such as ``copy_store``.
        """
        from sessiontree.journal.operations.backup import freeze  # noqa: PLC0415  few programs copy stores

        return self.run(freeze(folder))

    def close(self) -> None:
        """Finish pending writes and close the store. A second call does nothing."""
        self.store.close()

    def run(self, operation: Operation[T]) -> T:
        """Run an operation on this journal's store and return its answer.

        Every verb is an operation. Procedures of several steps are operations too, made of others by ``yield from``.
        """
        if self._observer is None:
            return drive(operation, self.store)
        from sessiontree.stores.observing import observed  # noqa: PLC0415  most programs have no observer

        with observed(self._observer, getattr(operation, "__name__", "operation"), self.store.place):
            return drive(operation, self.store)
