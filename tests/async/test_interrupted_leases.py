"""Whoever is interrupted while a lease is being acquired hears of it, and the lease does not stay behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores.commands import AcquireLease, Command, Result
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.embedded_async import AsyncEmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.memory import MemoryBackend
from sessiontree.stores.protocol import Backend
from sessiontree.stores.sqlite import SqliteBackend
from stores import ALL


class Cancelling(AsyncEmbeddedStore):
    """Cancels the task that asks for a lease, once; the store gives the lease all the same."""

    is_armed = False

    def acommit(self, command: Command) -> asyncio.Future[Result]:
        future = super().acommit(command)
        if self.is_armed and isinstance(command, AcquireLease):
            self.is_armed = False
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return future


class Interrupting(EmbeddedStore):
    """Ctrl-C, just when the lease is in the store."""

    is_armed = False

    def commit(self, command: Command) -> Result:
        result = super().commit(command)
        if self.is_armed and isinstance(command, AcquireLease):
            self.is_armed = False
            raise KeyboardInterrupt
        return result


def backend(store: str, folder: Path) -> Backend:
    match store:
        case "memory":
            return MemoryBackend()
        case "jsonl":
            return JsonlBackend(folder / "journal")
        case _:
            return SqliteBackend(folder / "journal")


async def acquire(journal: st.AsyncJournal, _entry: str, _root: Path) -> None:
    await journal.acquire_lease("t", owner="mine")


async def turn(journal: st.AsyncJournal, _entry: str, _root: Path) -> None:
    async with journal.turn("t", owner="mine"):
        raise AssertionError("the turn must not begin")


async def resume(journal: st.AsyncJournal, _entry: str, _root: Path) -> None:
    await journal.resume("t", owner="mine")


async def rewind(journal: st.AsyncJournal, entry: str, root: Path) -> None:
    await journal.rewind("t", entry, files=root)


@pytest.mark.parametrize("store", ALL)
@pytest.mark.parametrize("verb", [acquire, turn, resume, rewind])
def test_a_cancelled_acquisition_leaves_no_lease(
    store: str, verb: Callable[[st.AsyncJournal, str, Path], Awaitable[None]], tmp_path: Path
) -> None:
    async def scene() -> None:
        root = tmp_path / "root"
        root.mkdir()
        (root / "file").write_text("one")
        cancelling = Cancelling(backend(store, tmp_path))
        async with st.AsyncJournal(cancelling) as journal:
            await journal.create_thread("t")
            entry = (await journal.append("t", st.user("one"))).id
            await journal.workspace.snapshot("t", entry, root)
            await journal.append("t", st.user("two"))
            (root / "file").write_text("two")
            cancelling.is_armed = True
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(verb(journal, entry, root))  # type: ignore[arg-type]
            assert not cancelling.is_armed
            assert (await journal.acquire_lease("t", owner="somebody else")).owner == "somebody else"
            assert (root / "file").read_text() == "two"

    asyncio.run(asyncio.wait_for(scene(), 60))


def test_a_lease_that_was_held_before_is_not_given_back(tmp_path: Path) -> None:
    async def scene() -> None:
        cancelling = Cancelling(backend("sqlite", tmp_path))
        async with st.AsyncJournal(cancelling) as journal:
            await journal.create_thread("t")
            held = await journal.acquire_lease("t", owner="mine", turn_id="turn")
            cancelling.is_armed = True
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(journal.acquire_lease("t", owner="mine", turn_id="turn"))
            assert await journal.active_lease("t") == held

    asyncio.run(scene())


def test_a_cancelled_acquisition_does_not_take_anothers_lease(tmp_path: Path) -> None:
    async def scene() -> None:
        cancelling = Cancelling(backend("sqlite", tmp_path))
        async with st.AsyncJournal(cancelling) as journal:
            await journal.create_thread("t")
            held = await journal.acquire_lease("t", owner="somebody else")
            cancelling.is_armed = True
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(journal.acquire_lease("t", owner="mine"))
            assert await journal.active_lease("t") == held

    asyncio.run(scene())


@pytest.mark.parametrize("store", ALL)
def test_an_interrupt_behaves_like_a_cancel(store: str, tmp_path: Path) -> None:
    interrupting = Interrupting(backend(store, tmp_path))
    with st.Journal(interrupting) as journal:
        journal.create_thread("t")
        interrupting.is_armed = True
        with pytest.raises(KeyboardInterrupt), journal.turn("t"):
            raise AssertionError("the turn must not begin")
        assert journal.active_lease("t") is None
