"""The examples for frameworks, as they are and with the lines that they replace: both answer alike."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from model_server import ModelServer, Reply, model_server
from provider_answers import Script, openai_chat, openai_responses

EXAMPLES = Path(__file__).parents[1] / "examples" / "frameworks"
REPLACED = re.compile(r"^\S.*  # was: (.*)$", re.MULTILINE)
ANSWERS: dict[str, Callable[[Script], Any]] = {
    "langgraph_agent.py": openai_chat,
    "openai_agents_agent.py": openai_responses,
}
LOOKING = Script(call="weather", arguments=['{"city": "Oslo"}'], id="1")
SUNNY = Script(text=["It is sunny."], id="2")
OSLO = Script(text=["In Oslo."], id="3")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def run(program: Path, question: str, server: ModelServer) -> str:
    settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    done = subprocess.run(
        [sys.executable, str(program), question],
        cwd=program.parent,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ANSWERS)
def test_two_changed_lines_put_a_framework_on_a_sessiontree_store(
    name: str, server: ModelServer, tmp_path: Path
) -> None:
    ours = (EXAMPLES / name).read_text(encoding="utf-8")
    theirs, changed = REPLACED.subn(r"\1", ours)
    assert changed == 2
    for kind, text in (("theirs", theirs), ("ours", ours)):
        program = tmp_path / kind / name
        program.parent.mkdir()
        program.write_text(text, encoding="utf-8")
        server.replies += [Reply(body=ANSWERS[name](script)) for script in (LOOKING, SUNNY, OSLO)]
        assert run(program, "How is it in Oslo?", server) == "It is sunny.\n"
        assert run(program, "Where?", server) == "In Oslo.\n"
        asked = json.dumps(server.requests[-1][2], ensure_ascii=False)
        assert all(
            said in asked for said in ("How is it in Oslo?", "18 °C and sunny in Oslo", "It is sunny.", "Where?")
        )
    with st.open(tmp_path / "ours" / "agent.db") as journal:
        assert [hit.thread_id for hit in journal.search("sunny role:assistant")] == ["demo"]
        assert journal.check() == []
