"""One tree file that was read: its state in memory, its bodies on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from sessiontree.codec import decode_payload
from sessiontree.commands import Draft
from sessiontree.errors import DamagedDataError, NewerFormatError
from sessiontree.model import Entry
from sessiontree.rules.state import Node
from sessiontree.stores.jsonl.lines import FORMAT, BadLineError, EntryLine, decode_line
from sessiontree.stores.jsonl.replay import FileState, Problem, Replay
from sessiontree.stores.jsonl.scan import Damage, Located, Scan, read_spans

__all__ = ["Tree"]

_TAIL = 12
"""The last bytes of a line hold its checksum: they tell whether the file below us is still the one we read."""


class Tree:
    """Knows the file up to ``end``; ``catch_up`` reads on from there. Without a file it is a tree to be made."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.end = 0
        self.inode = 0
        self.spans: dict[int, tuple[int, int]] = {}
        self.drafts: dict[int, Draft] = {}
        """Entries of the running group that are not in the file yet."""
        self.state = FileState(self.draft)
        self.replay = Replay(self.state, self.spans)
        self.damage: list[Damage] = []
        self.torn: Damage | None = None
        self._mtime_ns = 0
        self._tail = b""
        self._file = -1

    @classmethod
    def read(cls, name: str, path: Path) -> Tree:
        """FileNotFoundError if there is none."""
        tree = cls(name, path)
        tree._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            tree.inode = os.fstat(tree._file).st_ino
            tree.catch_up()
        except BaseException:
            tree.close()
            raise
        return tree

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def tree_id(self) -> str | None:
        return self.replay.tree_id

    @property
    def problems(self) -> Sequence[Problem]:
        return self.replay.problems

    def catch_up(self) -> None:
        """Read what was appended since the last time."""
        self._mtime_ns = os.fstat(self._file).st_mtime_ns
        scan = Scan(self._file, self.end)
        for group in scan.groups():
            self.replay.apply(group)
        self.damage += scan.damage
        self.torn = scan.torn
        self.grown_to(scan.end)

    def grown_to(self, end: int, tail: bytes | None = None) -> None:
        """The file is known up to ``end``; ``tail`` are its last bytes, where the caller wrote them."""
        self.end = end
        start = max(0, end - _TAIL)
        self._tail = tail[-_TAIL:] if tail is not None else os.pread(self._file, end - start, start)

    def is_current(self, now: os.stat_result) -> bool:
        return now.st_size == self.end and now.st_mtime_ns == self._mtime_ns

    def can_go_on(self, now: os.stat_result) -> bool:
        """Whether the file is the one that was read, perhaps with more at its end."""
        if now.st_ino != self.inode or now.st_size < self.end:
            return False
        start = max(0, self.end - _TAIL)
        return os.pread(self._file, self.end - start, start) == self._tail

    def check_writable(self) -> None:
        """Refuse to write behind damage, or into a file that a newer version made."""
        if self.replay.newer_format:
            raise NewerFormatError(self.place, self.replay.newer_format, FORMAT)
        if self.damage:
            first = self.damage[0]
            raise DamagedDataError(self.place, first.offset, first.problem)

    def draft(self, node: Node) -> Draft:
        fresh = self.drafts.get(node.key)
        if fresh is not None:
            return fresh
        line = self._lines([node])[0]
        body = bytes(line.payload)
        return Draft(
            id=line.id,
            payload=decode_payload(body),
            body=body,
            created_ns=line.at,
            turn_id=line.turn,
            messages=line.messages,
            tokens=line.tokens,
        )

    def entries(self, nodes: Iterable[Node]) -> list[Entry]:
        wanted = list(nodes)
        return [
            Entry(
                id=node.id,
                thread_id=line.thread,
                parent=None if node.parent is None else self.state.nodes[node.parent].id,
                created_ns=line.at,
                turn_id=line.turn,
                payload=decode_payload(bytes(line.payload)),
            )
            for node, line in zip(wanted, self._lines(wanted), strict=True)
        ]

    def bodies(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, EntryLine, bytes]]:
        """Entries as their lines and bodies, not taken apart."""
        for node, line in zip(nodes, self._lines(nodes), strict=True):
            yield node, line, bytes(line.payload)

    def path_to(self, leaf: Node | None, limit: int | None) -> list[Entry]:
        nodes = list(islice(self.state.upwards(leaf), limit))
        nodes.reverse()
        return self.entries(nodes)

    def groups(self) -> Iterator[Sequence[Located]]:
        """The whole file again, command by command."""
        return Scan(self._file).groups()

    def text(self, offset: int, length: int) -> bytes:
        """The bytes of the file as they are."""
        return read_spans(self._file, [(offset, length)])[0]

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lines(self, nodes: Sequence[Node]) -> list[EntryLine]:
        spans = [self.spans[node.key] for node in nodes]
        texts = read_spans(self._file, spans)
        return [self._line(text, offset) for text, (offset, _) in zip(texts, spans, strict=True)]

    def _line(self, text: bytes, offset: int) -> EntryLine:
        try:
            line = decode_line(text)
        except BadLineError as error:
            raise DamagedDataError(self.place, offset, str(error)) from error
        assert isinstance(line, EntryLine)
        return line
