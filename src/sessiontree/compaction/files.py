"""The files that the tools of a conversation read and modified.

>>> from sessiontree.model.builders import assistant, call
>>> calls = [call("1", "read_file", '{"path": "a.py"}'), call("2", "edit", '{"file_path": "b.py"}')]
>>> files_in([assistant(calls=calls).message])
TouchedFiles(read=('a.py',), modified=('b.py',))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sessiontree.model import Message, ToolCallPart
from sessiontree.model._base import Record
from sessiontree.model.tokens import estimate_text
from sessiontree.model.tool_arguments import decode_arguments, paths_in

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
_PATCH_KEYS = ("patch", "input", "diff")
_PATCHED = r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ b/(.+)$"
_BLOCKS = r"(?s)\n*<(read|modified)-files>\n.*?\n</\1-files>"


class TouchedFiles(Record, frozen=True, kw_only=True):
    """Sorted paths; a modified file is not listed as read."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def __or__(self, other: TouchedFiles) -> TouchedFiles:
        modified = {*self.modified, *other.modified}
        read = {*self.read, *other.read} - modified
        return TouchedFiles(read=tuple(sorted(read)), modified=tuple(sorted(modified)))


def files_in(messages: Iterable[Message]) -> TouchedFiles:
    """Return the files that the calls in the messages touched; calls that failed do not count."""
    messages = list(messages)
    failed = {result.call_id for message in messages for result in message.tool_results if result.is_error}
    touched = [_touched(call) for message in messages for call in message.tool_calls if call.id not in failed]
    read = {path for files in touched for path in files.read}
    modified = {path for files in touched for path in files.modified}
    return TouchedFiles(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def with_files(summary: str, files: TouchedFiles, max_tokens: int) -> str:
    """Return the summary followed by lists of files, modified ones first, that take at most ``max_tokens`` tokens."""
    blocks = [summary.rstrip()]
    for name, paths in (("modified", files.modified), ("read", files.read)):
        shown, max_tokens = _shown(paths, max_tokens)
        if shown:
            blocks.append(f"<{name}-files>\n" + "\n".join(shown) + f"\n</{name}-files>")
    return "\n\n".join(blocks)


def _shown(paths: Sequence[str], max_tokens: int) -> tuple[list[str], int]:
    """Return the paths that fit, with the number of the others, and the tokens that are left."""
    shown: list[str] = []
    for path in paths:
        max_tokens -= estimate_text(path) + 1
        if max_tokens < 0:
            return [*shown, f"({len(paths) - len(shown)} more)"], 0
        shown.append(path)
    return shown, max_tokens


def without_files(summary: str) -> str:
    """Return a summary without the lists of files: the reverse of ``with_files``.

    >>> without_files(with_files("Done.", TouchedFiles(read=("a",)), max_tokens=100))
    'Done.'
    """
    return re.sub(_BLOCKS, "", summary)


def _touched(call: ToolCallPart) -> TouchedFiles:
    name = call.name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].lower()
    decoded = decode_arguments(call.arguments)
    arguments = (
        decoded if isinstance(decoded, dict) else {"patch": decoded if isinstance(decoded, str) else call.arguments}
    )
    if name.startswith("str_replace") and arguments.get("command") in _READING_COMMANDS:
        return TouchedFiles(read=_paths(arguments))
    if name in _WRITERS or name.startswith("str_replace"):
        return TouchedFiles(modified=_paths(arguments))
    if name in _READERS:
        return TouchedFiles(read=_paths(arguments))
    return TouchedFiles()


def _paths(arguments: dict[str, Any]) -> tuple[str, ...]:
    patches = [value for key in _PATCH_KEYS if isinstance(value := arguments.get(key), str)]
    patched = [one or other for patch in patches for one, other in re.findall(_PATCHED, patch)]
    found = {path.strip() for path in (*paths_in(arguments), *patched)}
    return tuple(sorted(path for path in found if path and "\n" not in path))
