"""Compare a folder with the stat cache, then read the files that changed, in batches. Other files are not read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sessiontree.model.blobs import Blob, blob_of
from sessiontree.model.manifest import LeftOut, LeftOutReason, ManifestItem
from sessiontree.workspace.cache import Key, Known, KnownFolder, StatCache
from sessiontree.workspace.ignore import IGNORE_FILES, Rules, Settings
from sessiontree.workspace.safe_paths import Folder, unsafe_names

__all__ = ["FolderScan", "LoadedFile", "Pending", "compress", "hash_data", "key_of", "load", "scan"]


_DEEPEST = 400
_NOTHING_KNOWN = KnownFolder(key=(0, 0, 0, 0, 0), rules=b"", is_racy=True)


def key_of(status: os.stat_result) -> Key:
    """Return what changes whenever a file does."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


class Pending(NamedTuple):
    """A file to be read, because it is new or its stat changed."""

    folder: str
    name: str
    size: int

    @property
    def path(self) -> str:
        """The path below the root."""
        return f"{self.folder}/{self.name}" if self.folder else self.name


class FolderScan:
    """What a scan found. ``changed`` and ``removed`` are relative to the cache; ``pending`` is still to be read."""

    def __init__(self, old: StatCache, started_ns: int) -> None:
        self.old = old
        self.started_ns = started_ns
        self.folders: dict[bytes, KnownFolder] = {}
        self.changed: dict[str, ManifestItem] = {}
        self.removed: list[str] = []
        self.pending: list[Pending] = []
        self.left_out: list[LeftOut] = []

    @property
    def is_cached(self) -> bool:
        """Whether nothing differs from the old cache."""
        old = self.old.folders
        return len(old) == len(self.folders) and all(old.get(raw) is known for raw, known in self.folders.items())

    @property
    def size(self) -> int:
        """The size of all files that were read or are unchanged."""
        return sum(known.size for known in self.folders.values())

    def add(self, pending: Pending, known: Known) -> None:
        """Record a file as it was read."""
        folder = os.fsencode(pending.folder)
        before = self.old.folders.get(folder, _NOTHING_KNOWN).files.get(os.fsencode(pending.name))
        self._own(folder).files[os.fsencode(pending.name)] = known
        self.folders[folder].size += known.key[2]
        item = known.item
        if before is None or before.item != item:
            self.changed[pending.path] = item

    def leave_out(self, folder: str, name: str, reason: LeftOutReason, size: int = 0) -> None:
        """Record a path that is not taken, and why."""
        path = f"{folder}/{name}" if folder else name
        self.left_out.append(LeftOut(path=path, reason=reason, size=size))
        key = os.fsencode(folder)
        known = self._own(key)
        known.has_left_out = True
        gone = known.files.pop(os.fsencode(name), None)
        if gone is not None:
            known.size -= gone.key[2] if gone.kind == "file" else 0
        if os.fsencode(name) in self.old.folders.get(key, _NOTHING_KNOWN).files:
            self.removed.append(path)

    def is_racy(self, key: Key) -> bool:
        """Return whether a file changed so late that another change might not show in its times."""
        return max(key[0], key[1]) >= self.started_ns

    def gone(self) -> list[str]:
        """Return the paths that were removed and not replaced by something else."""
        return [path for path in self.removed if path not in self.changed]

    def cache(self, manifest: str = "", chain: int = 0) -> StatCache:
        """Return the cache for the next scan, once everything pending was read."""
        files = sum(len(known.files) for known in self.folders.values())
        left_out = [(os.fsencode(out.path), out.reason, out.size) for out in self.left_out]
        return StatCache(
            manifest=manifest,
            chain=chain,
            files=files,
            size=self.size,
            folders=self.folders,
            left_out_raw=left_out,
            head=self.old.head,
        )

    def _own(self, folder: bytes) -> KnownFolder:
        """Return the record of a folder; a copy, if it is still the one in the old cache."""
        known = self.folders[folder]
        if known is self.old.folders.get(folder):
            known = self.folders[folder] = KnownFolder(
                key=known.key,
                rules=known.rules,
                is_racy=known.is_racy,
                files=dict(known.files),
                folders=known.folders,
                ignored=known.ignored,
                ignore_files=known.ignore_files,
                size=known.size,
                has_left_out=known.has_left_out,
            )
        return known


def scan(
    folder: Folder,
    old: StatCache,
    rules: Rules,
    settings: Settings,
    *,
    started_ns: int,
    include: Iterable[str] = (),
) -> FolderScan:
    """Scan everything below a folder. ``include`` names paths to take although they are ignored or too large."""
    found = FolderScan(old, started_ns)
    walker = _Walker(folder, found, settings, frozenset(include))
    walker.visit("", rules, 0)
    walker.note_gone_folders()
    _keep_below_total(found, settings, frozenset(include))
    return found


class _Walker:
    def __init__(self, folder: Folder, found: FolderScan, settings: Settings, include: frozenset[str]) -> None:
        self._folder = folder
        self._found = found
        self._settings = settings
        self._include = include
        self._on_the_way = frozenset(
            "/".join(path.split("/")[:depth]) for path in include for depth in range(1, path.count("/") + 1)
        )
        self._device = os.fstat(folder.fd).st_dev

    def visit(self, path: str, above: Rules, depth: int) -> None:
        raw = os.fsencode(path)
        known = self._found.old.folders.get(raw)
        try:
            fd = self._folder.enter(path)
        except FileNotFoundError:
            return
        except OSError:
            self._refuse_folder(path, "unreadable")
            return
        status = os.fstat(fd)
        if status.st_dev != self._device or depth > _DEEPEST:
            self._refuse_folder(path, "other_file_system" if depth <= _DEEPEST else "unsafe_name")
            return
        key = key_of(status)
        fresh = self._same(fd, path, key, known, above) if known is not None else None
        if fresh is None:
            try:
                fresh = self._listed(fd, path, key, known or _NOTHING_KNOWN, above)
            except PermissionError:
                self._refuse_folder(path, "unreadable")
                return
        if path and (known is None or (known.key[4] ^ key[4]) & 0o777):
            self._found.changed[path] = ManifestItem("folder", key[4] & 0o777, 0, b"")
        inside = self._rules_inside(path, fresh, above)
        prefix = path + "/" if path else ""
        for name in fresh.folders:
            self.visit(prefix + os.fsdecode(name), inside, depth + 1)

    def note_gone_folders(self) -> None:
        found = self._found
        for raw in found.old.folders.keys() - found.folders.keys():
            path = os.fsdecode(raw)
            found.removed.append(path)
            found.removed += [f"{path}/{os.fsdecode(name)}" for name in found.old.folders[raw].files]

    def _same(self, fd: int, path: str, key: Key, known: KnownFolder, above: Rules) -> KnownFolder | None:
        """Check the known files of a folder whose names did not change; None if it must be listed."""
        if known.key != key or known.is_racy or known.has_left_out or self._include:
            return None
        look = os.stat
        changed: list[tuple[bytes, os.stat_result]] = []
        try:
            for name, (before, _) in known.ignore_files.items():
                if key_of(look(name, dir_fd=fd, follow_symlinks=False)) != before:
                    return None
            if self._rules_inside(path, known, above).fingerprint != known.rules:
                return None
            for name, file in known.files.items():
                status = look(name, dir_fd=fd, follow_symlinks=False)
                key = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)
                if key != file.key or file.is_racy:
                    changed.append((name, status))
        except FileNotFoundError:
            return None
        self._found.folders[os.fsencode(path)] = known
        for name, status in changed:
            self._take(fd, path, name, status, known)
        return self._found.folders[os.fsencode(path)]

    def _listed(self, fd: int, path: str, key: Key, known: KnownFolder, above: Rules) -> KnownFolder:
        """List a folder, and decide about each name in it."""
        fresh = KnownFolder(key=key, rules=b"", is_racy=self._found.is_racy(key))
        with os.scandir(fd) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
            names = {entry.name for entry in entries}
            fresh.ignore_files = self._ignore_files(path, names)
            fresh.is_racy |= any(self._found.is_racy(read) for read, _ in fresh.ignore_files.values())
            rules = self._rules_inside(path, fresh, above)
            fresh.rules = rules.fingerprint
            self._found.folders[os.fsencode(path)] = fresh
            decided = known if known.rules == fresh.rules and not self._include else _NOTHING_KNOWN
            unsafe = unsafe_names(path, names, is_portable=self._settings.names == "portable")
            for entry in entries:
                if entry.name in unsafe and not rules.forbids(_join(path, entry.name), entry.name):
                    self._found.leave_out(path, entry.name, "unsafe_name")
                else:
                    self._decide(fd, path, entry, decided, rules)
            if self._include:
                fresh.rules = b""
        for name in known.files.keys() - {os.fsencode(name) for name in names}:
            self._found.removed.append(_join(path, os.fsdecode(name)))
        return fresh

    def _decide(self, fd: int, path: str, entry: os.DirEntry[str], known: KnownFolder, rules: Rules) -> None:
        fresh = self._found.folders[os.fsencode(path)]
        name = os.fsencode(entry.name)
        here = _join(path, entry.name)
        is_folder = entry.is_dir(follow_symlinks=False)
        is_wanted = (self._is_included(here) or here in self._on_the_way) and not rules.forbids(here, entry.name)
        if not is_wanted:
            mark = name + b"/" if is_folder else name
            is_known = name in known.folders if is_folder else name in known.files
            if not is_known and (mark in known.ignored or rules.ignores(here, entry.name, is_folder=is_folder)):
                fresh.ignored.add(mark)
                self._note_ignored(path, name)
                return
        if is_folder:
            fresh.folders.append(name)
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        self._take(fd, path, name, status, self._found.old.folders.get(os.fsencode(path), _NOTHING_KNOWN))

    def _is_included(self, path: str) -> bool:
        return any(path == chosen or path.startswith(chosen + "/") for chosen in self._include)

    def _take(self, fd: int, path: str, name: bytes, status: os.stat_result, known: KnownFolder) -> None:
        """Keep the record of a path if its stat did not change; otherwise note that it must be read, or leave it out."""
        key = key_of(status)
        before = known.files.get(name)
        if before is not None and before.key == key and not before.is_racy:
            fresh = self._found.folders[os.fsencode(path)]
            fresh.files[name] = before
            fresh.size += key[2] if before.kind == "file" else 0
            return
        text = os.fsdecode(name)
        self._drop_record(path, name)
        if stat.S_ISLNK(status.st_mode):
            self._take_link(fd, path, name, key, before)
        elif not stat.S_ISREG(status.st_mode):
            self._found.leave_out(path, text, "special")
        elif status.st_size > self._settings.max_file_bytes and not self._is_included(_join(path, text)):
            self._found.leave_out(path, text, "too_large", status.st_size)
        else:
            self._found.pending.append(Pending(path, text, status.st_size))

    def _take_link(self, fd: int, path: str, name: bytes, key: Key, before: Known | None) -> None:
        try:
            target = os.readlink(name, dir_fd=fd)
        except OSError:  # it was removed or replaced meanwhile
            if before is not None:
                self._found.removed.append(_join(path, os.fsdecode(name)))
            return
        known = Known(key, "link", target, self._found.is_racy(key))
        self._found.folders[os.fsencode(path)].files[name] = known
        if before is None or before.item != known.item:
            self._found.changed[_join(path, os.fsdecode(name))] = known.item

    def _drop_record(self, path: str, name: bytes) -> None:
        folder = self._found._own(os.fsencode(path))  # noqa: SLF001  scan and walker are one
        gone = folder.files.pop(name, None)
        if gone is not None and gone.kind == "file":
            folder.size -= gone.key[2]

    def _ignore_files(self, path: str, names: set[str]) -> dict[bytes, tuple[Key, bytes]]:
        found: dict[bytes, tuple[Key, bytes]] = {}
        for name in IGNORE_FILES:
            if name in names:
                try:
                    text, status = self._folder.read_file(_join(path, name))
                except OSError:
                    continue
                found[os.fsencode(name)] = (key_of(status), text)
        return found

    def _rules_inside(self, path: str, known: KnownFolder, above: Rules) -> Rules:
        texts = [known.ignore_files[name.encode()][1] for name in IGNORE_FILES if name.encode() in known.ignore_files]
        return above.within(path, texts)

    def _note_ignored(self, path: str, name: bytes) -> None:
        if name in self._found.old.folders.get(os.fsencode(path), _NOTHING_KNOWN).files:
            self._found.removed.append(_join(path, os.fsdecode(name)))

    def _refuse_folder(self, path: str, reason: LeftOutReason) -> None:
        self._found.left_out.append(LeftOut(path=path, reason=reason))
        above = path.rpartition("/")[0]
        if os.fsencode(above) in self._found.folders:
            self._found._own(os.fsencode(above)).has_left_out = True  # noqa: SLF001  scan and walker are one


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _keep_below_total(found: FolderScan, settings: Settings, include: frozenset[str]) -> None:
    """Leave out the largest files until the rest fits into the limit."""
    total = found.size + sum(pending.size for pending in found.pending)
    if total <= settings.max_total_bytes:
        return
    for size, pending in _largest_first(found):
        if total <= settings.max_total_bytes:
            break
        if pending.path in include:
            continue
        total -= size
        if pending in found.pending:
            found.pending.remove(pending)
        found.leave_out(pending.folder, pending.name, "total_too_large", size)


def _largest_first(found: FolderScan) -> Sequence[tuple[int, Pending]]:
    sizes = [(pending.size, pending) for pending in found.pending]
    for raw, known in found.folders.items():
        folder = os.fsdecode(raw)
        sizes += [
            (file.key[2], Pending(folder, os.fsdecode(name), file.key[2]))
            for name, file in known.files.items()
            if file.kind == "file"
        ]
    return sorted(sizes, key=lambda pair: (-pair[0], pair[1].path))


_ATTEMPTS = 3


class LoadedFile(NamedTuple):
    """The bytes of a file and their hash."""

    hash: str
    data: bytes


def load(folder: Folder, scan: FolderScan, batch: Sequence[Pending]) -> list[LoadedFile]:
    """Read and hash files, and record them in the scan, also those that vanished or cannot be read."""
    loaded: list[LoadedFile] = []
    for pending in batch:
        try:
            data, known = _read_steady(folder, scan, pending)
        except (FileNotFoundError, NotADirectoryError):
            scan.removed.append(pending.path)
        except OSError:
            scan.leave_out(pending.folder, pending.name, "unreadable", pending.size)
        else:
            scan.add(pending, known)
            loaded.append(LoadedFile(known.content.hex(), data))
    return loaded


def compress(loaded: Sequence[LoadedFile], wanted: frozenset[str]) -> tuple[Blob, ...]:
    """Return blobs for the hashes that are wanted."""
    fresh = {file.hash: file.data for file in loaded if file.hash in wanted}
    return tuple(blob_of(data, name) for name, data in fresh.items())


def hash_data(data: bytes) -> LoadedFile:
    """Return some bytes with their hash."""
    return LoadedFile(hashlib.sha256(data).hexdigest(), data)


def _read_steady(folder: Folder, scan: FolderScan, pending: Pending) -> tuple[bytes, Known]:
    """Read a file, again if it changed meanwhile; if it keeps changing, its content counts but its stat is not trusted."""
    path = pending.path
    for _ in range(_ATTEMPTS):
        data, before = folder.read_file(path)
        after = folder.look(path)
        key = key_of(before)
        is_steady = after is not None and key_of(after) == key and len(data) == before.st_size
        if is_steady:
            break
    size_as_read = (key[0], key[1], len(data), key[3], key[4])
    return data, Known(size_as_read, "file", hashlib.sha256(data).digest(), not is_steady or scan.is_racy(key))
