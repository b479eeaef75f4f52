"""Which files the tools of a conversation read and changed.

>>> from sessiontree.model.builders import assistant, call
>>> looked = assistant(calls=[call("1", "read_file", '{"path": "a.py"}'), call("2", "edit", '{"file_path": "b.py"}')])
>>> files_in([looked.message])
TouchedFiles(read=('a.py',), modified=('b.py',))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from sessiontree.model import Message, ToolCallPart
from sessiontree.model._base import Record
from sessiontree.model.message import PATH_KEYS, PATH_LIST_KEYS
from sessiontree.model.tokens import estimate_text

__all__ = ["TouchedFiles", "files_in", "with_files", "without_files"]


_READERS = frozenset(
    [
        "read",
        "read_file",
        "readfile",
        "view",
        "view_file",
        "cat",
        "open",
        "open_file",
        "notebookread",
        "read_many_files",
        "get_file",
    ]
)
_WRITERS = frozenset(
    [
        "write",
        "write_file",
        "writefile",
        "edit",
        "edit_file",
        "editfile",
        "multiedit",
        "multi_edit",
        "create",
        "create_file",
        "str_replace",
        "insert",
        "replace",
        "apply_patch",
        "applypatch",
        "patch",
        "notebookedit",
        "delete_file",
        "remove_file",
        "move_file",
        "rename_file",
        "append_file",
    ]
)
_READING_COMMANDS = frozenset({"view", "read"})
_PATCHED = r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ b/(.+)$"
_BLOCKS = r"(?s)\n*<(read|modified)-files>\n.*?\n</\1-files>"


class TouchedFiles(Record, frozen=True, kw_only=True):
    """Sorted; a file that was changed is not listed as read as well."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def __or__(self, other: TouchedFiles) -> TouchedFiles:
        modified = {*self.modified, *other.modified}
        read = {*self.read, *other.read} - modified
        return TouchedFiles(read=tuple(sorted(read)), modified=tuple(sorted(modified)))


def files_in(messages: Iterable[Message]) -> TouchedFiles:
    """Calls that failed changed nothing, so only their reading counts."""
    said = list(messages)
    failed = {result.call_id for message in said for result in message.tool_results if result.is_error}
    touched = [_touched(call) for message in said for call in message.tool_calls if call.id not in failed]
    read = {path for files in touched for path in files.read}
    modified = {path for files in touched for path in files.modified}
    return TouchedFiles(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def with_files(summary: str, files: TouchedFiles, room: int) -> str:
    """The summary with the files named at its end, for the model to see; those that were changed go first."""
    blocks = [summary.rstrip()]
    for name, paths in (("modified", files.modified), ("read", files.read)):
        shown, room = _shown(paths, room)
        if shown:
            blocks.append(f"<{name}-files>\n" + "\n".join(shown) + f"\n</{name}-files>")
    return "\n\n".join(blocks)


def _shown(paths: Sequence[str], room: int) -> tuple[list[str], int]:
    """As many paths as fit, the number of the others, and the room that is left."""
    shown: list[str] = []
    for path in paths:
        room -= estimate_text(path) + 1
        if room < 0:
            return [*shown, f"({len(paths) - len(shown)} more)"], 0
        shown.append(path)
    return shown, room


def without_files(summary: str) -> str:
    """The opposite of ``with_files``: what the next summary builds on.

    >>> without_files(with_files("Done.", TouchedFiles(read=("a",)), room=100))
    'Done.'
    """
    return re.sub(_BLOCKS, "", summary)


def _touched(call: ToolCallPart) -> TouchedFiles:
    name = call.name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].lower()
    arguments = _arguments(call.arguments)
    if name.startswith("str_replace") and arguments.get("command") in _READING_COMMANDS:
        return TouchedFiles(read=_paths(arguments))
    if name in _WRITERS or name.startswith("str_replace"):
        return TouchedFiles(modified=_paths(arguments))
    if name in _READERS:
        return TouchedFiles(read=_paths(arguments))
    return TouchedFiles()


def _arguments(text: str) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(text)
    except msgspec.DecodeError:
        decoded = text
    return decoded if isinstance(decoded, dict) else {"patch": str(decoded)}


def _paths(arguments: dict[str, Any]) -> tuple[str, ...]:
    named = [arguments.get(key) for key in PATH_KEYS]
    several = [arguments.get(key) for key in PATH_LIST_KEYS]
    listed = [path for paths in several if isinstance(paths, list) for path in paths]
    patches = [value for key in ("patch", "input", "diff") if isinstance(value := arguments.get(key), str)]
    patched = [one or other for patch in patches for one, other in re.findall(_PATCHED, patch)]
    found = {path.strip() for path in (*named, *listed, *patched) if isinstance(path, str)}
    return tuple(sorted(path for path in found if path and "\n" not in path))
