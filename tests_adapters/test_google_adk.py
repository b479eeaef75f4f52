"""A session service of Google's ADK: its own runner, its own services as the reference, and a local model server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import Reply, model_server
from opened import url_of
from provider_answers import Script, gemini
from sessiontree.adapters.google_adk import SessionTreeSessionService

STORES = ("memory", "sqlite", "jsonl", "postgres")
WHERE: dict[str, Any] = {"app_name": "app", "user_id": "user"}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def with_service(url: str, act: Callable[[SessionTreeSessionService], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with SessionTreeSessionService(url) as service:
            return await act(service)

    return asyncio.run(main())


def said(text: str, author: str = "user", /, **delta: Any) -> Event:
    role = "user" if author == "user" else "model"
    state = {name.replace("__", ":"): value for name, value in delta.items()}
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, invocation_id="turn-1", content=content, actions=EventActions(state_delta=state))


async def again(service: BaseSessionService, session: Session) -> Session:
    found = await service.get_session(app_name=session.app_name, user_id=session.user_id, session_id=session.id)
    assert found is not None
    return found


@pytest.mark.filterwarnings("default")  # of ADK's own modules
def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOGLE_API_KEY", "local")
    texts = ("The Golden Gate Bridge.", "Joseph Strauss.", "The Bay Bridge.")
    with model_server() as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        server.replies += [Reply(body=gemini(Script(text=[text]))) for text in texts]
        run(FRAMEWORKS / "google-adk.md")
        sent = [[text for text in texts if text in str(body)] for _, _, body in server.requests]
    assert sent == [[], [texts[0]], [texts[0]]]
    assert capsys.readouterr().out.splitlines() == list(texts)
    with st.open("sqlite:///adk.db") as journal:
        assert len(journal.search("strauss").hits) == 1
        assert journal.list_threads(agent="guide", key_thread="bridges").threads[0].messages == 4
        assert journal.check() == []


def test_events_come_back_as_they_were_appended(url: str) -> None:
    events = [
        said("hello", app__a=1, user__b=[1, 2], c={"deep": None}),
        Event(author="agent", content=types.Content(role="model", parts=[types.Part(text="hm", thought=True), types.Part(function_call=types.FunctionCall(id="c1", name="look", args={"at": 1}))]), usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=5, candidates_token_count=2), model_version="gemini-local"),
        Event(author="agent", content=types.Content(role="user", parts=[types.Part(function_response=types.FunctionResponse(id="c1", name="look", response={"seen": "towers"}))])),
        Event(author="agent", content=types.Content(role="model", parts=[types.Part.from_bytes(data=b"\\x00\\xffpng", mime_type="image/png")])),
        Event(author="agent", error_code="E", error_message="broken", turn_complete=True, long_running_tool_ids={"x"}),
        Event(author="user", content=types.Content(role="user", parts=[])),
    ]  # fmt: skip

    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE)
        for event in events:
            await service.append_event(session, event)
        assert await again(service, session) == session
        thread = await service.thread(session)
        assert [entry.type for entry in await thread.path()] == [
            "user_message",
            "tool_call",
            "tool_result",
            "assistant_message",
            "event",
            "event",
        ]
        assert (await thread.costs()).total.output_tokens == 2

    with_service(url, act)


@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_service_in_memory(url: str, seed: int) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        chance = random.Random(seed)
        both: tuple[BaseSessionService, BaseSessionService] = (InMemorySessionService(), service)
        for step in range(60):
            address: dict[str, Any] = {"app_name": chance.choice("ab"), "user_id": chance.choice("uv")}
            name = chance.choice("xyz")
            state = {f"{chance.choice(['', 'app:', 'user:', 'temp:'])}{chance.choice('kl')}": step}
            match chance.choice(["create", "append", "append", "append", "delete", "read"]):
                case "create":
                    outcomes = [
                        await outcome(one.create_session(**address, session_id=name, state=state)) for one in both
                    ]
                case "append":
                    event = said(f"step {step}", **{key.replace(":", "__"): value for key, value in state.items()})
                    outcomes = [await append(one, address, name, event.model_copy(deep=True)) for one in both]
                case "delete":
                    outcomes = [await outcome(one.delete_session(**address, session_id=name)) for one in both]
                case _:
                    recent = GetSessionConfig(num_recent_events=chance.choice([0, 1, 3, None]))
                    outcomes = [await one.get_session(**address, session_id=name, config=recent) for one in both]
            assert facts(outcomes[0]) == facts(outcomes[1])
            lists = [(await one.list_sessions(app_name=address["app_name"])).sessions for one in both]
            assert facts(lists[0]) == facts(lists[1])
            users = [await one.get_user_state(**address) for one in both]
            assert users[0] == users[1]

    with_service(url, act)


async def outcome(step: Awaitable[Any]) -> Any:
    try:
        return await step
    except (AlreadyExistsError, SessionNotFoundError) as error:
        return type(error)


async def append(service: BaseSessionService, address: dict[str, Any], name: str, event: Event) -> Any:
    session = await service.get_session(**address, session_id=name)
    return None if session is None else await service.append_event(session, event)


def facts(result: Any) -> Any:
    """What two services must agree on: not the times at which sessions were created."""
    match result:
        case Session():
            return result.id, result.user_id, result.state, result.events
        case list():
            return sorted((facts(one) for one in result), key=str)
        case _:
            return result


def test_state_of_apps_and_users_changes_with_the_event_or_not_at_all(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE)
        stale = await again(service, session)
        await service.append_event(session, said("one", app__count=1, user__count=1, count=1))
        late = said("two", app__count=2, user__count=2, count=2)
        with pytest.raises(StaleSessionError, match="modified in storage"):
            await service.append_event(stale, late)
        found = await again(service, session)
        assert found.state == {"app:count": 1, "user:count": 1, "count": 1}
        assert len(found.events) == 1
        assert stale.events == []

    with_service(url, act)


def test_a_session_whose_time_was_rounded_on_its_way_can_be_continued(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE)
        session.last_update_time -= 0.0001
        await service.append_event(session, said("one"))
        session.last_update_time -= 0.0001
        await service.append_event(session, said("two"))
        assert len((await again(service, session)).events) == 2

    with_service(url, act)


def test_many_sessions_change_one_app_at_once_and_lose_nothing(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        sessions = [await service.create_session(**WHERE) for _ in range(12)]
        texts = [said(str(number), **{f"app__n{number}": number}) for number in range(12)]
        await asyncio.gather(*(service.append_event(*pair) for pair in zip(sessions, texts, strict=True)))
        state = (await again(service, sessions[0])).state
        assert state == {f"app:n{number}": number for number in range(12)}

    with_service(url, act)


def test_an_event_that_is_repeated_is_stored_once(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE)
        event = said("one", app__count=1)
        before = await again(service, session)
        await service.append_event(session, event.model_copy(deep=True))
        await service.append_event(before, event)  # its answer was lost
        assert len((await again(service, session)).events) == len(before.events) == 1

    with_service(url, act)


def test_rewinds_and_forks_have_the_state_of_their_place(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE, state={"kept": True, "n": 0})
        for number in (1, 2, 3):
            await service.append_event(session, said(f"number {number}", n=number, app__last=number))
        first = session.events[0]
        thread = await service.thread(session)
        await thread.rewind(first.id)
        back = await again(service, session)
        assert back.state == {"kept": True, "n": 1, "app:last": 3}
        assert back.events == [first]
        listed = (await service.list_sessions(**WHERE)).sessions[0]
        assert (listed.state["n"], listed.last_update_time) == (1, first.timestamp)
        await service.append_event(back, said("other", n=9))
        assert (await again(service, session)).state["n"] == 9
        await thread.undo()
        fork = await service.fork_session(session, at=session.events[1].id)
        assert (fork.state["n"], len(fork.events)) == (2, 2)
        empty = await service.fork_session(session, session_id="empty", before=first.id)
        assert (empty.id, empty.state["n"], empty.events) == ("empty", 0, [])

    with_service(url, act)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_sessions_that_adk_wrote_are_imported(kind: str, tmp_path: Path) -> None:
    old = SqliteSessionService(str(tmp_path / "old.db"))

    async def act(service: SessionTreeSessionService) -> None:
        session = await old.create_session(**WHERE, session_id="s", state={"kept": 1, "app:a": 1})
        for number in (1, 2):
            await old.append_event(session, said(f"number {number}", n=number, user__u=number))
        assert await service.import_sessions(old, app_name="app") == 1
        assert await service.import_sessions(old, app_name="app") == 0
        moved = await again(service, session)
        assert moved == await again(old, session)
        await (await service.thread(moved)).rewind(moved.events[0].id)
        assert (await again(service, session)).state == {"kept": 1, "n": 1, "app:a": 1, "user:u": 2}

    with_service(url_of(kind, tmp_path), act)


def test_missing_and_taken_sessions_are_named(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        session = await service.create_session(**WHERE, session_id=" padded ")
        assert session.id == "padded"
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**WHERE, session_id="padded")
        await service.delete_session(**WHERE, session_id="padded")
        await service.delete_session(**WHERE, session_id="padded")
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("late"))

    with_service(url, act)


def test_an_id_that_is_not_unicode_is_refused_with_a_word(url: str) -> None:
    async def act(service: SessionTreeSessionService) -> None:
        with pytest.raises(st.InvalidInputError, match="lone surrogate"):
            await service.create_session(**WHERE, session_id="\ud800")

    with_service(url, act)
