"""The gist of a tool call: its name, its object and its outcome, each on one line.

>>> from sessiontree.model import ToolCallPart, ToolResultPart, TextPart
>>> call = ToolCallPart(id="c", name="Bash", arguments='{"command": "cd /home/ann/shop && pytest -q"}')
>>> result = ToolResultPart(call_id="c", parts=(TextPart(text="..\\n48 passed in 2.10s"),))
>>> gist = gist_of(call, result)
>>> gist.name, gist.object, gist.outcome
('bash', 'pytest -q', '48 passed in 2.10s')
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sessiontree.model import Record, ToolCallPart, ToolResultPart
from sessiontree.model.sanitize import one_line
from sessiontree.model.tool_arguments import decode_arguments, paths_in
from sessiontree.render.changes import Change, changes_of
from sessiontree.render.outcomes import Outcome, outcome_of
from sessiontree.render.tool_kinds import ToolKind, kind_of, short_name

__all__ = ["Gist", "gist_of", "relative_path"]


_LONGEST = 400
_CHANGE_OF_FOLDER = re.compile(r"\A\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s&;|]+)\s*(?:&&|;)\s*")
_COMMAND_KEYS = ("command", "cmd", "script", "code", "chars", "input", "commandLine")
_PATTERN_KEYS = ("pattern", "regex", "query", "glob_pattern", "search", "globs", "name")
_QUERY_KEYS = ("query", "q", "search_term", "search_query", "prompt")
_URL_KEYS = ("url", "uri", "href")
_TASK_KEYS = ("description", "task", "message", "prompt", "instructions", "agent", "targets")
_QUESTION_KEYS = ("question", "prompt", "message")
_START_KEYS = ("offset", "start_line", "startLine", "start", "line_start")
_END_KEYS = ("end_line", "endLine", "end", "line_end")


class Gist(Record, frozen=True, kw_only=True):
    """A tool call and its result in a few words. ``name`` is its kind, or for an unknown tool its own name."""

    kind: ToolKind
    name: str
    object: str
    outcome: str = ""
    is_failed: bool = False
    is_answered: bool = False
    seconds: float | None = None
    changes: tuple[Change, ...] = ()

    @property
    def added(self) -> int:
        """The number of lines that the call adds to files."""
        return 0 if self.is_failed else sum(change.added for change in self.changes)

    @property
    def removed(self) -> int:
        """The number of lines that the call removes from files."""
        return 0 if self.is_failed else sum(change.removed for change in self.changes)


def gist_of(call: ToolCallPart, result: ToolResultPart | None = None, folder: str = "") -> Gist:
    """Return the gist of a call. Paths are relative to ``folder``, the folder of the thread."""
    arguments = decode_arguments(call.arguments)
    if arguments is None:
        arguments = call.arguments
    kind = kind_of(call.name, arguments)
    changes = changes_of(kind, arguments)
    outcome = Outcome() if result is None else outcome_of(kind, result, changes)
    return Gist(
        kind=kind,
        name=kind if kind != "other" else one_line(short_name(call.name), 40),
        object=one_line(_object(kind, arguments, changes, folder), _LONGEST),
        outcome=outcome.text,
        is_failed=outcome.is_failed,
        is_answered=result is not None,
        seconds=outcome.seconds,
        changes=changes,
    )


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to the folder of its thread, if it is in there."""
    base = folder.rstrip("/\\")
    if base and path.startswith((base + "/", base + "\\")):
        return path[len(base) + 1 :]
    return "." if base and path == base else path


def _object(kind: ToolKind, arguments: Any, changes: Sequence[Change], folder: str) -> str:
    if not isinstance(arguments, dict):
        named = [change.path for change in changes if change.path]
        return _paths(named, folder) if named else str(arguments or "") if isinstance(arguments, str) else ""
    match kind:
        case "read":
            return _read(arguments, folder)
        case "edit" | "write":
            named = [change.path for change in changes if change.path]
            return _paths(named, folder) if named else _path(arguments, folder) or _first_argument(arguments)
        case "bash":
            return _command(arguments)
        case "grep" | "find":
            return _search(arguments, folder)
        case "web":
            return _web(arguments)
        case "agent":
            return _text(arguments, _TASK_KEYS) or _first_argument(arguments)
        case "plan":
            return _plan(arguments)
        case "ask":
            return _question(arguments)
        case "other":
            return _first_argument(arguments)


def _read(arguments: Mapping[str, Any], folder: str) -> str:
    path = _path(arguments, folder)
    if not path:
        return _first_argument(arguments)
    start, end, limit = _number(arguments, _START_KEYS), _number(arguments, _END_KEYS), _number(arguments, ("limit",))
    span = arguments.get("view_range") or arguments.get("line_range")
    if isinstance(span, list) and len(span) == 2 and all(isinstance(at, int) for at in span):
        start, end = span
    if start is not None and end is None and limit:
        end = start + limit - 1
    if start is None:
        return f"{path}:1-{limit}" if limit else path
    return f"{path}:{start}-{end}" if end and end > 0 else f"{path}:{start}-"


def _command(arguments: Mapping[str, Any]) -> str:
    command = next((arguments[key] for key in _COMMAND_KEYS if key in arguments), "")
    if isinstance(command, list):
        words = [str(word) for word in command]
        # Codex runs every command through a login shell.
        is_shell = (
            len(words) == 3 and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"} and words[1] in {"-lc", "-c"}
        )
        command = words[2] if is_shell else shlex.join(words)
    text = str(command)
    shorter = _CHANGE_OF_FOLDER.sub("", text)
    return shorter.strip() or text or _first_argument(arguments)


def _search(arguments: Mapping[str, Any], folder: str) -> str:
    pattern = _text(arguments, _PATTERN_KEYS)
    where = _path(arguments, folder) or relative_path(
        _text(arguments, ("directory", "dir_path", "dir", "folder")), folder
    )
    if not pattern:
        return where or _first_argument(arguments) or "."
    return f"{pattern} in {where}" if where and where != "." else pattern


def _web(arguments: Mapping[str, Any]) -> str:
    url = _text(arguments, _URL_KEYS)
    if url:
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        return (parts.netloc + parts.path).rstrip("/") or url
    query = _text(arguments, _QUERY_KEYS)
    return f"“{query}”" if query else _first_argument(arguments)


def _plan(arguments: Mapping[str, Any]) -> str:
    items = next((value for value in arguments.values() if isinstance(value, list)), [])
    rows = [item for item in items if isinstance(item, dict)]
    done = sum(str(item.get("status", "")) in {"completed", "done"} for item in rows)
    current = next((item for item in rows if item.get("status") == "in_progress"), {})
    name = str(current.get("content") or current.get("step") or current.get("description") or "")
    progress = f"{done} of {len(rows)} done" if rows else ""
    return ": ".join(filter(None, (progress, name))) or _first_argument(arguments)


def _question(arguments: Mapping[str, Any]) -> str:
    questions = arguments.get("questions")
    first = questions[0] if isinstance(questions, list) and questions and isinstance(questions[0], dict) else arguments
    return _text(first, _QUESTION_KEYS) or _first_argument(arguments)


def _path(arguments: Mapping[str, Any], folder: str) -> str:
    named = [*paths_in(dict(arguments))]
    named += [arguments[key] for key in ("absolute_path", "filePath", "dirPath") if isinstance(arguments.get(key), str)]
    return _paths(named, folder)


def _paths(paths: Sequence[str], folder: str) -> str:
    shown = list(dict.fromkeys(relative_path(path, folder) for path in paths))
    return ", ".join(shown[:2]) + (f" and {len(shown) - 2} more" if len(shown) > 2 else "")


def _text(arguments: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, list):
            value = " ".join(one for one in value if isinstance(one, str))
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _number(arguments: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    found = next((arguments[key] for key in keys if isinstance(arguments.get(key), int)), None)
    return None if found is None or isinstance(found, bool) else found


def _first_argument(arguments: Mapping[str, Any]) -> str:
    for key, value in arguments.items():
        if isinstance(value, str) and value.strip():
            return f"{key}={value.strip()}"
    return ", ".join(f"{key}={value}" for key, value in list(arguments.items())[:2] if isinstance(value, int | float))
