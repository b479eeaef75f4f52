"""Folders for tests: what is in one, and random ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from hypothesis import strategies as some

OWN = ".sessiontree"

What = tuple[str | int | bytes, ...]
"""Kind, mode, and bytes or target."""

Contents = dict[bytes, What]

Script = list[tuple[Any, ...]]
"""Edits: what to do, to which path, and how."""


def contents(root: Path) -> Contents:
    """Everything below a folder but our own."""
    found: Contents = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        if os.path.relpath(folder, os.fsencode(root)).split(b"/")[0] == OWN.encode():
            continue
        for name in [*folders, *files]:
            path = folder + b"/" + name
            key = os.path.relpath(path, os.fsencode(root))
            if key.split(b"/")[0] != OWN.encode():
                found[key] = _what(path)
    return found


def _what(path: bytes) -> What:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))  # noqa: PTH115  bytes
    if stat.S_ISDIR(status.st_mode):
        return ("folder", mode)
    if stat.S_ISREG(status.st_mode):
        return ("file", mode, Path(os.fsdecode(path)).read_bytes())
    return ("special", mode)


names = some.sampled_from(
    [
        "a",
        "b",
        "src",
        "Ünïcode",
        "日本語",
        "with space",
        "new\nline",
        "-dash",
        "emoji🌳",
        "a.txt",
        "CON",
        os.fsdecode(b"caf\xe9"),
    ]
)
paths = some.lists(names, min_size=1, max_size=3).map("/".join)
datas = some.one_of(
    some.binary(max_size=40),
    some.sampled_from([b"", b"\xff\xfe\x00\x80a", b"text\n" * 500, bytes(range(256)) * 300]),
)
modes = some.sampled_from([0o644, 0o755, 0o600, 0o444, 0o640])
folder_modes = some.sampled_from([0o755, 0o700, 0o750])
edits = some.one_of(
    some.tuples(some.just("write"), paths, datas, modes),
    some.tuples(some.just("link"), paths, some.sampled_from(["a", "../outside", "/etc/passwd", "missing"])),
    some.tuples(some.just("folder"), paths, folder_modes),
    some.tuples(some.just("delete"), paths),
    some.tuples(some.just("chmod"), paths, modes),
    some.tuples(some.just("move"), paths, paths),
)
scripts = some.lists(edits, max_size=12)


def perform(root: Path, script: Script) -> None:
    """Do edits as a program would, skipping what cannot be done."""
    for edit in script:
        try:
            _perform(root, *edit)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, OSError):
            continue


def _perform(root: Path, kind: str, path: str, *rest: Any) -> None:
    target = root / path
    match kind, *rest:
        case "write", data, mode:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_symlink():
                target.unlink()
            target.write_bytes(data)
            target.chmod(mode)
        case "link", to:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(to)
        case "folder", mode:
            target.mkdir(parents=True, exist_ok=True)
            if not target.is_symlink():
                target.chmod(mode)
        case ("delete",):
            _delete(target)
        case "chmod", mode:
            if not target.is_symlink() and target.is_file():
                target.chmod(mode)
        case "move", to:
            (root / to).parent.mkdir(parents=True, exist_ok=True)
            target.rename(root / to)


def _delete(target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        for inner in list(target.iterdir()):
            _delete(inner)
        target.rmdir()
    else:
        target.unlink()
