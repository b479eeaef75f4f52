"""Undo and redo beside another journal: a move that took files along never comes back without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st

pytestmark = pytest.mark.parametrize("journal", ["memory", "sqlite", "jsonl", "postgres"], indirect=True)


class Between:
    """The same store, where ``interfere`` runs once, right before the first command of a kind is committed."""

    def __init__(self, store: Any, kind: str, interfere: Callable[[], object]) -> None:
        self._store = store
        self._kind = kind
        self._interfere: Callable[[], object] | None = interfere

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, command: Any) -> Any:
        if type(command).__name__ == self._kind and self._interfere is not None:
            interfere, self._interfere = self._interfere, None
            interfere()
        return self._store.commit(command)


def checkpointed(journal: st.Journal, root: Path) -> tuple[str, str]:
    """A thread of two entries with a checkpoint at the first one, and work that came after it."""
    (root / "a").write_text("one")
    first = journal.append("t", st.user("one")).id
    journal.workspace.snapshot("t", first, root)
    (root / "a").write_text("two")
    return first, journal.append("t", st.assistant("two")).id


def test_an_undo_takes_back_the_files_of_a_rewind_that_came_in_between(journal: st.Journal, root: Path) -> None:
    first, second = checkpointed(journal, root)
    journal.rewind("t", first)
    journal.move_leaf("t", second)
    other = st.Journal(journal.store)
    between = Between(journal.store, "Undo", lambda: other.rewind("t", first, files=root))
    st.Journal(between).undo("t")
    assert (root / "a").read_text() == "two"
    assert [message.text for message in journal.context("t").messages] == ["one", "two"]
    assert [move.reason for move in journal.reflog("t")] == ["rewind", "move", "rewind", "undo"]


def test_a_redo_takes_the_files_of_an_undo_that_came_in_between_along(journal: st.Journal, root: Path) -> None:
    first, second = checkpointed(journal, root)
    journal.rewind("t", first, files=root)
    journal.rewind("t", second)
    journal.undo("t")
    other = st.Journal(journal.store)
    between = Between(journal.store, "Redo", lambda: other.undo("t"))
    st.Journal(between).redo("t")
    assert (root / "a").read_text() == "one"
    assert [message.text for message in journal.context("t").messages] == ["one"]
    assert [move.reason for move in journal.reflog("t")] == ["rewind", "rewind", "undo", "undo", "redo"]


def test_an_undo_with_files_starts_again_after_another_move(journal: st.Journal, root: Path) -> None:
    first, second = checkpointed(journal, root)
    journal.rewind("t", first, files=root)
    other = st.Journal(journal.store)
    between = Between(journal.store, "Undo", lambda: other.move_leaf("t", second))
    st.Journal(between).undo("t")
    assert (root / "a").read_text() == "one"
    assert [move.reason for move in journal.reflog("t")] == ["rewind", "move", "undo"]
    journal.undo("t")
    assert (root / "a").read_text() == "two"
    assert [message.text for message in journal.context("t").messages] == ["one", "two"]


def test_an_undo_that_never_wins_gives_up(journal: st.Journal) -> None:
    one, two = (journal.append("t", st.user(text)).id for text in ("one", "two"))
    other = st.Journal(journal.store)
    commit = journal.store.commit

    class Losing:
        def __getattr__(self, name: str) -> Any:
            return getattr(journal.store, name)

        def commit(self, command: Any) -> Any:
            if type(command).__name__ == "Undo":
                other.rewind("t", one if other.thread("t").leaf == two else two)
            return commit(command)

    other.rewind("t", one)
    with pytest.raises(st.StaleLeafError):
        st.Journal(Losing()).undo("t")
    assert {move.reason for move in journal.reflog("t")} == {"rewind"}


def test_a_redo_with_files_that_was_interrupted_after_its_checkpoint_can_be_repeated(
    journal: st.Journal, root: Path
) -> None:
    first, _ = checkpointed(journal, root)
    journal.rewind("t", first, files=root)
    journal.undo("t")

    def fail() -> None:
        raise st.StoreError("here", "the connection is gone")

    with pytest.raises(st.StoreError):
        st.Journal(Between(journal.store, "Redo", fail)).redo("t")
    assert (root / "a").read_text() == "two"
    journal.redo("t")
    assert (root / "a").read_text() == "one"
    assert [message.text for message in journal.context("t").messages] == ["one"]
