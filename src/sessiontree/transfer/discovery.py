"""Where other tools keep their sessions on this machine, and what they will delete of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sessiontree.model import NANOSECONDS, Record
from sessiontree.transfer.formats import session_files

__all__ = ["FoundSessions", "changed_sessions", "discover"]


_DAY_NS = 24 * 3600 * NANOSECONDS
_CLAUDE_DAYS = 30
_SOON_DAYS = 7
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")


class FoundSessions(Record, frozen=True, kw_only=True):
    """The sessions of one tool in one place.

    ``next_loss_ns`` is when the tool deletes the oldest of them, 0 if it keeps them; ``lost_soon`` counts those that it
    deletes within a week.
    """

    format: str
    folder: str
    files: int
    size: int
    oldest_ns: int
    newest_ns: int
    next_loss_ns: int = 0
    lost_soon: int = 0


class _Place(NamedTuple):
    format: str
    folder: Path
    keeps_days: int = 0


def discover(environment: Mapping[str, str], home: Path, folder: Path, *, now_ns: int) -> list[FoundSessions]:
    """The places with sessions, for a user with this environment and home who works in ``folder``."""
    found = (_look(place, now_ns) for place in _places(environment, home, folder) if place.folder.exists())
    return [sessions for sessions in found if sessions is not None]


def changed_sessions(
    environment: Mapping[str, str], home: Path, folder: Path, *, since_ns: int, most: int
) -> dict[str, int]:
    """The number of sessions that changed since a time, by format; counting ends at ``most``.

    Only files that changed are opened, so this is much cheaper than ``discover``.
    """
    found: dict[str, int] = {}
    for place in _places(environment, home, folder):
        for path in _changed_files(place.folder, since_ns):
            if sum(found.values()) >= most:
                return found
            if session_files(path, place.format):
                found[place.format] = found.get(place.format, 0) + 1
    return found


def _changed_files(place: Path, since_ns: int) -> Iterator[Path]:
    below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
    for path in [place] if place.is_file() else below:
        with suppress(OSError):
            if path.stat().st_mtime_ns > since_ns:
                yield path


def _places(environment: Mapping[str, str], home: Path, folder: Path) -> Iterator[_Place]:
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    library = home / "Library" / "Application Support"
    claude = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    yield _Place("claude-code", claude / "projects", _claude_days(claude))
    yield _Place("claude-code", home / ".iflow" / "projects")
    yield _Place("claude-code", home / ".qwen" / "projects")
    yield from (_Place("codex", codex / name) for name in ("sessions", "archived_sessions"))
    yield _Place("gemini", home / ".gemini" / "tmp")
    yield from (_Place("opencode", data / name) for name in ("opencode", "kilo"))
    for name in (".pi/agent/sessions", ".omp/agent/sessions", ".prime/agent/sessions", ".openclaw/agents"):
        yield _Place("pi", home / name)
    goose = environment.get("GOOSE_PATH_ROOT")
    yield _Place("goose", Path(goose) / "data" / "sessions" if goose else data / "goose" / "sessions")
    yield from (_Place("crush", project / ".crush") for project in _crush_projects(data, folder))
    for root in (config, library):
        storages = (root / editor / "User" / "globalStorage" for editor in _EDITORS)
        yield from (_Place("cline", storage / name / "tasks") for storage in storages for name in _EXTENSIONS)
    yield _Place("cline", home / ".cline" / "data")
    yield from (_Place("aider", place / ".aider.chat.history.md") for place in dict.fromkeys((folder, home)))
    yield from (_Place("openhands", home / ".openhands" / name) for name in ("conversations", "sessions"))
    yield _Place("copilot", home / ".copilot" / "session-state")
    yield from (_Place("lmstudio", home / name / "conversations") for name in (".lmstudio", ".cache/lm-studio"))
    llm = environment.get("LLM_USER_PATH")
    llm_folders = [Path(llm)] if llm else [root / "io.datasette.llm" for root in (config, library)]
    yield from (_Place("llm", place / "logs.db") for place in llm_folders)
    yield _Place("chat-log", data / "gptme" / "logs")
    yield _Place("chat-log", home / ".vibe" / "logs")


def _claude_days(folder: Path) -> int:
    """After how many days Claude Code deletes a session: its setting, or its default."""
    days = _json(folder / "settings.json").get("cleanupPeriodDays")
    return days if isinstance(days, int) and not isinstance(days, bool) and 0 < days < 100_000 else _CLAUDE_DAYS


def _crush_projects(data: Path, folder: Path) -> list[Path]:
    """The projects that crush remembers, and this folder."""
    known = _json(data / "crush" / "projects.json").get("projects")
    listed = [project.get("path") for project in known if isinstance(project, dict)] if isinstance(known, list) else []
    return list(dict.fromkeys([folder, *(Path(path) for path in listed if isinstance(path, str))]))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _look(place: _Place, now_ns: int) -> FoundSessions | None:
    stats = list(_stats(session_files(place.folder, place.format)))
    if not stats:
        return None
    times = [found.st_mtime_ns for found in stats]
    kept_ns = place.keeps_days * _DAY_NS
    return FoundSessions(
        format=place.format,
        folder=str(place.folder),
        files=len(stats),
        size=sum(found.st_size for found in stats),
        oldest_ns=min(times),
        newest_ns=max(times),
        next_loss_ns=min(times) + kept_ns if kept_ns else 0,
        lost_soon=sum(time + kept_ns < now_ns + _SOON_DAYS * _DAY_NS for time in times) if kept_ns else 0,
    )


def _stats(paths: list[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        try:
            yield path.stat()
        except OSError:
            continue
