"""A context is replaced while others append: what arrives meanwhile stays in the context, and nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from processes import receive, send, worker

import sessiontree as st
from opened import url_of

ROUNDS = 200


def assert_whole(journal: st.Journal, summaries: int) -> None:
    path = journal.path("t")
    assert [entry.message.text for entry in path if entry.message] == [f"m{number}" for number in range(ROUNDS)]
    places = {place: entry.payload for place, entry in enumerate(path) if isinstance(entry.payload, st.Compaction)}
    assert len(places) == summaries
    for place, compaction in places.items():
        # Each one was planned on exactly the path that it was appended to.
        assert compaction.tail_after_entry_id == (path[place - 1].id if place else "")
    assert len(journal.context("t").messages) == len(path) - max(places)


@pytest.mark.parametrize("store", ["memory", "sqlite", "jsonl", "postgres"])
def test_messages_of_another_thread_stay_in_a_replaced_context(store: str, tmp_path: Path) -> None:
    with st.open(url_of(store, tmp_path), durability="process_crash") as journal:
        journal.create_thread("t")

        def talk() -> None:
            for number in range(ROUNDS):
                journal.append("t", st.user(f"m{number}"))

        talker = threading.Thread(target=talk)
        talker.start()
        for number in range(20):
            journal.replace_context("t", f"notes {number}")
        talker.join()
        assert_whole(journal, 20)


@pytest.mark.parametrize("store", ["sqlite", "jsonl", "postgres"])
def test_messages_of_another_process_stay_in_a_replaced_context(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    with st.open(url, durability="process_crash") as journal:
        journal.create_thread("t")
        with worker("replace_contexts", url, 20) as other:
            assert receive(other) == "ready"
            send(other)
            for number in range(ROUNDS):
                journal.append("t", st.user(f"m{number}"))
            assert receive(other) == "done"
        assert_whole(journal, 20)
