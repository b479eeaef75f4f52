"""A conversation store of Pydantic AI: compared with the one in memory, and used by real agents."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import ModelServer, Reply, model_server
from opened import url_of
from provider_answers import Script, openai_chat
from sessiontree.adapters.pydantic_ai import SessionTreeConversationStore

STORES = ("memory", "sqlite", "jsonl", "postgres")
SEEDS = 100 if os.environ.get("SESSIONTREE_PROFILE") == "deep" else 2
STEPS = 100


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def with_store(url: str, act: Callable[[SessionTreeConversationStore], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with SessionTreeConversationStore(url) as store:
            return await act(store)

    return asyncio.run(main())


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def answered(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(content=text)], model_name="local")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        yield found


def test_the_how_to_runs(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ("The Golden Gate Bridge.", "Joseph Strauss.", "The Bay Bridge.")
    server.replies += [Reply(body=openai_chat(Script(text=[text]))) for text in texts]
    run(FRAMEWORKS / "pydantic-ai.md")
    sent = [[text for text in texts if text in str(body["messages"])] for _, _, body in server.requests]
    assert sent == [[], [texts[0]], [texts[0]]]
    assert capsys.readouterr().out.splitlines() == list(texts[1:])
    with st.open("sqlite:///conversations.db") as journal:
        assert len(journal.search("strauss").hits) == 1
        assert {thread.title for thread in journal.list_threads()} == {
            "Which bridge is in San Francisco?",
            "And which one is grey?",
        }
        assert journal.costs().total.output_tokens == 120
        assert journal.check() == []


class Pair:
    """The same calls on both stores. Ids and revisions differ, so what is compared is what they point at."""

    def __init__(self, chance: random.Random, *stores: ConversationStore) -> None:
        self.chance = chance
        self.stores = stores
        self.loaded: dict[str, list[Conversation | None]] = {}
        self.step = 0

    async def both(self, call: Callable[[ConversationStore, int], Awaitable[Any]]) -> list[Any]:
        outcomes = []
        for side, store in enumerate(self.stores):
            try:
                outcomes.append(await call(store, side))
            except (ConversationConflict, UserError) as error:
                outcomes.append(type(error))
        assert self._facts(outcomes[0]) == self._facts(outcomes[1])
        return outcomes

    def _facts(self, result: Any) -> Any:
        match result:
            case Conversation():
                return result.conversation_id, result.messages, result.usage, result.deferred_tool_requests
            case list():
                return [getattr(one, "message", None) for one in result]
            case _:
                return result

    async def one_step(self) -> None:
        self.step += 1
        name, scope = self.chance.choice("abcd"), self.chance.choice([None, None, "x", "y"])
        match self.chance.choice(["load", "save", "save", "save", "rewrite", "branch", "fork", "delete", "window"]):
            case "load":
                self.loaded[name] = await self.both(lambda store, _: store.load(name, scope=scope))
            case "window":
                limit = self.chance.choice([0, 1, 3])
                self.loaded[name] = await self.both(lambda store, _: store.load(name, limit=limit))
            case "save":
                await self._save(name, scope, is_rewritten=False)
            case "rewrite":
                await self._save(name, scope, is_rewritten=True)
            case "branch":
                at = self.chance.randint(0, 5)
                await self.both(lambda store, side: self._branch(store, side, name, at))
            case "fork":
                end, new = self.chance.choice([None, 0, 1, 2, 4]), self.chance.choice("abcdef")
                await self.both(lambda store, _: store.fork(name, at=end, new_conversation_id=new, source_scope=scope))
            case "delete":
                await self.both(lambda store, _: store.delete(name, scope=scope))
        await self._agree()

    async def _save(self, name: str, scope: str | None, *, is_rewritten: bool) -> None:
        held = self.loaded.get(name) or [None, None]
        new = [asked(f"question {self.step}"), answered(f"answer {self.step}")][: self.chance.randint(1, 2)]
        waits = self.chance.random() < 0.2
        cut = self.chance.randint(0, 4)
        given: list[Any] = []
        for conversation in held:
            one = conversation if isinstance(conversation, Conversation) else Conversation(conversation_id=name)
            messages = [*(one.messages[:cut] if is_rewritten else one.messages), *new]
            fresh = Conversation(
                conversation_id=name,
                messages=messages,
                usage=one.usage,
                revision=one.revision,
                deferred_tool_requests=DeferredToolRequests() if waits else None,
            )
            given.append(fresh if is_rewritten or one is not conversation else self._extended(one, new))
        await self.both(lambda store, side: store.save(given[side], scope=scope))
        self.loaded[name] = given

    def _extended(self, conversation: Conversation, new: list[ModelMessage]) -> Conversation:
        conversation.messages.extend(new)
        return conversation

    async def _branch(self, store: ConversationStore, side: int, name: str, at: int) -> Conversation:
        held = (self.loaded.get(name) or [None, None])[side]
        revision = held.revision if isinstance(held, Conversation) and held.revision else "none"
        return await store.branch(name, at=at, expected_revision=revision)

    async def _agree(self) -> None:
        lists = [await store.list_conversations() for store in self.stores]
        names = [
            [(one.conversation_id, one.scope, one.forked_from, len(one.branches)) for one in found] for found in lists
        ]
        assert names[0] == names[1]
        for record, other in zip(*lists, strict=True):
            line = [
                await store.read_history(one.head_id) for store, one in zip(self.stores, (record, other), strict=True)
            ]
            assert [entry.message for entry in line[0]] == [entry.message for entry in line[1]]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_agrees_with_the_store_in_memory(url: str, seed: int) -> None:
    async def act(store: SessionTreeConversationStore) -> None:
        pair = Pair(random.Random(seed), InMemoryConversationStore(), store)
        for _ in range(STEPS):
            await pair.one_step()
        assert await (await store.journal()).check() == []

    with_store(url, act)


def test_a_run_with_tools_comes_back_as_it_was(url: str, server: ModelServer) -> None:
    agent = Agent("openai-chat:gpt-5", instructions="Be brief.", system_prompt="You know bridges.")

    @agent.tool_plain
    def length(bridge: str) -> str:
        return f"{bridge}: 2,737 m"

    async def act(store: SessionTreeConversationStore) -> None:
        result = await agent.run("How long is it?", conversation=Conversation(conversation_id="c"))
        await store.save(result)
        loaded = await store.load("c")
        assert loaded is not None
        assert loaded.messages == ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
        assert loaded.usage == result.usage
        assert [entry.type for entry in await (await store.thread("c")).path()] == [
            "user_message",
            "tool_call",
            "tool_result",
            "assistant_message",
        ]

    call = Script(call="length", arguments=['{"bridge": "Golden Gate"}'])
    server.replies += [Reply(body=openai_chat(script)) for script in (call, Script(text=["2,737 m"]))]
    with_store(url, act)


def test_one_of_many_writers_wins_and_the_others_are_told(url: str) -> None:
    async def act(store: SessionTreeConversationStore) -> None:
        await store.save(Conversation(conversation_id="c", messages=[asked("zero")]))
        copies = [await store.load("c") for _ in range(8)]

        async def save(number: int) -> bool:
            copy = copies[number]
            assert copy is not None
            copy.messages.append(answered(f"answer {number}"))
            try:
                await store.save(copy)
            except ConversationConflict:
                return False
            return True

        assert sum(await asyncio.gather(*(save(number) for number in range(8)))) == 1
        final = await store.load("c")
        assert final is not None
        assert len(final.messages) == 2

    with_store(url, act)


def test_a_moved_leaf_is_a_new_revision(url: str) -> None:
    async def act(store: SessionTreeConversationStore) -> None:
        await store.save(Conversation(conversation_id="c", messages=[asked("one"), answered("two"), asked("three")]))
        before = await store.load("c")
        entries = await store.load_entries("c")
        assert before is not None
        assert entries is not None
        thread = await store.thread("c")
        await thread.rewind(entries[1].id)
        before.messages.append(answered("late"))
        with pytest.raises(ConversationConflict):
            await store.save(before)
        after = await store.load("c")
        assert after is not None
        assert len(after.messages) == 2
        after.messages.append(asked("four"))
        await store.save(after)
        await thread.undo()
        assert await store.load_entries("c") == entries

    with_store(url, act)


def test_deleted_messages_are_gone_unless_a_fork_shares_them(tmp_path: Path) -> None:
    async def act(store: SessionTreeConversationStore) -> None:
        await store.save(Conversation(conversation_id="c", messages=[asked("Golden Gate"), answered("Joseph Strauss")]))
        await store.fork("c", at=1, new_conversation_id="f")
        await store.delete("c")
        fork = await store.load("f")
        assert fork is not None
        assert len(fork.messages) == 1

    with_store(url_of("sqlite", tmp_path), act)
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Golden Gate" in files
    assert b"Strauss" not in files
