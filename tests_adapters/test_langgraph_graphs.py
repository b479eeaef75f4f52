"""Graphs of LangGraph with our saver: what they get back, what it takes, and what their users gain."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, interrupt

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import Reply, model_server
from opened import url_of
from provider_answers import Script, openai_chat
from sessiontree.adapters.langgraph import SessionTreeSaver, import_checkpoints
from sessiontree.adapters.langgraph.values import Serializer

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionTreeSaver]:
    with SessionTreeSaver(url_of(request.param, tmp_path)) as made:
        yield made


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def echo(state: MessagesState) -> dict[str, Any]:
    return {"messages": AIMessage(f"echo {state['messages'][-1].content}")}


def chat_graph(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    return StateGraph(MessagesState).add_node("echo", echo).add_edge(START, "echo").compile(checkpointer=saver)


def texts(found: Any) -> list[str]:
    return [message.content for message in found.values["messages"]]


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteSaver.from_conn_string("checkpoints.sqlite") as old:
        chat_graph(old).invoke({"messages": "hello"}, thread("old"))
    with model_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        answers = ("Leek soup.", "With potatoes.", "Leek omelette.")
        server.replies += [Reply(body=openai_chat(Script(text=[text]))) for text in answers]
        run(FRAMEWORKS / "langgraph.md")
    assert capsys.readouterr().out == "With potatoes.\n"
    asked = [[message["content"] for message in body["messages"]] for _, _, body in server.requests]
    assert asked[2] == ["What can I cook with leeks?", "Leek soup.", "What about breakfast?"]
    with SessionTreeSaver("sqlite:///graphs.db") as saver:
        assert texts(chat_graph(saver).get_state(thread("old"))) == ["hello", "echo hello"]
        assert saver.journal.thread("dinner").title == "What can I cook with leeks?"
        assert saver.journal.check() == []


def test_messages_come_back_as_they_were(saver: SessionTreeSaver) -> None:
    said = [
        SystemMessage("be brief", id="0"),
        HumanMessage([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:x"}}], id="1"),
        AIMessage("", id="2", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c", "type": "tool_call"}]),
        ToolMessage([{"type": "text", "text": "seen"}], tool_call_id="c", artifact={"raw": [1, b"\0"]}, id="3"),
        AIMessage("done", id="4", response_metadata={"model_name": "m"}, additional_kwargs={"x": {1: None}}),
    ]
    graph = chat_graph(saver)
    graph.update_state(thread("a"), {"messages": said})
    assert graph.get_state(thread("a")).values["messages"] == said
    kinds = [entry.type for entry in saver.journal.path("a") if entry.message is not None]
    assert kinds == ["system_message", "user_message", "tool_call", "tool_result", "assistant_message"]


class Size(StrEnum):
    SMALL = "small"


@pytest.mark.parametrize(
    "content", [Size.SMALL, (1, 2), float("inf"), {1: "one"}, b"raw", "caf\u00e9", 1.0, -0.0, True]
)
def test_values_in_messages_keep_their_kinds(saver: SessionTreeSaver, content: Any) -> None:
    said = AIMessage("hi", id="0", response_metadata={"value": content})
    expected = JsonPlusSerializer().loads_typed(JsonPlusSerializer().dumps_typed(said)).response_metadata["value"]
    graph = chat_graph(saver)
    graph.update_state(thread("a"), {"messages": [said]})
    found = graph.get_state(thread("a")).values["messages"][0].response_metadata["value"]
    assert (type(found), repr(found)) == (type(expected), repr(expected))


def test_halves_of_emoji_in_messages_become_marks_as_with_other_savers(saver: SessionTreeSaver) -> None:
    said = [HumanMessage("cut \ud83d", id="0"), ToolMessage("\ud83d", tool_call_id="c", id="1")]
    graph = chat_graph(saver)
    graph.update_state(thread("a"), {"messages": said})
    assert texts(graph.get_state(thread("a"))) == ["cut ?", "?"]


@pytest.mark.parametrize("value", ["cut \ud83d", float("inf")])
def test_metadata_comes_back_as_it_was(saver: SessionTreeSaver, value: Any) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": "hello"}, {**thread("a"), "metadata": {"value": value}})
    found = saver.get_tuple(thread("a"))
    assert found is not None
    assert found.metadata["value"] == value  # type: ignore[typeddict-item]
    assert len(list(saver.list(thread("a"), filter={"value": value}))) == 3
    saver.prune(["a"])
    assert len(list(saver.list(thread("a")))) == 1


def test_metadata_that_is_not_json_is_refused(saver: SessionTreeSaver) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
    metadata: Any = {"value": b"bytes"}
    with pytest.raises(st.InvalidInputError):
        saver.put(config, empty_checkpoint(), metadata, {})


def test_messages_of_version_0_1_0_are_read_and_not_stored_again(
    saver: SessionTreeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Serializer, "dump_item", Serializer.dump)
        chat_graph(saver).invoke({"messages": [HumanMessage("hello", id="0")]}, thread("a"))
    later = SessionTreeSaver(saver.journal)
    chat_graph(later).update_state(thread("a"), {"messages": [HumanMessage("again", id="2")]})
    assert texts(chat_graph(saver).get_state(thread("a"))) == ["hello", "echo hello", "again"]
    said = [entry.message.text for entry in saver.journal.path("a") if entry.message is not None]
    assert said == ["hello", "echo hello", "again"]


def test_removed_replaced_and_reordered_items_come_back(saver: SessionTreeSaver) -> None:
    graph, ours = chat_graph(InMemorySaver()), chat_graph(saver)
    updates: list[Any] = [
        [HumanMessage(f"m{number}", id=f"{number}") for number in range(9)],
        [RemoveMessage(id="0"), RemoveMessage(id="4")],
        [HumanMessage("other", id="8")],
        [HumanMessage("m0", id="0"), HumanMessage("m9", id="9")],
        [RemoveMessage(id=f"{number}") for number in (1, 2, 3, 5, 6)],
        [HumanMessage(f"n{number}", id=f"n{number}") for number in range(3)],
    ]
    for update in updates:
        for each in (graph, ours):
            each.update_state(thread("a"), {"messages": update})
        assert texts(ours.get_state(thread("a"))) == texts(graph.get_state(thread("a")))
    history = [[texts(one) for one in each.get_state_history(thread("a"))] for each in (ours, graph)]
    assert history[0] == history[1]


class Counters(TypedDict):
    log: Annotated[list[Any], operator.add]
    total: int


def test_500_puts_of_a_growing_list_stay_small(tmp_path: Path) -> None:
    def step(state: Counters) -> dict[str, Any]:
        return {"log": [{"number": state["total"], "text": "x" * 1_100}], "total": state["total"] + 1}

    graph = StateGraph(Counters).add_node("step", step).add_edge(START, "step")
    graph.add_conditional_edges(
        "step", lambda state: "step" if state["total"] < 500 else "__end__", ["step", "__end__"]
    )
    with SessionTreeSaver(tmp_path / "journal.db") as saver:
        config: RunnableConfig = {**thread("a"), "recursion_limit": 1_000}
        end = graph.compile(checkpointer=saver).invoke({"log": [], "total": 0}, config)
        assert len(end["log"]) == 500
        found = saver.get_tuple(thread("a"))
        assert found is not None
        assert found.checkpoint["channel_values"]["log"] == end["log"]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 6_000_000


def test_500_puts_of_growing_messages_stay_small(tmp_path: Path) -> None:
    with SessionTreeSaver(tmp_path / "journal.db") as saver:
        messages: list[Any] = []
        config: RunnableConfig = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
        version = None
        for number in range(500):
            messages = [*messages, HumanMessage("y" * 1_100, id=f"{number}")]
            version = saver.get_next_version(version, None)
            checkpoint = {**empty_checkpoint(), "channel_values": {"messages": messages}}
            checkpoint["channel_versions"] = {"messages": version}
            config = saver.put(config, checkpoint, {"step": number}, {"messages": version})  # type: ignore[arg-type]
        found = saver.get_tuple(thread("a"))
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 6_000_000


def test_a_message_that_is_changed_in_place_is_stored_with_the_next_one(saver: SessionTreeSaver) -> None:
    def shout(state: MessagesState) -> dict[str, Any]:
        state["messages"][0].content = "HELLO"
        return {"messages": AIMessage("done")}

    builder = StateGraph(MessagesState).add_node("shout", shout).add_edge(START, "shout")
    graph: CompiledStateGraph[Any, Any, Any, Any] = builder.compile(checkpointer=saver)
    graph.invoke({"messages": "hello"}, thread("a"))
    assert texts(graph.get_state(thread("a"))) == ["HELLO", "done"]


def test_a_rewind_and_an_undo_of_the_thread_are_those_of_the_graph(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": "one"}, thread("a"))
    first = graph.get_state(thread("a"))
    graph.invoke({"messages": "two"}, thread("a"))
    saver.journal.rewind("a", first.config["configurable"]["checkpoint_id"])
    assert texts(graph.get_state(thread("a"))) == ["one", "echo one"]
    graph.invoke({"messages": "three"}, thread("a"))
    assert texts(graph.get_state(thread("a"))) == ["one", "echo one", "three", "echo three"]
    saver.journal.move_leaf("a", first.config["configurable"]["checkpoint_id"])
    saver.journal.undo("a")
    assert texts(graph.get_state(thread("a"))) == ["one", "echo one", "three", "echo three"]
    assert len(list(saver.journal.search("two"))) == 2


class Asked(TypedDict):
    answer: str


def asking_graph(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    def ask(state: Asked) -> dict[str, Any]:
        return {"answer": interrupt("really?")}

    return StateGraph(Asked).add_node("ask", ask).add_edge(START, "ask").compile(checkpointer=saver)


def test_a_fork_takes_interrupts_along_and_shares_nothing_that_comes_later(saver: SessionTreeSaver) -> None:
    graph = asking_graph(saver)
    graph.invoke({"answer": ""}, thread("a"))
    saver.fork("a", "b")
    assert [one.value for one in graph.get_state(thread("b")).interrupts] == ["really?"]
    assert graph.invoke(Command(resume="yes"), thread("b")) == {"answer": "yes"}
    assert graph.invoke(Command(resume="no"), thread("a")) == {"answer": "no"}
    assert graph.get_state(thread("b")).values == {"answer": "yes"}
    with pytest.raises(st.InvalidInputError, match="no checkpoint"):
        saver.fork("nobody", "c")


def test_a_thread_that_the_journal_forked_is_listed_copied_pruned_and_deleted(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    for text in ("one", "two"):
        graph.invoke({"messages": text}, thread("a"))
    saver.journal.fork("a", new_id="b")
    graph.invoke({"messages": "three"}, thread("b"))
    assert len(list(saver.list(thread("b")))) == 9
    saver.copy_thread("b", "c")
    assert texts(graph.get_state(thread("c"))) == texts(graph.get_state(thread("b")))
    saver.prune(["b"])
    assert len(list(saver.list(thread("b")))) == 1
    saver.delete_thread("b")
    assert graph.get_state(thread("b")).values == {}
    assert len(texts(graph.get_state(thread("a")))) == 4


def test_a_thread_without_checkpoints_is_not_deleted(saver: SessionTreeSaver) -> None:
    saver.journal.append("notes", st.user("keep"), create=True)
    saver.delete_thread("notes")
    assert len(saver.journal.path("notes")) == 1


def test_an_empty_thread_id_is_one_as_with_other_savers(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    for name in ("", "a"):
        graph.invoke({"messages": "one"}, thread(name))
    assert texts(graph.get_state(thread(""))) == ["one", "echo one"]
    assert len(list(saver.list(thread("")))) == 3
    saver.delete_thread("")
    assert graph.get_state(thread("")).values == {}
    assert texts(graph.get_state(thread("a"))) == ["one", "echo one"]


def test_pruning_a_thread_leaves_its_forks_alone(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": "one"}, thread("a"))
    saver.fork("a", "b")
    graph.invoke({"messages": "two"}, thread("a"))
    saver.prune(["a"])
    assert texts(graph.get_state(thread("a"))) == ["one", "echo one", "two", "echo two"]
    assert len(list(graph.get_state_history(thread("a")))) == 1
    assert len(list(graph.get_state_history(thread("b")))) == 3
    graph.invoke({"messages": "three"}, thread("a"))
    assert len(texts(graph.get_state(thread("a")))) == 6
    saver.delete_thread("a")
    assert graph.get_state(thread("a")).values == {}
    assert texts(graph.get_state(thread("b"))) == ["one", "echo one"]
    assert saver.journal.check() == []


class Rot:
    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "rot", bytes(byte ^ 0x5A for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return self.encrypt(ciphertext)[1]


class RotSerializer(JsonPlusSerializer):
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return kind, Rot().encrypt(data)[1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return super().loads_typed((data[0], Rot().encrypt(data[1])[1]))


@pytest.mark.parametrize("serde", [EncryptedSerializer(Rot()), RotSerializer()])
def test_nothing_is_readable_if_the_serializer_encrypts(tmp_path: Path, serde: SerializerProtocol) -> None:
    with SessionTreeSaver(f"jsonl:///{tmp_path}/store", serde=serde) as saver:
        graph = chat_graph(saver)
        graph.invoke({"messages": "secret word"}, thread("a"))
        graph.invoke({"messages": "second"}, thread("a"))
        assert texts(graph.get_state(thread("a")))[0] == "secret word"
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"secret word" not in stored


def test_entries_of_others_and_erased_messages_do_not_disturb(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": "one"}, thread("a"))
    for number in range(50):
        saver.journal.append("a", st.user(f"aside {number}"))
    graph.invoke({"messages": "two"}, thread("a"))
    message = next(entry for entry in saver.journal.path("a") if entry.message is not None)
    saver.journal.erase("a", [message.id])
    fresh = SessionTreeSaver(saver.journal)
    assert texts(chat_graph(fresh).get_state(thread("a"))) == ["echo one", "two", "echo two"]


def test_one_saver_serves_several_event_loops_and_blocking_callers(saver: SessionTreeSaver) -> None:
    graph = chat_graph(saver)
    for number in range(3):
        asyncio.run(graph.ainvoke({"messages": f"async {number}"}, thread("a")))
        graph.invoke({"messages": f"sync {number}"}, thread("a"))
    assert len(texts(graph.get_state(thread("a")))) == 12


def test_a_graph_and_its_saver_do_not_wait_for_each_other_s_threads(saver: SessionTreeSaver) -> None:
    is_over = threading.Event()

    async def ask_while_all_threads_of_the_loop_are_busy() -> int:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        task = loop.run_in_executor(None, is_over.wait)  # LangGraph runs blocking tasks there
        try:
            async with asyncio.timeout(30):
                await saver.aput({"configurable": {"thread_id": "a", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
                return len([found async for found in saver.alist(thread("a"))])
        finally:
            is_over.set()
            await task

    assert asyncio.run(ask_while_all_threads_of_the_loop_are_busy()) == 1


def moved(source: BaseCheckpointSaver[Any], target: SessionTreeSaver) -> list[tuple[CheckpointTuple, ...]]:
    pairs = zip(source.list(None), target.list(None), strict=True)
    return [pair for pair in pairs if pair[0] != pair[1]]


def test_checkpoints_of_langgraph_are_moved_in(saver: SessionTreeSaver, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "checkpoints.sqlite", check_same_thread=False)
    old = SqliteSaver(connection)
    chat, asking = chat_graph(old), asking_graph(old)
    for text in ("one", "two"):
        chat.invoke({"messages": text}, thread("chat"))
    branch = list(chat.get_state_history(thread("chat")))[3].config
    chat.invoke({"messages": "three"}, branch)
    asking.invoke({"answer": ""}, thread("asking"))
    count = len(list(old.list(None)))
    assert import_checkpoints(old, saver) == count
    assert import_checkpoints(old, saver) == 0
    assert moved(old, saver) == []
    assert asking_graph(saver).invoke(Command(resume="yes"), thread("asking")) == {"answer": "yes"}
    state = chat_graph(saver).invoke({"messages": "four"}, thread("chat"))
    assert [message.content for message in state["messages"]][-2:] == ["four", "echo four"]
    connection.close()
