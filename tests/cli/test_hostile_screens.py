"""Hostile text in every field of every store: it is shown, and never obeyed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import postgres_server
import sessiontree as st
from screens import Screen, plain
from sessiontree.render.cells import cell_width

EVIL = (
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]52;c;cGFzcw==\x07 \x9b2J \x1bP1$r\x1b\\ \u202egnp.exe\u2066 \x07\r\n\t"
    "\u200b\ufeff \U000e0041 " + "長い" * 30
)


def fill_with_evil(store: Path | str) -> None:
    """A store with hostile text in every field that takes any text."""
    with st.open(store) as journal:
        names = ("title", "workspace", "vendor", "endpoint", "model", "status", "state", "title_status", "title_source")
        fields: dict[str, Any] = dict.fromkeys(names, EVIL)
        key = st.SessionKey(agent=EVIL, channel=EVIL, peer=EVIL, thread=EVIL)
        journal.create_thread(
            "evil", **fields, key=key, origin={"format": EVIL.replace("/", "")}, tags=(EVIL,), custom={EVIL: EVIL}
        )
        first = journal.append("evil", st.user(EVIL))
        for name in ("bash", "edit", "read", "grep", "web_search", "task", "todo", EVIL):
            keys = ("command", "path", "old_string", "new_string", "pattern", "query", "description", "content")
            given = json.dumps(
                {**dict.fromkeys(keys, EVIL), EVIL: EVIL, "todos": [{"content": EVIL, "status": "in_progress"}]}
            )
            journal.append(
                "evil", st.assistant(EVIL, calls=[st.call(name + "c", name, given)], reasoning=EVIL, model=EVIL)
            )
            journal.append("evil", st.tool_result(name + "c", EVIL + "\n" + EVIL, name=name, is_error=name != "edit"))
        journal.append("evil", st.Compaction(id="k", summary=EVIL, tokens_before=9))
        others: list[st.Payload] = [
            st.Custom(name=EVIL, data=EVIL), st.RunFailure(error=EVIL), st.ModelChange(model=EVIL),
            st.BranchSummary(summary=EVIL), st.Event(name=EVIL, data={EVIL: EVIL}), st.system(EVIL),
        ]  # fmt: skip
        journal.append_many("evil", others)
        journal.label("evil", first.id, EVIL.replace("\r\n\t", ""))
        journal.rewind("evil", first.id)
        usage = st.Usage(input_tokens=1, cost=1.0, currency="X\x1b")
        journal.append("evil", st.assistant(EVIL, model=EVIL, usage=usage), id=f"entry {EVIL}")
        journal.fork("evil", new_id=f"fork {EVIL}", title=EVIL)
        journal.create_thread("long", title="y\u202e\x1b" * 300_000)
        journal.append("long", st.user("x\n" * 3))
        journal.acquire_lease("evil", owner=EVIL)


HOSTILE_COMMANDS = (
    "", "ls", "ls -a", "tree evil", "tree evil --full", "tree evil -a", "log evil", "log evil --graph", "log evil --moves",
    "show evil", "show evil --full", "show evil --thinking", "show long", "search gnp", "diff evil evil@{-1}",
    "diff evil evil@{-1} --full", "stats", "stats evil", "doctor", "context evil", "context evil --dialect anthropic",
    "tail evil --for 0.001", "lease evil", "label evil", "config", "secrets scan", "show evil:nope", "show nope",
    "rewind evil~1", "undo evil", "fork evil --id more", "compact evil --keep-recent 10", "archive evil", "rm evil",
    "export evil --to md", "export evil -o evil.html", "copy copy.db",
)  # fmt: skip
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


@pytest.fixture
def evil(screen: Screen, tmp_path: Path, kind: str) -> Screen:
    """A terminal in front of a store of this kind, with hostile content."""
    screen.store = tmp_path / kind
    screen.server = postgres_server.new_database() if kind == "postgres" else ""
    fill_with_evil(screen.address)
    return screen


@pytest.mark.parametrize(("kind", "width"), [("evil.db", 40), ("evil.db", 132), ("evil.jsonl", 60), ("postgres", 60)])
def test_hostile_content_in_every_field_is_harmless(evil: Screen, width: int) -> None:
    evil.resize(width)
    for command in HOSTILE_COMMANDS:
        shown = plain(evil.run(*command.split(), typed="n\n", code=None))
        assert not CONTROLS.search(shown), (command, CONTROLS.search(shown))
        # A snippet may begin inside a sequence, and JSON has its own escapes: both are plain text.
        assert "owned" not in shown or command.startswith("search") or "--dialect" in command, command
        assert len(shown) < 400_000, command
        if not command.startswith("export evil --to"):
            lines = re.sub(r"(\[y/N\] )", r"\1\n", shown).splitlines()
            assert [line for line in lines if cell_width(line) > width] == [], command


@pytest.mark.parametrize("kind", ["evil.db", "evil.jsonl", "postgres"])
def test_hostile_content_does_not_break_the_rows_of_a_pipe(evil: Screen) -> None:
    for command, columns in {
        "": 8,
        "ls -a": 8,
        "log evil": 5,
        "log evil --moves": 5,
        "search gnp": 0,
        "tail evil --for 0.001": 4,
    }.items():
        for row in evil.piped(*command.split()).splitlines():
            assert not CONTROLS.search(row.replace("\t", "")), command
            assert not columns or len(row.split("\t")) == columns, (command, row)
