"""Microsoft Agent Framework: its own agents and workflows, its own providers as the reference, a local model server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Content,
    FileCheckpointStorage,
    Message,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
)

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import ModelServer, Reply, model_server
from opened import url_of
from provider_answers import Script, openai_responses
from sessiontree.adapters.agent_framework import SessionTreeCheckpointStorage, SessionTreeHistoryProvider

STORES = ("memory", "sqlite", "jsonl", "postgres")


@dataclass
class Order:
    number: int


ALLOWED = [f"{Order.__module__}:{Order.__qualname__}"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        yield found


def with_history(url: str, act: Callable[[SessionTreeHistoryProvider], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with SessionTreeHistoryProvider(url) as history:
            return await act(history)

    return asyncio.run(main())


def with_storage(url: str, act: Callable[[SessionTreeCheckpointStorage], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with SessionTreeCheckpointStorage(url, allowed_checkpoint_types=ALLOWED) as storage:
            return await act(storage)

    return asyncio.run(main())


def dumps(messages: list[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


def checkpoint(number: int, previous: WorkflowCheckpoint | None = None, name: str = "flow") -> WorkflowCheckpoint:
    return WorkflowCheckpoint(
        workflow_name=name,
        graph_signature_hash="hash",
        checkpoint_id=f"checkpoint/{number}",
        previous_checkpoint_id=previous.checkpoint_id if previous else None,
        timestamp=f"2026-01-01T00:00:{number:02}+00:00",
        state={"order": Order(number), "bytes": b"\x00\xff", "seen": {1, 2}},
        iteration_count=number,
    )


@pytest.mark.filterwarnings("default")  # of the framework's own modules
def test_the_how_to_runs(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ("The Golden Gate Bridge.", "Joseph Strauss.", "The Bay Bridge.")
    server.replies += [Reply(body=openai_responses(Script(text=[text], id=text[:5]))) for text in texts]
    run(FRAMEWORKS / "agent-framework.md")
    sent = [[text for text in texts if text in str(body["input"])] for _, _, body in server.requests]
    assert sent == [[], [texts[0]], [texts[0]]]
    assert capsys.readouterr().out.splitlines() == list(texts[1:])
    with st.open("sqlite:///agents.db") as journal:
        assert {hit.thread_id for hit in journal.search("strauss").hits} == {"bridges"}
        assert journal.check() == []


def test_messages_come_back_as_they_were(url: str) -> None:
    messages = [
        Message("system", ["Be brief."]),
        Message("user", ["Look.", Content.from_data(b"\x00\xff", "image/png")], author_name="me"),
        Message("assistant", [Content.from_text_reasoning(text="hm"), Content.from_function_call("c1", "look", arguments={"at": 1})], message_id="m1"),
        Message("tool", [Content.from_function_result("c1", result="towers")]),
        Message("assistant", ["Towers."], additional_properties={"mood": "good"}),
        Message("critic", ["Weak."]),
    ]  # fmt: skip

    async def act(history: SessionTreeHistoryProvider) -> None:
        assert await history.get_messages("s") == []
        await history.save_messages("s", messages)
        await history.save_messages("s", [])
        await history.save_messages(None, [Message("user", ["elsewhere"])])
        assert dumps(await history.get_messages("s")) == dumps(messages)
        assert [entry.type for entry in await (await history.thread("s")).path()] == [
            "system_message",
            "user_message",
            "tool_call",
            "tool_result",
            "assistant_message",
            "custom",
        ]

    with_history(url, act)


def test_what_ends_the_history_is_not_stored_again(url: str) -> None:
    one, two, three = Message("user", ["one"]), Message("assistant", ["two"]), Message("user", ["three"])

    async def act(history: SessionTreeHistoryProvider) -> None:
        await history.save_messages("s", [one, two])
        await history.save_messages("s", [one, two, three])  # the whole transcript again
        await history.save_messages("s", [three])  # a text that the user repeats
        assert [message.text for message in await history.get_messages("s")] == ["one", "two", "three", "three"]

    with_history(url, act)


def test_many_save_at_once_and_nothing_is_lost(url: str) -> None:
    async def act(history: SessionTreeHistoryProvider) -> None:
        pairs = [[Message("user", [f"q{number}"]), Message("assistant", [f"a{number}"])] for number in range(10)]
        await asyncio.gather(*(history.save_messages("s", pair) for pair in pairs))
        texts = [message.text for message in await history.get_messages("s")]
        assert sorted(texts) == sorted(f"{kind}{number}" for kind in "qa" for number in range(10))

    with_history(url, act)


def test_a_conversation_of_another_program_is_read(url: str) -> None:
    async def act(history: SessionTreeHistoryProvider) -> None:
        journal = await history.journal()
        contents: list[st.Payload] = [
            st.system("Be brief."),
            st.user("What?"),
            st.assistant(calls=[st.call("c", "look")]),
            st.tool_result("c", "it"),
        ]
        await journal.append_many("s", contents, create=True)
        await history.save_messages("s", [Message("user", ["So?"])])
        found = await history.get_messages("s")
        assert [message.role for message in found] == ["system", "user", "assistant", "tool", "user"]
        assert found[3].contents[0].result == "it"

    with_history(url, act)


def test_checkpoints_come_back_as_they_were(url: str) -> None:
    async def act(storage: SessionTreeCheckpointStorage) -> None:
        first = checkpoint(1)
        second, third = checkpoint(2, first), checkpoint(3, first)
        for one in (first, second, third, checkpoint(4, name="other")):
            assert await storage.save(one) == one.checkpoint_id
        assert await storage.load("checkpoint/2") == second
        assert await storage.list_checkpoints(workflow_name="flow") == [first, second, third]
        assert await storage.list_checkpoint_ids(workflow_name="other") == ["checkpoint/4"]
        assert await storage.get_latest(workflow_name="flow") == third
        assert await storage.get_latest(workflow_name="nothing") is None
        journal = await storage.journal()
        entries = await journal.entries("agent-framework/workflow/flow")
        assert [entry.parent for entry in entries] == [None, "checkpoint/1", "checkpoint/1"]
        assert await storage.delete("checkpoint/3")
        assert not await storage.delete("checkpoint/3")
        assert await storage.get_latest(workflow_name="flow") == second
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("checkpoint/3")

    with_storage(url, act)


def test_a_checkpoint_with_the_same_id_is_replaced(url: str) -> None:
    async def act(storage: SessionTreeCheckpointStorage) -> None:
        first = checkpoint(1)
        await storage.save(first)
        first.iteration_count = 9
        await storage.save(first)
        await storage.save(checkpoint(2, first))
        assert (await storage.load(first.checkpoint_id)).iteration_count == 9
        assert await storage.list_checkpoint_ids(workflow_name="flow") == ["checkpoint/1", "checkpoint/2"]

    with_storage(url, act)


def test_types_that_are_not_allowed_are_not_read(url: str) -> None:
    async def main() -> None:
        async with SessionTreeCheckpointStorage(url) as storage:
            with pytest.raises(WorkflowCheckpointException):
                await storage.save(checkpoint(1))

    asyncio.run(main())


def test_checkpoints_of_files_are_moved(tmp_path: Path) -> None:
    async def act(storage: SessionTreeCheckpointStorage) -> None:
        files = FileCheckpointStorage(tmp_path / "files", allowed_checkpoint_types=ALLOWED)
        first = WorkflowCheckpoint(workflow_name="flow", graph_signature_hash="h", state={"order": Order(1)})
        await files.save(first)
        for one in await files.list_checkpoints(workflow_name="flow"):
            await storage.save(one)
        assert await storage.list_checkpoints(workflow_name="flow") == [first]

    with_storage(url_of("sqlite", tmp_path), act)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_come_back(url: str, value: float) -> None:
    message = Message("user", ["scored"], additional_properties={"score": value})

    async def act(history: SessionTreeHistoryProvider) -> None:
        await history.save_messages("s", [message])
        (found,) = await history.get_messages("s")
        assert repr(found.additional_properties["score"]) == repr(value)
        assert len((await (await history.journal()).search("scored")).hits) == 1

    with_history(url, act)


def test_excluded_messages_are_skipped_if_asked_for(url: str) -> None:
    async def main() -> None:
        async with st.open_async(url) as journal:
            hidden = Message("user", ["old"], additional_properties={"_excluded": True})
            await SessionTreeHistoryProvider(journal).save_messages("s", [hidden, Message("user", ["new"])])
            for skip, texts in ((False, ["old", "new"]), (True, ["new"])):
                history = SessionTreeHistoryProvider(journal, skip_excluded=skip)
                assert [one.text for one in await history.get_messages("s")] == texts

    asyncio.run(main())
