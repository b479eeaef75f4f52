"""Hostile text in every field of every record: a terminal, a page and a database show and keep it as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import sessiontree as st
from opened import open_store
from sessiontree.cli import app
from sessiontree.model.entry import Payload

TERMINAL = (
    "\x1b]52;c;cGFzcw==\x07\x1b[2J\x9b31m\x08\r\x7f\u202e\u2066\u200b\x1bP$q\x1b\\\x1b]8;;http://evil.example\x07go"
)
PAGE = "</style></pre></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href=javascript:alert(1)>"
SQL = "'; DROP TABLE entry; -- %s %(x)s {0} \\ \" ` $1 $$ ?1 :a @b || char(0)"
HOSTILE = f"needle {TERMINAL} {PAGE} {SQL} \0 end"

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def filled(kind: Any, text: str) -> Any:
    """A record of a type with the text in every field that takes one."""
    known: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        value = _value(hint, text)
        if value is not msgspec.UNSET:
            known[name] = value
    return kind(**known)


def _value(hint: Any, text: str) -> Any:
    choices = [one for one in get_args(hint) if one is not type(None)]
    if hint is str:
        return text
    if hint is Any or hint == dict[str, Any]:
        return {text: [text, {"key": text}]}
    if hint == tuple[str, ...]:
        return (text,)
    if hint is st.Message:
        return st.Message(role="user", name=text, parts=(st.TextPart(text=text),), extra={text: text})
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return filled(hint, text)
    if len(choices) == 1 and type(None) in get_args(hint):
        return _value(choices[0], text)
    return msgspec.UNSET


def payloads(text: str) -> Iterator[Any]:
    """Every kind of entry."""
    call = st.call("c1", text, text)
    yield st.system(text)
    yield st.user(text)
    yield st.assistant(text, calls=[call], reasoning=text)
    yield st.tool_result("c1", text, name=text, is_error=True)
    parts = (
        st.OpaquePart(provider=text, block={text: text}),
        st.FilePart(name=text, mime=text, url=text),
        st.ImagePart(url=text, mime=text),
    )
    yield st.Message(role="user", parts=parts)
    for kind in get_args(Payload):
        if kind in (st.UnknownPayload, st.Queued, st.Checkpoint, st.TurnMarker, st.UsageReport) or "message" in (
            get_type_hints(kind)
        ):
            continue
        yield filled(kind, text)
    yield st.UsageReport(usage=filled(st.Usage, text), provider=text, model=text)


def fill(journal: st.Journal, text: str) -> None:
    fields = st.ThreadFields(
        title=text, status=text, workspace=text, vendor=text, model=text, endpoint=text, state=text, tags=(text,),
        title_error=text, title_source=text, custom={text: text}, origin={"tool": text, text: text},
        key=st.SessionKey(agent=text, channel=text, peer=text, thread=text),
    )  # fmt: skip
    journal.create_thread(text, **fields)
    for payload in payloads(text):
        if not isinstance(payload, st.Compaction | st.Label):  # what these refer to is checked
            journal.append(text, payload)
    journal.append(text, st.Compaction(summary=text, files_read=(text,), files_modified=(text,), instructions=text))
    journal.label(text, journal.path(text)[0].id, text)
    journal.fork(text, new_id=f"{text} fork", title=text)
    journal.append(f"{text} fork", st.user(text))
    journal.documents.put(text, text, {text: text})


COMMANDS: tuple[list[str], ...] = (
    ["ls", "-a"], ["show", "@"], ["show", "@", "--all"], ["tree", "@"], ["log", "@"], ["log", "@", "--graph"], ["search", "needle"],
    ["stats"], ["stats", "@"], ["context", "@"], ["doctor"], ["prune", "--older-than", "0d", "--all", "--dry-run", "--labelled"],
    ["export", "@", "-t", "md"], ["rm", "@", "--dry-run"], ["diff", "@", "@~1"], ["lease", "@"], ["secrets", "scan"], [],
)  # fmt: skip


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_command_lets_an_escape_through(
    is_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with st.open(tmp_path / "j.db") as journal:
        fill(journal, HOSTILE)
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    monkeypatch.setenv("PAGER", "cat")
    shown = 0
    # In a pipe, an export is a file: it holds what was said, byte by byte.
    for command in COMMANDS if is_terminal else [one for one in COMMANDS if one[:1] != ["export"]]:
        if is_terminal:
            monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        with pytest.raises(SystemExit) as end:
            app.run(command)
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert end.value.code in (0, None), (command, text)
        assert _CONTROLS.findall(_COLOUR.sub("", text)) == [], command
        assert "Traceback" not in text
        shown += "needle" in text
    assert shown > len(COMMANDS) // 2


class _Shape(HTMLParser):
    """The elements of a page with the names of their attributes, and the addresses that they lead to."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[tuple[str, tuple[str, ...]]] = set()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add((tag, tuple(sorted(name for name, _ in attrs))))
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action")]


def test_a_page_has_the_same_elements_whatever_the_text(tmp_path: Path) -> None:
    shapes: list[_Shape] = []
    for name, text in (("kind", "needle kind end"), ("hostile", HOSTILE)):
        with st.open(tmp_path / f"{name}.db") as journal:
            fill(journal, text)
            thread = journal.thread(text)
        page = tmp_path / f"{name}.html"
        with pytest.raises(SystemExit):
            app.run(["export", thread.id, "-o", str(page), "--store", str(tmp_path / f"{name}.db")])
        shapes.append(_Shape(page.read_text(encoding="utf-8")))
    kind, hostile = shapes
    assert hostile.elements <= kind.elements
    assert not any(tag in {"script", "iframe", "object", "embed", "form", "base"} for tag, _ in hostile.elements)
    assert not any(name.startswith("on") for _, names in hostile.elements for name in names)
    assert all(address.startswith("#") for address in hostile.addresses)


@pytest.mark.parametrize("store", ["memory", "sqlite", "jsonl", "postgres"])
def test_every_store_keeps_hostile_text_as_it_is(store: str, tmp_path: Path) -> None:
    with open_store(store, tmp_path) as journal:
        journal.create_thread("neighbour", title="kind")
        journal.append("neighbour", st.user("kind words"))
        fill(journal, HOSTILE)
        thread = journal.thread(HOSTILE)
        assert (thread.title, thread.workspace, thread.tags) == (HOSTILE, HOSTILE, (HOSTILE,))
        assert thread.custom == {HOSTILE: HOSTILE}
        texts = [
            entry.message.text for entry in journal.path(HOSTILE) if entry.type == "user_message" and entry.message
        ]
        assert HOSTILE in texts
        for filters in ({"title_contains": HOSTILE}, {"tags": (HOSTILE,)}, {"workspace": HOSTILE}, {"agent": HOSTILE}):
            found = {one.id for one in journal.iter_threads(**filters)}
            assert HOSTILE in found
            assert "neighbour" not in found
        assert list(journal.labels(HOSTILE)) == [HOSTILE]
        document = journal.documents.get(HOSTILE, HOSTILE)
        assert document is not None
        assert document.value == {HOSTILE: HOSTILE}
        assert journal.search("needle").hits
        for query in (SQL, PAGE, TERMINAL, HOSTILE, '"', "(((", "a:b:c", "NEAR(", "*"):
            try:
                journal.search(query)
            except st.InvalidInputError:
                continue
        assert [entry.message.text for entry in journal.path("neighbour") if entry.message] == ["kind words"]
        assert journal.check() == []
        journal.delete_thread(HOSTILE)
        assert journal.thread("neighbour").title == "kind"
        assert journal.check() == []
