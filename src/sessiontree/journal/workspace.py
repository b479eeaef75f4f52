# Generated from workspace_async.py by tools/async_to_sync.py; do not edit.
"""``journal.workspace``: the verbs about checkpoints of folders."""

from __future__ import annotations

from typing import Literal

from sessiontree.journal._base import Verbs
from sessiontree.journal.operations import checkpoints, workspace
from sessiontree.journal.operations.checkpoints import Root, Snapshot
from sessiontree.journal.operations.workspace import Paths
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import Entry
from sessiontree.workspace import Conflicts, RestorePlan, Settings, TreeDiff
from sessiontree.workspace.open_workspace import WorkspaceCache

__all__ = ["Workspace"]


class Workspace:
    """Checkpoints of folders, tied to the entries of threads. ``cache`` is what the verbs keep between calls."""

    def __init__(self, journal: Verbs, settings: Settings | None) -> None:
        self.cache = WorkspaceCache(journal.store.place, settings)
        self._journal = journal

    def snapshot(self, thread_id: ThreadLike, entry_id: str | None, root: Root, *, label: str = "") -> Snapshot:
        """Take a checkpoint of a folder, as the files of an entry; ``None`` is the leaf."""
        operation = workspace.snapshot(self._journal.runtime, self.cache, id_of(thread_id), entry_id, root, label=label)
        return self._journal.run(operation)

    def checkpoints(self, thread_id: ThreadLike, root: Root | None = None) -> list[Entry]:
        """Return the checkpoint entries that a thread sees, oldest first; with ``root``, those of that folder."""
        return self._journal.run(checkpoints.checkpoints(id_of(thread_id), root))

    def plan(
        self,
        thread_id: ThreadLike,
        entry_id: str,
        root: Root,
        *,
        conflicts: Conflicts = "stop",
        paths: Paths | None = None,
    ) -> RestorePlan:
        """Return what a restore would create, change and delete, and its conflicts. Nothing is changed."""
        operation = workspace.plan(self.cache, id_of(thread_id), entry_id, root, conflicts=conflicts, paths=paths)
        return self._journal.run(operation)

    def restore(
        self,
        thread_id: ThreadLike,
        entry_id: str,
        root: Root,
        *,
        conflicts: Conflicts = "stop",
        paths: Paths | None = None,
        dry_run: bool = False,
    ) -> RestorePlan:
        """Restore the files of an entry; the leaf stays. A checkpoint is taken first: ``plan.before``.

        ``paths`` are files and folders to restore alone, relative to ``root``.
        """
        if dry_run:
            return self.plan(id_of(thread_id), entry_id, root, conflicts=conflicts, paths=paths)
        operation = workspace.restore(
            self._journal.runtime, self.cache, id_of(thread_id), entry_id, root, conflicts=conflicts, paths=paths
        )
        return self._journal.run(operation)

    def diff(
        self,
        thread_id: ThreadLike,
        entry_id: str,
        root: Root,
        *,
        other: str | None = None,
        other_thread: ThreadLike | None = None,
    ) -> TreeDiff:
        """Compare the files of an entry with those of another one, or with the folder as it is.

        ``other_thread`` is the thread of the other entry, if that is not the same one.
        """
        here = id_of(thread_id)
        there = here if other_thread is None else id_of(other_thread)
        operation = workspace.diff(self.cache, here, entry_id, root, other=other, other_thread=there)
        return self._journal.run(operation)

    def recover(self, root: Root, *, prefer: Literal["old", "new"] | None = None) -> Literal["", "old", "new"]:
        """Settle a restore that a crash interrupted, and return which files it left. Every other verb does this too.

        ``prefer`` decides where the store cannot be asked whether the leaf moved.
        """
        return self._journal.run(workspace.recover(self.cache, root, prefer))
