"""A store that is deleted, moved or replaced under a running program: nothing is acknowledged that would be lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import sessiontree as st

KINDS = ("sqlite", "jsonl")


def _delete(path: Path) -> None:
    for each in path.parent.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved"))


@pytest.mark.parametrize("take_away", [_delete, _move])
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_to_a_store_that_is_gone_is_refused(
    tmp_path: Path, kind: str, take_away: Callable[[Path], None]
) -> None:
    path = tmp_path / "folder" / "store"
    with st.open(f"{kind}:///{path}") as journal:
        journal.create_thread("t")
        take_away(path)
        with pytest.raises(st.StoreGoneError, match="store"):
            journal.append("t", st.user("to nowhere"))
        with pytest.raises(st.StoreGoneError):
            journal.create_thread("u")


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_to_a_store_that_another_one_replaced_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "folder" / "store"
    with st.open(f"{kind}:///{path}") as journal:
        journal.create_thread("t")
        _delete(path)
        with st.open(f"{kind}:///{path}") as fresh:
            fresh.create_thread("t")
            with pytest.raises(st.StoreGoneError):
                journal.append("t", st.user("to the old one"))
            fresh.append("t", st.user("to the new one"))
            assert fresh.thread("t").entries == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_gone_is_noticed_by_waiting_tasks_and_can_be_closed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "folder" / "store"

    async def run() -> list[object]:
        async with st.open_async(f"{kind}:///{path}") as journal:
            await journal.create_thread("t")
            await journal.delete_thread("t")
            await journal.create_thread("u")
            _delete(path)
            appends = (journal.append("u", st.user(f"{number}")) for number in range(5))
            return await asyncio.gather(*appends, return_exceptions=True)

    assert all(isinstance(outcome, st.StoreGoneError) for outcome in asyncio.run(run()))
