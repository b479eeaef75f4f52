"""Rollouts of Codex that begin with a copy of another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, lines_of
from sessiontree.transfer.formats._records import Tally
from sessiontree.transfer.formats._wire import Json, mapping, parse, text

__all__ = ["DEEPEST", "Shared", "home_of", "rollout_of", "shared_with"]


DEEPEST = 32
"""How many rollouts may build on one another."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class Shared(NamedTuple):
    """The records that two rollouts begin with: where they end in each of them."""

    end_here: int
    end_there: int


def home_of(path: Path) -> Path:
    """Codex's folder, which holds the folder of the sessions."""
    named = [parent for parent in path.parents if parent.name in ("sessions", "archived_sessions")]
    return named[-1].parent if named else path.parent


def rollout_of(path: Path, name: str) -> Path | None:
    """The rollout of another thread, in the folder that a rollout belongs to."""
    if not _UUID.fullmatch(name):
        return None
    found = sorted(home_of(path).rglob(f"rollout-*{name}*.jsonl*"))
    return found[0] if found and found[0] != path else None


def shared_with(path: Path, source: Path) -> Shared | None:
    """What a fork has in common with its source; ``None`` if that is nothing. A copy may have other times."""
    here, there = Line(b"", 0, True), Line(b"", 0, True)
    for one, other in zip(_records(path), _records(source), strict=False):
        if not _is_same(one[0], other[0]):
            break
        here, there = one[1], other[1]
    if not there.body:
        return None
    return Shared(here.offset + len(here.body), there.offset + len(there.body))


def _records(path: Path) -> Iterator[tuple[Json, Line]]:
    """The records of a rollout without its headers: a fork may have copied that of its source, or not."""
    for line in lines_of(path, Tally()):
        try:
            record = mapping(parse(line.body))
        except _go.JsonError:
            return
        if text(record.get("type")) != "session_meta":
            yield record, line


def _is_same(one: Json, other: Json) -> bool:
    return (one.get("type"), one.get("payload")) == (other.get("type"), other.get("payload"))
