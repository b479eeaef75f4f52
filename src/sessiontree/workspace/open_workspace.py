"""The desk: what a journal keeps in mind about the folders it works on, and a visit to one of them."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import ExitStack, closing
from typing import NamedTuple

from sessiontree.errors import WorkspaceError
from sessiontree.model.manifest import LeftOut, Tree
from sessiontree.workspace.cache import Cache, CacheHeader, Key, drop_cache, load_cache, save_cache
from sessiontree.workspace.disk import Disk, OwnFolder
from sessiontree.workspace.ignore import Rules, Settings, root_rules
from sessiontree.workspace.safe_paths import Folder, check_path, check_portable, parts_of
from sessiontree.workspace.scan import FolderScan, scan

__all__ = ["OpenWorkspace", "Resolved", "WorkspaceCache"]


_MOST_TREES = 4
_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_STORE_SUFFIXES = (
    *_DATABASE_SUFFIXES,
    *(f"-search{suffix}" for suffix in _DATABASE_SUFFIXES),
    "-gate",
    ".new",
)


class Resolved(NamedTuple):
    """A manifest with its bases applied."""

    tree: Tree
    chain: int
    left_out: tuple[LeftOut, ...]


class WorkspaceCache:
    """Shared by all verbs of a journal. ``place`` is where its store is, which no snapshot ever takes."""

    def __init__(self, place: str, settings: Settings | None = None, disk: Disk | None = None) -> None:
        self.place = place
        self.settings = settings or Settings()
        self.disk = disk or Disk()
        self.resolved: OrderedDict[str, Resolved] = OrderedDict()
        self._caches: dict[str, tuple[tuple[int, int], Cache]] = {}

    def remember(self, manifest: str, resolved: Resolved) -> None:
        self.resolved[manifest] = resolved
        while len(self.resolved) > _MOST_TREES:
            self.resolved.popitem(last=False)

    def visit(self, root: str | os.PathLike[str]) -> OpenWorkspace:
        """A visit that is yet to be opened; whoever has it closes it, however far it came."""
        return OpenWorkspace(self, root)

    def cache_of(self, root: str, own: OwnFolder) -> Cache:
        stamp = _stamp(own)
        held = self._caches.get(root)
        if held is not None and held[0] == stamp:
            return held[1]
        return load_cache(own.fd)

    def keep_cache(self, root: str, own: OwnFolder, cache: Cache) -> None:
        """A disk without room for it costs time at the next visit, nothing else."""
        try:
            save_cache(own.fd, cache)
        except OSError:
            self._caches.pop(root, None)
            drop_cache(own.fd)
        else:
            self._caches[root] = (_stamp(own), cache)

    def own_paths(self, root: str) -> frozenset[str]:
        """Where the store lies inside a folder, if it does."""
        inside = os.path.relpath(os.path.realpath(self.place), root)
        if inside.split("/", maxsplit=1)[0] in {"..", "."}:
            return frozenset()
        return frozenset(inside + suffix for suffix in _STORE_SUFFIXES)

    def check_apart(self, root: str) -> None:
        """A store that is spread over the folder itself cannot be told from the files in it."""
        if os.path.realpath(self.place) == root:
            raise WorkspaceError(root, "is where the store keeps its own files; give the store a folder of its own")


class OpenWorkspace:
    """A folder that is open and locked; close it in the end."""

    folder: Folder
    own: OwnFolder
    cache: Cache

    def __init__(self, desk: WorkspaceCache, root: str | os.PathLike[str]) -> None:
        self.desk = desk
        self.settings = desk.settings
        self.root = os.fspath(root)
        self._opened = ExitStack()

    def open(self) -> None:
        """Open the folder and wait until nobody else works on it."""
        self.folder = self._opened.enter_context(Folder(self.root))
        self.root = self.folder.root
        self.desk.check_apart(self.root)
        try:
            self.own = self._opened.enter_context(closing(OwnFolder(self.folder)))
            self.own.lock()
        except OSError as error:
            raise WorkspaceError(self.root, f"cannot be written: {error.strerror}") from error
        self.cache = self.desk.cache_of(self.root, self.own)

    @property
    def is_between_turns(self) -> bool:
        """Whether the last turn that worked here has ended: what changes from then on is somebody else's."""
        return self.cache.head is not None and self.cache.head.is_closed

    @property
    def rules(self) -> Rules:
        return root_rules(self.settings, self.desk.own_paths(self.root))

    def scan(self, include: Iterable[str] = ()) -> FolderScan:
        started_ns = self.own.now_ns()
        try:
            return scan(self.folder, self.cache, self.rules, self.settings, started_ns=started_ns, include=include)
        except OSError as error:
            raise WorkspaceError(self.root, f"cannot be read: {error}") from error
        finally:
            self.folder.leave()

    def read_present(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The bytes of files as they are; one that cannot be read any more counts as empty."""
        found: dict[str, bytes] = {}
        for path in paths:
            try:
                found[path] = self.folder.read_file(path)[0]
            except OSError:
                found[path] = b""
        return found

    def keep(self, cache: Cache) -> None:
        self.cache = cache
        self.desk.keep_cache(self.root, self.own, cache)

    def set_head(self, head: CacheHeader) -> None:
        self.cache.head = head
        self.keep(self.cache)

    def key_at(self, path: str) -> Key | None:
        return self.cache.key(*parts_of(path))

    def check_names(self, paths: Collection[str]) -> None:
        for path in paths:
            check_path(self.root, path)
        if self.settings.names == "portable" or not self.folder.is_case_sensitive():
            check_portable(self.root, paths)

    def occupied(self, paths: Iterable[str], tracked: Tree) -> set[str]:
        """Where something untracked stands in the way: at a path, or as a file where a folder is needed."""
        found: set[str] = set()
        for path in paths:
            parts = path.split("/")
            for depth in range(1, len(parts) + 1):
                here = "/".join(parts[:depth])
                if here not in tracked and self._is_in_the_way(here, is_last=depth == len(parts)):
                    found.add(here)
                    break
        return found

    def crowded(self, folders: Iterable[str], tracked: Tree) -> set[str]:
        """Folders with something untracked in them."""
        found: set[str] = set()
        for path in folders:
            try:
                names = os.listdir(self.folder.enter(path))  # noqa: PTH208  a descriptor
            except OSError:
                continue
            if any(f"{path}/{name}" not in tracked for name in names):
                found.add(path)
        return found

    def close(self) -> None:
        self._opened.close()

    def _is_in_the_way(self, path: str, *, is_last: bool) -> bool:
        status = self.folder.look(path)
        if status is None:
            return False
        is_folder = stat.S_ISDIR(status.st_mode)
        return is_last or not is_folder


def _stamp(own: OwnFolder) -> tuple[int, int]:
    try:
        status = os.stat("cache", dir_fd=own.fd, follow_symlinks=False)
    except FileNotFoundError:
        return (0, 0)
    return (status.st_ino, status.st_mtime_ns)
