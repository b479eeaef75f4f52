"""One sync for a batch that writes to many trees.

A batch of many chats would need a sync for each of their files. Instead their new lines are written to the tree files and,
a second time, to one log, and only the log is synced. After a power cut the first process that opens the store writes the
lines from the log to the tree files again. The log is emptied, after the tree files were synced, when it has grown, before
a file is rewritten, and when the store is closed; a store at rest is its tree files.

Each record is a line of JSON, followed by the lines of one tree as they are in its file:

>>> LoggedLines("t-e3b98a4d", 120, b'{"kind":"move"}\\n').encode()
b'{"tree":"t-e3b98a4d","offset":120,"length":16,"crc":"41686075"}\\n{"kind":"move"}\\n'
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple
from zlib import crc32

import msgspec

from sessiontree.model._base import UNREADABLE, Record, json_decoder
from sessiontree.stores._io import Files, SyncFailedError, syncing
from sessiontree.stores.jsonl.layout import Count, Layout, TreeName, is_there
from sessiontree.stores.jsonl.unsynced import note_unsynced

__all__ = ["CommitLog", "LoggedLines"]


_MOST_BYTES = 64 << 20
_MOST_TREES = 100_000


class _Header(Record, frozen=True, kw_only=True):
    tree: TreeName
    offset: Count
    length: Count
    crc: str


class LoggedLines(NamedTuple):
    """Lines that were appended to a tree file at an offset."""

    tree: str
    offset: int
    text: bytes

    def encode(self) -> bytes:
        """The record."""
        header = _Header(tree=self.tree, offset=self.offset, length=len(self.text), crc=f"{crc32(self.text):08x}")
        return msgspec.json.encode(header) + b"\n" + self.text


class CommitLog:
    """The log of a folder. Every method is called under the process lock, except ``sync``.

    An open store holds a shared lock on the file, so that a process that opens it knows whether it is the only one.
    """

    def __init__(self, layout: Layout, files: Files) -> None:
        self._layout = layout
        self._files = files
        self._ends: dict[str, int] = {}
        """For each tree, up to where its file is durable or in the log, as far as this process knows."""
        self._is_used = False
        self._file = -1
        try:
            if self.size:
                self._recover()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many bytes the log has. It is created by the first batch that needs it, in this process or another."""
        if self._file < 0 and is_there(self._layout.log):
            self._open()
        return 0 if self._file < 0 else os.fstat(self._file).st_size

    def _open(self) -> None:
        self._file = self._files.open_append(self._layout.log)
        with suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    @property
    def is_large(self) -> bool:
        """Whether it is time to empty the log."""
        return self.size > _MOST_BYTES

    def covers(self, tree: str, end: int) -> bool:
        """Return whether a tree file is durable, or in the log, up to its end. If not, the file itself must be synced."""
        return end == 0 or self._ends.get(tree) == end

    def note(self, tree: str, end: int) -> None:
        """Note that a tree file will be durable up to ``end`` before anything else is acknowledged."""
        if len(self._ends) >= _MOST_TREES:
            self._ends.clear()
        self._ends[tree] = end

    def forget(self, tree: str) -> None:
        """Note that nothing is known about a tree file any more."""
        self._ends.pop(tree, None)

    def append(self, records: Sequence[LoggedLines]) -> None:
        """Write records; ``sync`` makes them durable."""
        if self._file < 0:
            self._open()
            with syncing():
                self._files.sync_folder(self._layout.folder)
        self._is_used = True
        self._files.append(self._file, b"".join(record.encode() for record in records))

    def cut(self, size: int) -> None:
        """Take records back that were not acknowledged."""
        if self.size > size:
            self._files.truncate(self._file, size)

    def sync(self) -> None:
        """Make the log durable."""
        self._files.sync(self._file)

    def empty(self) -> None:
        """Sync the tree files that are in the log, then empty it."""
        if self.size == 0:
            return
        trees = list(dict.fromkeys(record.tree for record in self._records()))
        try:
            for tree in trees:
                self._sync_tree(tree)
            self._files.truncate(self._file, 0)
            self.sync()
        except OSError as error:
            note_unsynced(self._layout, trees)
            raise SyncFailedError(error.errno, str(error)) from error

    @property
    def is_used(self) -> bool:
        """Whether this process wrote to the log."""
        return self._is_used

    def close(self) -> None:
        """Close the file, which releases the lock on it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _recover(self) -> None:
        """Write the lines of the log to their files again, if no other process has the store open."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for record in self._records():
            self._write_again(record)
        self.empty()
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def _write_again(self, record: LoggedLines) -> None:
        with self._tree_file(record.tree) as file:
            if file is None or os.fstat(file).st_size < record.offset:
                return
            if _is_left_by_a_crash(os.pread(file, len(record.text), record.offset), record.text):
                self._files.write_at(file, record.offset, record.text)

    def _sync_tree(self, tree: str) -> None:
        with self._tree_file(tree) as file:
            if file is not None:
                self._files.sync(file)

    @contextmanager
    def _tree_file(self, tree: str) -> Iterator[int | None]:
        """The file of a tree; None if it is not there any more."""
        try:
            file = os.open(self._layout.tree(tree), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        try:
            yield file
        finally:
            os.close(file)

    def _records(self) -> Iterator[LoggedLines]:
        """Yield the records up to the first that is not complete: it was never acknowledged."""
        data = os.pread(self._file, self.size, 0)
        start = 0
        while start < len(data):
            end = data.find(b"\n", start)
            try:
                header = json_decoder(_Header).decode(data[start:end])
            except UNREADABLE:
                return
            text = data[end + 1 : end + 1 + header.length]
            if end < 0 or f"{crc32(text):08x}" != header.crc:
                return
            yield LoggedLines(header.tree, header.offset, text)
            start = end + 1 + header.length


def _is_left_by_a_crash(found: bytes, written: bytes) -> bool:
    """Return whether bytes are what was written, with zeros where blocks were lost. If not, it is another file."""
    return all(now in (0, then) for now, then in zip(found, written, strict=False))
