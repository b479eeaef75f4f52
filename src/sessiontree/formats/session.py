"""The common shape that every reader gives its data: a conversation, and the records in it."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.blobs import Blob
from sessiontree.model import Custom, Payload, Thread, ThreadFields, UnknownPayload

__all__ = ["UNREADABLE", "Item", "LineIds", "Session", "chain_id", "unreadable", "unreadable_bytes", "with_origin"]

UNREADABLE = "unreadable"
"""Name of a custom entry that holds bytes which could not be read."""

_LARGEST_KEPT = 1024 * 1024


class Item(NamedTuple):
    """One record on its way into the journal. ``parent`` UNSET: it follows the record before it.

    ``blobs`` are the contents that it refers to: they go into the store before it does.
    """

    payload: Payload
    id: str
    created_ns: int
    parent: str | UnsetType | None = UNSET
    turn_id: str = ""
    blobs: tuple[Blob, ...] = ()


class Session(NamedTuple):
    """A conversation of a source. ``items`` is read once; then ``leaf`` and ``finish`` are asked.

    ``leaf`` tells the tip (UNSET: the last item); ``finish`` gets the loaded thread and gives the metadata that was
    not known before. ``fork`` is the thread and the entry that this one was forked from, if both share a tree.
    Without ``has_head`` only a readable item tells that this is a session at all.
    """

    id: str
    place: str
    created_ns: int
    updated_ns: int
    fields: ThreadFields
    items: Iterable[Item]
    leaf: Callable[[], str | UnsetType | None] = lambda: UNSET
    finish: Callable[[Thread], ThreadFields] = lambda _thread: {}
    fork: tuple[str, str] | None = None
    has_head: bool = True


def chain_id(previous: str, body: bytes) -> str:
    """An id for a record that has none: the same for the same record after the same history.

    So an import that is repeated finds what it wrote, and a file that was rewritten becomes a branch.

    >>> chain_id("", b"hello") == chain_id("", b"hello") != chain_id("before", b"hello")
    True
    """
    digest = hashlib.blake2b(body, digest_size=12, key=previous.encode()[-64:])
    return digest.hexdigest()


class LineIds:
    """Ids for the lines of a log: which log, the number of the line, and a running checksum of everything up to it.

    Cheaper than ``chain_id``, and enough where a line has one place only: should two ever be taken for the same, the
    journal compares their content. The ids of one log stand next to each other in a store's index of ids, so that a
    batch of them touches few of its pages.

    >>> first, second = LineIds("log"), LineIds("log")
    >>> first.next(b"hello"), second.next(b"hello") != first.next(b"hello")
    ('8f3f68c5-000001-3610a686', True)
    """

    def __init__(self, log: str) -> None:
        self.last = ""
        self._log = f"{zlib.crc32(log.encode('utf-8', 'surrogateescape')):08x}"
        self._number = 0
        self._sum = 0

    def next(self, body: bytes) -> str:
        self._number += 1
        self._sum = zlib.crc32(body, self._sum)
        self.last = f"{self._log}-{self._number:06}-{self._sum:08x}"
        return self.last


def unreadable(body: bytes, problem: str, *, is_ended: bool = True) -> Custom:
    """An entry that keeps what could not be read; of very long runs only the length and the hash."""
    facts: dict[str, Any] = {"problem": problem, "size": len(body)} | ({} if is_ended else {"unended": True})
    if len(body) <= _LARGEST_KEPT:
        facts["base64"] = base64.b64encode(body).decode()
    else:
        facts["sha256"] = hashlib.sha256(body).hexdigest()
    return Custom(name=UNREADABLE, origin=facts)


def unreadable_bytes(payload: Payload) -> bytes | None:
    """The bytes that ``unreadable`` kept."""
    if isinstance(payload, Custom) and payload.name == UNREADABLE and "base64" in payload.origin:
        return base64.b64decode(payload.origin["base64"])
    return None


def with_origin(payload: Payload, **facts: Any) -> Payload:
    """The payload with more facts about where it comes from."""
    if isinstance(payload, UnknownPayload):
        return payload
    return replace(payload, origin={**payload.origin, **facts})
