"""What a tool call changes in files, as diffs: from old and new texts, patches, and whole files.

>>> (change,) = changes_of("edit", {"path": "a.py", "old_string": "x = 1\\ny = 2\\n", "new_string": "x = 1\\ny = 3\\n"})
>>> change.path, change.added, change.removed, [str(line) for line in change.lines]
('a.py', 1, 1, [' x = 1', '-y = 2', '+y = 3'])
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sessiontree.model import Record
from sessiontree.model.tool_arguments import paths_in
from sessiontree.render.tool_kinds import ToolKind

__all__ = ["Change", "DiffLine", "Sign", "changes_of", "diff_lines"]


Sign = Literal[" ", "+", "-"]

_AROUND = 2
_LONGEST_COMPARED = 2_000
_OLD_KEYS = ("old_string", "oldString", "old_str", "oldText", "old_text", "search", "old")
_NEW_KEYS = ("new_string", "newString", "new_str", "newText", "new_text", "replace", "new", "content", "new_source")
_CONTENT_KEYS = ("content", "file_text", "text", "contents", "data")
_PATCH_KEYS = ("patch", "input", "diff", "patchText", "patch_text")
_BLOCK = re.compile(r"<{5,9} ?SEARCH>?[^\n]*\n(.*?)\n?={5,9}\n(.*?)\n?>{5,9} ?REPLACE", re.DOTALL)
_CODEX_FILE = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.*)")
_LINE_NUMBERS = re.compile(r"\A(?::start_line:.*\n)?(?::end_line:.*\n)?-+\n")


class DiffLine(NamedTuple):
    """One line of a diff."""

    sign: Sign
    text: str

    def __str__(self) -> str:
        return self.sign + self.text


class Change(Record, frozen=True, kw_only=True):
    """What a call does to one file."""

    path: str
    lines: tuple[DiffLine, ...] = ()

    @property
    def added(self) -> int:
        """The number of added lines."""
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return sum(line.sign == "-" for line in self.lines)


def changes_of(kind: ToolKind, arguments: Any) -> tuple[Change, ...]:
    """Return the changes that a call asks for; none if it is not about changing files."""
    if kind == "write":
        return _written(arguments)
    if kind == "edit":
        return tuple(_edited(arguments))
    return ()


def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    """Return two texts as a diff with two lines around each change."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _LONGEST_COMPARED:
        return tuple([DiffLine("-", line) for line in before] + [DiffLine("+", line) for line in after])
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return tuple(line for group in matcher.get_grouped_opcodes(_AROUND) for line in _group(group, before, after))


def _group(group: Sequence[tuple[str, int, int, int, int]], before: list[str], after: list[str]) -> Iterator[DiffLine]:
    for tag, left, left_end, right, right_end in group:
        if tag == "equal":
            yield from (DiffLine(" ", line) for line in before[left:left_end])
            continue
        yield from (DiffLine("-", line) for line in before[left:left_end])
        yield from (DiffLine("+", line) for line in after[right:right_end])


def _written(arguments: Any) -> tuple[Change, ...]:
    if not isinstance(arguments, dict):
        return ()
    content = _text(arguments, _CONTENT_KEYS)
    lines = tuple(DiffLine("+", line) for line in (content or "").splitlines())
    return (Change(path=_path(arguments), lines=lines),)


def _edited(arguments: Any) -> Iterator[Change]:
    if isinstance(arguments, str):
        yield from _patched(arguments, "")
        return
    if not isinstance(arguments, dict):
        return
    path = _path(arguments)
    command = arguments.get("command")
    if isinstance(command, list) and len(command) > 1:
        yield from _patched(str(command[1]), path)
        return
    patch = _text(arguments, _PATCH_KEYS)
    if patch is not None:
        yield from _patched(patch, path)
        return
    yield Change(path=path, lines=tuple(_replaced(arguments)))


def _replaced(arguments: Mapping[str, Any]) -> Iterator[DiffLine]:
    edits = arguments.get("edits") or arguments.get("replacements") or arguments.get("chunks")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, dict):
            yield from diff_lines(_text(edit, _OLD_KEYS) or "", _text(edit, _NEW_KEYS) or "")


def _patched(patch: str, path: str) -> Iterator[Change]:
    """The changes of a patch: with search and replace blocks, in Codex's envelope, or a unified diff."""
    blocks = _BLOCK.findall(patch)
    if blocks:
        texts = [(_LINE_NUMBERS.sub("", old), new) for old, new in blocks]
        yield Change(path=path, lines=tuple(line for old, new in texts for line in diff_lines(old, new)))
        return
    lines: list[DiffLine] = []
    for line in patch.splitlines():
        name = _file_named(line)
        if name is not None:
            if lines:
                yield Change(path=path, lines=tuple(lines))
            path, lines = name or path, []
        elif line[:1] in {"+", "-", " "} and not line.startswith("---"):
            lines.append(_line(line))
    if lines or path:
        yield Change(path=path, lines=tuple(lines))


def _file_named(line: str) -> str | None:
    """The file that a line of a patch names; "" if that is no file, None if the line does not name one."""
    codex = _CODEX_FILE.match(line)
    if codex:
        return codex[1].strip()
    if line.startswith("+++ "):
        name = line[4:].split("\t", maxsplit=1)[0].strip()
        return "" if name == "/dev/null" else name.removeprefix("b/")
    return None


def _line(line: str) -> DiffLine:
    sign: Sign = "+" if line[0] == "+" else "-" if line[0] == "-" else " "
    return DiffLine(sign, line[1:])


def _text(arguments: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((arguments[key] for key in keys if isinstance(arguments.get(key), str)), None)


def _path(arguments: Mapping[str, Any]) -> str:
    named = next(paths_in(dict(arguments)), None)
    other = next((arguments[key] for key in ("absolute_path", "filePath", "TargetFile") if key in arguments), "")
    return named or (other if isinstance(other, str) else "")
