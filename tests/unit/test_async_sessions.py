"""The async forms of SimpleStore and CheckpointedSessions, and what the sync forms must not load."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

import sessiontree as st

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}


def run(play: Callable[[st.AsyncJournal], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        async with st.open_async("memory:") as journal:
            await play(journal)

    asyncio.run(main())


def test_a_simple_store_truncates_replaces_undoes_and_redoes() -> None:
    async def play(journal: st.AsyncJournal) -> None:
        store = st.AsyncSimpleStore(journal)

        async def texts() -> list[str]:
            return [message.text for message in await store.get_history("chat")]

        assert await texts() == []
        for text in ("one", "two", "three"):
            await store.add_message("chat", "user", text)
        await store.set_summary("chat", "notes")
        await store.truncate_history("chat", 1)
        assert (await texts(), await store.get_summary("chat")) == (["three"], "notes")
        assert len(await store.get_full_history("chat")) == 3
        await store.set_history("chat", [st.user("new").message])
        assert (await texts(), await store.get_summary("chat")) == (["new"], "notes")
        await store.undo("chat")
        await store.undo("chat")
        assert await texts() == ["one", "two", "three"]
        await store.redo("chat")
        assert await texts() == ["three"]
        with pytest.raises(st.NothingToUndoError, match="other"):
            await store.undo("other")
        with pytest.raises(st.InvalidInputError):
            await store.save("")

    run(play)


def test_checkpointed_sessions_snapshot_rewind_clone_and_fork() -> None:
    async def play(journal: st.AsyncJournal) -> None:
        sessions = st.AsyncCheckpointedSessions(journal)
        await sessions.set_state("", [HELLO], user_turns=1)
        await sessions.snapshot("", "u1")
        later = await sessions.set_state("", [HELLO, HI], user_turns=2)
        assert (later.id, later.messages, later.user_turns) == ("default", (HELLO, HI), 2)
        clone = await sessions.fork()
        assert (clone.id, clone.messages, clone.user_turns) == ("default#fork-1", (HELLO, HI), 2)
        back = await sessions.rewind(clone.id, "u1")
        assert (back.messages, back.user_turns) == ((HELLO,), 1)
        assert (await sessions.get()).messages == (HELLO, HI)
        assert {session.id for session in await sessions.list()} == {"default", "default#fork-1"}
        with pytest.raises(st.NoCheckpointError, match="u9"):
            await sessions.rewind("", "u9")

    run(play)


def test_checkpointed_sessions_take_a_folder_along(tmp_path: Path) -> None:
    file = tmp_path / "app.py"

    async def play(journal: st.AsyncJournal) -> None:
        sessions = st.AsyncCheckpointedSessions(journal)
        await sessions.set_state("chat", [HELLO], user_turns=1)
        await sessions.snapshot("chat", "u1")
        file.write_text("one")
        await sessions.snapshot_files("chat", "u1", tmp_path)
        file.write_text("two")
        await sessions.rewind_files("chat", "u1", tmp_path)
        assert file.read_text() == "one"

    run(play)


def test_the_sync_classes_do_not_load_asyncio() -> None:
    code = "import sys, sessiontree as st; st.SessionManager, st.SimpleStore, st.CheckpointedSessions; "
    code += "from sessiontree.journal.memory import JournalMemory; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
