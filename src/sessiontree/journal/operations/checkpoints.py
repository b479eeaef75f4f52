"""Verbs about workspace checkpoints: take one, find one, read one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from sessiontree.errors import MissingBlobsError, NoCheckpointError, StaleLeafError, ThreadNotFoundError
from sessiontree.journal.operations.entries import NewEntry, append_many
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.model import Checkpoint, CheckpointMoment, Entry, Lease, Thread
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob, blob_of, data_of
from sessiontree.model.manifest import (
    LeftOut,
    Manifest,
    ManifestItem,
    decode_manifest,
    difference,
    encode_manifest,
    patched,
)
from sessiontree.stores.commands import PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs, ReadEntries, ReadPath, ReadThread
from sessiontree.workspace.cache import Cache, CacheHeader
from sessiontree.workspace.open_workspace import OpenWorkspace, Resolved, WorkspaceCache
from sessiontree.workspace.scan import FolderScan, batches_of, compressed, load

__all__ = [
    "CheckpointNote",
    "Snapshot",
    "checkpoints",
    "find_checkpoint",
    "look_at_folder",
    "read_files",
    "resolve",
    "store_folder",
    "take",
]


_ATTEMPTS = 10
_RECENT = 64


class Snapshot(Record, frozen=True, kw_only=True):
    """A checkpoint that was taken: its entry, and what was seen and not taken."""

    entry: Entry
    checkpoint: Checkpoint
    left_out: tuple[LeftOut, ...] = ()

    @property
    def id(self) -> str:
        return self.entry.id


class CheckpointNote(Record, frozen=True, kw_only=True):
    """What a checkpoint is for."""

    target: str = ""
    label: str = ""
    moment: CheckpointMoment = ""
    before_move: int = 0


def take(
    sources: Runtime,
    desk: WorkspaceCache,
    visit: OpenWorkspace,
    thread_id: str,
    note: CheckpointNote,
    *,
    include: Iterable[str] = (),
    lease: Lease | None = None,
) -> Operation[Snapshot]:
    """Store what the folder holds now and append the checkpoint; again if the thread or the store moved meanwhile."""
    for attempt in range(_ATTEMPTS):
        base, leaf = yield from _base(thread_id, visit.root)
        scan = yield from store_folder(visit, include)
        manifest, needed = yield from _put_manifest(desk, visit, scan, base)
        payload = _payload(visit, manifest, note)
        new = NewEntry(content=payload, blobs=needed)
        try:
            stored = yield from append_many(sources, thread_id, [new], expect_leaf=leaf, lease=lease)
        except (StaleLeafError, MissingBlobsError) as error:
            if attempt == _ATTEMPTS - 1:
                raise
            if isinstance(error, MissingBlobsError):
                visit.cache = Cache(head=visit.cache.head)
                desk.resolved.clear()
            continue
        break
    is_closed = note.moment == "after_turn"
    head = CacheHeader(
        place=desk.place, thread_id=thread_id, checkpoint=stored[0].id, manifest=manifest, is_closed=is_closed
    )
    if visit.cache is not scan.old or _is_news(visit.cache.head, head):
        yield Work(function=visit.set_head, arguments=(head,))
    return Snapshot(entry=stored[0], checkpoint=payload, left_out=tuple(scan.left_out))


def checkpoints(thread_id: str, root: str | os.PathLike[str] | None) -> Operation[list[Entry]]:
    entries: list[Entry] = yield ReadEntries(thread_id=thread_id)
    wanted = None if root is None else os.path.realpath(root)
    return [
        entry
        for entry in entries
        if isinstance(entry.payload, Checkpoint) and (wanted is None or entry.payload.root in {"", wanted})
    ]


def find_checkpoint(thread_id: str, entry_id: str, root: str | os.PathLike[str]) -> Operation[Entry]:
    """The newest checkpoint for an entry, or the checkpoint entry itself; a fork looks in the thread it came from too."""
    asked = thread_id
    while asked:
        try:
            found = yield from checkpoints(asked, root)
        except ThreadNotFoundError:
            if asked == thread_id:
                raise
            break
        for entry in reversed(found):
            if _has_files(entry) and (entry.id == entry_id or _is_for(entry, entry_id)):
                return entry
        thread: Thread = yield ReadThread(thread_id=asked)
        asked = thread.forked_from_thread
    raise NoCheckpointError(thread_id, entry_id)


def resolve(desk: WorkspaceCache, manifest: str) -> Operation[Resolved]:
    """The tree that a manifest stands for, its bases applied."""
    links: list[Manifest] = []
    name = manifest
    while name and name not in desk.resolved:
        blobs: list[Blob] = yield ReadBlobs(hashes=(name,))
        links.append(decode_manifest(data_of(blobs[0]), f"blob {name}"))
        name = links[-1].base
    resolved = desk.resolved[name] if name else Resolved({}, 0, ())
    for link in reversed(links):
        resolved = Resolved(patched(resolved.tree, link), link.chain, link.left_out)
    desk.remember(manifest, resolved)
    return resolved


def look_at_folder(visit: OpenWorkspace) -> Operation[FolderScan]:
    """Scan the folder and read whatever changed, for its hashes alone."""
    scan: FolderScan = yield Work(function=visit.scan)
    for batch in batches_of(scan.pending):
        yield Work(function=load, arguments=(visit.folder, scan, batch))
    return scan


def store_folder(visit: OpenWorkspace, include: Iterable[str] = ()) -> Operation[FolderScan]:
    """Scan the folder and put the content of whatever changed into the store."""
    scan: FolderScan = yield Work(function=visit.scan, arguments=(tuple(include),))
    for batch in batches_of(scan.pending):
        loaded = yield Work(function=load, arguments=(visit.folder, scan, batch))
        missing = yield FindMissingBlobs(hashes=tuple({file.hash for file in loaded}))
        if missing:
            yield PutBlobs(blobs=(yield Work(function=compressed, arguments=(loaded, missing))))
    return scan


def read_files(hashes: Sequence[str]) -> Operation[dict[str, bytes]]:
    """The bytes of blobs, by hash."""
    blobs: list[Blob] = yield ReadBlobs(hashes=tuple(hashes))
    datas: list[bytes] = yield Work(function=lambda: [data_of(blob) for blob in blobs])
    return dict(zip(hashes, datas, strict=True))


def _base(thread_id: str, root: str) -> Operation[tuple[str, str | None]]:
    """The manifest of the nearest checkpoint of this folder up the path, and the leaf."""
    for limit in (_RECENT, None):
        path: list[Entry] = yield ReadPath(thread_id=thread_id, limit=limit)
        leaf = path[-1].id if path else None
        for entry in reversed(path):
            if isinstance(entry.payload, Checkpoint) and entry.payload.root == root:
                return entry.payload.manifest, leaf
        if len(path) < _RECENT:
            break
    return "", leaf


def _put_manifest(
    desk: WorkspaceCache, visit: OpenWorkspace, scan: FolderScan, base: str
) -> Operation[tuple[str, tuple[str, ...]]]:
    """The manifest of a scanned folder, written if there is none yet, and the blobs that it relies on."""
    if base and base == scan.old.manifest:
        before = Resolved({}, scan.old.chain, scan.old.left_out)
        changed, removed = scan.changed, tuple(scan.gone())
    else:
        before = (yield from resolve(desk, base)) if base else Resolved({}, 0, ())
        changed, removed = difference(before.tree, dict(scan.cache().items()))
    if base and not (changed or removed) and before.left_out == tuple(scan.left_out):
        if not scan.is_cached or base != scan.old.manifest:
            visit.cache = _with_manifest(scan.cache(), base, before.chain)
        return base, (base,)
    cache = scan.cache()
    manifest = _delta_or_whole(cache, base, before.chain, changed, removed)
    data = encode_manifest(manifest)
    blob: Blob = yield Work(function=blob_of, arguments=(data,))
    missing = yield FindMissingBlobs(hashes=(blob.hash,))
    if missing:
        yield PutBlobs(blobs=(blob,))
    visit.cache = _with_manifest(cache, blob.hash, manifest.chain)
    files = {item.hash for item in manifest.changed.values() if item.kind == "file"}
    return blob.hash, (blob.hash, *([manifest.base] if manifest.base else []), *files)


def _delta_or_whole(
    cache: Cache, base: str, chain: int, changed: dict[str, ManifestItem], removed: tuple[str, ...]
) -> Manifest:
    """A delta while all deltas since the last whole manifest weigh less than a whole one."""
    weight = chain + len(changed) + len(removed)
    if base and weight <= cache.files + len(cache.folders):
        return Manifest(base=base, chain=weight, changed=changed, removed=removed, left_out=cache.left_out)
    return Manifest(changed=dict(cache.items()), left_out=cache.left_out)


def _with_manifest(cache: Cache, manifest: str, chain: int) -> Cache:
    cache.manifest, cache.chain = manifest, chain
    return cache


def _payload(visit: OpenWorkspace, manifest: str, note: CheckpointNote) -> Checkpoint:
    return Checkpoint(
        target=note.target,
        root=visit.root,
        manifest=manifest,
        files=visit.cache.files,
        size=visit.cache.size,
        label=note.label,
        moment=note.moment,
        before_move=note.before_move,
        left_out=len(visit.cache.left_out),
    )


def _has_files(entry: Entry) -> bool:
    """An imported checkpoint may have come without its files: that is not an empty folder."""
    return isinstance(entry.payload, Checkpoint) and bool(entry.payload.manifest)


def _is_for(entry: Entry, target: str) -> bool:
    """Checkpoints that a move took of what it left behind are reached by undo, or by their own id."""
    payload = entry.payload
    return isinstance(payload, Checkpoint) and payload.target == target and payload.moment != "before_move"


def _is_news(old: CacheHeader | None, new: CacheHeader) -> bool:
    """Whether the head must be written: another thread, another state, or a turn that began or ended."""
    if old is None:
        return True
    return (old.place, old.thread_id, old.manifest, old.is_closed) != (
        new.place,
        new.thread_id,
        new.manifest,
        new.is_closed,
    )
