"""Blobs: put once, kept while a checkpoint needs them."""

from __future__ import annotations

from collections.abc import Collection

from sessiontree.blobs import Blobs, data_of, pack_of
from sessiontree.commands import Draft, PutBlobs
from sessiontree.errors import MissingBlobsError
from sessiontree.manifest import reachable
from sessiontree.rules.state import Decision, DropBlobs, PutPack, View

__all__ = ["check_blobs", "garbage_without", "put_blobs"]


def put_blobs(command: PutBlobs, view: Blobs) -> Decision:
    given = {blob.hash: blob for blob in command.blobs}
    missing = view.missing_blobs(given)
    fresh = [blob for name, blob in given.items() if name in missing]
    return Decision(None, (PutPack(pack_of(fresh)),) if fresh else ())


def check_blobs(view: View, thread_id: str, drafts: Collection[Draft]) -> None:
    """A delete may have collected blobs between their put and this append; then nothing may refer to them."""
    for draft in drafts:
        if draft.blobs:
            missing = view.missing_blobs({name for each in drafts for name in each.blobs})
            if missing:
                raise MissingBlobsError(thread_id, sorted(missing))
            return


def garbage_without(view: View, entries: Collection[int]) -> tuple[DropBlobs, ...]:
    """What no checkpoint needs once these entries are gone; leftovers of snapshots that never ended go with it."""
    manifests = view.manifests(entries)
    if not manifests.theirs:
        return ()
    needed = reachable(manifests.others, lambda name: data_of(view.blobs([name])[0]))
    garbage = frozenset(view.blob_hashes()) - needed
    return (DropBlobs(garbage),) if garbage else ()
