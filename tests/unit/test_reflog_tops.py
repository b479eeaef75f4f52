"""What undo and redo take back is kept with each move, and agrees with a replay of the whole reflog."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from sessiontree.errors import NothingToRedoError, NothingToUndoError
from sessiontree.stores.rules.reflog import replay

_STEPS = some.lists(some.sampled_from(["append", "rewind", "reset", "undo", "undo", "redo"]), max_size=30)


def _take(journal: st.Journal, step: str) -> None:
    match step:
        case "append":
            journal.append("t", st.user("more"))
        case "rewind":
            journal.rewind("t", journal.entries("t")[0].id)
        case _:
            try:
                getattr(journal, step)("t")
            except (NothingToUndoError, NothingToRedoError):
                return


@given(steps=_STEPS)
def test_the_next_undo_and_redo_are_those_of_a_replay(steps: list[str]) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t", contents=[st.user("first")])
        for step in steps:
            _take(journal, step)
            history = replay(journal.reflog("t"))
            try:
                assert journal.undo("t", dry_run=True).move == history.undo_moves[-1]
            except NothingToUndoError:
                assert not history.undo_moves
            try:
                assert journal.redo("t", dry_run=True).move == history.redo_moves[-1]
            except NothingToRedoError:
                assert not history.redo_moves or journal.thread("t").leaf != journal.reflog("t")[-1].to_entry


@pytest.mark.parametrize("suffix", ["journal.db", "folder"])
def test_moves_without_tops_are_replayed(tmp_path: Path, suffix: str) -> None:
    """An imported reflog has no tops."""
    address = tmp_path / suffix if suffix == "journal.db" else f"jsonl:///{tmp_path / suffix}"
    with st.open("memory:") as source, st.open(str(address)) as target:
        source.create_thread("t", contents=[st.user("first"), st.user("second")])
        first, second = source.path("t")
        source.rewind("t", first.id)
        source.undo("t")
        source.rewind("t", first.id)
        st.copy_store(source, target)
        assert target.undo("t").leaf == second.id
        assert target.redo("t").leaf == first.id
        assert target.undo("t").leaf == second.id
        with pytest.raises(NothingToUndoError):
            target.undo("t")
