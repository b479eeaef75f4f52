"""A folder cannot be read or changed as asked."""

from __future__ import annotations

from sessiontree.errors.root import SessionTreeError

__all__ = ["FolderChangedError", "PendingRestoreError", "UnsafePathError", "WorkspaceError"]


class WorkspaceError(SessionTreeError):
    """A folder cannot be read or changed as asked; it is as it was before."""

    def __init__(self, root: str, problem: str) -> None:
        self.root = root
        super().__init__(f"{root}: {problem}")


class UnsafePathError(WorkspaceError, ValueError):
    def __init__(self, root: str, path: str, problem: str) -> None:
        self.path = path
        super().__init__(root, f"path {path!r} {problem}; nothing was changed")


class FolderChangedError(WorkspaceError):
    def __init__(self, root: str, path: str) -> None:
        self.path = path
        super().__init__(
            root,
            f"{path!r} was changed by somebody else meanwhile; everything is as before, try again when they are done",
        )


class PendingRestoreError(WorkspaceError):
    def __init__(self, root: str, place: str, thread_id: str) -> None:
        self.place = place
        self.thread_id = thread_id
        super().__init__(
            root,
            f"an interrupted rewind of thread {thread_id!r} in {place} waits to be settled; "
            "repeat it in that store, which settles the files first, or recover the folder here, preferring old or new",
        )
