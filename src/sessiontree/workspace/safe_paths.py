"""Paths inside a folder: which ones are refused, and how they are reached without following a link.

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

__all__ = ["Folder", "check_path", "check_portable", "parts_of", "unsafe_names"]


_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_NAME = 255
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)


def check_path(root: str, path: str) -> None:
    """Refuse what cannot be a relative path of plain names below the folder."""
    if not path:
        raise UnsafePathError(root, path, "is empty")
    if "\0" in path:
        raise UnsafePathError(root, path, "holds a NUL")
    if path.startswith("/"):
        raise UnsafePathError(root, path, "is absolute")
    for part in path.split("/"):
        if part in {"", ".", ".."}:
            raise UnsafePathError(root, path, f"has a part {part!r}")
        if len(os.fsencode(part)) > _LONGEST_NAME:
            raise UnsafePathError(root, path, "has a part that is too long for a file name")
    if path.split("/", maxsplit=1)[0].casefold() == STATE_DIR or any(
        part.casefold() == ".git" for part in path.split("/")
    ):
        raise UnsafePathError(root, path, "is where git or sessiontree keep their own files")


def check_portable(root: str, paths: Iterable[str]) -> None:
    """Refuse names that a case-insensitive file system would mix up, and names of devices.

    >>> check_portable("root", ["README", "readme"])
    Traceback (most recent call last):
        ...
    sessiontree.errors.UnsafePathError: root: path 'readme' is the same as 'README' but for case; nothing was changed
    """
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(path.casefold(), path)
        if other != path:
            raise UnsafePathError(root, path, f"is the same as {other!r} but for case")
        for part in path.split("/"):
            if part.split(".")[0].casefold() in _DEVICES or part.endswith((".", " ")) or ":" in part:
                raise UnsafePathError(
                    root, path, f"has a part {part!r} that names a device or is changed on some systems"
                )


def unsafe_names(folder: str, names: Iterable[str], *, is_portable: bool) -> set[str]:
    """Names in a folder that no restore would bring back; of two that differ in case only, the later one.

    >>> unsafe_names("", ["a", ".GIT", "A"], is_portable=False)
    {'.GIT'}
    >>> sorted(unsafe_names("", ["a", "A", "con.txt"], is_portable=True))
    ['a', 'con.txt']
    """
    refused: set[str] = set()
    letters: set[str] = set()
    for name in sorted(names):
        try:
            check_path("", f"{folder}/{name}" if folder else name)
            if is_portable:
                check_portable("", [name])
        except UnsafePathError:
            refused.add(name)
            continue
        if is_portable and name.casefold() in letters:
            refused.add(name)
        letters.add(name.casefold())
    return refused


def parts_of(path: str) -> tuple[str, str]:
    """Folder and name; the folder of a name at the top is ''."""
    folder, _, name = path.rpartition("/")
    return folder, name


class Folder:
    """An open root. Everything below it is reached name by name from its descriptor, so no link leads out of it.

    Symbolic links in the path of the root itself are the caller's and are resolved once, here.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        text = os.fspath(root)
        if not text.strip():
            raise WorkspaceError(text, "a folder is needed, not an empty path")
        self.root = os.path.realpath(text)
        if not is_unicode(self.root):
            raise WorkspaceError(self.root, "the path of the folder is no Unicode text, so no entry can hold it")
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
        self.leave()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def leave(self) -> None:
        """Forget the folders that are open on the way down: somebody is about to move them."""
        for _, fd in self._chain:
            os.close(fd)
        self._chain.clear()

    def enter(self, path: str) -> int:
        """The descriptor of a folder below the root, valid until the next call; '' is the root."""
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
        """The descriptor of the folder that holds a path, and the last name."""
        folder, name = parts_of(path)
        return self.enter(folder), name

    def look(self, path: str) -> os.stat_result | None:
        """What is at a path, links not followed; None if nothing is, or if a part on the way is no folder."""
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
        """A regular file's bytes, and what it was right before they were read."""
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
        """Whether two names that differ in case only are two names here; needs the own folder to be there."""
        try:
            os.stat(STATE_DIR.upper(), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False


_TOO_MANY_LINKS = errno.ELOOP
"""What O_NOFOLLOW says of a symbolic link."""


def _read_all(file: int, size: int) -> bytes:
    chunks: list[bytes] = []
    while chunk := os.read(file, max(size, 1 << 16) + 1):
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
