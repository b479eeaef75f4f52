"""Erased contents: they are gone for good, and the entries keep their ids and places."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.context.summary_message import SUMMARY_KIND
from sessiontree.errors import BlobNotFoundError, EntryNotFoundError, StaleLeafError
from sessiontree.journal import Journal
from sessiontree.journal.operations.erase import erase_contents
from sessiontree.model import Custom, Label
from sessiontree.model.builders import ERASED, assistant, call, tool_result, user
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, is_on_disk

__all__ = ["EraseContract"]

_WORDS = "battery-staple-correct-horse"
_NOTE = Custom(name="note")


def _erase(journal: Journal, *names: str, thread: str = "t") -> int:
    leaf = journal.thread(thread).leaf
    return journal.run(erase_contents(journal.runtime, thread, names, _NOTE, expect_leaf=leaf)).entries


def _whole_text(journal: Journal, thread: str, call_id: str) -> str:
    """Return the hash of the artifact that has the whole text of a cut result."""
    results = (result for message in journal.context(thread).messages for result in message.tool_results)
    (view,) = (result.view for result in results if result.call_id == call_id)
    assert view is not None
    assert view.full_output is not None
    return view.full_output.sha256


class EraseContract(Contract):
    def test_erased_entries_keep_everything_but_their_contents(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        before, counted = journal.path("t"), journal.thread("t")
        assert _erase(journal, "a", "b") == 2
        again = store.reopen()
        after = again.path("t")
        assert ids(after[:3]) == ["a", "b", "c"]
        assert [entry.payload for entry in after[:2]] == [ERASED, ERASED]
        assert [(entry.parent, entry.created_ns) for entry in after[:3]] == [
            (entry.parent, entry.created_ns) for entry in before
        ]
        assert after[2] == before[2]
        assert after[3].payload == _NOTE
        assert (again.thread("t").messages, again.thread("t").tokens) == (counted.messages, counted.tokens)
        fill(again, "t", "d")
        assert ids(again.path("t"))[-1] == "d"

    def test_the_bytes_of_erased_contents_are_gone_and_nothing_finds_them(
        self, journal: Journal, tmp_path: Path
    ) -> None:
        journal.create_thread("t")
        gone = [journal.append("t", user(f"{_WORDS} {number} " * 50)).id for number in range(50)]
        journal.append("t", user("this stays"))
        assert journal.search(_WORDS).hits
        assert is_on_disk(tmp_path, _WORDS) == self.has_files
        size = journal.stats().bytes
        assert _erase(journal, *gone) == 50
        assert not is_on_disk(tmp_path, _WORDS)
        assert is_on_disk(tmp_path, "this stays") == self.has_files
        assert not journal.search(_WORDS).hits
        assert [hit.entry.message.text for hit in journal.search("stays").hits if hit.entry.message] == ["this stays"]
        assert not self.has_files or journal.stats().bytes < size

    def test_a_title_goes_with_the_text_that_it_was_made_from(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        for name in ("t", "u"):
            journal.create_thread(name)
            journal.append(name, user(_WORDS), id=name)
        journal.update_thread("u", title="Mine")
        assert (_erase(journal, "t"), _erase(journal, "u", thread="u")) == (1, 1)
        assert not is_on_disk(tmp_path, _WORDS)
        journal = store.reopen()
        assert [journal.thread(name).title for name in ("t", "u")] == ["", "Mine"]
        journal.append("t", user("a new question"))
        assert journal.thread("t").title == "a new question"

    def test_what_a_fork_shows_is_not_erased(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.fork("t", at="b", new_id="f")
        fill(journal, "f", "x")
        shown = journal.path("f")
        assert _erase(journal, "a", "b", "c", "x", "unknown") == 1
        again = store.reopen()
        assert again.path("f") == shown
        assert again.entry("t", "c").payload == ERASED
        assert _erase(again, "a", "b", thread="f") == 0
        assert again.path("f") == shown

    def test_nothing_is_erased_if_the_leaf_has_moved(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(StaleLeafError):
            journal.run(erase_contents(journal.runtime, "t", ["a"], _NOTE, expect_leaf="a"))
        with pytest.raises(StaleLeafError):
            journal.run(erase_contents(journal.runtime, "t", ["a"], _NOTE, expect_leaf=None))
        assert [entry.message.text for entry in journal.path("t") if entry.message] == ["a", "b"]

    def test_an_erasure_of_nothing_changes_nothing(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        assert _erase(journal) == 0
        assert _erase(journal, "nobody") == 0
        assert ids(journal.path("t")) == ["a"]

    def test_a_write_that_is_repeated_after_an_erasure_is_still_the_same(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        assert _erase(journal, "a") == 1
        assert fill(journal, "t", "a", "b")[0].payload == ERASED
        assert len(journal.path("t")) == 3

    def test_erase_empties_entries_in_every_thread_that_shows_them(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        journal.create_thread("t")
        journal.append("t", user(_WORDS), id="secret")
        fill(journal, "t", "b")
        journal.fork("t", new_id="f")
        journal.fork("f", at="secret", new_id="g")
        fill(journal, "f", "x")
        journal.rewind("t", "secret")
        journal.label("t", "secret", "here")
        before = [(entry.id, entry.parent, entry.created_ns) for entry in journal.path("f")]
        assert journal.thread("t").title == _WORDS
        assert journal.search(_WORDS).hits
        report = store.reopen().erase("f", ["secret"])
        assert (report.thread_id, report.entries) == ("f", 1)
        assert not is_on_disk(tmp_path, _WORDS)
        journal = store.reopen()
        for thread in ("t", "f", "g"):
            assert journal.entry(thread, "secret").payload == ERASED
            assert _WORDS not in journal.export(thread, format="jsonl", scope="tree")
            assert journal.thread(thread).title != _WORDS
        assert [(entry.id, entry.parent, entry.created_ns) for entry in journal.path("f")] == before
        assert journal.labels("t") == {"here": "secret"}
        assert journal.undo("t").leaf == "b"
        assert not journal.search(_WORDS).hits
        assert not is_on_disk(tmp_path, _WORDS)

    def test_erase_is_repeatable_and_refuses_what_the_thread_does_not_see(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.fork("t", at="a", new_id="f")
        with pytest.raises(EntryNotFoundError):
            journal.erase("f", ["a", "b"])
        assert journal.entry("t", "a").payload != ERASED
        with pytest.raises(StaleLeafError):
            journal.erase("t", ["a"], expect_leaf="a")
        leaf = journal.thread("t").leaf
        assert [journal.erase("t", ["a", "a"], expect_leaf=leaf).entries for _ in range(2)] == [1, 0]
        assert journal.erase("t", []).entries == 0
        assert ids(journal.path("t")) == ["a", "b"]

    def test_erasing_a_cut_result_erases_its_whole_text_and_keeps_the_summary(
        self, store: Opened, tmp_path: Path
    ) -> None:
        journal = store.journal
        journal.create_thread("t")
        journal.append_many("t", [user("hello"), assistant("word " * 9_000)])
        journal.append_many("t", [user("Read both."), assistant(calls=[call("a", "read"), call("b", "read")])])
        secret = f"{_WORDS} {' '.join(str(number) for number in range(9_000))} {_WORDS}"
        journal.append("t", tool_result("a", secret), id="secret")
        journal.append("t", tool_result("b", secret.replace(_WORDS, "this stays")), id="other")
        policy = CompactionPolicy(window_tokens=16_000)
        for thread in ("t", journal.fork("t", new_id="f").id):
            assert journal.compact(thread, policy=policy, force=True).cut_results == 2
        journal.append("f", user("And now?"))
        artifact = _whole_text(journal, "f", "a")
        assert journal.read_artifact(artifact).decode() == secret
        counted = journal.thread("f").tokens

        journal.erase("t", ["secret"])
        for again in (store.reopen() for _ in range(2)):
            with pytest.raises(BlobNotFoundError):
                again.read_artifact(artifact)
            assert not is_on_disk(tmp_path, _WORDS)
            assert [again.context(name).messages[0].kind for name in ("t", "f")] == [SUMMARY_KIND] * 2
            assert again.read_artifact(_whole_text(again, "f", "b")).decode().startswith("this stays")
            assert again.thread("f").tokens == counted
            assert again.check() == []
        assert store.reopen().erase("t", ["secret"]).entries == 0

    def test_erased_labels_are_removed_and_their_entries_stay(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        label = journal.label("t", "a", _WORDS)
        assert journal.labels("t") == {_WORDS: "a"}
        journal.erase("t", [label.id])
        assert journal.labels("t") == {}
        assert ids(journal.path("t")) == ["a", label.id]

    def test_erased_checkpoints_take_their_files_with_them(self, journal: Journal, tmp_path: Path) -> None:
        if not self.has_blobs:
            pytest.skip("the store has no blobs")
        folder = tmp_path / "work"
        folder.mkdir()
        (folder / "key.txt").write_text(_WORDS)
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.workspace.snapshot("t", "a", folder)
        (folder / "key.txt").unlink()
        checkpoint = journal.entries("t", types=["checkpoint"])[0]
        hashes = [checkpoint.payload.manifest]  # type: ignore[union-attr]
        assert journal.missing_blobs(hashes) == frozenset()
        journal.erase("t", [checkpoint.id])
        assert journal.missing_blobs(hashes) == frozenset(hashes)
        assert not is_on_disk(tmp_path, _WORDS)

    def test_prune_erases_what_no_leaf_and_no_label_reaches(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.append("t", user(_WORDS), id="gone")
        for name in ("named", "forked", "kept"):
            journal.append("t", user(name), id=name, parent="a")
        journal.label("t", "named", "good")
        journal.fork("t", at="forked", new_id="f")
        journal.rewind("t", "kept")
        assert journal.prune("t").entries == 2
        journal = store.reopen()
        assert {entry.id for entry in journal.entries("t") if entry.payload == ERASED} == {"b", "gone"}
        assert journal.labels("t") == {"good": "named"}
        assert ids(journal.path("t")) == ["a", "kept"]
        assert not is_on_disk(tmp_path, _WORDS)
        assert journal.prune("t").entries == 0
        assert any(isinstance(entry.payload, Label) for entry in journal.entries("t"))
