"""Several savers of LangGraph on one store, as of processes that know nothing of each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

import sessiontree as st
from opened import url_of
from sessiontree.adapters.langgraph import SessionTreeSaver

THREAD: RunnableConfig = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}


@pytest.fixture(params=["memory", "sqlite", "jsonl", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with st.open(url_of(request.param, tmp_path)) as opened:
        yield opened


def put(
    saver: SessionTreeSaver, config: RunnableConfig, texts: list[str], *, run: str = "", **more: Any
) -> RunnableConfig:
    """Put a checkpoint with messages; values of other channels change only if they are named."""
    before = saver.get_tuple(config)
    values = {**(before.checkpoint["channel_values"] if before else {}), **more}
    values["messages"] = [HumanMessage(text, id=text) for text in texts]
    versions: dict[str, Any] = dict(before.checkpoint["channel_versions"]) if before else {}
    new = {name: saver.get_next_version(versions.get(name), None) for name in ("messages", *more)}
    checkpoint: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": {**versions, **new}}
    return saver.put(config, checkpoint, {"run_id": run}, dict(new))


def read(saver: SessionTreeSaver, config: RunnableConfig = THREAD) -> dict[str, Any]:
    found = saver.get_tuple(config)
    assert found is not None
    values = found.checkpoint["channel_values"]
    return {**values, "messages": [message.content for message in values["messages"]]}


def test_a_thread_that_another_saver_pruned_goes_on_with_all_its_messages(journal: st.Journal) -> None:
    ours, other = SessionTreeSaver(journal), SessionTreeSaver(journal)
    config = put(ours, THREAD, ["a", "b", "c", "d"], plan="soup")
    config = put(ours, config, ["c", "d", "e"])
    other.prune(["chat"])
    assert len(list(other.list(THREAD))) == 1
    config = put(ours, config, ["c", "d", "e", "f"])
    assert read(other) == {"messages": ["c", "d", "e", "f"], "plan": "soup"}
    assert read(SessionTreeSaver(journal), config)["messages"] == ["c", "d", "e", "f"]


def test_a_thread_whose_last_checkpoint_a_fork_shares_can_be_pruned(journal: st.Journal) -> None:
    saver = SessionTreeSaver(journal)
    config = put(saver, THREAD, ["a", "b"], plan="soup")
    config = put(saver, config, ["b", "c"])
    saver.fork("chat", "fork")
    saver.prune(["chat"])
    assert len(list(saver.list(THREAD))) == 1
    put(saver, config, ["b", "c", "d"])
    assert read(saver) == {"messages": ["b", "c", "d"], "plan": "soup"}
    fork: RunnableConfig = {"configurable": {"thread_id": "fork"}}
    assert read(saver, fork) == {"messages": ["b", "c"], "plan": "soup"}
    assert len(list(saver.list(fork))) == 2
    saver.delete_thread("chat")
    assert saver.get_tuple(THREAD) is None
    assert journal.check() == []


def test_what_was_pruned_is_not_stored_any_more(journal: st.Journal) -> None:
    saver = SessionTreeSaver(journal)
    config = put(saver, THREAD, ["first secret", "kept"], plan="second secret", mood="kept")
    put(saver, config, ["kept"], plan="kept")
    saver.prune(["chat"])
    stored = "".join(repr(entry) for entry in journal.entries("chat"))
    assert "secret" not in stored
    assert read(saver) == {"messages": ["kept"], "plan": "kept", "mood": "kept"}


def test_checkpoints_of_both_branches_stay_what_they_were_when_a_run_is_deleted(journal: st.Journal) -> None:
    saver = SessionTreeSaver(journal)
    root = put(saver, THREAD, ["a"], run="one", plan="soup")
    middle = put(saver, root, ["a", "b"], run="two")
    left = put(saver, middle, ["a", "b", "left"], run="three")
    right = put(saver, middle, ["b", "right"], run="four", plan="cake")
    times = {entry.id: entry.created_ns for entry in journal.entries("chat", types=("user_message",))}
    saver.delete_for_runs(["two"])
    assert saver.get_tuple(middle) is None
    assert read(saver, root) == {"messages": ["a"], "plan": "soup"}
    assert read(saver, left) == {"messages": ["a", "b", "left"], "plan": "soup"}
    assert read(saver, right) == {"messages": ["b", "right"], "plan": "cake"}
    assert {entry.id: entry.created_ns for entry in journal.entries("chat", types=("user_message",))} == times


def test_a_thread_that_was_deleted_elsewhere_is_stored_whole_by_the_next_put(journal: st.Journal) -> None:
    ours, other = SessionTreeSaver(journal), SessionTreeSaver(journal)
    config = put(ours, THREAD, ["a", "b"], plan="soup")
    values: Any = {"messages": [HumanMessage(text, id=text) for text in "abc"], "plan": "soup"}
    other.delete_thread("chat")
    checkpoint: Any = {
        **empty_checkpoint(),
        "channel_values": values,
        "channel_versions": {"messages": "2", "plan": "1"},
    }
    ours.put(config, checkpoint, {}, {"messages": "2"})
    assert read(other) == {"messages": ["a", "b", "c"], "plan": "soup"}


def test_a_thread_can_be_deleted_by_several_at_once(journal: st.Journal) -> None:
    saver = SessionTreeSaver(journal)
    failures: list[BaseException] = []

    def delete(barrier: threading.Barrier) -> None:
        barrier.wait()
        try:
            saver.delete_thread("chat")
        except BaseException as error:  # noqa: BLE001  any is a failure
            failures.append(error)

    for _ in range(10):
        config = put(saver, THREAD, ["a"])
        saver.put_writes(config, [("messages", "b")], "task")
        barrier = threading.Barrier(4)
        deleting = [threading.Thread(target=delete, args=(barrier,)) for _ in range(4)]
        for one in deleting:
            one.start()
        for one in deleting:
            one.join()
        assert saver.get_tuple(THREAD) is None
    assert failures == []
