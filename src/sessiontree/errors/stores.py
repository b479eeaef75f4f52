"""A store cannot be opened, read or written."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.errors.root import SessionTreeError

__all__ = [
    "CommitUnknownError",
    "ForeignStoreError",
    "NetworkFileSystemError",
    "NewerFormatError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreError",
    "StoreFullError",
    "StoreGoneError",
    "StorePoisonedError",
    "StoreReadOnlyError",
    "StoreUnavailableError",
    "StoreUrlError",
]


class StoreError(SessionTreeError):
    """The store itself cannot do its work."""

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        super().__init__(f"{place}: {message}")


class StoreUrlError(StoreError, ValueError):
    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        super().__init__(
            url, f"{problem}; use memory:, sqlite:///file.db, jsonl:///folder, postgresql://host/db or a plain path"
        )


class ForeignStoreError(StoreError):
    def __init__(self, place: str, found: str) -> None:
        super().__init__(
            place, f"this is not a sessiontree store ({found}); it was left untouched, choose another path"
        )


class NewerFormatError(StoreError):
    def __init__(self, place: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            place,
            f"format {found} is newer than {supported}, the newest known here; upgrade sessiontree (left untouched)",
        )


class NetworkFileSystemError(StoreError):
    def __init__(self, place: str, file_system: str) -> None:
        self.file_system = file_system
        super().__init__(
            place,
            f"the file system is {file_system}, where file locks and memory maps are not safe between machines; "
            "use a local disk, or the PostgreSQL store",
        )


class StoreReadOnlyError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "cannot be written; check the permissions of the file and its folder")


class StoreAccessError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"access denied ({problem}); use a role that is bound to this namespace")


class StoreFullError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "no space left; nothing of this request was kept, free some space and try again")


class StoreUnavailableError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"not available now ({problem}); it is safe to try again")


class StoreClosedError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "is closed; open it again")


class StoreGoneError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(
            place, "was deleted or replaced while it was open, so nothing more is written; open it again to go on"
        )


class StorePoisonedError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(
            place,
            f"a write to disk failed ({problem}), so nothing more is acknowledged; close the store and open it again",
        )


class CommitUnknownError(StoreError):
    def __init__(self, place: str, problem: str, entry_ids: Iterable[str] = ()) -> None:
        self.entry_ids = tuple(entry_ids)
        way_out = (
            f"look whether {list(self.entry_ids)} are there; to repeat it with the same ids is a no-op if they are"
            if self.entry_ids
            else "read the thread to see whether it went through before you repeat it"
        )
        super().__init__(place, f"the outcome of the commit is not known ({problem}); {way_out}")
