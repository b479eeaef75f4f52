"""Sessions in several real processes on one store: races, lost answers, and a kill while a model works."""

from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import processes
import pytest
from processes import STORES, Process, receive, send, url_of
from session_worker import PEERS, POLICY, key_of

import sessiontree as st
from long_conversations import FakeModel
from sessiontree.model.ids import system_clock
from sessiontree.sessions import SessionManager

WORKER = Path(__file__).with_name("session_worker.py")
MESSAGES = 60


def started(verb: str, url: str, name: str = "w") -> AbstractContextManager[Process]:
    return processes.started(WORKER, verb, url, name, MESSAGES)


@pytest.mark.parametrize("store", STORES)
def test_messages_and_new_conversations_of_three_processes_lose_and_repeat_nothing(store: str, tmp_path: Path) -> None:
    url, names = url_of(store, tmp_path), ("left", "middle", "right")
    st.open(url).close()
    with ExitStack() as stack:
        workers = [stack.enter_context(started("talk", url, name)) for name in names]
        for process in workers:
            assert receive(process) == "ready"
        for process in workers:
            send(process)
        for process in workers:
            assert receive(process) == "done"
    with st.open(url) as journal, SessionManager(journal) as manager:
        sessions = list(manager.list(limit=1_000))
        stored = Counter[str]()
        for info in sessions:
            said = (entry for entry in journal.entries(info.thread_id) if entry.type == "user_message")
            stored.update(entry.id for entry in said)
            assert journal.context(info.thread_id).system == "Be kind."
        assert stored == Counter(f"{name}-{number}" for name in names for number in range(MESSAGES))
        live = [info.key.peer for info in sessions if info.state != "archived"]
        assert sorted(live) == [f"p{number}" for number in range(PEERS)]
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES)
def test_a_session_whose_compactor_was_killed_settles_by_itself_and_can_be_compacted(
    store: str, tmp_path: Path
) -> None:
    url = url_of(store, tmp_path)
    with started("hang", url) as process:
        assert receive(process) == "asked"
        with st.open(url) as journal, SessionManager(journal) as manager:
            assert manager.info(key_of(0)).state == "compacting"
            process.kill()
            process.wait()
            assert manager.info(key_of(0)).state == "compacting"
            assert manager.recover().released == ()
            manager.add_message(key_of(0), st.user("still there?"))
    later = st.open(url, clock=lambda: system_clock() + 601 * 10**9)
    with later, SessionManager(later, summarize=FakeModel("notes"), policy=POLICY) as manager:
        assert manager.info(key_of(0)).state == "active"
        assert manager.compact(key_of(0)).is_installed
        assert manager.recover().released == ()
        assert manager.get_messages(key_of(0))[-1].text == "still there?"
