"""The programs in examples/, run as they are: with the real SDKs and frameworks, and a local server in place of a provider."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sessiontree as st
from model_server import ModelServer, Reply, StreamReply, chat_answer, model_server
from opened import url_of
from provider_answers import EVENTS, Script

EXAMPLES = Path(__file__).parents[2] / "examples"
TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def run(folder: Path, *words: str, url: str = "", typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / words[0]), *words[1:]],
        cwd=folder,
        env=os.environ | {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_ways_to_answer_are_explored_in_forks_that_share_the_question(
    server: ModelServer, tmp_path: Path
) -> None:
    server.replies += [Reply(body=chat_answer(text)) for text in ("Short.", "A longer one.", "The longest of all.")]
    shown = run(tmp_path, "explore_forks.py", "Why is the sky blue?", url=server.url)
    with st.open(tmp_path / "forks.db") as journal:
        forks = [thread for thread in journal.iter_threads() if thread.forked_from_thread == "physics"]
        assert len(forks) == 3
        shortest = next(fork for fork in forks if journal.context(fork.id).messages[-1].text == "Short.")
        assert f"the shortest has 6 characters; go on in thread {shortest.id}" in shown
        assert journal.entries("physics")[0].id == journal.path(shortest.id)[0].id


def test_files_go_back_with_the_conversation_and_come_again_with_an_undo(tmp_path: Path) -> None:
    assert run(tmp_path, "rewind_files.py").splitlines() == [
        "rewound: print('works') ['app.py']",
        "undone:  print('broken' ['app.py', 'cache.bin']",
    ]


def test_a_terminal_chat_shows_what_was_said_before(server: ModelServer, tmp_path: Path) -> None:
    server.replies.append(StreamReply(EVENTS["openai-chat"](Script(text=["Hi ", "there."], id="1"))))
    run(tmp_path, "terminal_chat.py", url=server.url, typed="hello\n\n")
    assert run(tmp_path, "terminal_chat.py", typed="\n").splitlines()[:2] == ["user: hello", "assistant: Hi there."]


def test_a_terminal_chat_shows_what_it_had_shown_when_it_was_killed(server: ModelServer, tmp_path: Path) -> None:
    events = EVENTS["openai-chat"](Script(text=["one ", "two ", "three"], id="1"))
    cut = StreamReply(events, pause_after=next(at for at, event in enumerate(events, 1) if b'"two "' in event))
    server.replies.append(cut)
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "terminal_chat.py")],
        cwd=tmp_path,
        env=os.environ | {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(b"count\n")
        chat.stdin.flush()
        assert chat.stdout.read(len(b"> one two ")) == b"> one two "
        chat.kill()
    cut.go_on.set()
    assert run(tmp_path, "terminal_chat.py", typed="\n").splitlines()[:2] == ["user: count", "assistant: one two "]


def test_an_own_history_is_imported_and_found(tmp_path: Path) -> None:
    first, *hits = run(tmp_path, "own_history.py", str(TRANSCRIPTS / "claude-code"), "error").splitlines()
    assert " conversations, " in first
    assert hits


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_several_workers_answer_each_customer_once(store: str, tmp_path: Path) -> None:
    shown = run(tmp_path, "workers.py", url_of(store, tmp_path), "3").splitlines()
    answered = [line for line in shown if "looks after" in line]
    assert len(answered) == 5
    with st.open(url_of(store, tmp_path)) as journal:
        assert {thread.messages for thread in journal.iter_threads()} == {2}


def test_a_service_streams_answers_and_keeps_them(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from fastapi_chat import app  # noqa: PLC0415  needs the folder of the examples

    server.replies.append(StreamReply(EVENTS["openai-chat"](Script(text=["Hi ", "there."], id="1"))))

    async def use() -> None:
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://x") as client,
        ):
            answer = await client.post("/chats/ann", params={"question": "hello"})
            assert answer.text == "Hi there."
            assert (await client.get("/chats/ann")).json() == [
                {"role": "user", "text": "hello"},
                {"role": "assistant", "text": "Hi there."},
            ]

    asyncio.run(use())
