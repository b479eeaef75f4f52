"""Power cuts: record every write of a traced process, then build the disk as it could be after a cut at any point.

What was synced is there. Of what was not, each file has nothing, all, a part in order, any selection, or a last write that
ends in the middle of it, at a sector. Names are created, renamed and removed up to some point, and beyond it if their folder
was synced.
"""

from __future__ import annotations

import ctypes
import os
import random
from pathlib import Path
from typing import Literal, NamedTuple

from torture import tracer

_SECTOR = 512
_LONGEST_PATH = 4096
_APPENDING = 0o2000
_HERE = ctypes.c_ulonglong(-100).value

Kind = Literal["create", "folder", "write", "truncate", "sync", "rename", "link", "remove", "report"]


class Change(NamedTuple):
    """One call: the bytes written at an offset, the new size of a file, the new name of a file."""

    kind: Kind
    path: str = ""
    offset: int = 0
    data: bytes = b""
    target: str = ""


class Recorder:
    """Collects the changes below a folder; ``report`` is the descriptor on which the process reports its steps."""

    def __init__(self, folder: Path, report: int) -> None:
        self.changes: list[Change] = []
        self._folder = f"{folder}/"
        self._report = report
        self._sizes = {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}

    def observe(self, thread: int, name: str, registers: tracer.Registers) -> None:
        """Record a call before it is made."""
        match name:
            case "write" | "pwrite64" if registers.rdi == self._report:
                self._add(Change("report"))
            case "write" | "pwrite64":
                self._write(thread, name, registers)
            case "openat":
                self._open(_at(thread, registers.rdi, registers.rsi), registers.rdx)
            case "ftruncate":
                self._on_file(thread, registers.rdi, "truncate", registers.rsi)
            case "fsync" | "fdatasync":
                self._on_file(thread, registers.rdi, "sync")
            case "rename" | "link":
                self._move(name, _at(thread, _HERE, registers.rdi), _at(thread, _HERE, registers.rsi))
            case "renameat" | "renameat2" | "linkat":
                source, target = _at(thread, registers.rdi, registers.rsi), _at(thread, registers.rdx, registers.r10)
                self._move(name, source, target)
            case "mkdir":
                self._add(Change("folder", _at(thread, _HERE, registers.rdi)))
            case "mkdirat":
                self._add(Change("folder", _at(thread, registers.rdi, registers.rsi)))
            case "unlink" | "rmdir":
                self._add(Change("remove", _at(thread, _HERE, registers.rdi)))
            case "unlinkat":
                self._add(Change("remove", _at(thread, registers.rdi, registers.rsi)))

    def _open(self, path: str, flags: int) -> None:
        if flags & os.O_CREAT:
            self._add(Change("create", path))
        if flags & os.O_TRUNC and path.startswith(self._folder):
            self._sizes[path] = 0
            self._add(Change("truncate", path))

    def _move(self, name: str, source: str, target: str) -> None:
        self._add(Change("link" if name.startswith("link") else "rename", source, target=target))

    def _write(self, thread: int, name: str, registers: tracer.Registers) -> None:
        path = _path(thread, registers.rdi)
        if not path.startswith(self._folder):
            return
        offset = registers.r10 if name == "pwrite64" else self._position(thread, registers.rdi, path)
        data = _memory(thread, registers.rsi, registers.rdx)
        self._sizes[path] = max(self._sizes.get(path, 0), offset + len(data))
        self._add(Change("write", path, offset, data))

    def _on_file(self, thread: int, file: int, kind: Literal["truncate", "sync"], size: int = 0) -> None:
        path = _path(thread, file)
        if kind == "truncate":
            self._sizes[path] = size
        self._add(Change(kind, path, size))

    def _add(self, change: Change) -> None:
        if change.kind == "report" or f"{change.path}/".startswith(self._folder):
            self.changes.append(change)
        if change.kind == "rename":
            self._sizes[change.target] = self._sizes.pop(change.path, 0)
        if change.kind == "link":
            self._sizes[change.target] = self._sizes.get(change.path, 0)
        if change.kind == "remove":
            self._sizes.pop(change.path, None)

    def _position(self, thread: int, file: int, path: str) -> int:
        fields = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{thread}/fdinfo/{file}").read_text().splitlines()
            if ":\t" in line
        )
        is_appending = int(fields["flags"], 8) & _APPENDING
        return self._sizes.get(path, 0) if is_appending else int(fields["pos"])


class _File:
    """A file on the disk, and the writes to it that were not synced; or a folder, which has none."""

    def __init__(self, *, is_folder: bool = False) -> None:
        self.is_folder = is_folder
        self.synced = bytearray()
        self.waiting: list[Change] = []

    def sync(self) -> None:
        for change in self.waiting:
            _apply(self.synced, change)
        self.waiting.clear()

    def after_a_cut(self, source: random.Random) -> bytes:
        content = bytearray(self.synced)
        for change in _survivors(self.waiting, source):
            _apply(content, change)
        return bytes(content)


def changes_that_made(folder: Path) -> list[Change]:
    """The changes that make the files of a folder, all of them synced."""
    changes: list[Change] = []
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            changes.append(Change("folder", str(path)))
        else:
            changes += [
                Change("create", str(path)),
                Change("write", str(path), 0, path.read_bytes()),
                Change("sync", str(path)),
            ]
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    return [*changes, *(Change("sync", str(path)) for path in folders)]


class _Renaming:
    """A name that was added, changed or removed, and the folders whose sync makes that durable."""

    def __init__(self, change: Change, file: _File | None) -> None:
        self.change = change
        self.file = file
        self.folders = {str(Path(path).parent) for path in (change.path, change.target) if path}
        self.is_synced = False

    def apply(self, names: dict[str, _File]) -> None:
        path, target = self.change.path, self.change.target
        match self.change.kind:
            case "create" | "folder" if self.file is not None:
                names.setdefault(path, self.file)
            case "link" if path in names:
                names[target] = names[path]
            case "rename":
                for name in [name for name in names if name == path or name.startswith(f"{path}/")]:
                    names[target + name[len(path) :]] = names.pop(name)
            case "remove":
                names.pop(path, None)


def disk_after(changes: list[Change], folder: Path, target: Path, source: random.Random) -> int:
    """Write what a power cut after these changes leaves to ``target``; return how many steps had been reported."""
    files: dict[str, _File] = {}
    renamings: list[_Renaming] = []
    reports = 0
    for change in changes:
        match change.kind:
            case "report":
                reports += 1
            case "sync" if change.path not in files or files[change.path].is_folder:
                _sync_folder(change.path, renamings)
            case "sync":
                files[change.path].sync()
            case "write" | "truncate":
                if change.path in files:
                    files[change.path].waiting.append(change)
            case _:
                _rename(change, files, renamings)
    names: dict[str, _File] = {}
    cut = source.randint(0, len(renamings))
    for number, renaming in enumerate(renamings):
        if number < cut or renaming.is_synced:
            renaming.apply(names)
    for path, file in names.items():
        at = target / Path(path).relative_to(folder)
        (at if file.is_folder else at.parent).mkdir(parents=True, exist_ok=True)
        if not file.is_folder:
            at.write_bytes(file.after_a_cut(source))
    return reports


def _rename(change: Change, files: dict[str, _File], renamings: list[_Renaming]) -> None:
    is_new = change.kind in ("create", "folder")
    if is_new and change.path in files:
        return
    renaming = _Renaming(change, _File(is_folder=change.kind == "folder") if is_new else None)
    renaming.apply(files)
    if change.kind == "rename":
        for earlier in renamings:
            earlier.folders = {change.target if path == change.path else path for path in earlier.folders}
    renamings.append(renaming)


def _sync_folder(folder: str, renamings: list[_Renaming]) -> None:
    """Everything in a folder is durable then, also that a folder in it was emptied before it was removed."""
    for renaming in reversed(renamings):
        if folder in renaming.folders and not renaming.is_synced:
            renaming.is_synced = True
            if renaming.change.kind == "remove":
                _sync_folder(renaming.change.path, renamings)


def _survivors(waiting: list[Change], source: random.Random) -> list[Change]:
    if not waiting:
        return []
    cut = source.randint(0, len(waiting))
    match source.choice(("none", "all", "prefix", "any", "torn", "last")):
        case "none":
            return []
        case "all":
            return waiting
        case "prefix":
            return waiting[:cut]
        case "any":
            return [change for change in waiting if source.random() < 0.5]
        case "last":
            return waiting[-1:]
        case _:
            last = waiting[min(cut, len(waiting) - 1)]
            sectors = source.randint(0, len(last.data) // _SECTOR)
            return [*waiting[:cut], last._replace(data=last.data[: sectors * _SECTOR])] if last.kind == "write" else []


def _apply(content: bytearray, change: Change) -> None:
    if change.kind == "truncate":
        del content[change.offset :]
        content.extend(bytes(change.offset - len(content)))
        return
    if len(content) < change.offset:
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data


def _path(thread: int, file: int) -> str:
    return str(Path(f"/proc/{thread}/fd/{ctypes.c_int(file).value}").readlink())


def _at(thread: int, folder: int, name: int) -> str:
    """The absolute path of a name that is relative to a folder's descriptor, or to where the process is."""
    text = _text(thread, name)
    if text.startswith("/"):
        return text
    where = Path(f"/proc/{thread}/cwd").readlink() if _is_here(folder) else Path(_path(thread, folder))
    return str(where / text)


def _is_here(folder: int) -> bool:
    return ctypes.c_int(folder & 0xFFFFFFFF).value == ctypes.c_int(_HERE & 0xFFFFFFFF).value


def _memory(thread: int, address: int, length: int) -> bytes:
    file = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.pread(file, length, address)
    finally:
        os.close(file)


def _text(thread: int, address: int) -> str:
    # A string may end shortly before a page that cannot be read.
    length = min(_LONGEST_PATH, 4096 - address % 4096)
    found = _memory(thread, address, length)
    if b"\0" not in found:
        found += _memory(thread, address + length, _LONGEST_PATH)
    return os.fsdecode(found.partition(b"\0")[0])
