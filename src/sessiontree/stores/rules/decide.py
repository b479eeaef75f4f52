"""What each command means, decided once for every store, as pure functions of a ``View``."""

from __future__ import annotations

from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    Change,
    ClaimCompaction,
    ClearLease,
    CreateThread,
    DeleteDocument,
    DeleteThread,
    EraseContents,
    Fork,
    ImportHistory,
    ImportThread,
    InstallCompaction,
    MoveLeaf,
    PurgeDocuments,
    PutBlobs,
    Redo,
    ReleaseClaim,
    ReleaseLease,
    RenewLease,
    SetDocument,
    Undo,
    UpdateThread,
)
from sessiontree.stores.rules.append import append, put_blobs
from sessiontree.stores.rules.documents import delete_document, purge_documents, set_document
from sessiontree.stores.rules.erase import erase_contents
from sessiontree.stores.rules.leaf import move_leaf, redo, undo
from sessiontree.stores.rules.leases import (
    acquire_lease,
    claim_compaction,
    clear_lease,
    install_compaction,
    release_claim,
    release_lease,
    renew_lease,
)
from sessiontree.stores.rules.state import Decision, View
from sessiontree.stores.rules.threads import (
    create_thread,
    delete_thread,
    fork,
    import_history,
    import_thread,
    update_thread,
)

__all__ = ["decide"]


def decide(command: Change, view: View) -> Decision:
    """Return the result of a command and the facts to write, or raise the reason it is refused."""
    match command:
        case Append():
            return append(command, view)
        case CreateThread():
            return create_thread(command, view)
        case UpdateThread():
            return update_thread(command, view)
        case DeleteThread():
            return delete_thread(command, view)
        case EraseContents():
            return erase_contents(command, view)
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
        case SetDocument():
            return set_document(command, view)
        case DeleteDocument():
            return delete_document(command, view)
        case PurgeDocuments():
            return purge_documents(command)
