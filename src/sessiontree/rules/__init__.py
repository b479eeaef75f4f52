"""What each write command means, decided once for every store, as pure functions of a view."""

from __future__ import annotations

from sessiontree.commands import (
    AcquireLease,
    Append,
    ClaimCompaction,
    ClearLease,
    Command,
    CreateThread,
    DeleteThread,
    Fork,
    ImportHistory,
    ImportThread,
    InstallCompaction,
    MoveLeaf,
    PutBlobs,
    Redo,
    ReleaseClaim,
    ReleaseLease,
    RenewLease,
    Undo,
    UpdateThread,
)
from sessiontree.rules.appending import append
from sessiontree.rules.blobs import put_blobs
from sessiontree.rules.compacting import claim_compaction, install_compaction, release_claim
from sessiontree.rules.importing import import_history, import_thread
from sessiontree.rules.leasing import acquire_lease, clear_lease, release_lease, renew_lease
from sessiontree.rules.moving import move_leaf, redo, undo
from sessiontree.rules.state import Decision, View
from sessiontree.rules.threads import create_thread, delete_thread, fork, update_thread

__all__ = ["decide"]


def decide(command: Command, view: View) -> Decision:
    """The result of a command and the facts to write, or the error that says why it is refused."""
    match command:
        case Append():
            return append(command, view)
        case CreateThread():
            return create_thread(command, view)
        case UpdateThread():
            return update_thread(command, view)
        case DeleteThread():
            return delete_thread(command, view)
        case MoveLeaf():
            return move_leaf(command, view)
        case Undo():
            return undo(command, view)
        case Redo():
            return redo(command, view)
        case Fork():
            return fork(command, view)
        case AcquireLease():
            return acquire_lease(command, view)
        case RenewLease():
            return renew_lease(command, view)
        case ReleaseLease():
            return release_lease(command, view)
        case ClearLease():
            return clear_lease(command, view)
        case ClaimCompaction():
            return claim_compaction(command, view)
        case ReleaseClaim():
            return release_claim(command, view)
        case InstallCompaction():
            return install_compaction(command, view)
        case ImportThread():
            return import_thread(command, view)
        case ImportHistory():
            return import_history(command, view)
        case PutBlobs():
            return put_blobs(command, view)
