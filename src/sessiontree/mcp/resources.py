"""Threads as resources: ``sessiontree://thread/ID`` is the end of a conversation, ``…/entry/ID`` an entry in its context.

>>> uri_of("my talk/1")
'sessiontree://thread/my%20talk%2F1'
>>> parse_uri("sessiontree://thread/my%20talk%2F1/entry/a7")
ResourceName(thread='my talk/1', entry='a7')
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from sessiontree.mcp.answers import passage_text
from sessiontree.mcp.library import Library
from sessiontree.mcp.names import RequestError, find_entry
from sessiontree.mcp.reading import passage_around, passage_before
from sessiontree.model import Record

__all__ = ["ENTRY_TEMPLATE", "THREAD_TEMPLATE", "ResourceName", "parse_uri", "read_resource", "uri_of"]


_BASE = "sessiontree://thread/"
_ENTRIES = 100
_ROOM = 100_000

THREAD_TEMPLATE = _BASE + "{thread}"
ENTRY_TEMPLATE = _BASE + "{thread}/entry/{entry}"


class ResourceName(Record, frozen=True, kw_only=True):
    """What an address names."""

    thread: str
    entry: str = ""


def uri_of(thread_id: str) -> str:
    """Return the address of a thread."""
    return _BASE + quote(thread_id, safe="")


def parse_uri(uri: str) -> ResourceName:
    """Return what an address names; raises RequestError for one that is not ours."""
    pieces = uri.removeprefix(_BASE).split("/") if uri.startswith(_BASE) else []
    match [unquote(piece) for piece in pieces]:
        case [str() as thread] if thread:
            return ResourceName(thread=thread)
        case [str() as thread, "entry", str() as entry] if thread and entry:
            return ResourceName(thread=thread, entry=entry)
        case _:
            raise RequestError(f"Resources are {THREAD_TEMPLATE} and {ENTRY_TEMPLATE}, not {uri[:200]!a}.")


def read_resource(library: Library, uri: str) -> str:
    """Return the text of a resource; raises RequestError if it is not there."""
    name = parse_uri(uri)
    thread = library.thread(name.thread)
    if name.entry:
        entry_id = find_entry(library.journal, thread.id, name.entry)
        passage = passage_around(library.journal, thread, entry_id, _ENTRIES)
    else:
        passage = passage_before(library.journal, thread, None, _ENTRIES)
    return passage_text(library, thread, passage, room=_ROOM)
