"""Our own files: a thread or a whole tree with everything in it, as one JSON document or as lines.

The first line (or the head of the document) tells the threads, then come the entries in the order of their commits.
``sessiontree.formats.import_sessions`` reads both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from sessiontree.codec import encode_payload
from sessiontree.model import Entry, Thread
from sessiontree.model.record import Record
from sessiontree.progress import Progress, counted

__all__ = ["FORMAT_NAME", "FORMAT_VERSION", "BlobLine", "EntryLine", "Scope", "TreeFile", "native_json", "native_jsonl"]

FORMAT_NAME = "sessiontree"
FORMAT_VERSION = 1

Scope = Literal["path", "thread", "tree"]
"""The active path; all branches of the thread; all threads that share its tree."""


class TreeFile(msgspec.Struct, kw_only=True):
    """The head of a file: what it is, and the threads in it, a fork after what it was forked from."""

    format: str = FORMAT_NAME
    version: int = FORMAT_VERSION
    scope: Scope = "thread"
    threads: tuple[Thread, ...] = ()


class EntryLine(Record, frozen=True, kw_only=True):
    """An entry with its payload as it is stored."""

    id: str
    thread_id: str
    parent: str | None = None
    created_ns: int = 0
    turn_id: str = ""
    payload: msgspec.Raw


class BlobLine(msgspec.Struct, kw_only=True):
    """The content of a file or of a list of files; it stands before the first checkpoint that needs it."""

    blob: str
    data: bytes


def native_jsonl(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> Iterator[bytes]:
    """One line for the head, one for each entry."""
    yield msgspec.json.encode(head) + b"\n"
    for entry in counted(entries, progress):
        yield _line(entry) + b"\n"


def native_json(head: TreeFile, entries: Collection[Entry], progress: Progress | None = None) -> bytes:
    """One document."""
    fields = msgspec.json.encode(head)[:-1]
    lines = b",".join(_line(entry) for entry in counted(entries, progress))
    return msgspec.json.format(fields + b',"entries":[' + lines + b"]}", indent=2) + b"\n"


def _line(entry: Entry) -> bytes:
    line = EntryLine(
        id=entry.id,
        thread_id=entry.thread_id,
        parent=entry.parent,
        created_ns=entry.created_ns,
        turn_id=entry.turn_id,
        payload=msgspec.Raw(encode_payload(entry.payload)),
    )
    return msgspec.json.encode(line)
