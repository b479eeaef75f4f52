"""The agent loop of the README, and one for each SDK that streams: as short as promised, typed, and safe from a kill."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessiontree as st
from doc_pages import blocks_that_need_a_server
from model_server import ModelServer, Reply, StreamReply, messages_answer, model_server
from provider_answers import EVENTS, Script, openai_responses

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
AGENTS = {"openai_agent.py": "openai-responses", "anthropic_agent.py": "anthropic", "gemini_agent.py": "gemini"}

LOOKING = Script(text=["Looking. "], call="weather", arguments=['{"ci', 'ty": "Oslo"}'], id="1")
SUNNY = Script(text=["It is ", "sunny."], id="2")
CUT = Script(text=["one ", "two ", "three"], id="3")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def start(agent: str, server: ModelServer, folder: Path) -> subprocess.Popen[bytes]:
    """Run an example as it is; the SDKs read the address of the server from the environment."""
    places = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "none")
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / agent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=os.environ | places | keys | {"GOOGLE_GEMINI_BASE_URL": server.url},
    )


def run(agent: str, server: ModelServer, folder: Path, question: str) -> str:
    with start(agent, server, folder) as process:
        shown, _ = process.communicate(question.encode() + b"\n", timeout=60)
    assert process.returncode == 0
    return shown.decode()


def answers(entries: list[st.Entry]) -> list[tuple[str, bool]]:
    found = [(entry.payload, entry.message) for entry in entries]
    return [
        (message.text, isinstance(payload, st.AssistantMessage) and payload.is_partial)
        for payload, message in found
        if message is not None and message.role == "assistant"
    ]


def lines_of(agent: str) -> list[str]:
    return [line for line in (EXAMPLES / agent).read_text(encoding="utf-8").splitlines() if line.strip()]


def test_the_readme_shows_an_agent_of_twelve_lines() -> None:
    shown = blocks_that_need_a_server(ROOT / "README.md")
    assert shown == [(EXAMPLES / "agent.py").read_text(encoding="utf-8")]
    assert len([line for line in lines_of("agent.py") if not line.startswith(("import ", "from "))]) == 12


def test_the_tutorial_shows_the_same_agent_and_its_tool() -> None:
    shown = blocks_that_need_a_server(ROOT / "docs/tutorial/agent.md")
    assert shown[:2] == [(EXAMPLES / name).read_text(encoding="utf-8") for name in ("weather.py", "agent.py")]


def test_the_page_about_streaming_shows_the_agent_that_streams() -> None:
    shown = blocks_that_need_a_server(ROOT / "docs/howto/stream-answers.md")
    assert shown == [(EXAMPLES / "openai_agent.py").read_text(encoding="utf-8")]


def test_the_lines_of_the_tutorial_make_the_agent_one_of_anthropic(server: ModelServer, tmp_path: Path) -> None:
    changed = blocks_that_need_a_server(ROOT / "docs/tutorial/agent.md")[2]
    client, request = changed.split("...\n")
    code = (EXAMPLES / "agent.py").read_text(encoding="utf-8").replace("OPENAI_TOOLS", "ANTHROPIC_TOOLS")
    code = code.replace("import openai", "import anthropic")
    code = re.sub(r"^client, dialect = .*\n", client, code, flags=re.MULTILINE)
    code = re.sub(r"^ *reply = .*\n", request, code, flags=re.MULTILINE)
    (tmp_path / "agent.py").write_text(code, encoding="utf-8")
    shutil.copy(EXAMPLES / "weather.py", tmp_path)
    server.replies.append(Reply(body=messages_answer("It is sunny.")))
    assert run(str(tmp_path / "agent.py"), server, tmp_path, "How is it in Oslo?") == "> It is sunny.\n"
    assert server.requests[0][2]["tools"][0]["name"] == "weather"


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_streams_has_twenty_lines_at_most(agent: str) -> None:
    assert len(lines_of(agent)) <= 20


def test_the_agent_of_the_readme_goes_on_after_a_kill(server: ModelServer, tmp_path: Path) -> None:
    unanswered = StreamReply([b""], pause_after=0)
    server.replies += [Reply(body=openai_responses(LOOKING)), unanswered]
    with start("agent.py", server, tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(b"How is it in Oslo?\n")
        process.stdin.flush()
        assert unanswered.paused.wait(60)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    unanswered.go_on.set()
    server.replies.append(Reply(body=openai_responses(SUNNY)))
    assert run("agent.py", server, tmp_path, "And?") == "> It is sunny.\n"
    asked = json.dumps(server.requests[2][2], ensure_ascii=False)
    assert all(text in asked for text in ("How is it in Oslo?", "18 °C and sunny in Oslo", "And?"))


@pytest.mark.parametrize(("agent", "dialect"), AGENTS.items())
def test_an_agent_streams_uses_its_tool_and_keeps_what_it_showed_when_it_is_killed(
    agent: str, dialect: str, server: ModelServer, tmp_path: Path
) -> None:
    events = EVENTS[dialect](CUT)
    shown = next(number for number, event in enumerate(events, 1) if b'"two "' in event)
    cut = StreamReply(events, pause_after=shown)
    server.replies += [StreamReply(EVENTS[dialect](LOOKING)), cut]
    with start(agent, server, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"How is it in Oslo?\n")
        process.stdin.flush()
        assert process.stdout.read(len(b"> Looking. one two ")) == b"> Looking. one two "
        wait_until_saved("one two ", tmp_path)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    cut.go_on.set()
    assert "18 °C and sunny in Oslo" in json.dumps(server.requests[1][2], ensure_ascii=False)
    server.replies.append(StreamReply(EVENTS[dialect](SUNNY)))
    assert run(agent, server, tmp_path, "And?") == "> It is sunny."
    assert "one two" not in json.dumps(server.requests[2][2])
    with st.open(tmp_path / "agent.db") as journal:
        chat = journal.open_thread("demo")
        assert answers(chat.path()) == [("Looking. ", False), ("one two ", True), ("It is sunny.", False)]
        assert [message.role for message in chat.context().messages] == [
            "user", "assistant", "tool", "user", "assistant",
        ]  # fmt: skip
        assert [entry.payload.status for entry in chat.path() if isinstance(entry.payload, st.TurnMarker)] == [
            "started", "aborted", "started", "completed",
        ]  # fmt: skip
        cost = chat.costs(prices={"local-model": st.Price(input=1, output=2)})
        assert (cost.total.input_tokens, cost.total.output_tokens) == (2 * 90, 2 * 40)
        assert len(cost.turns) == 2
        assert journal.check() == []


def wait_until_saved(text: str, folder: Path) -> None:
    with st.open(folder / "agent.db") as journal:
        for _ in journal.watch("demo", after=None, timeout=60):
            saved = [entry.payload for entry in journal.events("demo")]
            if "".join(event.data["text"] for event in saved if isinstance(event, st.Event)).endswith(text):
                return
    raise AssertionError(f"{text!r} was not saved in time")
