"""Power cuts: record every write of a traced process, then build the disk as it could be after a cut at any point.

What was synced is there. Of what was not, each file has nothing, all, a part in order, any selection, or a last write that
ends in the middle of it, at a sector. Names that were created, renamed or removed are there up to some point since the last
sync of their folder.
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

Kind = Literal["create", "write", "truncate", "sync", "rename", "remove", "report"]


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
        self._sizes: dict[str, int] = {}

    def observe(self, thread: int, name: str, registers: tracer.Registers) -> None:
        """Record a call before it is made."""
        match name:
            case "write" | "pwrite64" if registers.rdi == self._report:
                self._add(Change("report"))
            case "write" | "pwrite64":
                self._write(thread, name, registers)
            case "openat" if registers.rdx & os.O_CREAT:
                self._add(Change("create", _text(thread, registers.rsi)))
            case "ftruncate":
                self._on_file(thread, registers.rdi, "truncate", registers.rsi)
            case "fsync" | "fdatasync":
                self._on_file(thread, registers.rdi, "sync")
            case "rename":
                self._add(Change("rename", _text(thread, registers.rdi), target=_text(thread, registers.rsi)))
            case "renameat" | "renameat2":
                self._add(Change("rename", _text(thread, registers.rsi), target=_text(thread, registers.r10)))
            case "unlink":
                self._add(Change("remove", _text(thread, registers.rdi)))
            case "unlinkat":
                self._add(Change("remove", _text(thread, registers.rsi)))

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
    """A file on the disk, and the writes to it that were not synced."""

    def __init__(self) -> None:
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


def disk_after(changes: list[Change], folder: Path, target: Path, source: random.Random) -> int:
    """Write what a power cut after these changes leaves to ``target``; return how many steps had been reported."""
    files: dict[str, _File] = {}
    synced: dict[str, dict[str, _File]] = {}
    renames: dict[str, list[dict[str, _File]]] = {}
    reports = 0
    for change in changes:
        before = dict(files)
        match change.kind:
            case "report":
                reports += 1
            case "create":
                files.setdefault(change.path, _File())
            case "write" | "truncate":
                files.setdefault(change.path, _File()).waiting.append(change)
            case "sync" if change.path in files:
                files[change.path].sync()
            case "sync":
                synced[change.path] = _inside(files, change.path)
                renames[change.path] = []
            case "rename":
                files[change.target] = files.pop(change.path, _File())
            case "remove":
                files.pop(change.path, None)
        if files.keys() != before.keys() or change.kind == "rename":
            for place in {str(Path(path).parent) for path in (change.path, change.target) if path}:
                renames.setdefault(place, []).append(_inside(files, place))
    for place in synced.keys() | renames.keys():
        states = [synced.get(place, {}), *renames.get(place, [])]
        for path, file in source.choice(states).items():
            at = target / Path(path).relative_to(folder)
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(file.after_a_cut(source))
    return reports


def _inside(files: dict[str, _File], folder: str) -> dict[str, _File]:
    return {path: file for path, file in files.items() if str(Path(path).parent) == folder}


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
