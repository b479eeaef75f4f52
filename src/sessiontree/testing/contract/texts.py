"""Texts: valid Unicode is returned unchanged, anything else is refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.errors import InvalidInputError
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import (
    ActiveToolsChange,
    BranchSummary,
    Checkpoint,
    Custom,
    Event,
    Label,
    Memory,
    ModelChange,
    Payload,
    SessionKey,
    ThreadInfo,
    UnknownPayload,
    Usage,
    UsageReport,
)
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.model.codec import content_hash
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["TextContract"]


_LONE = "broken \ud83d text"
_LONG = "x" * 10_000

TEXTS = {
    "nul": "a\0b\0",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf\x1c\x1d\x1eg\r\nh\ri",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f9ff",
    "right to left": "שלום \u202eabc\u202c \u200f\u061c العربية",
    "quotes and escapes": '"\'\\ \\u0000 {"type":"user_message"} </script> %s $1 \x1b[31m',
    "combining": "e\u0301 versus é, ﬁ ligature, İıſß",
    "noncharacters": "\ufeff\ufffe\uffff\U0010ffff\ufffd",
    "spaces": " \t leading and trailing \n",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
}
IDS = ["a/b", "../../etc/passwd", ".", "..", "a\0b", " a", "a ", "A", "é", "e\u0301", "\u2028", "'; DROP TABLE entry; --",
       "%", "a\nb", "\U0001f600", "con", "a" * 255, _LONG, _LONG + "y"]  # fmt: skip


class TextContract(Contract):
    @pytest.mark.parametrize("name", TEXTS)
    def test_any_text_comes_back_unchanged(self, store: Opened, name: str) -> None:
        text = TEXTS[name]
        journal = store.journal
        journal.create_thread("t", title=text, tags=(text,), custom={text: text}, workspace=text)
        said = [
            user(text),
            assistant(text, calls=[call(text, text, text)], reasoning=text),
            tool_result(text, text, name=text),
            Custom(name=text, data={text: [text]}),
        ]
        stored = journal.append_many("t", said)
        again = store.reopen()
        assert again.path("t") == stored
        assert [entry.payload for entry in stored] == said
        thread = again.thread("t")
        assert (thread.title, thread.tags, thread.custom) == (text, (text,), {text: text})
        assert [found.id for found in again.list_threads(title_contains=text, tags=(text,), workspace=text)] == ["t"]

    def test_a_body_of_twenty_megabytes_comes_back_unchanged(self, store: Opened) -> None:
        text = "0123456789abcde\u2028" * (20 * 1024 * 1024 // 18)
        store.journal.create_thread("t")
        stored = store.journal.append("t", user(text), id="big")
        fill(store.journal, "t", "after")
        again = store.reopen().entry("t", "big")
        assert again == stored
        assert again.message is not None
        assert again.message.text == text

    def test_any_string_is_an_id(self, store: Opened) -> None:
        journal = store.journal
        for name in IDS:
            journal.create_thread(name)
            fill(journal, name, *IDS)
            journal.rewind(name, IDS[3])
            journal.acquire_lease(name, owner=name, turn_id=name)
        journal.fork(IDS[0], new_id=f"{IDS[1]}/fork")
        again = store.reopen()
        for name in IDS:
            assert ids(again.entries(name)) == IDS
            assert ids(again.path(name)) == IDS[:4]
            lease = again.active_lease(name)
            assert lease is not None
            assert (lease.thread_id, lease.owner, lease.turn_id) == (name, name, name)
        assert sorted(thread.id for thread in again.list_threads()) == sorted([*IDS, f"{IDS[1]}/fork"])

    @pytest.mark.parametrize(
        "attempt",
        [
            lambda journal: journal.append("t", user(_LONE)),
            lambda journal: journal.append("t", user("x"), id=_LONE),
            lambda journal: journal.append("t", user("x"), turn_id=_LONE),
            lambda journal: journal.append("t", user("x"), parent=_LONE),
            lambda journal: journal.append("t", user("x"), expect_leaf=_LONE),
            lambda journal: journal.append_many("t", [user("fine"), user(_LONE)]),
            lambda journal: journal.append("t", Custom(data={"deep": [_LONE]})),
            lambda journal: journal.append("t", Custom(data={_LONE: 1})),
            lambda journal: journal.create_thread(_LONE),
            lambda journal: journal.create_thread(title=_LONE),
            lambda journal: journal.create_thread(custom={"x": _LONE}),
            lambda journal: journal.update_thread("t", tags=(_LONE,)),
            lambda journal: journal.update_thread("t", key=SessionKey(peer=_LONE)),
            lambda journal: journal.fork("t", new_id=_LONE),
            lambda journal: journal.fork("t", at=_LONE),
            lambda journal: journal.fork("t", before=_LONE),
            lambda journal: journal.fork(_LONE),
            lambda journal: journal.label("t", "a", _LONE),
            lambda journal: journal.acquire_lease("t", owner=_LONE),
            lambda journal: journal.acquire_lease("t", owner="me", turn_id=_LONE),
            lambda journal: journal.turn("t", owner=_LONE).__enter__(),
            lambda journal: journal.resume("t", owner=_LONE),
            lambda journal: journal.thread(_LONE),
            lambda journal: journal.delete_thread(_LONE),
            lambda journal: journal.entry("t", _LONE),
            lambda journal: journal.path("t", _LONE),
            lambda journal: journal.entries("t", after=_LONE),
            lambda journal: journal.children("t", _LONE),
            lambda journal: journal.rewind("t", _LONE),
            lambda journal: journal.undo(_LONE),
            lambda journal: journal.list_threads(title_contains=_LONE),
            lambda journal: journal.list_threads(tags=(_LONE,)),
            lambda journal: journal.list_threads(workspace=_LONE),
            lambda journal: list(journal.watch(_LONE, timeout=0)),
        ],
    )
    def test_half_a_character_is_refused_before_anything_is_written(self, journal: Journal, attempt: Any) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        before = (journal.thread("t"), journal.stats())
        with pytest.raises(InvalidInputError, match="surrogate"):
            attempt(journal)
        assert (journal.thread("t"), journal.stats()) == before

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_what_is_not_a_json_number_is_refused(self, journal: Journal, number: float) -> None:
        journal.create_thread("t")
        for attempt in (
            lambda: journal.append("t", Custom(data=[{"x": number}])),
            lambda: journal.append("t", UsageReport(usage=Usage(cost=number))),
            lambda: journal.append("t", user("x", metadata={"x": number})),
            lambda: journal.create_thread("u", custom={"x": number}),
            lambda: journal.update_thread("t", origin={"x": [number]}),
        ):
            with pytest.raises(InvalidInputError, match="number"):
                attempt()
        stats = journal.stats()
        assert (stats.threads, stats.entries) == (1, 0)

    def test_what_is_not_json_at_all_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        for data in (object(), {"deep": [object()]}, 1j):
            with pytest.raises(InvalidInputError):
                journal.append("t", Custom(data=data))
        assert journal.entries("t") == []

    @pytest.mark.parametrize("moment", [2**63, -(2**63) - 1, 2**80])
    def test_a_time_that_no_store_can_hold_is_refused(self, journal: Journal, moment: int) -> None:
        journal.create_thread("t")
        for attempt in (
            lambda: journal.append("t", user("x"), created_ns=moment),
            lambda: journal.create_thread("u", created_ns=moment),
            lambda: journal.update_thread("t", last_viewed_ns=moment),
            lambda: journal.list_threads(created_after_ns=moment),
        ):
            with pytest.raises(InvalidInputError):
                attempt()
        assert (journal.stats().threads, journal.entries("t")) == (1, [])

    def test_what_the_writer_sees_is_what_a_reader_sees(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t", custom={"pair": (1, 2)})
        stored = journal.append("t", Custom(data={"pair": (1, 2), 5: "five", "big": 2**70 + 1}))
        assert journal.thread("t").custom == {"pair": [1, 2]}
        assert store.reopen().entry("t", stored.id) == stored
        assert store.journal.thread("t").custom == {"pair": [1, 2]}

    def test_entries_of_every_type_come_back(self, store: Opened) -> None:
        payloads: list[Payload] = [
            ThreadInfo(text="info"),
            ModelChange(provider="p", model="m"),
            ActiveToolsChange(),
            BranchSummary(summary="short"),
            Label(target="x", label="y"),
            UsageReport(usage=Usage(input_tokens=1, cost=0.25)),
            Event(name="opened", data={"tab": 1}),
            Checkpoint(root="/w", files=2),
            Memory(text="likes tea", tags=("taste",)),
        ]
        store.journal.create_thread("t")
        store.journal.append_many("t", payloads)
        assert [entry.payload for entry in store.reopen().path("t")] == payloads

    def test_an_entry_of_a_newer_version_passes_through(self, store: Opened) -> None:
        payload = UnknownPayload(
            type="hologram", body=b'{"type":"hologram","depth":3,"more":{"x":[1.50,"\xe2\x80\xa8"]}}'
        )
        journal = store.journal
        journal.create_thread("t")
        stored = journal.append("t", payload, id="future")
        fill(journal, "t", "after")
        again = store.reopen()
        assert again.entry("t", "future").payload == payload
        assert again.append("t", payload, id="future") == stored
        assert (stored.type, content_hash(stored.payload)) == ("hologram", content_hash(payload))
        assert [message.text for message in again.context("t").messages] == ["after"]

    @pytest.mark.parametrize(
        "payload",
        [
            UnknownPayload(type="x", body=b"no json"),
            UnknownPayload(type="x", body=b'{"type":"y"}'),
            UnknownPayload(type="x", body=b'{"depth":3}'),
            UnknownPayload(type="x", body=b'{"type":"x",\n"depth":3}'),
            UnknownPayload(type="x", body=b'{"type":"x","text":"\xff"}'),
            UnknownPayload(type="user_message", body=b'{"type":"user_message"}'),
        ],
    )
    def test_a_body_that_is_not_what_it_says_is_refused(self, journal: Journal, payload: UnknownPayload) -> None:
        journal.create_thread("t")
        with pytest.raises(InvalidInputError):
            journal.append_many("t", [user("first"), NewEntry(content=payload)])
        assert journal.entries("t") == []
