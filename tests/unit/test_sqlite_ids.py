"""Entry ids in a SQLite store: unique within a tree, for every process, and checked and repaired after damage."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from known import present
from sessiontree.stores.commands import Append, ImportThread
from sessiontree.testing import ManualClock
from stores import sqlite_backend


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


SEEN_BY_OTHERS = """
import sys, sessiontree as st
with st.open(sys.argv[1]) as journal:
    thread = journal.thread("t")
    print(len(journal.path("t")), thread.leaf, thread.updated_ns, journal.entry("t", sys.argv[2]).id)
"""

REPEAT = """
import sys, sessiontree as st
with st.open(sys.argv[1]) as journal:
    print(journal.append("t", st.user("hello"), id="e1").id)
    try:
        journal.append("t", st.user("something else"), id="e1")
    except st.DuplicateEntryError as error:
        print(error.entry_id)
"""


def in_another_process(script: str, *arguments: object) -> list[str]:
    return subprocess.check_output([sys.executable, "-c", script, *map(str, arguments)], text=True).split()


def test_another_process_sees_an_append_at_once(path: Path) -> None:
    with st.open(path) as journal:
        journal.create_thread("t")
        last = [journal.append("t", st.user(str(number))) for number in range(3)][-1]
        assert in_another_process(SEEN_BY_OTHERS, path, last.id) == ["3", last.id, str(last.created_ns), last.id]


def test_an_append_with_a_known_id_is_the_same_append_or_refused(path: Path) -> None:
    with st.open(path) as journal, st.open(path) as other:
        journal.create_thread("t")
        first = journal.append("t", st.user("hello"), id="e1")
        for one in (journal, other):
            assert one.append("t", st.user("hello"), id="e1") == first
            with pytest.raises(st.DuplicateEntryError, match="e1"):
                one.append("t", st.user("something else"), id="e1")
        assert in_another_process(REPEAT, path) == ["e1", "e1"]
        assert journal.path("t") == [first]


@pytest.mark.parametrize("place", ["memory:", "s.db"])
def test_a_new_id_that_a_caller_guessed_is_refused(tmp_path: Path, place: str) -> None:
    """Within a millisecond new ids count up, so the next one can be predicted."""
    where = place if place == "memory:" else tmp_path / place
    with st.open(where, clock=ManualClock()) as journal:
        journal.create_thread("t")
        journal.create_thread("other tree")
        last = journal.append("t", st.user("one")).id
        first, second = (f"{last[:24]}{int(last[24:], 16) + number:012x}" for number in (1, 2))
        journal.append("t", st.user("given"), id=first)
        journal.append("other tree", st.user("given"), id=second)
        with pytest.raises(st.DuplicateEntryError, match=first):
            journal.append("t", st.user("two"))
        assert journal.append("t", st.user("three")).id == second
        assert [entry.id for entry in journal.path("t")] == [last, first, second]
        assert journal.check() == []


def test_a_repeated_id_fails_its_own_command_and_no_other_of_the_group(path: Path) -> None:
    with st.open(path, clock=ManualClock()) as journal:
        for name in ("a", "b"):
            journal.create_thread(name)
        last = journal.append("a", st.user("one")).id
        taken = f"{last[:24]}{int(last[24:], 16) + 1:012x}"
        journal.append("a", st.user("given"), id=taken)
        commands: list[Append] = []

        def note(command: Append) -> tuple[None]:
            commands.append(command)
            return (None,)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal.store, "commit", note)
            journal.append("a", st.user("new"))
            journal.append("b", st.user("new"))
        assert [command.drafts[0].id == taken for command in commands] == [True, False]
        refused, stored = sqlite_backend(journal).write(commands)
        assert isinstance(refused, st.DuplicateEntryError)
        assert isinstance(stored, tuple)
        assert journal.path("b") == list(stored)
        assert [entry.id for entry in journal.path("a")] == [last, taken]
        assert journal.check() == []


def test_a_tree_that_another_process_created_is_searched_for_ids(path: Path) -> None:
    with st.open(path) as journal, st.open(path) as other:
        thread = st.Thread(id="t", tree="t", created_ns=1, updated_ns=1)
        with pytest.raises(st.EntryNotFoundError):
            journal.store.commit(ImportThread(thread=thread, base="nowhere"))
        other.create_thread("t")
        first = other.append("t", st.user("hello"), id="e1")
        journal.update_thread("t", title="new")
        assert journal.append("t", st.user("hello"), id="e1") == first
        assert journal.check() == []


def test_an_entry_of_the_past_does_not_turn_back_the_time_of_its_thread(path: Path) -> None:
    clock = ManualClock()
    with st.open(path, clock=clock) as journal:
        journal.create_thread("t")
        clock.advance(5)
        journal.append("t", st.user("now"))
        now = clock()
        old = journal.append("t", st.user("long ago"), created_ns=now - 10**12)
        found = journal.thread("t")
        assert (found.leaf, found.updated_ns) == (old.id, now)
        journal.append_many("t", [st.NewEntry(content=st.user(str(ns)), created_ns=now + ns) for ns in (9, 3)])
        assert journal.thread("t").updated_ns == now + 3
        journal.append("t", st.user("still now"))
        assert journal.thread("t").updated_ns == now + 3


def test_writers_that_take_turns_continue_each_other(path: Path) -> None:
    with st.open(path, durability="process_crash") as journal, st.open(path, durability="process_crash") as other:
        journal.create_thread("t")
        for number in range(30):
            one = other if number % 3 == 0 else journal
            one.append("t", st.user(str(number)))
        texts = [present(entry.message).text for entry in other.path("t")]
        assert texts == [str(number) for number in range(30)]
        assert journal.thread("t") == other.thread("t")
        assert other.check() == []


def damage(path: Path, *statements: str) -> None:
    """Change tables behind the back of the index of ids, which keeps its content."""
    with closing(sqlite3.connect(path)) as connection, connection:
        index = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'entry_id'").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'entry_id'")
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", index)


def three_entries(path: Path) -> list[st.Entry]:
    with st.open(path) as journal:
        journal.create_thread("t")
        return journal.append_many("t", [st.NewEntry(content=st.user(name), id=name) for name in ("a", "b", "c")])


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        # The row moves, so the index leads to a missing row and lacks the one that is there.
        (
            ("UPDATE entry SET key = 9 WHERE key = 3", "UPDATE thread SET leaf = 9, newest = 9"),
            "row 3 missing from index",
        ),
        (("UPDATE thread SET leaf = 2, newest = 2",), "the thread does not point at its newest entry"),
    ],
)
def test_ids_and_threads_that_do_not_match_the_entries_are_found_and_repaired(
    path: Path, statements: tuple[str, ...], problem: str
) -> None:
    kept = three_entries(path)
    damage(path, *statements)
    with st.open(path) as journal:
        found = journal.check()
        assert any(problem in finding.problem for finding in found)
        assert all(finding.is_repairable for finding in found)
        assert journal.repair() == found
        assert journal.check() == []
        assert journal.path("t") == kept
        assert [journal.entry("t", name) for name in ("a", "b", "c")] == kept
        with pytest.raises(st.DuplicateEntryError):
            journal.append("t", st.user("another"), id="c")


def test_an_append_after_a_repair_continues_at_the_repaired_leaf(path: Path) -> None:
    kept = three_entries(path)
    with st.open(path) as journal:
        journal.append("t", st.user("d"), id="d")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE thread SET leaf = 2, newest = 2")
        journal.repair()
        journal.append("t", st.user("e"), id="e")
        assert [entry.id for entry in journal.path("t")] == [*(entry.id for entry in kept), "d", "e"]
        assert journal.check() == []


def test_an_id_that_damage_repeated_is_found_and_does_not_stop_writers(path: Path) -> None:
    three_entries(path)
    damage(path, "UPDATE entry SET id = 'a' WHERE id = 'b'")
    with st.open(path) as journal:
        new = journal.append("t", st.user("new"))
        journal.repair()
        assert journal.append("t", st.user("newer")).parent == new.id
        assert ("duplicate", "a") in [(finding.kind, finding.entry_id) for finding in journal.check()]
        assert journal.entry("t", "a").payload == st.user("a")
        with pytest.raises(st.DuplicateEntryError):
            journal.append("t", st.user("third"), id="a")
