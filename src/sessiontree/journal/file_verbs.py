"""``journal.workspace``: the verbs about files, one method a verb."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from sessiontree.journal.operations import checkpoints, workspace
from sessiontree.journal.operations.checkpoints import Snapshot
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.journal.operations.workspace import TurnFiles
from sessiontree.model import Entry, Thread
from sessiontree.workspace import Conflicts, RestorePlan, Settings, TreeDiff
from sessiontree.workspace.open_workspace import WorkspaceCache

__all__ = ["AsyncWorkspace", "Workspace"]


T = TypeVar("T")
Root = str | os.PathLike[str]


class Workspace:
    """Checkpoints of folders, tied to the entries of threads. ``AsyncWorkspace`` has the same verbs."""

    def __init__(
        self, run: Callable[[Operation[Any]], Any], sources: Runtime, place: str, settings: Settings | None = None
    ) -> None:
        self.desk = WorkspaceCache(place, settings)
        self._run = run
        self._sources = sources

    def snapshot(self, thread_id: str, entry_id: str | None, root: Root, *, label: str = "") -> Snapshot:
        """Keep what the folder holds now, as the state of files at an entry; ``None`` is the leaf."""
        return self._do(workspace.snapshot(self._sources, self.desk, thread_id, entry_id, root, label=label))

    def checkpoints(self, thread_id: str, root: Root | None = None) -> list[Entry]:
        """The checkpoint entries that a thread can see, oldest first."""
        return self._do(checkpoints.checkpoints(thread_id, root))

    def plan(self, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts = "stop") -> RestorePlan:
        """What a restore would create, change and delete, and where it would be in conflict. Changes nothing."""
        return self._do(workspace.plan(self.desk, thread_id, entry_id, root, conflicts=conflicts))

    def restore(
        self,
        thread_id: str,
        entry_id: str,
        root: Root,
        *,
        conflicts: Conflicts = "stop",
        dry_run: bool = False,
    ) -> RestorePlan:
        """Bring the files of an entry back; the conversation stays. A checkpoint is taken first: ``plan.before``."""
        if dry_run:
            return self.plan(thread_id, entry_id, root, conflicts=conflicts)
        operation = workspace.restore(self._sources, self.desk, thread_id, entry_id, root, conflicts=conflicts)
        return self._do(operation)

    def diff(self, thread_id: str, entry_id: str, root: Root, *, other: str | None = None) -> TreeDiff:
        """What differs from one entry's files to another's, or to the folder as it is."""
        return self._do(workspace.diff(self.desk, thread_id, entry_id, root, other=other))

    def recover(self, root: Root, *, prefer: Literal["old", "new"] | None = None) -> Literal["", "old", "new"]:
        """Settle a restore that a crash interrupted; every other verb does it too. Tells which files it left."""
        return self._do(workspace.recover(self.desk, root, prefer))

    def rewinding(self, thread_id: str, entry_id: str, root: Root, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.rewind(files=root)`` does."""
        return workspace.rewind(self._sources, self.desk, thread_id, entry_id, root, conflicts=conflicts)

    def undoing(self, thread_id: str, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.undo`` does."""
        return workspace.undo(self._sources, self.desk, thread_id, conflicts=conflicts)

    def redoing(self, thread_id: str, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.redo`` does."""
        return workspace.redo(self._sources, self.desk, thread_id, conflicts=conflicts)

    def for_turn(self, root: Root) -> TurnFiles:
        """What ``journal.turn(files=root)`` needs."""
        return TurnFiles(self.desk, root)

    def _do(self, operation: Operation[T]) -> T:
        answer: T = self._run(operation)
        return answer


class AsyncWorkspace:
    """Checkpoints of folders, tied to the entries of threads. ``Workspace`` has the same verbs."""

    def __init__(
        self,
        run: Callable[[Operation[Any]], Awaitable[Any]],
        sources: Runtime,
        place: str,
        settings: Settings | None = None,
    ) -> None:
        self.desk = WorkspaceCache(place, settings)
        self._run = run
        self._sources = sources

    async def snapshot(self, thread_id: str, entry_id: str | None, root: Root, *, label: str = "") -> Snapshot:
        """Keep what the folder holds now, as the state of files at an entry; ``None`` is the leaf."""
        return await self._do(workspace.snapshot(self._sources, self.desk, thread_id, entry_id, root, label=label))

    async def checkpoints(self, thread_id: str, root: Root | None = None) -> list[Entry]:
        """The checkpoint entries that a thread can see, oldest first."""
        return await self._do(checkpoints.checkpoints(thread_id, root))

    async def plan(self, thread_id: str, entry_id: str, root: Root, *, conflicts: Conflicts = "stop") -> RestorePlan:
        """What a restore would create, change and delete, and where it would be in conflict. Changes nothing."""
        return await self._do(workspace.plan(self.desk, thread_id, entry_id, root, conflicts=conflicts))

    async def restore(
        self,
        thread_id: str,
        entry_id: str,
        root: Root,
        *,
        conflicts: Conflicts = "stop",
        dry_run: bool = False,
    ) -> RestorePlan:
        """Bring the files of an entry back; the conversation stays. A checkpoint is taken first: ``plan.before``."""
        if dry_run:
            return await self.plan(thread_id, entry_id, root, conflicts=conflicts)
        operation = workspace.restore(self._sources, self.desk, thread_id, entry_id, root, conflicts=conflicts)
        return await self._do(operation)

    async def diff(self, thread_id: str, entry_id: str, root: Root, *, other: str | None = None) -> TreeDiff:
        """What differs from one entry's files to another's, or to the folder as it is."""
        return await self._do(workspace.diff(self.desk, thread_id, entry_id, root, other=other))

    async def recover(self, root: Root, *, prefer: Literal["old", "new"] | None = None) -> Literal["", "old", "new"]:
        """Settle a restore that a crash interrupted; every other verb does it too. Tells which files it left."""
        return await self._do(workspace.recover(self.desk, root, prefer))

    def rewinding(self, thread_id: str, entry_id: str, root: Root, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.rewind(files=root)`` does."""
        return workspace.rewind(self._sources, self.desk, thread_id, entry_id, root, conflicts=conflicts)

    def undoing(self, thread_id: str, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.undo`` does."""
        return workspace.undo(self._sources, self.desk, thread_id, conflicts=conflicts)

    def redoing(self, thread_id: str, conflicts: Conflicts) -> Operation[Thread]:
        """What ``journal.redo`` does."""
        return workspace.redo(self._sources, self.desk, thread_id, conflicts=conflicts)

    def for_turn(self, root: Root) -> TurnFiles:
        """What ``journal.turn(files=root)`` needs."""
        return TurnFiles(self.desk, root)

    async def _do(self, operation: Operation[T]) -> T:
        answer: T = await self._run(operation)
        return answer
