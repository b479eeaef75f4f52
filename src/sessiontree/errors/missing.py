"""What was asked for is not there."""

from __future__ import annotations

from sessiontree.errors.root import SessionTreeError

__all__ = [
    "BlobNotFoundError",
    "EntryNotFoundError",
    "NoCheckpointError",
    "NotFoundError",
    "NothingToRedoError",
    "NothingToRetryError",
    "NothingToUncompactError",
    "NothingToUndoError",
    "SessionNotFoundError",
    "ThreadNotFoundError",
]


class NotFoundError(SessionTreeError):
    """Something that was asked for by name is not there."""


class ThreadNotFoundError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no thread {thread_id!r} in this store; list the threads to see what is there")


class EntryNotFoundError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"thread {thread_id!r} cannot see an entry {entry_id!r}; "
            "list its entries to see which it can, forks keep their own"
        )


class NothingToUndoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} has no leaf move left to undo; its reflog lists them all")


class NothingToRedoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} has nothing to redo: the last thing that happened to it was not an undo; "
            "a move of the leaf reaches every entry in its reflog"
        )


class NothingToRetryError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} has no failed turn and no user message to retry from")


class NothingToUncompactError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no compaction is in force on the path of thread {thread_id!r}; its context is whole")


class SessionNotFoundError(NotFoundError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"no session {key!r} in this store; list() shows what is there, get_or_create() starts one")


class NoCheckpointError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"no workspace checkpoint for entry {entry_id!r} in thread {thread_id!r}; "
            "files come back only to entries at which a snapshot of their folder was taken"
        )


class BlobNotFoundError(NotFoundError):
    def __init__(self, hash: str) -> None:
        self.hash = hash
        super().__init__(f"no blob {hash!r} in this store; run `sessiontree doctor` to see which checkpoints need it")
