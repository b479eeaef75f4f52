"""The base of every part of the contract: the journal under test, and the check after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import Entry
from sessiontree.model.builders import user
from sessiontree.testing.clock import ManualClock, seeded_random

__all__ = ["Contract", "Opened", "fill", "ids", "is_on_disk", "texts"]


class Opened:
    """The journal under test, and the ways to open its store again."""

    def __init__(self, open_journal: Callable[[], Journal], *, is_durable: bool) -> None:
        self._open_journal = open_journal
        self._is_durable = is_durable
        self.journal = open_journal()

    def reopen(self) -> Journal:
        """Close the journal and open it again, unless its data would be lost."""
        if self._is_durable:
            self.journal.close()
            self.journal = self._open_journal()
        return self.journal

    def another(self) -> Journal:
        """Open a second journal on the same store, like another process; the caller closes it."""
        if not self._is_durable:
            pytest.skip("the data of this store does not outlive its object")
        return self._open_journal()

    def finish(self) -> None:
        """Check the store, open it again, and check it once more."""
        assert self.journal.check() == []
        assert self.reopen().check() == []
        self.journal.close()


class Contract:
    """Implement ``open_journal``; override the flags if they are not true of the store."""

    is_durable: ClassVar[bool] = True
    """Whether the data outlives the journal object."""

    has_files: ClassVar[bool] = True
    """Whether the data is in files in the test's folder."""

    has_blobs: ClassVar[bool] = True
    """Whether the store has blobs, and with them workspace checkpoints."""

    def open_journal(self, tmp_path: Path, **options: Any) -> Journal:
        """Open the store under test with the ``options`` of ``open``; the same folder must give the same store."""
        raise NotImplementedError("implement open_journal: it opens its store here")

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The clock of the journal."""
        return ManualClock()

    @pytest.fixture
    def store(self, tmp_path: Path, clock: ManualClock) -> Iterator[Opened]:
        """The store under test, checked after the test."""
        random = seeded_random(1)
        opened = Opened(lambda: self.open_journal(tmp_path, clock=clock, random=random), is_durable=self.is_durable)
        yield opened
        opened.finish()

    @pytest.fixture
    def journal(self, store: Opened) -> Journal:
        """The journal under test."""
        return store.journal


def fill(journal: Journal, thread_id: str, *names: str) -> list[Entry]:
    """Append user messages whose text is also their id."""
    return journal.append_many(thread_id, [NewEntry(content=user(name), id=name) for name in names])


def ids(entries: list[Entry]) -> list[str]:
    """The ids of entries."""
    return [entry.id for entry in entries]


def texts(journal: Journal, thread_id: str) -> list[str]:
    """The texts of the messages on the active path."""
    return [entry.message.text for entry in journal.path(thread_id) if entry.message is not None]


def is_on_disk(folder: Path, text: str) -> bool:
    """Whether a text is in a file of a folder, or in the name of one."""
    wanted = text.encode()
    return any(wanted in path.read_bytes() or text in path.name for path in folder.rglob("*") if path.is_file())
