"""Sessions of the OpenAI Agents SDK: its own runner and model classes, against a local model server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession, function_tool
from agents.items import TResponseInputItem

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import ModelServer, Reply, model_server
from opened import url_of
from provider_answers import Script, openai_responses
from sessiontree.adapters.openai_agents import SessionTreeSession, import_sqlite_sessions

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        yield found


def says(*texts: str) -> list[Reply]:
    return [Reply(body=openai_responses(Script(text=[text], id=f"{number}"))) for number, text in enumerate(texts, 1)]


def user(text: str) -> TResponseInputItem:
    return {"role": "user", "content": text}


def assistant(text: str) -> TResponseInputItem:
    return cast("TResponseInputItem", {"role": "assistant", "content": text})


def with_session(url: str, act: Callable[[SessionTreeSession], Awaitable[Any]], name: str = "chat") -> Any:
    async def main() -> Any:
        async with SessionTreeSession(url, name) as session:
            return await act(session)

    return asyncio.run(main())


def test_the_how_to_runs(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    server.replies += says("The Golden Gate Bridge.", "Joseph Strauss.", "The Caldecott Tunnel.")
    run(FRAMEWORKS / "openai-agents.md")
    assert capsys.readouterr().out == "Joseph Strauss.\n"
    sent = [json.dumps(body["input"]) for _, _, body in server.requests]
    assert "Golden Gate" in sent[1]
    assert "Who built it?" in sent[1]
    assert "Golden Gate" in sent[2]
    assert "Who built it?" not in sent[2]
    with st.open("sqlite:///agents.db") as journal:
        assert [hit.thread_id for hit in journal.search("strauss").hits] == ["user-1"]
        assert journal.thread("user-1").title == "Which bridge is in San Francisco?"
        assert journal.check() == []


def test_a_turn_with_tools_is_stored_and_sent_again_as_it_was(server: ModelServer, url: str) -> None:
    @function_tool
    def population(city: str) -> str:
        return f"{city}: 870,000"

    agent = Agent(name="Guide", tools=[population])
    call = Script(reasoning=["Let me look."], call="population", arguments=['{"city":', '"San Francisco"}'])
    server.replies += [Reply(body=openai_responses(call)), *says("About 870,000.", "Half of it.")]

    async def act(session: SessionTreeSession) -> list[TResponseInputItem]:
        await Runner.run(agent, "How many people?", session=session)
        items = await session.get_items()
        await Runner.run(agent, "And in 1950?", session=session)
        thread = await session.thread()
        assert [entry.type for entry in await thread.path()] == [
            "user_message",
            "assistant_message",
            "tool_call",
            "tool_result",
            "assistant_message",
            "user_message",
            "assistant_message",
        ]
        return items

    items = with_session(url, act)
    kinds = [item.get("type") for item in items]
    assert kinds == [None, "reasoning", "function_call", "function_call_output", "message"]
    sent = server.requests[2][2]["input"]
    assert sent[:5] == items
    assert sent[5] == user("And in 1950?")


def test_items_come_back_as_they_were_added(url: str) -> None:
    items = cast(
        "list[TResponseInputItem]",
        [
            user("hello"),
            {"role": "user", "content": [{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"}]},
            {"role": "system", "content": "be brief"},
            {"role": "developer", "content": "no lists"},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}]},
            {"type": "item_reference", "id": "msg_2"},
            {"type": "an_item_of_next_year", "payload": {"deep": [1, None, {"x": 1.5}]}},
            {"type": "message", "role": "user", "content": [{"type": "input_text"}]},
            {"role": "user", "content": "", "name": "Ünï\u2028code 🌉"},
        ],
    )  # fmt: skip

    async def act(session: SessionTreeSession) -> None:
        await session.add_items(items)
        assert await session.get_items() == items
        for limit in (1, 3, 9, 20):
            assert await session.get_items(limit) == items[-limit:]
        assert await session.get_items(0) == []
        assert await session.get_items(-1) == items
        for item in reversed(items):
            assert await session.pop_item() == item
        assert await session.pop_item() is None
        assert await session.get_items() == []

    with_session(url, act)


def test_nothing_is_there_before_the_first_item(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        assert await session.get_items() == []
        assert await session.get_items(5) == []
        assert await session.pop_item() is None
        await session.clear_session()
        await session.add_items([])
        assert len(await (await session.journal()).list_threads()) == 0

    with_session(url, act)


def test_what_was_popped_and_cleared_can_be_taken_back(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        items = [user("one"), assistant("two"), user("three")]
        await session.add_items(items)
        thread = await session.thread()
        assert await session.pop_item() == items[2]
        await session.clear_session()
        await thread.undo()
        assert await session.get_items() == items[:2]
        await thread.undo()
        assert await session.get_items() == items

    with_session(url, act)


def test_the_same_item_is_popped_once_by_many(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        items = [user(f"number {number}") for number in range(12)]
        await session.add_items(items)
        popped = await asyncio.gather(*(session.pop_item() for _ in range(12)))
        assert sorted(str(item) for item in popped) == sorted(str(item) for item in items)
        assert await session.get_items() == []

    with_session(url, act)


def test_many_add_at_once_and_nothing_is_lost(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        journal = await session.journal()
        pairs = [[user(f"question {number}"), assistant(f"answer {number}")] for number in range(20)]
        others = [SessionTreeSession(journal, "chat") for _ in pairs]
        await asyncio.gather(*(other.add_items(pair) for other, pair in zip(others, pairs, strict=True)))
        items = await session.get_items()
        assert len(items) == 40
        assert all(items[items.index(pair[0]) + 1] == pair[1] for pair in pairs)

    with_session(url, act)


def test_a_conversation_of_another_program_is_continued(server: ModelServer, url: str) -> None:
    server.replies += says("A bridge.")

    async def act(session: SessionTreeSession) -> None:
        journal = await session.journal()
        await journal.append_many(
            "chat",
            [
                st.system("Be brief."),
                st.user("What is this?"),
                st.assistant(calls=[st.call("c1", "look", '{"at": "photo"}')]),
                st.tool_result("c1", "towers and cables"),
            ],
            create=True,
        )
        await Runner.run(Agent(name="Guide"), "So?", session=session)
        assert len(await session.get_items()) == 6
        await session.pop_item()
        assert (await session.pop_item()) == user("So?")
        last = await session.pop_item()
        assert last is not None
        assert last.get("output") == "towers and cables"

    with_session(url, act)
    sent = server.requests[0][2]["input"]
    assert [item.get("type", item.get("role")) for item in sent] == [
        "system",
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]


def test_limits_of_settings_hold(url: str) -> None:
    async def main() -> None:
        async with SessionTreeSession(url, "chat", session_settings={"limit": 2}) as session:
            await session.add_items([user("one"), user("two"), user("three")])
            assert await session.get_items() == [user("two"), user("three")]
            assert len(await session.get_items(limit=3)) == 3
            fork = await session.fork()
            assert fork.session_settings == SessionSettings(limit=2)

    asyncio.run(main())


def test_a_session_works_in_one_event_loop_after_the_other(server: ModelServer, url: str) -> None:
    server.replies += says("one", "two", "three")
    session = SessionTreeSession(url, "chat")
    for number in range(3):
        asyncio.run(asyncio.wait_for(Runner.run(Agent(name="Guide"), f"turn {number}", session=session), 30))
    assert len(asyncio.run(session.get_items())) == 6
    asyncio.run(session.close())


def test_a_fork_shares_entries_and_goes_its_own_way(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        await session.add_items([user("one"), assistant("two"), user("three")])
        first, second = await (await session.thread()).path(types=["user_message"])
        fork = await session.fork("other", before=second.id)
        await fork.add_items([user("four")])
        assert await fork.get_items() == [user("one"), assistant("two"), user("four")]
        assert await session.get_items() == [user("one"), assistant("two"), user("three")]
        assert (await (await fork.thread()).path())[0] == first

    with_session(url, act)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_sessions_that_sqlite_session_wrote_are_imported_once(server: ModelServer, kind: str, tmp_path: Path) -> None:
    server.replies += says("The Thames.", "In Gloucestershire.")
    old = tmp_path / "old.db"

    async def write() -> dict[str, list[TResponseInputItem]]:
        one, two = SQLiteSession("one", old), SQLiteSession("two'; --", old)
        await Runner.run(Agent(name="Guide"), "Which river is in London?", session=one)
        await Runner.run(Agent(name="Guide"), "Where does it begin?", session=one)
        await two.add_items([user("Ünïcode 🌉")])
        found = {"one": await one.get_items(), "two'; --": await two.get_items()}
        one.close()
        two.close()
        return found

    written = asyncio.run(write())
    url = url_of(kind, tmp_path)
    assert asyncio.run(import_sqlite_sessions(url, old)) == 2

    async def check(session: SessionTreeSession) -> None:
        await session.add_items([user("new")])

    with_session(url, check, "one")
    assert asyncio.run(import_sqlite_sessions(url, old)) == 2
    with st.open(url) as journal:
        assert journal.thread("one").title == "Which river is in London?"
        assert abs(journal.path("one")[0].created_ns - journal.thread("one").created_ns) < 3600 * 10**9
    for name, items in written.items():
        found = with_session(url, lambda session: session.get_items(), name)
        assert found == items + ([user("new")] if name == "one" else [])


def test_two_files_with_the_same_session_are_both_imported(tmp_path: Path) -> None:
    async def write(name: str) -> None:
        session = SQLiteSession("chat", tmp_path / name)
        await session.add_items([user(f"from {name}")])
        session.close()

    url = url_of("sqlite", tmp_path)
    for name in ("a.db", "b.db", "b.db"):
        if not (tmp_path / name).exists():
            asyncio.run(write(name))
        assert asyncio.run(import_sqlite_sessions(url, tmp_path / name)) == 1
    assert with_session(url, lambda session: session.get_items()) == [user("from a.db"), user("from b.db")]


def test_half_an_emoji_comes_back_as_it_was_and_is_shown_as_a_mark(url: str) -> None:
    async def act(session: SessionTreeSession) -> None:
        await session.add_items([user("cut \ud83d")])
        assert await session.get_items() == [user("cut \ud83d")]
        (entry,) = await (await session.thread()).path()
        assert entry.message is not None
        assert entry.message.text == "cut ?"

    with_session(url, act)


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_numbers_that_json_lacks_come_back(url: str, number: float) -> None:
    async def act(session: SessionTreeSession) -> None:
        item = {"type": "function_call_output", "call_id": "c", "output": "ok", "score": number}
        await session.add_items(
            [cast("TResponseInputItem", item), cast("TResponseInputItem", {"type": "new", "x": number})]
        )
        found = cast("list[dict[str, Any]]", await session.get_items())
        assert repr([found[0]["score"], found[1]["x"]]) == repr([number, number])

    with_session(url, act)


@pytest.mark.parametrize("content", [object(), {"a set"}, b"bytes"], ids=["object", "set", "bytes"])
def test_an_item_that_is_not_json_is_refused_and_nothing_is_added(url: str, content: object) -> None:
    async def act(session: SessionTreeSession) -> None:
        await session.add_items([user("one")])
        with pytest.raises(st.InvalidInputError):
            await session.add_items([user("two"), cast("TResponseInputItem", {"role": "user", "content": content})])
        assert await session.get_items() == [user("one")]

    with_session(url, act)


def test_a_closed_session_says_so(url: str) -> None:
    async def main() -> None:
        session = SessionTreeSession(url, "chat")
        await session.add_items([user("one")])
        await session.close()
        for use in (session.get_items(), session.add_items([]), session.pop_item(), session.clear_session()):
            with pytest.raises(st.StoreClosedError):
                await use

    asyncio.run(main())
