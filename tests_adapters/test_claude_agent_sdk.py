"""A session store of the Claude Agent SDK: its conformance suite, its helpers, and its real command line."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import (
    SessionKey,
    SessionStoreEntry,
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    import_session_to_store,
    list_sessions,
    list_sessions_from_store,
    project_key_for_directory,
    rename_session_via_store,
    tag_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import ModelServer, StreamReply, model_server
from opened import url_of
from provider_answers import Script, anthropic_events
from sessiontree.adapters.claude_agent_sdk import SessionTreeSessionStore

STORES = ("memory", "sqlite", "jsonl", "postgres")
SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    """A model server that the command line uses, in a home of its own."""
    with model_server() as found:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", found.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "local")
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home/.claude"))
        monkeypatch.chdir(tmp_path)
        yield found


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def lines_of(*texts: str, session: str = SESSION, start: int = 1) -> list[SessionStoreEntry]:
    """Lines of a user and a model in turns, as the command line writes them."""
    found: list[dict[str, Any]] = []
    for number, text in enumerate(texts, start):
        role = "user" if number % 2 else "assistant"
        content: Any = text if role == "user" else [{"type": "text", "text": text}]
        message = {"role": role, "content": content} | ({"id": f"msg_{number}", "model": "claude-local", "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5}} if role == "assistant" else {})  # fmt: skip
        place = {"parentUuid": uuid(number - 1) if number > 1 else None, "sessionId": session, "cwd": "/home/x"}
        time = f"2026-01-01T00:00:{number:02}.000Z"
        found.append({"type": role, "message": message, "uuid": uuid(number), "timestamp": time, **place})
    return cast("list[SessionStoreEntry]", found)


def key_of(session: str = SESSION, project: str = "project", subpath: str = "") -> SessionKey:
    key: SessionKey = {"project_key": project, "session_id": session}
    return {**key, "subpath": subpath} if subpath else key


def with_store(url: str, act: Callable[[SessionTreeSessionStore], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with SessionTreeSessionStore(url) as store:
            return await act(store)

    return asyncio.run(main())


@pytest.mark.parametrize("kind", STORES)
def test_the_sdk_s_fourteen_contracts_hold(kind: str, tmp_path: Path) -> None:
    numbers = itertools.count()
    made: list[SessionTreeSessionStore] = []

    def make() -> SessionTreeSessionStore:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        made.append(SessionTreeSessionStore(url_of(kind, folder)))
        return made[-1]

    async def main() -> None:
        await run_session_store_conformance(make)
        for store in made:
            await store.close()

    asyncio.run(main())
    assert len(made) == 15  # one to probe, and one for each contract


@pytest.mark.xdist_group("command line")
def test_the_how_to_runs_with_the_real_command_line(server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    answers = ("The Golden Gate Bridge.", "Joseph Strauss.", "The Bay Bridge.")
    server.replies += [StreamReply(anthropic_events(Script(text=[text], id=text))) for text in answers]
    run(FRAMEWORKS / "claude-agent-sdk.md")
    assert capsys.readouterr().out == "Joseph Strauss.\nThe Bay Bridge.\n"
    sent = [[text for text in answers if text in str(body["messages"])] for _, _, body in server.requests]
    assert sent == [[], ["The Golden Gate Bridge."], ["The Golden Gate Bridge."]]
    with st.open("sqlite:///claude.db") as journal:
        threads = {thread.title: thread for thread in journal.list_threads(channel="claude-agent-sdk")}
        assert {"The other bridge", "Which bridge is in San Francisco?"} == threads.keys()
        assert threads["Which bridge is in San Francisco?"].messages == 4
        assert len(journal.search("strauss").hits) == 1
        assert journal.check() == []

    (local,) = list_sessions(directory=".")

    async def move(store: SessionTreeSessionStore) -> list[SessionStoreEntry] | None:
        await import_session_to_store(local.session_id, store)
        return await store.load(key_of(local.session_id, project_key_for_directory()))

    file = next(Path("home/.claude/projects").rglob(f"{local.session_id}.jsonl"))
    assert with_store("jsonl:///moved", move) == [json.loads(line) for line in file.read_text().splitlines()]


def test_a_session_is_readable_and_countable(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        lines = lines_of("Which bridge?", "The Golden Gate Bridge.", "Who built it?", "Joseph Strauss.")
        await store.append(key_of(), lines)
        thread = await store.thread(key_of())
        assert [entry.message.text for entry in await thread.path() if entry.message] == [
            "Which bridge?",
            "The Golden Gate Bridge.",
            "Who built it?",
            "Joseph Strauss.",
        ]
        found = await thread.thread()
        assert (found.title, found.workspace, found.messages) == ("Which bridge?", "/home/x", 4)
        journal = await store.journal()
        assert [hit.entry.id for hit in (await journal.search("strauss")).hits] == [uuid(4)]
        assert (await thread.costs()).total.output_tokens == 10

    with_store(url, act)


def test_repeated_and_torn_batches_are_stored_once(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        lines = lines_of("one", "two", "three", "four")
        title = cast("SessionStoreEntry", {"type": "custom-title", "customTitle": "A title", "sessionId": SESSION})
        await store.append(key_of(), lines[:2])
        await store.append(key_of(), [*lines[:3], lines[2]])
        await store.append(key_of(), lines)
        await store.append(key_of(), [cast("SessionStoreEntry", {**lines[0], "changed": True}), title])
        await store.append(key_of(), [title])
        assert await store.load(key_of()) == [*lines, title, title]
        assert (await (await store.thread(key_of())).thread()).title == "A title"

    with_store(url, act)


def test_many_append_at_once_and_the_summary_has_them_all(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        async def add(number: int) -> None:
            line = {
                "type": "user",
                "uuid": uuid(number),
                "sessionId": SESSION,
                "message": {"role": "user", "content": f"line {number}"},
            }
            extra = {"type": "tag", "tag": "seen"} if number == 7 else {"type": "last-prompt", "lastPrompt": "p"}
            await store.append(key_of(), cast("list[SessionStoreEntry]", [line, extra]))  # fmt: skip

        await asyncio.gather(*(add(number) for number in range(1, 13)))
        lines = await store.load(key_of())
        assert lines is not None
        assert len(lines) == 24
        (summary,) = await store.list_session_summaries("project")
        assert summary["data"]["tag"] == "seen"
        assert summary["data"]["last_prompt"] == "p"

    with_store(url, act)


def test_a_line_with_half_an_emoji_comes_back_as_it_was(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        lines = lines_of("the output was cut here: \ud83d")
        await store.append(key_of(), lines)
        assert await store.load(key_of()) == lines

    with_store(url, act)


def test_a_fork_shares_lines_and_goes_its_own_way(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        await store.append(key_of(), lines_of("one", "two", "three", "four"))
        journal = await store.journal()
        before = (await journal.stats()).entries
        fork = await store.fork(key_of(), up_to_message_id=uuid(2))
        assert (await journal.stats()).entries == before + 1  # its title
        await store.append(fork, lines_of("five", "six", session=fork["session_id"], start=3))
        lines = cast("list[dict[str, Any]]", await store.load(fork))
        assert [line["message"]["content"] for line in lines if line["type"] == "user"] == ["one", "five"]
        assert {line["sessionId"] for line in lines} == {fork["session_id"]}
        assert await store.load(key_of()) == lines_of("one", "two", "three", "four")
        await store.delete(key_of())
        assert await store.load(key_of()) is None
        assert await store.load(fork) == lines
        for _ in range(2):  # the fork still has some of these ids
            await store.append(key_of(), lines_of("one", "two", "three", "four"))
            assert await store.load(key_of()) == lines_of("one", "two", "three", "four")

    with_store(url, act)


def test_a_rewound_session_is_resumed_from_its_leaf(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        lines = lines_of("one", "two", "three", "four")
        await store.append(key_of(), lines)
        thread = await store.thread(key_of())
        await thread.rewind(uuid(2))
        assert await store.load(key_of()) == lines[:2]
        again = lines_of("five", start=5)
        await store.append(key_of(), again)
        assert await store.load(key_of()) == [*lines[:2], *again]
        await thread.move_leaf(uuid(4))
        assert await store.load(key_of()) == lines

    with_store(url, act)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_sdk_s_helpers_work_on_the_store(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def act(store: SessionTreeSessionStore) -> None:
        key = key_of(project=project_key_for_directory())
        await store.append(key, lines_of("one", "two"))
        await rename_session_via_store(store, SESSION, "Renamed")
        await tag_session_via_store(store, SESSION, "important")
        (found,) = await list_sessions_from_store(store)
        assert (found.summary, found.tag, found.first_prompt) == ("Renamed", "important", "one")
        messages = await get_session_messages_from_store(store, SESSION)
        assert [message.uuid for message in messages] == [uuid(1), uuid(2)]
        copy = await fork_session_via_store(store, SESSION)
        assert len(await get_session_messages_from_store(store, copy.session_id)) == 2
        await delete_session_via_store(store, SESSION)
        assert [one.session_id for one in await list_sessions_from_store(store)] == [copy.session_id]

    with_store(url_of(kind, tmp_path), act)


def test_subagents_are_threads_below_their_session(url: str) -> None:
    async def act(store: SessionTreeSessionStore) -> None:
        await store.append(key_of(), lines_of("one"))
        agent = key_of(subpath="subagents/agent-1")
        await store.append(agent, lines_of("do this"))
        parent, child = await store.thread(key_of()), await store.thread(agent)
        assert (await child.thread()).parent_thread == parent.id
        assert await store.list_subkeys({"project_key": "project", "session_id": SESSION}) == ["subagents/agent-1"]

    with_store(url, act)
