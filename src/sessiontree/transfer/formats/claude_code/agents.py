"""Which session and which call a subagent of Claude Code belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, lines_of, open_plain
from sessiontree.transfer.formats._records import Tally
from sessiontree.transfer.formats._wire import Json, mapping, objects, parse, text

__all__ = ["Sidechain", "calls_of_agents", "parent_of", "session_file_of", "sidechains"]


_AGENT_CALLS = frozenset({"Task", "Agent"})
_SIDE = (b'"isSidechain":true', b'"isSidechain": true')
_AGENT = tuple(b'"%s"' % name.encode() for name in sorted(_AGENT_CALLS))
_BLOCK = 1024 * 1024


class Sidechain(NamedTuple):
    """A subagent's conversation between the lines of a session: its first line, the call that started it, its lines."""

    root: str
    call: str
    lines: list[tuple[Json, Line]]


def parent_of(agent_file: Path) -> str:
    """The session of a subagent's file, by the folder that it is in."""
    parts = agent_file.parts
    return parts[parts.index("subagents") - 1] if "subagents" in parts[1:] else ""


def sidechains(path: Path) -> Iterator[Sidechain]:
    """The conversations of subagents that older versions wrote between the lines of the session."""
    if not _has_sidechains(path):
        return
    chains: dict[str, list[tuple[Json, Line]]] = {}
    roots: dict[str, str] = {}
    calls: dict[str, str] = {}
    last = ""
    for line in lines_of(path, Tally()):
        if not any(mark in line.body for mark in (*_SIDE, *_AGENT)):
            continue
        try:
            wire = mapping(parse(line.body))
        except _go.JsonError:
            continue
        if wire.get("isSidechain") is not True:
            calls |= _agent_calls(wire)
            continue
        line_id, parent = text(wire.get("uuid")) or str(line.offset), text(wire.get("parentUuid"))
        last = roots.get(parent) or (last if parent and last else line_id)
        roots[line_id] = last
        chains.setdefault(last, []).append((wire, line))
    for root, lines in chains.items():
        yield Sidechain(root, calls.get(_prompt_of(lines[0][0]), ""), lines)


def _has_sidechains(path: Path) -> bool:
    """Whether a file may have lines of subagents: newer versions write none, and need no second look at each line."""
    before = b""
    try:
        with open_plain(path) as file:
            while block := file.read(_BLOCK):
                data = before + block
                if any(mark in data for mark in _SIDE):
                    return True
                before = block[-max(map(len, _SIDE)) :]
    except OSError:
        return False  # the reader of the session reports it
    return False


def _agent_calls(wire: Json) -> dict[str, str]:
    """The calls that start a subagent, by their prompts."""
    blocks = objects(mapping(wire.get("message")).get("content"))
    started = [block for block in blocks if text(block.get("name")) in _AGENT_CALLS]
    return {text(mapping(block.get("input")).get("prompt")): text(block.get("id")) for block in started}


def _prompt_of(wire: Json) -> str:
    content = mapping(wire.get("message")).get("content")
    return content if isinstance(content, str) else "".join(text(block.get("text")) for block in objects(content))


def session_file_of(agent_file: Path, session_id: str) -> Path | None:
    """The file of the session that a subagent belongs to, beside the session's folder or beside the subagent's file."""
    if not session_id or PurePath(session_id).name != session_id:
        return None
    folders = [folder for folder in agent_file.parents if folder.name == session_id] or [agent_file]
    found = folders[0].with_name(f"{session_id}.jsonl")
    return found if found.is_file() else None


def calls_of_agents(session_file: Path | None) -> dict[str, str]:
    """The call that started each subagent, as the results in the session's file say."""
    if session_file is None:
        return {}
    found = session_file.stat()
    return _calls_of_agents(session_file, (found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=64)
def _calls_of_agents(session_file: Path, _stamp: tuple[int, int]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines_of(session_file, Tally()):
        if b'"agentId"' not in line.body or b'"tool_use_id"' not in line.body:
            continue
        try:
            wire = mapping(parse(line.body))
        except _go.JsonError:
            continue
        agent = text(mapping(wire.get("toolUseResult")).get("agentId"))
        blocks = objects(mapping(wire.get("message")).get("content"))
        if agent and blocks:
            found[agent] = text(blocks[0].get("tool_use_id"))
    return found
