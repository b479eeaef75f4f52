"""LlamaIndex's chat store on a journal, beside its own on SQLAlchemy."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from pydantic_core import PydanticSerializationError

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import Reply, model_server
from opened import url_of
from provider_answers import Script, openai_chat
from sessiontree.adapters.llama_index import SessionTreeChatStore

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def with_store(url: str, act: Callable[[SessionTreeChatStore], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        store = SessionTreeChatStore(url)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(main())


def said(text: str, role: str = "user") -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=text)


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)

    async def write_old() -> None:
        old = SQLAlchemyChatStore(table_name="messages", async_database_uri="sqlite+aiosqlite:///old.db")
        await old.add_messages("old", [said(f"m{number}") for number in range(4)])
        await old.archive_oldest_messages("old", 2)
        assert old._async_engine is not None
        await old._async_engine.dispose()

    asyncio.run(write_old())
    with model_server() as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        server.replies += [Reply(body=openai_chat(Script(text=[text]))) for text in ("Soup.", "With potatoes.")]
        run(FRAMEWORKS / "llama-index.md")
    assert capsys.readouterr().out == "With potatoes.\n"
    asked = [message["content"] for message in server.requests[1][2]["messages"]]
    assert asked == ["What can I cook with leeks?", "Soup.", "And without cream?"]

    async def moved(store: SessionTreeChatStore) -> list[list[str | None]]:
        found = [await store.get_messages("old", status) for status in (MessageStatus.ARCHIVED, MessageStatus.ACTIVE)]
        return [[message.content for message in messages] for messages in found]

    assert with_store("sqlite:///chats.db", moved) == [["m0", "m1"], ["m2", "m3"]]


def test_messages_of_every_kind_come_back_as_they_were(url: str) -> None:
    messages = [
        said("be brief", "system"),
        ChatMessage(role="user", blocks=[TextBlock(text="what is this?"), ImageBlock(url="https://example.org/a.png")]),
        ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="c1", tool_name="look", tool_kwargs={"at": 1})]
        ),
        ChatMessage(role="tool", content="a leek", additional_kwargs={"tool_call_id": "c1"}),
        said("A leek.", "assistant"),
        said("odd", "function"),
        said("", "user"),
    ]

    async def act(store: SessionTreeChatStore) -> None:
        await store.add_messages("a", messages)
        assert await store.get_messages("a") == messages
        await store.set_messages("a", messages)
        assert await store.get_messages("a") == messages
        journal = await store.journal()
        path = await journal.path("a")
        assert [entry.type for entry in path][1:4] == ["user_message", "tool_call", "tool_result"]

    with_store(url, act)


async def _state(store: AsyncDBChatStore) -> list[Any]:
    keys = sorted(await store.get_keys())
    found: list[Any] = [keys]
    for key in ("a", "b"):
        for status in (MessageStatus.ACTIVE, MessageStatus.ARCHIVED, None):
            found.append([message.content for message in await store.get_messages(key, status)])
            found.append(await store.count_messages(key, status))
    found.append([message.content for message in await store.get_messages("a", limit=2, offset=1)])
    return found


async def _step(store: AsyncDBChatStore, chance: random.Random, number: int) -> Any:
    key = chance.choice("aab")
    match chance.choice(["add", "add", "add many", "archive", "delete oldest", "delete", "set"]):
        case "add":
            return await store.add_message(key, said(f"m{number}"))
        case "add many":
            return await store.add_messages(key, [said(f"m{number}.{part}", "assistant") for part in range(3)])
        case "archive":
            return [one.content for one in await store.archive_oldest_messages(key, chance.randrange(4))]
        case "delete oldest":
            return [one.content for one in await store.delete_oldest_messages(key, chance.randrange(3))]
        case "set":
            return await store.set_messages(key, [said(f"s{number}"), said("t")])
        case _:
            return await store.delete_messages(key, chance.choice([None, MessageStatus.ACTIVE, MessageStatus.ARCHIVED]))


@pytest.mark.parametrize("seed", range(5))
def test_it_does_what_theirs_does(url: str, seed: int) -> None:
    async def act(store: SessionTreeChatStore) -> None:
        theirs = SQLAlchemyChatStore(table_name="messages", async_database_uri="sqlite+aiosqlite:///:memory:")
        chances = random.Random(seed), random.Random(seed)
        for number in range(40):
            done = [await _step(each, chance, number) for each, chance in zip((store, theirs), chances, strict=True)]
            assert done[0] == done[1]
            ours, expected = await _state(store), await _state(theirs)
            assert ours[1:] == expected[1:]
            assert set(expected[0]) <= set(ours[0])
        assert theirs._async_engine is not None
        await theirs._async_engine.dispose()

    with_store(url, act)


def test_a_message_is_deleted_by_its_position(url: str) -> None:
    async def act(store: SessionTreeChatStore) -> None:
        await store.add_messages("a", [said("one"), said("two"), said("three")])
        deleted = await store.delete_message("a", 1)
        assert deleted == said("two")
        assert [message.content for message in await store.get_messages("a")] == ["one", "three"]
        assert await store.delete_message("a", 9) is None
        assert await store.delete_message("b", 0) is None
        assert list(await (await store.journal()).search("two")) == []

    with_store(url, act)


def test_memory_flushes_into_the_archive(url: str) -> None:
    async def act(store: SessionTreeChatStore) -> None:
        memory = Memory.from_defaults(session_id="a", token_limit=60, token_flush_size=20, chat_store=store)
        for number in range(30):
            await memory.aput(
                said(f"a longer message with number {number}", "user" if number % 2 == 0 else "assistant")
            )
        archived = await store.get_messages("a", MessageStatus.ARCHIVED)
        active = await store.get_messages("a")
        assert archived
        assert [*archived, *active] == await store.get_messages("a", None)
        assert len(await store.get_messages("a", None)) == 30

    with_store(url, act)


def test_it_reads_what_other_programs_wrote(url: str) -> None:
    async def act(store: SessionTreeChatStore) -> list[tuple[str, str | None]]:
        journal = await store.journal()
        await journal.append("a", st.user("hello"), create=True)
        await journal.append("a", st.assistant("hi"))
        return [(message.role.value, message.content) for message in await store.get_messages("a")]

    assert with_store(url, act) == [("user", "hello"), ("assistant", "hi")]


def test_a_store_is_dumped_as_its_address(tmp_path: Path) -> None:
    async def main() -> None:
        store = SessionTreeChatStore(f"sqlite:///{tmp_path}/journal.db")
        await store.add_message("chat", said("hello"))
        loaded = SessionTreeChatStore.model_validate_json(store.model_dump_json())
        assert [message.content for message in await loaded.get_messages("chat")] == ["hello"]
        assert isinstance(Memory.from_defaults(session_id="chat", chat_store=store).model_dump(), dict)
        with pytest.raises(PydanticSerializationError, match="URL"):
            SessionTreeChatStore(await store.journal()).model_dump()
        await loaded.close()
        await store.close()

    asyncio.run(main())


def test_messages_are_archived_by_several_at_once(url: str) -> None:
    async def act(store: SessionTreeChatStore) -> None:
        await store.add_messages("chat", [said(f"m{number}") for number in range(12)])
        archived = await asyncio.gather(*(store.archive_oldest_messages("chat", 1) for _ in range(8)))
        assert sorted(one.content or "" for (one,) in archived) == [f"m{number}" for number in range(8)]
        assert await store.count_messages("chat") == 4

    with_store(url, act)


def test_a_key_can_be_deleted_while_others_use_it(url: str) -> None:
    async def act(store: SessionTreeChatStore) -> None:
        for _ in range(5):
            await store.add_messages("chat", [said("one"), said("two")])
            await asyncio.gather(
                *(store.delete_messages("chat") for _ in range(3)),
                store.delete_message("chat", 0),
                store.delete_oldest_messages("chat", 1),
                store.archive_oldest_messages("chat", 1),
                store.get_messages("chat"),
                store.set_messages("chat", []),
            )
            await store.delete_messages("chat")
        assert await store.get_messages("chat") == []

    with_store(url, act)
