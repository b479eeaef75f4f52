"""Somebody else was there first."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.errors.root import SessionTreeError

__all__ = [
    "ActiveTurnError",
    "ClaimLostError",
    "CompactionClaimedError",
    "ConflictError",
    "CopyMismatchError",
    "DuplicateEntryError",
    "FencedError",
    "InvalidMoveError",
    "InvalidParentError",
    "MissingBlobsError",
    "RestoreConflictError",
    "SessionNotArchivedError",
    "StaleLeafError",
    "StaleVersionError",
    "ThreadArchivedError",
    "ThreadExistsError",
]


class ConflictError(SessionTreeError):
    """The store holds something that contradicts the request; nothing was written."""


class ThreadArchivedError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} is archived; bring it back, or append without expect_live to write to it all the same"
        )


class ThreadExistsError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} exists already; use another id, or go on with that one")


class DuplicateEntryError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"entry id {entry_id!r} is taken by another entry of the tree of thread {thread_id!r}; "
            "give the new content a new id"
        )


class InvalidParentError(ConflictError):
    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id = thread_id
        self.parent = parent
        super().__init__(
            f"entry {parent!r} cannot be a parent in thread {thread_id!r}: the thread does not see it; fork there instead"
        )


class StaleLeafError(ConflictError):
    def __init__(self, thread_id: str, expected: str | None, actual: str | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"the leaf of thread {thread_id!r} is {actual!r}, not {expected!r}; read the new entries, then try again"
        )


class StaleVersionError(ConflictError):
    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        super().__init__(f"thread {thread_id!r} is at version {actual}, not {expected}; read it again, then update")


class ActiveTurnError(ConflictError):
    def __init__(self, thread_id: str, owner: str, turn_id: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.turn_id = turn_id
        self.expires_ns = expires_ns
        super().__init__(
            f"a turn {turn_id!r} of {owner!r} runs on thread {thread_id!r} until {_moment(expires_ns)}; "
            "wait for it, or take over after it expires"
        )


class CopyMismatchError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        what = f"entry {entry_id!r} of thread {thread_id!r}" if entry_id else f"thread {thread_id!r}"
        super().__init__(f"{what} is not the same in both stores; copy into an empty store, while nobody writes")


class FencedError(ConflictError):
    def __init__(self, thread_id: str, token: int, current: int) -> None:
        self.thread_id = thread_id
        self.token = token
        self.current = current
        super().__init__(
            f"lease token {token} on thread {thread_id!r} is no longer valid (current token {current}); "
            "another owner took over or the lease was released: stop this turn and acquire a new lease"
        )


class CompactionClaimedError(ConflictError):
    def __init__(self, thread_id: str, owner: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.expires_ns = expires_ns
        super().__init__(
            f"{owner!r} is compacting thread {thread_id!r}, until {_moment(expires_ns)} at most; "
            "its result serves you too: read the context again later"
        )


class ClaimLostError(ConflictError):
    def __init__(self, thread_id: str, owner: str) -> None:
        self.thread_id = thread_id
        self.owner = owner
        who = f"{owner!r} took it over" if owner else "it was given back"
        super().__init__(
            f"the claim to compact thread {thread_id!r} expired and {who}; nothing was installed, "
            "give the summariser a shorter time-out or the claim a longer one"
        )


class InvalidMoveError(ConflictError):
    def __init__(self, key: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        self.key = key
        self.state = state
        self.wanted = wanted
        self.allowed = tuple(allowed)
        super().__init__(f"session {key!r} is {state} and cannot become {wanted}; it can become {list(self.allowed)}")


class SessionNotArchivedError(ConflictError):
    """The conversation in use is not archived; earlier ones are, and a generation names one of them."""

    def __init__(self, key: str, generations: Iterable[int]) -> None:
        self.key = key
        self.generations = tuple(generations)
        super().__init__(
            f"session {key!r} is in use; unarchive(key, generation=...) brings one of its earlier conversations back:"
            f" {list(self.generations)}"
        )


class MissingBlobsError(ConflictError):
    def __init__(self, thread_id: str, hashes: Iterable[str]) -> None:
        self.thread_id = thread_id
        self.hashes = tuple(hashes)
        super().__init__(
            f"{len(self.hashes)} blobs that an entry for thread {thread_id!r} needs are not in the store; "
            "put them again, then append"
        )


class RestoreConflictError(ConflictError):
    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self.root = root
        self.paths = tuple(paths)
        shown = ", ".join(map(repr, self.paths[:5])) + (" …" if len(self.paths) > 5 else "")
        super().__init__(
            f"restoring {root} would overwrite {len(self.paths)} files that somebody else changed or that no checkpoint "
            f"holds: {shown}; look at the plan of a dry run, then choose keep_mine or force for such conflicts"
        )


def _moment(time_ns: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415  most runs end without an error

    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"
