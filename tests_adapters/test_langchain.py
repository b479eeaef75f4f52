"""LangChain's message histories on a journal."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from model_server import Reply, model_server
from opened import url_of
from provider_answers import Script, openai_chat
from sessiontree.adapters.langchain import SessionTreeMessageHistory

STORES = ("memory", "sqlite", "jsonl", "postgres")

MESSAGES: list[BaseMessage] = [
    SystemMessage("be brief"),
    HumanMessage([{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
    AIMessage(
        [{"type": "thinking", "thinking": "hm", "signature": "s"}, "let me look"],
        tool_calls=[{"name": "look", "args": {"at": [1]}, "id": "c1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
    ),
    ToolMessage("a leek", tool_call_id="c1", name="look", status="error", artifact={"raw": [1]}),
    AIMessage("A leek.", id="x", name="cook", response_metadata={"model_name": "m", "finish_reason": "stop"}),
    FunctionMessage(content="old", name="f"),
    ChatMessage(content="hi", role="critic"),
    HumanMessage(""),
]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chat_history.json").write_text(json.dumps(messages_to_dict(MESSAGES)))
    with model_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "local")
        answers = ("Soup.", "With potatoes.", "An omelette.")
        server.replies += [Reply(body=openai_chat(Script(text=[text]))) for text in answers]
        run(FRAMEWORKS / "langchain.md")
    assert capsys.readouterr().out == "With potatoes.\n"
    asked = [[message["content"] for message in body["messages"]] for _, _, body in server.requests]
    assert asked[1][1:] == ["What can I cook with leeks?", "Soup.", "And without cream?"]
    assert asked[2][1:] == ["What can I cook with leeks?", "Soup.", "And for breakfast?"]


def test_messages_of_every_kind_come_back_as_they_were(url: str) -> None:
    with SessionTreeMessageHistory(url, "a") as history:
        assert history.messages == []
        history.clear()
        history.add_messages(MESSAGES)
        history.add_messages([])
        assert history.messages == MESSAGES
        thread = history.journal.thread("a")
        assert thread.title.startswith("what is this?")
        assert history.journal.costs("a").total.output_tokens == 4


def test_halves_of_emoji_and_numbers_that_json_lacks_come_back(url: str) -> None:
    said: list[BaseMessage] = [
        HumanMessage("cut \ud83d"),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": float("inf")}, "id": "c", "type": "tool_call"}]),
        HumanMessage([{"type": "other", "score": float("nan")}]),
    ]
    with SessionTreeMessageHistory(url, "a") as history:
        history.add_messages(said)
        assert repr(history.messages) == repr(said)
        assert history.journal.path("a")[0].message == st.Message(role="user", parts=(st.TextPart(text="cut ?"),))


def test_a_message_that_is_not_json_is_refused(url: str) -> None:
    with SessionTreeMessageHistory(url, "a") as history:
        with pytest.raises(st.InvalidInputError):
            history.add_messages([HumanMessage("hi", additional_kwargs={"raw": b"bytes"})])
        assert history.messages == []


def test_the_last_messages_and_an_undone_clear(url: str) -> None:
    with SessionTreeMessageHistory(url, "a", limit=2) as history:
        history.add_messages([HumanMessage(f"{number}") for number in range(5)])
        assert [message.content for message in history.messages] == ["3", "4"]
        history.clear()
        assert history.messages == []
        history.journal.undo("a")
        assert [message.content for message in history.messages] == ["3", "4"]


def test_a_history_reads_what_other_programs_wrote(url: str) -> None:
    with SessionTreeMessageHistory(url, "a") as history:
        history.journal.create_thread("a")
        history.journal.append("a", st.system("be brief"))
        history.journal.append("a", st.user("hello"))
        history.journal.append("a", st.assistant("let me look", calls=[st.call("c1", "look", '{"at": 1}')]))
        history.journal.append("a", st.tool_result("c1", "nothing", is_error=True))
        assert history.messages == [
            SystemMessage("be brief"),
            HumanMessage("hello"),
            AIMessage("let me look", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}]),
            ToolMessage("nothing", tool_call_id="c1", status="error"),
        ]


def test_async_callers_of_several_loops(url: str) -> None:
    history = SessionTreeMessageHistory(url, "a")

    async def talk(text: str) -> int:
        await history.aadd_messages([HumanMessage(text)])
        return len(await history.aget_messages())

    assert [asyncio.run(talk(text)) for text in ("one", "two")] == [1, 2]
    asyncio.run(history.aclear())
    assert history.messages == []
    history.close()
