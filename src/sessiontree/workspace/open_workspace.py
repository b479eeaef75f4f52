"""OpenWorkspace, a folder that is open and locked for one operation, and WorkspaceCache, what a journal keeps between them."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import ExitStack, closing
from functools import cached_property
from typing import NamedTuple

from sessiontree.errors import WorkspaceError
from sessiontree.model.blobs import batches
from sessiontree.model.manifest import LeftOut, Tree
from sessiontree.workspace.cache import CacheHeader, Key, StatCache, drop_cache, load_cache, save_cache
from sessiontree.workspace.disk import Disk, StateDir
from sessiontree.workspace.ignore import Conflicts, Rules, Settings, root_rules
from sessiontree.workspace.plan import RestorePlan, RestoreTarget, make_plan
from sessiontree.workspace.safe_paths import Folder, check_path, check_portable, check_target, parts_of
from sessiontree.workspace.scan import FolderScan, load, scan
from sessiontree.workspace.staging import Staged, Staging, discard, pending_restore

__all__ = ["OpenWorkspace", "Resolved", "WorkspaceCache"]


_MOST_TREES = 4
_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_STORE_SUFFIXES = (
    *_DATABASE_SUFFIXES,
    *(f"-search{suffix}" for suffix in _DATABASE_SUFFIXES),
    "-gate",
    "-unsynced",
    ".new",
)


class Resolved(NamedTuple):
    """A manifest with its bases applied."""

    tree: Tree
    chain: int
    left_out: tuple[LeftOut, ...]


class WorkspaceCache:
    """What all operations of a journal share: settings, resolved manifests, and stat caches by folder.

    ``place`` is where the store is; its files are never part of a snapshot.
    """

    def __init__(self, place: str, settings: Settings | None = None, disk: Disk | None = None) -> None:
        self.place = place
        self.settings = settings or Settings()
        self.disk = disk or Disk()
        self.resolved: OrderedDict[str, Resolved] = OrderedDict()
        self._stat_caches: dict[str, tuple[tuple[int, int], StatCache]] = {}

    def remember(self, manifest: str, resolved: Resolved) -> None:
        """Keep a resolved manifest; only the newest few are kept."""
        self.resolved[manifest] = resolved
        while len(self.resolved) > _MOST_TREES:
            self.resolved.popitem(last=False)

    def load_stats(self, root: str, state: StateDir) -> StatCache:
        """Return the stat cache of a folder, from memory if the file is still the one that was saved."""
        kept = self._stat_caches.get(root)
        if kept is not None and kept[0] == _stamp(state):
            return kept[1]
        return load_cache(state.fd)

    def save_stats(self, root: str, state: StateDir, stats: StatCache) -> None:
        """Save a stat cache. If the disk is full there is none, and the next scan reads every file."""
        try:
            save_cache(state.fd, stats)
        except OSError:
            self._stat_caches.pop(root, None)
            drop_cache(state.fd)
        else:
            self._stat_caches[root] = (_stamp(state), stats)

    def store_paths(self, root: str) -> frozenset[str]:
        """Return the paths of the store's files if they are inside a folder."""
        inside = os.path.relpath(os.path.realpath(self.place), root)
        if inside.split("/", maxsplit=1)[0] in {"..", "."}:
            return frozenset()
        return frozenset(inside + suffix for suffix in _STORE_SUFFIXES)

    def check_apart(self, root: str) -> None:
        """Raise if the store's directory is the folder itself: its files could not be told from the others."""
        if os.path.realpath(self.place) == root:
            raise WorkspaceError(root, "is the directory of the store; move the store to a directory of its own")


class OpenWorkspace:
    """A folder that is open and locked by one operation, which must close it."""

    folder: Folder
    state: StateDir
    stats: StatCache

    def __init__(self, cache: WorkspaceCache, root: str | os.PathLike[str]) -> None:
        self.cache = cache
        self.settings = cache.settings
        self.root = os.fspath(root)
        self._opened = ExitStack()

    def open(self) -> tuple[Staging, Staged] | None:
        """Open the folder and wait for its lock. Return the restore that a crash interrupted, if there is one."""
        self.folder = self._opened.enter_context(Folder(self.root))
        self.root = self.folder.root
        self.cache.check_apart(self.root)
        try:
            self.state = self._opened.enter_context(closing(StateDir(self.folder)))
            self.state.lock()
        except OSError as error:
            raise WorkspaceError(self.root, f"cannot be written: {error.strerror}") from error
        self.stats = self.cache.load_stats(self.root, self.state)
        pending = pending_restore(self.state.fd)
        if pending is None:
            discard(self.state.fd, self.cache.disk)
        return pending

    def close(self) -> None:
        """Release the lock and close the folder, however far ``open`` came."""
        self._opened.close()

    @property
    def is_between_turns(self) -> bool:
        """Whether the last turn that worked here has ended, so that later changes are not the agent's."""
        return self.stats.head is not None and self.stats.head.is_closed

    @cached_property
    def rules(self) -> Rules:
        """The ignore rules at the root."""
        return root_rules(self.settings, self.cache.store_paths(self.root))

    def scan(self, include: Iterable[str] = ()) -> FolderScan:
        """Compare the folder with the stat cache; files that changed are still to be read."""
        started_ns = self.state.now_ns()
        try:
            return scan(self.folder, self.stats, self.rules, self.settings, started_ns=started_ns, include=include)
        except OSError as error:
            raise WorkspaceError(self.root, f"cannot be read: {error}") from error
        finally:
            self.folder.leave()

    def scan_and_hash(self) -> FolderScan:
        """Scan the folder and read the files that changed, for their hashes only."""
        found = self.scan()
        for batch in batches(found.pending, lambda file: file.size):
            load(self.folder, found, batch)
        return found

    def plan(self, target: RestoreTarget, current: Tree, foreign: Collection[str], conflicts: Conflicts) -> RestorePlan:
        """Return what a restore would do; ``current`` is what the folder holds."""
        return make_plan(
            self.root,
            target,
            current,
            foreign=foreign,
            rules=self.rules,
            occupied=self.occupied,
            crowded=self.crowded,
            conflicts=conflicts,
        )

    def read_files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of files; empty for a file that can no longer be read."""
        found: dict[str, bytes] = {}
        for path in paths:
            try:
                found[path] = self.folder.read_file(path)[0]
            except OSError:
                found[path] = b""
        return found

    def set_head(self, head: CacheHeader) -> None:
        """Record which checkpoint the folder matches, and save the stat cache."""
        self.stats.head = head
        self.cache.save_stats(self.root, self.state, self.stats)

    def key_at(self, path: str) -> Key | None:
        """Return what a file was like when it was last read."""
        return self.stats.key(*parts_of(path))

    def check_names(self, tree: Tree) -> None:
        """Raise UnsafePathError for a path, or the target of a link, that this folder cannot hold."""
        for path, item in tree.items():
            check_path(self.root, path)
            if item.kind == "link":
                check_target(self.root, path, item.content)
        if self.settings.names == "portable" or not self.folder.is_case_sensitive():
            check_portable(self.root, tree.keys())

    def occupied(self, paths: Iterable[str], tracked: Tree) -> set[str]:
        """Return untracked paths in the way: at one of the paths, or a file where one of them needs a folder."""
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
        """Return the folders that hold something untracked."""
        found: set[str] = set()
        for path in folders:
            try:
                names = os.listdir(self.folder.enter(path))  # noqa: PTH208  a descriptor
            except OSError:
                continue
            if any(f"{path}/{name}" not in tracked for name in names):
                found.add(path)
        return found

    def _is_in_the_way(self, path: str, *, is_last: bool) -> bool:
        status = self.folder.look(path)
        if status is None:
            return False
        is_folder = stat.S_ISDIR(status.st_mode)
        return is_last or not is_folder


def _stamp(state: StateDir) -> tuple[int, int]:
    try:
        status = os.stat("cache", dir_fd=state.fd, follow_symlinks=False)
    except FileNotFoundError:
        return (0, 0)
    return (status.st_ino, status.st_mtime_ns)
