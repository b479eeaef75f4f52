"""A session repository of Strands Agents: its own session manager and agents, against a local model server."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import ModelServer, StreamReply, model_server
from opened import url_of
from provider_answers import Script, openai_chat_events
from sessiontree.adapters.strands import SessionTreeRepository

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionTreeRepository]:
    repository = SessionTreeRepository(url_of(request.param, tmp_path))
    yield repository
    repository.close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with model_server() as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        yield found


def says(*texts: str) -> list[StreamReply]:
    return [StreamReply(openai_chat_events(Script(text=[text]))) for text in texts]


def message(number: int, *blocks: dict[str, Any], role: str = "user") -> SessionMessage:
    content = list(blocks) or [{"text": f"message {number}"}]
    return SessionMessage(message=cast("Any", {"role": role, "content": content}), message_id=number)


def begun(repository: SessionTreeRepository, messages: int = 0) -> None:
    repository.create_session(Session(session_id="s", session_type=SessionType.AGENT))
    repository.create_agent("s", SessionAgent(agent_id="a", state={"n": 1}, conversation_manager_state={}))
    for number in range(messages):
        repository.create_message("s", "a", message(number))


def test_the_how_to_runs(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    server.replies += says("The Golden Gate Bridge.", "Joseph Strauss.", "The Bay Bridge.", "The Thames.")
    run(FRAMEWORKS / "strands.md")
    assert capsys.readouterr().out.split() == ["Joseph", "Strauss.", "The", "Bay", "Bridge."]
    sent = [str(body["messages"]) for _, _, body in server.requests]
    assert "Golden Gate" in sent[1]
    assert "Golden Gate" in sent[2]
    assert "Strauss" not in sent[2]
    with st.open("sqlite:///strands.db") as journal:
        assert {hit.thread_id for hit in journal.search("strauss").hits} == {"strands/bridges/default"}
        assert journal.check() == []


def test_messages_come_back_as_they_were(repository: SessionTreeRepository) -> None:
    begun(repository)
    call = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": [1]}}}
    result = {"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "no"}, {"json": {"x": 1}}]}}
    image = {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}}
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    messages = [
        message(0, {"text": "Look."}, image),
        message(1, thought, call, role="assistant"),
        message(2, result),
        message(3, {"text": "Nothing."}, role="assistant"),
    ]
    for one in messages:
        repository.create_message("s", "a", one)
    assert repository.list_messages("s", "a") == messages
    assert repository.list_messages("s", "a", limit=2, offset=1) == messages[1:3]
    assert repository.list_messages("s", "a", offset=4) == repository.list_messages("s", "a", offset=9) == []
    assert [repository.read_message("s", "a", number) for number in range(5)] == [*messages, None]
    types = [entry.type for entry in repository.thread("s", "a").path()]
    assert types == ["user_message", "tool_call", "tool_result", "assistant_message"]


def test_an_agent_keeps_its_state_and_the_time_of_its_creation(repository: SessionTreeRepository) -> None:
    begun(repository)
    before = repository.read_agent("s", "a")
    assert before is not None
    repository.update_agent("s", SessionAgent(agent_id="a", state={"n": 2}, conversation_manager_state={"k": "v"}))
    after = repository.read_agent("s", "a")
    assert after is not None
    assert (after.state, after.created_at) == ({"n": 2}, before.created_at)
    assert repository.read_agent("s", "nobody") is None
    assert repository.read_session("nothing") is None


def test_numbers_that_json_lacks_stay_in_the_state_of_an_agent(repository: SessionTreeRepository) -> None:
    begun(repository)
    for number in (float("inf"), float("-inf")):
        repository.update_agent("s", SessionAgent(agent_id="a", state={"n": number}, conversation_manager_state={}))
        after = repository.read_agent("s", "a")
        assert after is not None
        assert after.state == {"n": number}
    with pytest.raises(st.InvalidInputError):
        repository.update_agent("s", SessionAgent(agent_id="a", state={"n": {1}}, conversation_manager_state={}))


def test_a_redacted_message_is_replaced_where_it_stands(repository: SessionTreeRepository) -> None:
    begun(repository, messages=4)
    for number in (1, 3):
        changed = message(number)
        changed.redact_message = {"role": "user", "content": [{"text": "redacted"}]}
        repository.update_message("s", "a", changed)
    texts = [one.to_message()["content"][0].get("text") for one in repository.list_messages("s", "a")]
    assert texts == ["message 0", "redacted", "message 2", "redacted"]
    assert [one.message_id for one in repository.list_messages("s", "a")] == [0, 1, 2, 3]
    thread = repository.thread("s", "a")
    thread.undo()
    thread.undo()
    assert repository.list_messages("s", "a")[3].redact_message is None


def test_what_is_wrong_is_named(repository: SessionTreeRepository) -> None:
    begun(repository, messages=2)
    for wrong in (
        lambda: begun(repository),
        lambda: repository.create_agent("none", SessionAgent("a", {}, {})),
        lambda: repository.create_agent("s", SessionAgent("a", {}, {})),
        lambda: repository.update_agent("s", SessionAgent("nobody", {}, {})),
        lambda: repository.create_message("s", "a", message(1)),
        lambda: repository.create_message("s", "nobody", message(1)),
        lambda: repository.update_message("s", "a", message(9)),
        lambda: repository.list_messages("s", "nobody"),
        lambda: repository.delete_session("none"),
        lambda: repository.fork_session("none", "other"),
        lambda: repository.fork_session("s", "s"),
    ):
        with pytest.raises(SessionException):
            wrong()
    assert len(repository.list_messages("s", "a")) == 2


def test_messages_follow_what_others_did_to_the_thread(repository: SessionTreeRepository) -> None:
    begun(repository, messages=3)
    thread = repository.thread("s", "a")
    thread.move_leaf(thread.path()[1].id)
    repository.create_message("s", "a", message(2))  # its number is free again
    other = SessionTreeRepository(repository.journal)
    other.create_message("s", "a", message(3))
    with pytest.raises(SessionException, match="already exists"):
        repository.create_message("s", "a", message(3))
    repository.create_message("s", "a", message(4))
    assert [one.message_id for one in repository.list_messages("s", "a")] == [0, 1, 2, 3, 4]
    repository.delete_session("s")
    begun(repository, messages=1)
    assert [one.message_id for one in repository.list_messages("s", "a")] == [0]


def test_a_fork_goes_its_own_way_and_survives_its_source(repository: SessionTreeRepository) -> None:
    begun(repository, messages=3)
    repository.fork_session("s", "f")
    repository.create_message("f", "a", message(3))
    assert len(repository.list_messages("s", "a")) == 3
    repository.delete_session("s")
    assert repository.read_session("s") is None
    assert repository.read_agent("s", "a") is None
    assert [one.message_id for one in repository.list_messages("f", "a")] == [0, 1, 2, 3]
    found = repository.read_agent("f", "a")
    assert found is not None
    assert found.state == {"n": 1}


def test_a_manager_restores_an_agent_with_tools(server: ModelServer, repository: SessionTreeRepository) -> None:
    call = Script(call="look", arguments=['{"at": "photo"}'])
    server.replies += [StreamReply(openai_chat_events(call)), *says("Towers.", "Two.")]

    def agent() -> Agent:
        def look(at: str) -> str:
            """Look at something."""
            return f"{at}: towers"

        from strands import tool  # noqa: PLC0415  the decorator is slow to import

        manager = RepositorySessionManager("tools", session_repository=repository)
        model = OpenAIModel(model_id="gpt-5")
        return Agent(model, tools=[tool(look)], session_manager=manager, callback_handler=None, state={"seen": 1})

    agent()("What is this?")
    restored = agent()
    assert restored.state.get("seen") == 1
    assert len(restored.messages) == 4
    restored("How many?")
    assert "photo: towers" in str(server.requests[2][2]["messages"])


def texts(repository: SessionTreeRepository, **window: int) -> list[str]:
    found = repository.list_messages("s", "a", **window)
    return [cast("Any", one.message)["content"][0]["text"] for one in found]


def test_messages_of_other_programs_are_left_out(repository: SessionTreeRepository) -> None:
    begun(repository, 2)
    repository.thread("s", "a").append(st.user("another program"))
    repository.create_message("s", "a", message(2))
    repository.update_message("s", "a", message(1, {"text": "redacted"}))
    assert texts(repository) == ["message 0", "redacted", "message 2"]
    assert texts(repository, offset=2) == ["message 2"]
    found = repository.read_message("s", "a", 2)
    assert found is not None
    assert found.message_id == 2
    shown = [entry.message.text for entry in repository.thread("s", "a").path() if entry.message]
    assert shown == ["message 0", "redacted", "another program", "message 2"]


def test_windows_are_right_after_a_message_was_erased(repository: SessionTreeRepository) -> None:
    begun(repository, 4)
    thread = repository.thread("s", "a")
    repository.journal.erase(thread.id, [thread.path()[1].id])
    assert texts(repository) == ["message 0", "message 2", "message 3"]
    assert texts(repository, offset=1, limit=1) == ["message 2"]
    repository.create_message("s", "a", message(4))
    assert texts(repository, offset=3) == ["message 3", "message 4"]


def test_messages_are_replaced_by_several_threads_at_once(repository: SessionTreeRepository) -> None:
    begun(repository, 2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: repository.update_message("s", "a", message(0, {"text": f"{number}"})), range(12)))
    assert len(texts(repository)) == 2


def test_an_adapter_says_that_it_cannot_be_copied(repository: SessionTreeRepository) -> None:
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(st.InvalidInputError, match="make another one"):
            copied(repository)
