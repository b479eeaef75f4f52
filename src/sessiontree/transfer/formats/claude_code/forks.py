"""Sessions of Claude Code that begin with the lines of another one: branches, and forks that work in the background."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import head_of, lines_of
from sessiontree.transfer.formats._records import Tally
from sessiontree.transfer.formats._wire import mapping, parse, text

__all__ = ["Fork", "fork_of", "is_marked"]


_LINE_ID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_HEAD = 64 * 1024
_MARKS = (b'"forkedFrom"', b'"sessionKind":"bg"', b'"sessionKind": "bg"')


class Fork(NamedTuple):
    """Where a session left another one: that session, the entry there, the last shared line here and where it ends."""

    source: str
    entry: str
    line_id: str
    end: int


def is_marked(path: Path) -> bool:
    """Whether a file says that it is a fork."""
    head = head_of(path, _HEAD)
    return any(mark in head for mark in _MARKS)


def fork_of(path: Path) -> Fork | None:
    """The fork that a file is: as its lines say, or because another file of the folder begins with the same line."""
    return _declared(path) if b'"forkedFrom"' in head_of(path, _HEAD) else _shared(path)


def _declared(path: Path) -> Fork | None:
    found: Fork | None = None
    for line in lines_of(path, Tally()):
        if b'"forkedFrom"' not in line.body:
            continue
        try:
            wire = mapping(parse(line.body))
        except _go.JsonError:
            continue
        source = mapping(wire.get("forkedFrom"))
        if text(source.get("sessionId")) and text(source.get("messageUuid")):
            line_id, end = text(wire.get("uuid")), line.offset + len(line.body)
            found = Fork(text(source["sessionId"]), text(source["messageUuid"]), line_id, end)
    return found


def _shared(path: Path) -> Fork | None:
    original = _originals(path.parent).get(_first_line_id(path))
    if original is None or original == path:
        return None
    known = {found[1] for line in lines_of(original, Tally()) if (found := _LINE_ID.search(line.body))}
    last: Fork | None = None
    for line in lines_of(path, Tally()):
        found = _LINE_ID.search(line.body)
        if found is None:
            continue
        if found[1] not in known:
            break
        name = found[1].decode("utf-8", "replace")
        last = Fork(original.stem, name, name, line.offset + len(line.body))
    return last


def _originals(folder: Path) -> dict[bytes, Path]:
    return _first_ids(folder, folder.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _first_ids(folder: Path, _changed_ns: int) -> dict[bytes, Path]:
    """The first line's id of each file, with the file that had it first: one that is not marked as a fork.

    The first line of a file stays what it is; a new file changes the time of its folder.
    """
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (is_marked(path), path.name))
    found: dict[bytes, Path] = {}
    for path in paths:
        first = _first_line_id(path)
        if first and not path.name.startswith("agent-"):
            found.setdefault(first, path)
    return found


def _first_line_id(path: Path) -> bytes:
    found = _LINE_ID.search(head_of(path, _HEAD))
    return found[1] if found else b""
