"""What a store is asked to do: write commands, each of which happens wholly or not at all."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from sessiontree.model import CompactionClaim, Entry, Lease, Move, MoveReason, Payload, Thread
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import StoreRequest

__all__ = [
    "AcquireLease",
    "Append",
    "ClaimCompaction",
    "ClearLease",
    "Command",
    "CreateThread",
    "DeleteThread",
    "Deleted",
    "Draft",
    "Fork",
    "ImportHistory",
    "ImportThread",
    "InstallCompaction",
    "MoveLeaf",
    "PositionedDraft",
    "PutBlobs",
    "Redo",
    "ReleaseClaim",
    "ReleaseLease",
    "RenewLease",
    "Result",
    "Undo",
    "UpdateThread",
]


class Draft(Record, frozen=True, kw_only=True):
    """An entry that has no place yet: ``body`` is the sealed payload, ``tokens`` and ``messages`` what it weighs.

    ``blobs`` must be in the store when the entry goes in; it is a condition of the append, not kept with the entry.
    ``has_new_id`` says that the id was made for this draft, so no earlier attempt can have stored it.
    """

    id: str
    payload: Payload
    body: bytes
    created_ns: int
    turn_id: str = ""
    messages: int = 0
    tokens: int = 0
    blobs: tuple[str, ...] = ()
    has_new_id: bool = False


class CreateThread(StoreRequest, frozen=True, kw_only=True):
    """The new thread as it shall be, with its first entries; the store fills in what it counts itself."""

    thread: Thread
    drafts: tuple[Draft, ...] = ()


class UpdateThread(StoreRequest, frozen=True, kw_only=True):
    """``changed`` is the thread with its new metadata, ``fields`` names the ones to take from it."""

    thread_id: str
    changed: Thread
    fields: tuple[str, ...]
    at_ns: int = 0
    expect_version: int | None = None


class DeleteThread(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    expect_version: int | None = None


class Append(StoreRequest, frozen=True, kw_only=True):
    """Put drafts, in order, under ``parent`` (UNSET: the leaf at commit time) and move the leaf to the last one.

    ``expect_live`` refuses them where the thread is archived.
    """

    thread_id: str
    drafts: tuple[Draft, ...]
    parent: str | UnsetType | None = UNSET
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None
    expect_live: bool = False

    def __post_init__(self) -> None:
        """The plain append, which is most of them, needs no closer look."""
        is_plain = self.parent is UNSET and self.expect_leaf is UNSET and self.token is None
        if not (is_plain and type(self.thread_id) is str and self.thread_id.isascii()):
            super().__post_init__()


class MoveLeaf(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    to_entry: str | None
    reason: MoveReason
    at_ns: int
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None


class Undo(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    at_ns: int


class Redo(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    at_ns: int


class Fork(StoreRequest, frozen=True, kw_only=True):
    """A new thread on a shared entry: ``position`` at or before ``entry_id`` (None: the leaf of the source).

    ``fields`` names the metadata that the caller gave; what a fork inherits is taken from the source for the rest.
    """

    source_id: str
    thread: Thread
    entry_id: str | None = None
    position: Literal["at", "before"] = "at"
    fields: tuple[str, ...] = ()


class AcquireLease(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    turn_id: str
    owner: str
    now_ns: int
    expires_ns: int


class RenewLease(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    token: int
    expires_ns: int


class ReleaseLease(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    token: int


class ClearLease(StoreRequest, frozen=True, kw_only=True):
    """Take a lease away if it has expired at ``now_ns``."""

    thread_id: str
    now_ns: int


class ClaimCompaction(StoreRequest, frozen=True, kw_only=True):
    """Become the one who compacts a thread; a renewal only gives more time to who still is."""

    thread_id: str
    claim: CompactionClaim
    now_ns: int
    is_renewal: bool = False


class ReleaseClaim(StoreRequest, frozen=True, kw_only=True):
    thread_id: str
    claim_id: str


class InstallCompaction(StoreRequest, frozen=True, kw_only=True):
    """Put a compaction under the leaf, if the claim still holds and ``base`` is still on the path to the leaf."""

    thread_id: str
    draft: Draft
    claim_id: str
    base: str
    token: int | None = None


class ImportThread(StoreRequest, frozen=True, kw_only=True):
    """A thread of another store as it was there, before its entries: ``base`` is the fork point.

    Where the thread is there already, with the same metadata, nothing happens.
    """

    thread: Thread
    base: str | None = None


class PositionedDraft(Record, frozen=True, kw_only=True):
    """An entry whose place is known."""

    parent: str | None
    draft: Draft


class ImportHistory(StoreRequest, frozen=True, kw_only=True):
    """Entries and leaf moves of another store, in an order in which they can have happened.

    What is there already is skipped, so an import that was interrupted can be repeated.
    """

    thread_id: str
    steps: tuple[PositionedDraft | Move, ...]


class PutBlobs(StoreRequest, frozen=True, kw_only=True):
    """Keep blobs; the ones that are there already are left alone."""

    blobs: tuple[Blob, ...]


class Deleted(Record, frozen=True, kw_only=True):
    """What a delete took away, and how many entries stay because a fork shows them."""

    thread_id: str
    entries_removed: int
    entries_kept: int


Command = (
    CreateThread
    | UpdateThread
    | DeleteThread
    | Append
    | MoveLeaf
    | Undo
    | Redo
    | Fork
    | AcquireLease
    | RenewLease
    | ReleaseLease
    | ClearLease
    | ClaimCompaction
    | ReleaseClaim
    | InstallCompaction
    | ImportThread
    | ImportHistory
    | PutBlobs
)

Result = Thread | tuple[Entry, ...] | Lease | Deleted | None
