"""Writing our own files: one JSONL file a tree, with all forks in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from sessiontree.blobs import data_of
from sessiontree.codec import decode_payload
from sessiontree.exports.native import BlobLine, EntryLine
from sessiontree.formats.stems import stem_of
from sessiontree.formats.writing import Target
from sessiontree.journal import Journal
from sessiontree.manifest import reachable
from sessiontree.model import Checkpoint, Thread
from sessiontree.queries import FindMissingBlobs, ReadBlobs
from sessiontree.typed import json_decoder

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: Target) -> None:
    done: set[str] = set()
    for thread in threads:
        target.threads.append(thread.id)
        if thread.tree in done:
            continue
        done.add(thread.tree)
        lines = journal.export(thread.id, format="jsonl", scope="tree").encode().splitlines(keepends=True)
        target.entries += len(lines) - 1
        stem, number = stem_of(thread.tree), 2
        while target.is_taken(f"{stem}.jsonl"):
            stem, number = f"{stem_of(thread.tree)}~{number}", number + 1
        target.write(f"{stem}.jsonl", _with_blobs(journal, lines))


def _with_blobs(journal: Journal, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Before each checkpoint the files that it needs and that are not in the file yet."""
    written: set[str] = set()
    for line in lines:
        for name in _needs(journal, line):
            if name not in written:
                written.add(name)
                yield msgspec.json.encode(BlobLine(blob=name, data=_data(journal, name))) + b"\n"
        yield line


def _needs(journal: Journal, line: bytes) -> Iterable[str]:
    if b'"manifest"' not in line:
        return ()
    try:
        payload = decode_payload(bytes(json_decoder(EntryLine).decode(line).payload))
    except msgspec.MsgspecError:
        return ()
    manifest = payload.manifest if isinstance(payload, Checkpoint) else ""
    missing: frozenset[str] = journal.store.read(FindMissingBlobs(hashes=(manifest,))) if manifest else frozenset()
    return sorted(reachable([manifest], lambda name: _data(journal, name))) if manifest and not missing else ()


def _data(journal: Journal, name: str) -> bytes:
    (blob,) = journal.store.read(ReadBlobs(hashes=(name,)))
    return data_of(blob)
