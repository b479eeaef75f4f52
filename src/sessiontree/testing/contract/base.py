"""What every part of the contract stands on: the journal under test, and the check after each test."""

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

__all__ = ["Contract", "Opened", "fill", "ids", "texts"]


class Opened:
    """The journal under test, and the ways to open its store again."""

    def __init__(self, open_journal: Callable[[], Journal], *, is_durable: bool) -> None:
        self._open_journal = open_journal
        self._is_durable = is_durable
        self.journal = open_journal()

    def reopen(self) -> Journal:
        """Close and open again. A store that lives in its object only stays open."""
        if self._is_durable:
            self.journal.close()
            self.journal = self._open_journal()
        return self.journal

    def another(self) -> Journal:
        """One more journal on the same store, as another process would open it; the caller closes it."""
        if not self._is_durable:
            pytest.skip("this store lives in one object")
        return self._open_journal()

    def finish(self) -> None:
        """The store must be sound after every test, before and after it is opened again."""
        assert self.journal.check() == []
        assert self.reopen().check() == []
        self.journal.close()


class Contract:
    """Open your store in ``open_journal``; what the two flags say is true of most stores."""

    is_durable: ClassVar[bool] = True
    """Whether the data outlives the journal object."""

    has_files: ClassVar[bool] = True
    """Whether the data is in files under the test's folder."""

    has_blobs: ClassVar[bool] = True
    """Whether the store keeps blobs, and with them workspace checkpoints."""

    def open_journal(self, tmp_path: Path, **options: Any) -> Journal:
        """A journal on the store under test; the same folder must give the same store, ``options`` go to ``open``."""
        raise NotImplementedError("a test class of the contract opens its store here")

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def store(self, tmp_path: Path, clock: ManualClock) -> Iterator[Opened]:
        random = seeded_random(1)
        opened = Opened(lambda: self.open_journal(tmp_path, clock=clock, random=random), is_durable=self.is_durable)
        yield opened
        opened.finish()

    @pytest.fixture
    def journal(self, store: Opened) -> Journal:
        return store.journal


def fill(journal: Journal, thread_id: str, *names: str) -> list[Entry]:
    """Append user messages whose text is also their id."""
    return journal.append_many(thread_id, [NewEntry(content=user(name), id=name) for name in names])


def ids(entries: list[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def texts(journal: Journal, thread_id: str) -> list[str]:
    """What the active path says."""
    return [entry.message.text for entry in journal.path(thread_id) if entry.message is not None]
