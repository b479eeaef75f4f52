"""The public verbs that imports and copies are made of, on every store."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sessiontree as st
from sessiontree.journal import Draft, PositionedDraft, make_draft
from sessiontree.model import Move
from sessiontree.model.blobs import Blob, blob_of, data_of
from stores import ALL, open_journal


def positioned(text: str, parent: str | None = None, blobs: tuple[str, ...] = ()) -> PositionedDraft:
    return PositionedDraft(parent=parent, draft=make_draft(st.user(text), id=text, created_ns=7, blobs=blobs))


@pytest.fixture(params=ALL)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_journal(request.param, tmp_path) as opened:
        yield opened


def test_a_history_keeps_ids_times_parents_and_moves(journal: st.Journal) -> None:
    thread = st.Thread(id="t", tree="t", created_ns=3, updated_ns=4, version=6, title="old")
    assert journal.import_thread(thread).version == 6
    back = Move(number=1, thread_id="t", from_entry="b", to_entry="a", reason="rewind", at_ns=9)
    steps: list[PositionedDraft | Move] = [positioned("a"), positioned("b", "a"), back, positioned("c", "a")]
    imported = journal.import_history("t", steps)
    assert (imported.leaf, imported.entries) == ("c", 2)
    assert [(entry.id, entry.parent, entry.created_ns) for entry in journal.entries("t")] == [
        ("a", None, 7),
        ("b", "a", 7),
        ("c", "a", 7),
    ]
    assert journal.reflog("t") == [back]
    assert journal.thread("t").title == "old"
    assert journal.check() == []


def test_importing_a_history_again_changes_nothing(journal: st.Journal) -> None:
    thread = st.Thread(id="t", tree="t", created_ns=3, updated_ns=4)
    for _ in range(2):
        journal.import_thread(thread)
        journal.import_history("t", [positioned("a"), positioned("b", "a")])
    assert [entry.id for entry in journal.path("t")] == ["a", "b"]
    with pytest.raises(st.ThreadExistsError):
        journal.import_thread(st.Thread(id="t", tree="t", created_ns=3, updated_ns=4, title="another"))


def test_a_history_is_written_whole_or_not_at_all(journal: st.Journal) -> None:
    journal.create_thread("t")
    with pytest.raises(st.InvalidParentError):
        journal.import_history("t", [positioned("a"), positioned("b", "nowhere")])
    with pytest.raises(st.MissingBlobsError):
        journal.import_history("t", [positioned("a"), positioned("b", "a", blobs=("0" * 64,))])
    assert journal.entries("t") == []


BACK = Move(number=1, thread_id="t", from_entry="b", to_entry="a", reason="rewind", at_ns=9)
DRAFT = make_draft(st.user("x"), id="x", created_ns=7)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "c",
        PositionedDraft(parent=None, draft=None),  # type: ignore[arg-type]
        PositionedDraft(parent=None, draft=replace(DRAFT, id=5)),
        PositionedDraft(parent=None, draft=replace(DRAFT, id="\ud800")),
        PositionedDraft(parent=None, draft=replace(DRAFT, created_ns=2**63)),
        replace(BACK, thread_id="another"),
        replace(BACK, number="1"),
        replace(BACK, reason="whim"),
        replace(BACK, from_entry=5),
        replace(BACK, at_ns=2**63),
    ],
)
def test_a_step_that_no_store_can_hold_is_refused(journal: st.Journal, wrong: Any) -> None:
    journal.create_thread("t")
    with pytest.raises(st.InvalidInputError):
        journal.import_history("t", [positioned("a"), positioned("b", "a"), wrong])
    assert journal.entries("t") == []
    assert journal.check() == []


@pytest.mark.parametrize("reason", ["undo", "redo"])
def test_a_reflog_that_undoes_nothing_is_reported_as_damage(journal: st.Journal, reason: str) -> None:
    journal.create_thread("t")
    journal.import_history("t", [positioned("a"), positioned("b", "a"), replace(BACK, reason=reason)])
    assert [finding.kind for finding in journal.check()] == ["reflog"]
    for verb in (journal.undo, journal.redo):
        with pytest.raises(st.DamagedDataError, match="reflog of thread 't'"):
            verb("t")


def test_a_thread_that_no_store_can_hold_is_refused(journal: st.Journal) -> None:
    for fields in ({"id": ""}, {"title": 5}, {"custom": {"x": float("nan")}}, {"created_ns": 2**63}):
        values: dict[str, Any] = {"id": "t", "tree": "t", "created_ns": 0, "updated_ns": 0, **fields}
        with pytest.raises(st.InvalidInputError):
            journal.import_thread(st.Thread(**values))


def test_drafts_are_stored_as_they_are_in_one_commit(journal: st.Journal) -> None:
    drafts = [make_draft(st.user(text), id=text, created_ns=5, turn_id="turn") for text in "abc"]
    assert all(isinstance(draft, Draft) for draft in drafts)
    journal.create_thread("t", contents=drafts[:1])
    stored = journal.append_many("t", drafts[1:], parent="a")
    assert [(entry.id, entry.created_ns, entry.turn_id) for entry in stored] == [("b", 5, "turn"), ("c", 5, "turn")]
    assert journal.append_many("t", drafts[1:], parent="a") == stored, "the same drafts again are no new entries"


@pytest.mark.parametrize("wrong", [{"id": ""}, {"created_ns": 2**63}, {"blobs": ("xyz",)}])
def test_a_draft_is_checked_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(st.InvalidInputError):
        make_draft(st.user("x"), **{"id": "x", "created_ns": 0, **wrong})


def test_blobs_are_put_once_and_read_in_the_order_asked_for(journal: st.Journal) -> None:
    first, second = blob_of(b"first" * 1000), blob_of(b"second")
    assert journal.missing_blobs([first.hash, second.hash]) == {first.hash, second.hash}
    assert journal.put_blobs([first]) == 1
    assert journal.put_blobs([first, second]) == 1
    assert journal.missing_blobs([first.hash, second.hash]) == frozenset()
    assert [data_of(blob) for blob in journal.read_blobs([second.hash, first.hash])] == [b"second", b"first" * 1000]
    assert journal.missing_blobs([]) == frozenset()
    with pytest.raises(st.BlobNotFoundError):
        journal.read_blobs(["0" * 64])


@pytest.mark.parametrize("wrong", ["", "x", "0" * 63, "A" * 64, 5, None])
def test_a_hash_that_no_blob_can_have_is_refused(journal: st.Journal, wrong: Any) -> None:
    for verb in (journal.missing_blobs, journal.read_blobs):
        with pytest.raises(st.InvalidInputError, match="hash of a blob"):
            verb([wrong])
    with pytest.raises(st.InvalidInputError):
        journal.put_blobs([Blob(hash=wrong, size=1, body=b"x")])
    with pytest.raises(st.InvalidInputError, match="blob_of"):
        journal.put_blobs([wrong])


def test_a_blob_that_does_not_match_its_hash_is_refused(journal: st.Journal) -> None:
    good = blob_of(b"good")
    with pytest.raises(st.DamagedDataError):
        journal.put_blobs([good, Blob(hash="0" * 64, size=3, body=b"bad")])
    assert journal.missing_blobs([good.hash]) == {good.hash}


def test_iterating_threads_goes_over_all_pages(journal: st.Journal) -> None:
    for number in range(7):
        journal.create_thread(f"t{number}", is_archived=number == 3)
    assert len(list(journal.iter_threads(limit=2))) == 6
    assert {thread.id for thread in journal.iter_threads(is_archived=None, limit=3)} == {f"t{n}" for n in range(7)}
    assert [thread.id for thread in journal.iter_threads(st.ThreadQuery(is_archived=True))] == ["t3"]


def test_the_async_journal_has_them_too() -> None:
    async def run() -> list[str | None]:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            blob = blob_of(b"data")
            assert await journal.put_blobs([blob]) == 1
            assert await journal.read_blobs([blob.hash]) == [blob]
            await journal.import_history("t", [positioned("a")])
            return [thread.leaf async for thread in journal.iter_threads(limit=1)]

    assert asyncio.run(run()) == ["a"]
