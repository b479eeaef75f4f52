"""CheckpointedSessions: sessions whose state can be set, cloned, snapshotted and rewound by message id.

Each method that changes a session is one commit, decided from what was read before it. If another writer was faster,
the commit is refused, and the method reads and decides again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from sessiontree.errors import (
    NoCheckpointError,
    StaleLeafError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.operations import threads
from sessiontree.journal.operations.entries import Content, NewEntry, draft_of
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Checkpoint, Entry, Label, Thread
from sessiontree.sessions._checkpoints import (
    FORK_IDS_OF,
    MARK,
    STATE,
    CheckpointedSession,
    Copy,
    History,
    SessionCheckpoint,
    checkpoint_in,
    clone_messages,
    files_of,
    fork_counter,
    fork_ids_thread,
    is_own,
    mark_of,
    marks_of,
    own_origin,
    state_entry,
    user_turns_of,
)
from sessiontree.stores.commands import Append, MoveLeaf, PositionedDraft
from sessiontree.workspace import Conflicts

__all__ = [
    "FORK_IDS_OF",
    "MARK",
    "STATE",
    "AsyncCheckpointedSessions",
    "CheckpointedSession",
    "SessionCheckpoint",
    "clone_messages",
    "files_of",
    "fork_counter",
    "fork_ids_thread",
    "mark_of",
    "marks_of",
    "user_turns_of",
]

_DEFAULT_ID = "default"

Root = str | os.PathLike[str]


class AsyncCheckpointedSessions:
    """Sessions of a journal, each one a thread with the messages as entries. What was set once is never deleted.

    In every method the id ``""`` means the session ``default``. A thread that was made by other means can be used by its
    id; ``get_or_create`` and ``set_state`` make it a session, so that it is listed.
    """

    def __init__(self, journal: AsyncJournal) -> None:
        self._journal = journal

    async def get(self, id: str = "") -> CheckpointedSession:
        """Return a session; ThreadNotFoundError if there is none."""
        return (await self._read(id or _DEFAULT_ID)).session()

    async def get_or_create(self, id: str = "") -> CheckpointedSession:
        """Return a session, created if it does not exist."""
        name = id or _DEFAULT_ID
        while True:
            try:
                return (await self._adopted(name)).session()
            except ThreadNotFoundError:
                await self._create(name, [])

    async def checkpoints(self, id: str = "") -> list[SessionCheckpoint]:
        """Return what a session can be rewound to, oldest first."""
        return (await self._read(id or _DEFAULT_ID)).checkpoints()

    async def list(self) -> list[CheckpointedSession]:
        """Return all sessions, last changed first. Threads of other interfaces are not among them."""
        found: list[CheckpointedSession] = []
        async for thread in self._journal.iter_threads(is_archived=None):
            if is_own(thread):
                try:
                    found.append((await self._read(thread.id)).session())
                except ThreadNotFoundError:
                    continue
        return found

    async def checkpoint_files(self, id: str, message_id: str) -> dict[str, bytes]:
        """Return the files that were stored for a user message, by path."""
        from sessiontree.journal.operations.checkpoints import files_in  # noqa: PLC0415  only this method loads it

        history = await self._read_checkpoints(id or _DEFAULT_ID, message_id)
        checkpoint = checkpoint_in(history.files_for(message_id)[-1])
        return await self._journal.run(files_in(self._journal.workspace.cache, checkpoint))

    async def set_state(self, id: str, messages: Iterable[dict[str, Any]], *, user_turns: int) -> CheckpointedSession:
        """Set the messages and user turns of a session, created if it does not exist.

        Only what is new is appended; messages that are replaced stay on a branch of their own.
        """
        name, wanted = id or _DEFAULT_ID, [*messages]
        while True:
            try:
                history = await self._adopted(name)
                contents, parent = history.change_to(wanted, user_turns)
                added = await self._journal.append_many(name, contents, parent=parent, expect_leaf=history.thread.leaf)
            except ThreadNotFoundError:
                blank = Thread(id=name, tree=name, created_ns=0, updated_ns=0)
                created = await self._create(name, History(blank, ()).change_to(wanted, user_turns).contents)
                if created is not None:
                    return History(created, await self._journal.path(name, created.leaf)).session()
            except StaleLeafError:
                continue
            else:
                return history.after(added).session()

    async def clone(self, source: str, target: str) -> CheckpointedSession:
        """Create a session with the path and the checkpoints of another one; ThreadExistsError if the id is taken."""
        name = source or _DEFAULT_ID
        while True:
            history = await self._read(name)
            try:
                await self._journal.run(self._clone(history, target))
            except StaleLeafError:
                continue
            return await self.get(target)

    async def new_fork_id(self, base: str = "") -> str:
        """Return the next of ``base#fork-1``, ``base#fork-2`` … that is unused and was never returned before.

        The count is kept in a thread of its own, which outlives the session. There need not be a session.
        """
        name = base or _DEFAULT_ID
        while True:
            counting = await self._find(fork_ids_thread(name))
            number = 1 + max(fork_counter(counting), fork_counter(await self._find(name)))
            while await self._find(f"{name}#fork-{number}"):
                number += 1
            if await self._store_fork_counter(name, counting, number):
                return f"{name}#fork-{number}"

    async def fork(self, source: str = "") -> CheckpointedSession:
        """Clone a session under the next fork id."""
        await self.get(source)
        while True:
            try:
                return await self.clone(source, await self.new_fork_id(source))
            except ThreadExistsError:
                continue

    async def snapshot(self, id: str, message_id: str) -> None:
        """Store messages and user turns under the id of a user message; an earlier snapshot is replaced."""
        name = id or _DEFAULT_ID
        while True:
            history = await self._read(name)
            mark = NewEntry(content=mark_of(message_id), id=self._journal.runtime.ids.new())
            labels = [Label(target=mark.id or "", label=message_id)] if message_id else []
            contents: list[Content] = [state_entry(history.user_turns()), mark, *labels]
            try:
                await self._journal.append_many(name, contents, expect_leaf=history.thread.leaf)
            except StaleLeafError:
                continue
            return

    async def rewind(
        self, id: str, message_id: str, *, files: Root | None = None, conflicts: Conflicts = "force"
    ) -> CheckpointedSession:
        """Return to a snapshot, and with ``files`` return that folder to its checkpoint as well, or neither.

        A snapshot that was imported has no user turns: the session keeps its own. What others changed in the folder is
        replaced too, and ``journal.undo`` brings it back; ``conflicts="stop"`` raises RestoreConflictError instead.
        """
        name = id or _DEFAULT_ID
        while True:
            history = await self._read_checkpoints(name, message_id)
            mark = history.marks().get(message_id)
            if mark is None:
                raise NoCheckpointError(name, message_id)
            checkpoint = None if files is None else history.files_in(message_id, _place(files))
            try:
                moved = await self._journal.run(self._return_to(history, mark, checkpoint, files or "", conflicts))
            except StaleLeafError:
                continue
            return history.after(moved).session()

    async def snapshot_files(self, id: str, message_id: str, root: Root) -> None:
        """Store a checkpoint of a folder for a user message; an earlier one of the same folder is replaced."""
        name = id or _DEFAULT_ID
        if not message_id:
            raise NoCheckpointError(name, message_id)
        mark = (await self._read(name)).marks().get(message_id)
        await self._journal.workspace.snapshot(name, mark.id if mark else None, root, label=message_id)

    async def rewind_files(self, id: str, message_id: str, root: Root, *, conflicts: Conflicts = "force") -> None:
        """Restore a folder to its checkpoint; the messages stay. A checkpoint of what is replaced is taken first.

        A checkpoint of another folder is used if there is none of this one: it may have been renamed. With
        ``conflicts="stop"``, raises RestoreConflictError if others changed files in the folder.
        """
        name = id or _DEFAULT_ID
        history = await self._read_checkpoints(name, message_id)
        checkpoint = history.files_in(message_id, _place(root))
        await self._journal.workspace.restore(name, checkpoint.id, root, conflicts=conflicts)

    async def _read(self, name: str) -> History:
        """Read a session. The leaf is read first, so the entries hold its path; a write is refused if it moved since."""
        while True:
            thread = await self._journal.thread(name)
            history = History(thread, await self._journal.entries(name))
            if history.is_whole:
                return history

    async def _read_checkpoints(self, name: str, message_id: str) -> History:
        try:
            return await self._read(name)
        except ThreadNotFoundError as error:
            raise NoCheckpointError(name, message_id) from error

    async def _adopted(self, name: str) -> History:
        """Read a session; a thread that was made by other means becomes one."""
        history = await self._read(name)
        if not is_own(history.thread):
            adopt = threads.change_thread(self._journal.runtime, name, lambda thread: {"origin": own_origin(thread)})
            await self._journal.run(adopt)
        return history

    async def _create(self, name: str, contents: Iterable[Content]) -> Thread | None:
        """Create a session with its first entries; ``None`` if another writer was faster."""
        try:
            return await self._journal.create_thread(name, contents=contents, origin=own_origin())
        except ThreadExistsError:
            return None

    async def _find(self, name: str) -> Thread | None:
        try:
            return await self._journal.thread(name)
        except ThreadNotFoundError:
            return None

    async def _store_fork_counter(self, base: str, counting: Thread | None, number: int) -> bool:
        """Reserve a fork id; ``False`` if another writer was faster."""
        origin = {FORK_IDS_OF: base, "fork_counter": number}
        try:
            if counting is None:
                await self._journal.create_thread(
                    fork_ids_thread(base), title=f"fork ids of {base}", is_archived=True, origin=origin
                )
            else:
                await self._journal.update_thread(counting.id, expect_version=counting.version, origin=origin)
        except (ThreadExistsError, StaleVersionError, ThreadNotFoundError):
            return False
        return True

    def _clone(self, history: History, target: str) -> Operation[Thread]:
        return threads.fork(
            self._journal.runtime,
            history.thread.id,
            at=None,
            before=None,
            new_id=target,
            created_ns=None,
            fields={"origin": own_origin()},
            history=[self._positioned(copy) for copy in history.copies(self._journal.runtime.ids.new)],
            expect_leaf=history.thread.leaf,
            expect_new=True,
        )

    def _positioned(self, copy: Copy) -> PositionedDraft:
        blobs = (copy.payload.manifest,) if isinstance(copy.payload, Checkpoint) and copy.payload.manifest else ()
        new = NewEntry(content=copy.payload, id=copy.id, created_ns=copy.created_ns, blobs=blobs)
        return PositionedDraft(parent=copy.parent, draft=draft_of(self._journal.runtime, new))

    def _return_to(
        self, history: History, mark: Entry, checkpoint: Entry | None, root: Root, conflicts: Conflicts
    ) -> Operation[Any]:
        """Move the leaf to a mark; where no user turns were stored with it, the current ones are appended under it."""
        name, leaf, runtime = history.thread.id, history.thread.leaf, self._journal.runtime
        command: MoveLeaf | Append
        if history.has_turns(mark):
            command = MoveLeaf(
                thread_id=name, to_entry=mark.id, reason="rewind", at_ns=runtime.clock(), expect_leaf=leaf
            )
        else:
            draft = draft_of(runtime, state_entry(history.user_turns()))
            command = Append(thread_id=name, drafts=(draft,), parent=mark.id, expect_leaf=leaf)
        if checkpoint is None:
            return (yield command)
        from sessiontree.journal.operations.restore import (  # noqa: PLC0415  only a rewind with files loads it
            RestoreTask,
            move_with_files,
        )

        task = RestoreTask(thread_id=name, checkpoint=checkpoint_in(checkpoint), conflicts=conflicts, expect_leaf=leaf)
        return (yield from move_with_files(runtime, self._journal.workspace.cache, root, task, command))


def _place(root: Root) -> str:
    """Return the path of a folder as its checkpoints have it."""
    return os.path.realpath(root)
