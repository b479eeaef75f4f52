"""Entries of a thread are found along a chain; holes in it, from deletes or from damage, hide nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import sessiontree as st
from sessiontree.stores.embedded import EmbeddedStore


def test_entries_that_a_fork_still_shows_stay_until_the_last_fork_goes(tmp_path: Path) -> None:
    with st.open(tmp_path / "tree.db") as journal:
        source = journal.create_thread()
        entries = [journal.append(source.id, st.user(f"text {number}")) for number in range(6)]
        early = journal.fork(source.id, at=entries[1].id)
        late = journal.fork(source.id, at=entries[4].id)
        assert journal.delete_thread(source.id).entries_removed == 1
        assert [entry.id for entry in journal.path(late.id)] == [entry.id for entry in entries[:5]]
        assert journal.delete_thread(late.id).entries_removed == 3
        assert [entry.id for entry in journal.path(early.id)] == [entry.id for entry in entries[:2]]
        assert journal.delete_thread(early.id).entries_removed == 2
        assert journal.stats().entries == 0
        assert journal.check() == []


def test_a_delete_finds_the_entries_below_a_hole_and_none_of_another_thread(tmp_path: Path) -> None:
    file = tmp_path / "tree.db"
    with st.open(file) as journal:
        broken, neighbour = journal.create_thread(), journal.create_thread()
        for number in range(5):
            journal.append(broken.id, st.user(f"secret {number}"))
            journal.append(neighbour.id, st.user(f"kept {number}"))
    with closing(sqlite3.connect(file)) as connection, connection:
        # Entries alternate: key 5 is the third of the broken thread, key 6 of the other one.
        connection.execute("UPDATE entry SET previous = 4 WHERE key = 5")
    with st.open(file) as journal:
        assert journal.delete_thread(broken.id).entries_removed == 5
        assert len(journal.path(neighbour.id)) == 5
        assert journal.stats().entries == 5


def test_a_part_of_an_id_finds_what_the_thread_sees_and_nothing_else(tmp_path: Path) -> None:
    with st.open(tmp_path / "tree.db") as journal:
        source = journal.create_thread()
        journal.append(source.id, st.user("a"), id="shared-entry")
        fork = journal.fork(source.id)
        journal.append(fork.id, st.user("b"), id="forked-entry")
        journal.append(source.id, st.user("c"), id="later-entry")
        assert isinstance(journal.store, EmbeddedStore)
        backend = journal.store.backend
        assert backend.entry_ids(fork.id, "entry", 9) == ["forked-entry", "shared-entry"]
        assert backend.entry_ids(source.id, "entry", 9) == ["later-entry", "shared-entry"]
        assert backend.entry_ids(source.id, "shared", 9) == ["shared-entry"]


def _let_an_index_miss_a_row(file: Path) -> None:
    """Takes the index out of the schema, changes the table, and puts the index back as it was."""
    with closing(sqlite3.connect(file)) as connection, connection:
        row = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'thread_created'").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'thread_created'")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE thread_meta SET created_ns = created_ns + 1")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)


def test_an_index_that_does_not_fit_its_table_is_rebuilt(tmp_path: Path) -> None:
    file = tmp_path / "tree.db"
    with st.open(file) as journal:
        thread = journal.create_thread()
        journal.append(thread.id, st.user("kept"))
    _let_an_index_miss_a_row(file)
    with st.open(file) as journal:
        found = journal.check()
        assert found
        assert all(finding.is_repairable for finding in found)
        assert journal.repair() == found
        assert journal.check() == []
        assert [entry.message.text for entry in journal.path(thread.id) if entry.message] == ["kept"]


def test_a_repair_leaves_a_file_with_other_damage_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tree.db"
    with st.open(file) as journal:
        thread = journal.create_thread()
        journal.append_many(thread.id, [st.user(f"text {number} " * 300) for number in range(40)])
    content = bytearray(file.read_bytes())
    content[-3 * 8192 : -2 * 8192] = bytes(8192)
    file.write_bytes(content)
    with st.open(file) as journal:
        before = journal.check()
        assert before
        assert journal.repair() == []
        assert journal.check() == before
    assert file.read_bytes() == bytes(content)
