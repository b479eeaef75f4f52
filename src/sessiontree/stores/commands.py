"""Commands: every write that a store accepts. Each is applied completely or not at all."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import UNSET, UnsetType

from sessiontree.model import CompactionClaim, Entry, Lease, Move, MoveReason, Payload, Thread, ThreadQuery
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import StoreRequest
from sessiontree.model.documents import StoredDocument

__all__ = [
    "JOINABLE",
    "AcquireLease",
    "Append",
    "Change",
    "ChangeResult",
    "ClaimCompaction",
    "ClearLease",
    "Command",
    "CommitTogether",
    "Committed",
    "CreateThread",
    "DeleteDocument",
    "DeleteThread",
    "Deleted",
    "Draft",
    "EraseContents",
    "Erased",
    "Fork",
    "ImportHistory",
    "ImportThread",
    "InstallCompaction",
    "Joinable",
    "MoveLeaf",
    "OnDuplicate",
    "PositionedDraft",
    "PurgeDocuments",
    "PutBlobs",
    "Redo",
    "ReleaseClaim",
    "ReleaseLease",
    "RenewLease",
    "Result",
    "SetDocument",
    "Undo",
    "UpdateThread",
    "appended_ids",
    "changes_of",
]


OnDuplicate = Literal["fail", "skip"]
"""What an append does with a draft that is stored already while others of its batch are not."""


class Draft(Record, frozen=True, kw_only=True):
    """An entry to append. ``body`` is the validated, encoded payload, ``parent`` its parent (UNSET: the one before it).

    ``messages`` and ``tokens`` are what the entry adds to the counters of its path. ``blobs`` are hashes that must be in
    the store when the entry is appended; they are a condition of the append and not stored with the entry.
    ``artifacts`` are hashes of the blobs that the entry refers to: they are kept as long as the entry is.
    ``has_new_id`` means that the id was generated for this draft, so that no earlier attempt can have stored it.
    """

    id: str
    payload: Payload
    body: bytes
    created_ns: int
    turn_id: str = ""
    parent: str | UnsetType | None = UNSET
    messages: int = 0
    tokens: int = 0
    blobs: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    has_new_id: bool = False


class PositionedDraft(Record, frozen=True, kw_only=True):
    """A draft and the id of its parent. One that ``is_aside`` does not become the leaf."""

    parent: str | None
    draft: Draft
    is_aside: bool = False


class CreateThread(StoreRequest, frozen=True, kw_only=True):
    """Create a thread with its first entries. The store sets the counters, the leaf and the tree itself.

    ``history`` are entries with their parents, parents before their children, after ``drafts``.
    """

    thread: Thread
    drafts: tuple[Draft, ...] = ()
    history: tuple[PositionedDraft, ...] = ()


class UpdateThread(StoreRequest, frozen=True, kw_only=True):
    """Change metadata: ``fields`` names what to take from ``changed``."""

    thread_id: str
    changed: Thread
    fields: tuple[str, ...]
    at_ns: int = 0
    expect_version: int | None = None


class DeleteThread(StoreRequest, frozen=True, kw_only=True):
    """Delete a thread and the entries that no other thread sees.

    ``expect_match`` refuses the delete if the thread does not pass the filters of that query any more.
    """

    thread_id: str
    expect_version: int | None = None
    expect_match: ThreadQuery | None = None
    expect_leaf: str | UnsetType | None = UNSET


class Append(StoreRequest, frozen=True, kw_only=True):
    """Append drafts, in order, the first under ``parent`` (UNSET: the leaf at commit time), and move the leaf to the last.

    ``expect_leaf`` refuses the append if the leaf is another, ``token`` if that lease is not in force, ``expect_live`` if
    the thread is archived. ``update`` changes metadata of the thread in the same commit; its version is expected first.
    ``create`` is the thread to create if it is missing. With ``on_duplicate="skip"``, drafts that are stored already are
    left out. Without ``moves_leaf`` the leaf stays where it is.
    """

    thread_id: str
    drafts: tuple[Draft, ...]
    parent: str | UnsetType | None = UNSET
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None
    expect_live: bool = False
    update: UpdateThread | None = None
    create: Thread | None = None
    on_duplicate: OnDuplicate = "fail"
    moves_leaf: bool = True

    def __post_init__(self) -> None:
        """Skip the checks for a plain append, the most frequent command."""
        is_plain = self.parent is UNSET and self.expect_leaf is UNSET and self.token is None
        if not (is_plain and type(self.thread_id) is str and self.thread_id.isascii()):
            super().__post_init__()


class EraseContents(StoreRequest, frozen=True, kw_only=True):
    """Replace the contents of entries by an empty one (``model.builders.ERASED``), and append a draft if there is one.

    The entries keep their ids, places and counters, so that forks, moves and references stay valid. Those that another
    thread sees are left alone; with ``in_all_threads`` they are erased too, and one that the thread does not see is an
    error. If there is nothing to erase, nothing is appended.
    """

    thread_id: str
    entries: tuple[str, ...]
    draft: Draft | None = None
    expect_leaf: str | UnsetType | None = UNSET
    in_all_threads: bool = False


class MoveLeaf(StoreRequest, frozen=True, kw_only=True):
    """Move the leaf to an entry that the thread sees, or before the first one (None).

    ``update`` changes metadata of the thread in the same commit.
    """

    thread_id: str
    to_entry: str | None
    reason: MoveReason
    at_ns: int
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None
    update: UpdateThread | None = None


class Undo(StoreRequest, frozen=True, kw_only=True):
    """Take the last move back. ``expect_move`` is its number: refused if another move would be taken back."""

    thread_id: str
    at_ns: int
    expect_move: int | None = None
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None


class Redo(StoreRequest, frozen=True, kw_only=True):
    """Take the last undo back. ``expect_move`` is its number: refused if another move would be taken back."""

    thread_id: str
    at_ns: int
    expect_move: int | None = None
    expect_leaf: str | UnsetType | None = UNSET
    token: int | None = None


class Fork(StoreRequest, frozen=True, kw_only=True):
    """Create a thread that shares entries up to ``entry_id`` (None: the leaf of the source), at or before it.

    ``fields`` names the metadata that the caller gave; a fork inherits some of the rest from its source. ``history`` are
    entries of its own, parents before their children; the last one is its leaf. ``expect_leaf`` refuses the fork if the
    leaf of the source is another, ``expect_new`` if the fork exists already.
    """

    source_id: str
    thread: Thread
    entry_id: str | None = None
    position: Literal["at", "before"] = "at"
    fields: tuple[str, ...] = ()
    history: tuple[PositionedDraft, ...] = ()
    expect_leaf: str | UnsetType | None = UNSET
    expect_new: bool = False


class AcquireLease(StoreRequest, frozen=True, kw_only=True):
    """Take the lease of a thread, unless another one is in force.

    With ``by_store_clock`` a store that many machines share judges and sets expiries by its own clock, as long after it as
    ``expires_ns`` is after ``now_ns``.
    """

    thread_id: str
    turn_id: str
    owner: str
    now_ns: int
    expires_ns: int
    by_store_clock: bool = False


class RenewLease(StoreRequest, frozen=True, kw_only=True):
    """Move the expiry of a lease that is in force; ``by_store_clock`` is as in ``AcquireLease``."""

    thread_id: str
    token: int
    expires_ns: int
    now_ns: int = 0
    by_store_clock: bool = False


class ReleaseLease(StoreRequest, frozen=True, kw_only=True):
    """End a lease; a no-op if it is not in force."""

    thread_id: str
    token: int


class ClearLease(StoreRequest, frozen=True, kw_only=True):
    """Remove a lease that has expired at ``now_ns`` or began before a cut-off; its result is the removed lease."""

    thread_id: str
    now_ns: int
    created_before_ns: int | None = None
    by_store_clock: bool = False


class ClaimCompaction(StoreRequest, frozen=True, kw_only=True):
    """Claim a thread for compaction, or extend the current claim (``is_renewal``)."""

    thread_id: str
    claim: CompactionClaim
    now_ns: int
    is_renewal: bool = False


class ReleaseClaim(StoreRequest, frozen=True, kw_only=True):
    """Release a compaction claim; a no-op if another one is in force."""

    thread_id: str
    claim_id: str


class InstallCompaction(StoreRequest, frozen=True, kw_only=True):
    """Append a compaction if the claim is still in force and ``base`` is still on the path to the leaf.

    ``update`` changes metadata of the thread in the same commit.
    """

    thread_id: str
    draft: Draft
    claim_id: str
    base: str
    token: int | None = None
    expect_leaf: str | UnsetType | None = UNSET
    update: UpdateThread | None = None


class ImportThread(StoreRequest, frozen=True, kw_only=True):
    """Create a thread as it is in another store, without its entries. ``base`` is its fork point.

    A no-op if the thread exists with the same metadata.
    """

    thread: Thread
    base: str | None = None


class ImportHistory(StoreRequest, frozen=True, kw_only=True):
    """Add entries and leaf moves of another store to an imported thread, parents before their children.

    Entries and moves that exist are skipped, so an interrupted import can be repeated.
    """

    thread_id: str
    steps: tuple[PositionedDraft | Move, ...]


class PutBlobs(StoreRequest, frozen=True, kw_only=True):
    """Store blobs; those that exist are skipped.

    Blobs that no checkpoint needs are removed by the next delete. ``are_artifacts`` keeps them until an entry refers to
    them, and then as long as one does.
    """

    blobs: tuple[Blob, ...]
    are_artifacts: bool = False


class SetDocument(StoreRequest, frozen=True, kw_only=True):
    """Put a document. ``expect_version`` refuses it if the version is another; 0 is that of a missing document.

    ``version`` is what a copy of another store's document gets.
    """

    scope: str
    key: str
    body: bytes
    at_ns: int
    expires_ns: int | None = None
    expect_version: int | None = None
    version: int | None = None


class DeleteDocument(StoreRequest, frozen=True, kw_only=True):
    """Delete a document; its result is the deleted one, None if it was missing or expired."""

    scope: str
    key: str
    at_ns: int
    expect_version: int | None = None


class PurgeDocuments(StoreRequest, frozen=True, kw_only=True):
    """Delete all documents that have expired."""

    now_ns: int


class Deleted(Record, frozen=True, kw_only=True):
    """The result of a delete. ``entries_kept`` counts the thread's entries that a fork still sees."""

    thread_id: str
    entries_removed: int
    entries_kept: int


class Erased(Record, frozen=True, kw_only=True):
    """The result of an erasure: how many entries lost their contents."""

    thread_id: str
    entries: int


Joinable = CreateThread | UpdateThread | DeleteThread | Append | MoveLeaf | Fork | SetDocument | DeleteDocument
"""The commands that can be committed together."""

JOINABLE = get_args(Joinable)

Change = (
    Joinable
    | EraseContents
    | Undo
    | Redo
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
    | PurgeDocuments
)
"""The commands that the rules decide."""

ChangeResult = Thread | tuple[Entry, ...] | Lease | Deleted | Erased | StoredDocument | None


class CommitTogether(StoreRequest, frozen=True, kw_only=True):
    """Run commands in order, in one commit: if one is refused, none has an effect. Each sees what those before it did."""

    changes: tuple[Joinable, ...]


class Committed(Record, frozen=True, kw_only=True):
    """The results of commands that were committed together."""

    results: tuple[ChangeResult, ...]


Command = Change | CommitTogether

Result = ChangeResult | Committed


def changes_of(command: Command) -> tuple[Change, ...]:
    """The commands that a command consists of: itself, or those that are committed together."""
    return command.changes if isinstance(command, CommitTogether) else (command,)


def appended_ids(command: Command) -> list[str]:
    """The ids of the entries that a command appends."""
    appends = [change for change in changes_of(command) if isinstance(change, Append)]
    return [draft.id for append in appends for draft in append.drafts]
