"""Checkpoints of a folder: take one, list them, find the one for an entry, read its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from sessiontree.errors import MissingBlobsError, NoCheckpointError, StaleLeafError, ThreadNotFoundError
from sessiontree.journal.operations.entries import NewEntry, append_many
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.model import Checkpoint, CheckpointMoment, Entry, Lease, Thread
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob, batches, data_of
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
from sessiontree.workspace.cache import CacheHeader, StatCache
from sessiontree.workspace.open_workspace import OpenWorkspace, Resolved, WorkspaceCache
from sessiontree.workspace.scan import FolderScan, LoadedFile, compress, hash_data, load

__all__ = [
    "CheckpointNote",
    "Root",
    "Snapshot",
    "checkpoints",
    "files_in",
    "find_checkpoint",
    "read_files",
    "resolve",
    "take_checkpoint",
]


Root = str | os.PathLike[str]

_ATTEMPTS = 10
_RECENT = 64


class Snapshot(Record, frozen=True, kw_only=True):
    """A checkpoint that was taken: its entry, and the paths that were seen and left out."""

    entry: Entry
    checkpoint: Checkpoint
    left_out: tuple[LeftOut, ...] = ()

    @property
    def id(self) -> str:
        """The id of the checkpoint entry."""
        return self.entry.id


class CheckpointNote(Record, frozen=True, kw_only=True):
    """What a checkpoint is for. ``target`` is the entry whose files it holds; ``None`` is the leaf."""

    target: str | None = None
    label: str = ""
    moment: CheckpointMoment = ""
    before_move: int = 0


def take_checkpoint(
    runtime: Runtime,
    workspace: OpenWorkspace,
    thread_id: str,
    note: CheckpointNote,
    *,
    include: Iterable[str] = (),
    lease: Lease | None = None,
) -> Operation[Snapshot]:
    """Store the folder's files and append a checkpoint; start again if the leaf moved or blobs were collected."""
    for attempt in range(_ATTEMPTS):
        base, leaf = yield from _base(thread_id, workspace.root)
        scan, manifest, blobs = yield from _store_files(workspace, base, include)
        payload = _payload(workspace, manifest, note, leaf)
        new = NewEntry(content=payload, blobs=blobs)
        try:
            stored = yield from append_many(runtime, thread_id, [new], expect_leaf=leaf, lease=lease)
        except (StaleLeafError, MissingBlobsError) as error:
            if attempt == _ATTEMPTS - 1:
                raise
            if isinstance(error, MissingBlobsError):
                workspace.stats = StatCache(head=workspace.stats.head)
                workspace.cache.resolved.clear()
            continue
        break
    head = CacheHeader(
        place=workspace.cache.place,
        thread_id=thread_id,
        checkpoint=stored[0].id,
        manifest=manifest,
        is_closed=note.moment == "after_turn",
    )
    if workspace.stats is not scan.old or _must_save(workspace.stats.head, head):
        yield Work(function=workspace.set_head, arguments=(head,))
    return Snapshot(entry=stored[0], checkpoint=payload, left_out=tuple(scan.left_out))


def checkpoints(thread_id: str, root: Root | None) -> Operation[list[Entry]]:
    """Return the checkpoint entries that a thread sees, oldest first; with ``root``, those of that folder."""
    entries: list[Entry] = yield ReadEntries(thread_id=thread_id)
    wanted = None if root is None else os.path.realpath(root)
    return [
        entry
        for entry in entries
        if isinstance(entry.payload, Checkpoint) and (wanted is None or entry.payload.root in {"", wanted})
    ]


def find_checkpoint(thread_id: str, entry_id: str, root: Root) -> Operation[Checkpoint]:
    """Return the checkpoint in an entry, for whatever folder it was taken; else the newest for the entry and the folder.

    A fork also finds the checkpoints of the threads that it came from.
    """
    searched = thread_id
    while searched:
        try:
            found = yield from checkpoints(searched, None)
        except ThreadNotFoundError:
            if searched == thread_id:
                raise
            break
        chosen = _choose(found, entry_id, os.path.realpath(root))
        if chosen is not None:
            return chosen
        thread: Thread = yield ReadThread(thread_id=searched)
        searched = thread.forked_from_thread
    raise NoCheckpointError(thread_id, entry_id)


def _choose(found: Sequence[Entry], entry_id: str, root: str) -> Checkpoint | None:
    """Return the checkpoint in an entry, or the newest for it. One taken before a move is found by undo or by its id."""
    newest = None
    for entry in found:
        checkpoint = entry.payload
        if not isinstance(checkpoint, Checkpoint):
            continue
        if entry.id == entry_id:
            return checkpoint if checkpoint.manifest else None
        is_of_folder = bool(checkpoint.manifest) and checkpoint.root in {"", root}
        if is_of_folder and checkpoint.target == entry_id and checkpoint.moment != "before_move":
            newest = checkpoint
    return newest


def resolve(cache: WorkspaceCache, manifest: str) -> Operation[Resolved]:
    """Return the tree that a manifest describes, with its bases applied."""
    links: list[Manifest] = []
    name = manifest
    while name and name not in cache.resolved:
        blobs: list[Blob] = yield ReadBlobs(hashes=(name,))
        links.append(decode_manifest(data_of(blobs[0]), f"blob {name}"))
        name = links[-1].base
    resolved = cache.resolved[name] if name else Resolved({}, 0, ())
    for link in reversed(links):
        resolved = Resolved(patched(resolved.tree, link), link.chain, link.left_out)
    cache.remember(manifest, resolved)
    return resolved


def read_files(hashes: Sequence[str]) -> Operation[dict[str, bytes]]:
    """Return the bytes of blobs, by hash."""
    if not hashes:
        return {}
    blobs: list[Blob] = yield ReadBlobs(hashes=tuple(hashes))
    contents: list[bytes] = yield Work(function=lambda: [data_of(blob) for blob in blobs])
    return dict(zip(hashes, contents, strict=True))


def _base(thread_id: str, root: str) -> Operation[tuple[str, str | None]]:
    """Return the manifest of the nearest checkpoint of this folder up the path, and the leaf."""
    for limit in (_RECENT, None):
        path: list[Entry] = yield ReadPath(thread_id=thread_id, limit=limit)
        leaf = path[-1].id if path else None
        for entry in reversed(path):
            if isinstance(entry.payload, Checkpoint) and entry.payload.root == root:
                return entry.payload.manifest, leaf
        if len(path) < _RECENT:
            break
    return "", leaf


def _store_files(
    workspace: OpenWorkspace, base: str, include: Iterable[str]
) -> Operation[tuple[FolderScan, str, tuple[str, ...]]]:
    """Put changed files and the manifest into the store. Return the scan, the manifest, and the blobs it relies on."""
    scan: FolderScan = yield Work(function=workspace.scan, arguments=(tuple(include),))
    loaded: list[LoadedFile] = []
    for batch in batches(scan.pending, lambda file: file.size):
        yield from _put(loaded)
        loaded = yield Work(function=load, arguments=(workspace.folder, scan, batch))
    manifest = yield from _new_manifest(workspace, scan, base)
    if manifest is None:
        yield from _put(loaded)
        return scan, base, (base,)
    encoded = hash_data(encode_manifest(manifest))
    yield from _put([*loaded, encoded])
    workspace.stats = scan.cache(encoded.hash, manifest.chain)
    files = {item.hash for item in manifest.changed.values() if item.kind == "file"}
    return scan, encoded.hash, (encoded.hash, *([manifest.base] if manifest.base else []), *files)


def files_in(cache: WorkspaceCache, checkpoint: Checkpoint) -> Operation[dict[str, bytes]]:
    """Return the contents of the files of a checkpoint, by path."""
    resolved = yield from resolve(cache, checkpoint.manifest)
    found = {path: item.hash for path, item in resolved.tree.items() if item.kind == "file"}
    contents = yield from read_files(tuple(set(found.values())))
    return {path: contents[name] for path, name in found.items()}


def _put(loaded: Sequence[LoadedFile]) -> Operation[None]:
    """Store the contents that the store does not have yet."""
    if not loaded:
        return
    missing = yield FindMissingBlobs(hashes=tuple({file.hash for file in loaded}))
    if missing:
        yield PutBlobs(blobs=(yield Work(function=compress, arguments=(loaded, missing))))


def _new_manifest(workspace: OpenWorkspace, scan: FolderScan, base: str) -> Operation[Manifest | None]:
    """Return the manifest of a scanned folder; ``None`` if the base lists exactly what was found."""
    if base and base == scan.old.manifest:
        before = Resolved({}, scan.old.chain, scan.old.left_out)
        changed, removed = scan.changed, tuple(scan.gone())
    else:
        before = (yield from resolve(workspace.cache, base)) if base else Resolved({}, 0, ())
        changed, removed = difference(before.tree, dict(scan.cache().items()))
    if base and not (changed or removed) and before.left_out == tuple(scan.left_out):
        if not scan.is_cached or base != scan.old.manifest:
            workspace.stats = scan.cache(base, before.chain)
        return None
    return _delta_or_whole(scan.cache(), base, before.chain, changed, removed)


def _delta_or_whole(
    stats: StatCache, base: str, chain: int, changed: dict[str, ManifestItem], removed: tuple[str, ...]
) -> Manifest:
    """Return a delta, or a whole manifest once the deltas since the last whole one would outweigh it."""
    weight = chain + len(changed) + len(removed)
    if base and weight <= stats.files + len(stats.folders):
        return Manifest(base=base, chain=weight, changed=changed, removed=removed, left_out=stats.left_out)
    return Manifest(changed=dict(stats.items()), left_out=stats.left_out)


def _payload(workspace: OpenWorkspace, manifest: str, note: CheckpointNote, leaf: str | None) -> Checkpoint:
    return Checkpoint(
        target=(leaf or "") if note.target is None else note.target,
        root=workspace.root,
        manifest=manifest,
        files=workspace.stats.files,
        size=workspace.stats.size,
        label=note.label,
        moment=note.moment,
        before_move=note.before_move,
        left_out=len(workspace.stats.left_out),
    )


def _must_save(old: CacheHeader | None, new: CacheHeader) -> bool:
    """Whether the head changed in more than the checkpoint: the thread, the files, or the end of a turn."""
    if old is None:
        return True
    return (old.place, old.thread_id, old.manifest, old.is_closed) != (
        new.place,
        new.thread_id,
        new.manifest,
        new.is_closed,
    )
