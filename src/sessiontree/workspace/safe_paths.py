"""Paths inside a folder: checked before use, and opened without following a link.

>>> check_path("root", "src/main.py")
>>> check_path("root", "src/../../etc/passwd")
Traceback (most recent call last):
    ...
sessiontree.errors.UnsafePathError: root: path 'src/../../etc/passwd' has a part '..'; nothing was changed
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from sessiontree.errors import UnsafePathError, WorkspaceError
from sessiontree.model.sanitize import is_unicode
from sessiontree.workspace.ignore import STATE_DIR

__all__ = ["Folder", "check_path", "check_portable", "check_target", "parts_of", "unsafe_names"]


_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_NAME = 255
_LONGEST_TARGET = 4095
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)


def check_path(root: str, path: str) -> None:
    """Raise UnsafePathError unless a path is relative and made of plain names."""
    if problem := _problem_with(path):
        raise UnsafePathError(root, path, problem)


def check_target(root: str, path: str, target: bytes) -> None:
    """Raise UnsafePathError unless a link can have a target."""
    if b"\0" in target:
        raise UnsafePathError(root, path, "is a link to a target that contains NUL")
    if not 0 < len(target) <= _LONGEST_TARGET:
        raise UnsafePathError(root, path, f"is a link to a target of {len(target)} bytes")


def _problem_with(path: str) -> str:
    if not path:
        return "is empty"
    if "\0" in path:
        return "contains NUL"
    if path.startswith("/"):
        return "is absolute"
    parts = path.split("/")
    for part in parts:
        if part in {"", ".", ".."}:
            return f"has a part {part!r}"
        if len(os.fsencode(part)) > _LONGEST_NAME:
            return "has a part that is too long for a file name"
    if parts[0].casefold() == STATE_DIR or any(part.casefold() == ".git" for part in parts):
        return "is inside .git or .sessiontree"
    return ""


def check_portable(root: str, paths: Iterable[str]) -> None:
    """Raise UnsafePathError for names of devices, and for names that differ only in case.

    >>> check_portable("root", ["README", "readme"])
    Traceback (most recent call last):
        ...
    sessiontree.errors.UnsafePathError: root: path 'readme' differs from 'README' only in case; nothing was changed
    """
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(path.casefold(), path)
        if other != path:
            raise UnsafePathError(root, path, f"differs from {other!r} only in case")
        for part in path.split("/"):
            if not _is_portable(part):
                raise UnsafePathError(root, path, f"has a part {part!r} that is not a plain file name on every system")


def _is_portable(name: str) -> bool:
    return name.partition(".")[0].casefold() not in _DEVICES and not name.endswith((".", " ")) and ":" not in name


def unsafe_names(folder: str, names: Iterable[str], *, is_portable: bool) -> set[str]:
    """Return the names in a folder that a restore would refuse; of two that differ only in case, the second one.

    >>> unsafe_names("", ["a", ".GIT", "A"], is_portable=False)
    {'.GIT'}
    >>> sorted(unsafe_names("", ["a", "A", "con.txt"], is_portable=True))
    ['a', 'con.txt']
    """
    refused: set[str] = set()
    seen: set[str] = set()
    for name in sorted(names):
        letters = name.casefold()
        is_refused = is_portable and (letters in seen or not _is_portable(name))
        if is_refused or _problem_with(f"{folder}/{name}" if folder else name):
            refused.add(name)
        else:
            seen.add(letters)
    return refused


def parts_of(path: str) -> tuple[str, str]:
    """Split a path into folder and name; the folder of a name at the top is ''."""
    folder, _, name = path.rpartition("/")
    return folder, name


class Folder:
    """An open root. Paths below it are opened name by name from its descriptor, so that no link leads out of it.

    Symbolic links in the path of the root itself are resolved once, when it is opened.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        text = os.fspath(root)
        if not text.strip():
            raise WorkspaceError(text, "the path of the folder is empty")
        self.root = os.path.realpath(text)
        if not is_unicode(self.root):
            raise WorkspaceError(
                self.root, "the path of the folder is not valid Unicode, so an entry cannot hold it; rename the folder"
            )
        try:
            self.fd = os.open(self.root, _OPEN_FOLDER)
        except OSError as error:
            raise WorkspaceError(self.root, f"cannot be opened as a folder: {error.strerror}") from error
        self._chain: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the root and every folder below it."""
        self.leave()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def leave(self) -> None:
        """Close the folders below the root, because they may be moved."""
        for _, fd in self._chain:
            os.close(fd)
        self._chain.clear()

    def enter(self, path: str) -> int:
        """Return the descriptor of a folder below the root, valid until the next call; '' is the root."""
        names = path.split("/") if path else []
        shared = 0
        for (name, _), wanted in zip(self._chain, names, strict=False):
            if name != wanted:
                break
            shared += 1
        for _, fd in self._chain[shared:]:
            os.close(fd)
        del self._chain[shared:]
        for name in names[shared:]:
            above = self._chain[-1][1] if self._chain else self.fd
            self._chain.append((name, os.open(name, _OPEN_FOLDER, dir_fd=above)))
        return self._chain[-1][1] if self._chain else self.fd

    def place(self, path: str) -> tuple[int, str]:
        """Return the descriptor of the folder that holds a path, and the last name."""
        folder, name = parts_of(path)
        return self.enter(folder), name

    def look(self, path: str) -> os.stat_result | None:
        """Return the stat of a path without following links; None if nothing is there or a parent is not a folder."""
        try:
            fd, name = self.place(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == _TOO_MANY_LINKS:
                return None
            raise

    def read_file(self, path: str) -> tuple[bytes, os.stat_result]:
        """Return the bytes of a regular file, and its stat right before they were read."""
        fd, name = self.place(path)
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        try:
            before = os.fstat(file)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError(path)
            return _read_all(file, before.st_size), before
        finally:
            os.close(file)

    def is_case_sensitive(self) -> bool:
        """Return whether names may differ only in case; the state directory must exist."""
        try:
            os.stat(STATE_DIR.upper(), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False


_TOO_MANY_LINKS = errno.ELOOP
"""The error of O_NOFOLLOW for a symbolic link."""


def _read_all(file: int, size: int) -> bytes:
    chunks: list[bytes] = []
    while chunk := os.read(file, max(size, 1 << 16) + 1):
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
