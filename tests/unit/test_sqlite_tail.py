"""What was just appended is in one table only; every question about it gets the same answer as later."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import sessiontree as st
from sessiontree.stores.commands import ImportThread
from sessiontree.stores.sqlite.tail import LONGEST, settle
from sessiontree.testing import ManualClock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.db"


def unsettled(path):
    """How many entries are in the tail."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM entry WHERE key > (SELECT settled FROM floor)").fetchone()[0]


def frames_of(path, work):
    """How many pages a piece of work writes to the log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        work()
        return connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]


SEEN_BY_OTHERS = """
import sys, sessiontree as st
with st.open(sys.argv[1]) as journal:
    thread = journal.thread("t")
    print(len(journal.path("t")), thread.leaf, thread.updated_ns, journal.entry("t", sys.argv[2]).id)
"""


def test_a_lone_append_writes_one_page(path):
    with st.open(path) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("first"))
        assert frames_of(path, lambda: journal.append("t", st.user("second"))) == 1


def test_the_tail_never_gets_longer_than_it_may(path):
    with st.open(path, durability="process_crash") as journal:
        journal.create_thread("t")
        for number in range(LONGEST + 40):
            journal.append("t", st.user(str(number)))
            assert unsettled(path) <= LONGEST
        journal.append_many("t", [st.user(str(number)) for number in range(3 * LONGEST)])
        assert unsettled(path) == 0


@pytest.mark.parametrize("appends", [1, 5, LONGEST, LONGEST + 1, 2 * LONGEST + 7])
def test_another_process_sees_everything_however_long_the_tail_is(path, appends):
    with st.open(path, durability="process_crash") as journal:
        journal.create_thread("t")
        last = [journal.append("t", st.user(str(number))) for number in range(appends)][-1]
        command = [sys.executable, "-c", SEEN_BY_OTHERS, str(path), last.id]
        seen = subprocess.check_output(command, text=True).split()
        assert seen == [str(appends), last.id, str(last.created_ns), last.id]
        assert journal.check() == []


def test_threads_are_listed_by_what_the_tail_says_of_their_time(path):
    clock = ManualClock()
    with st.open(path, clock=clock) as journal:
        for name in ("a", "b", "c"):
            journal.create_thread(name)
            clock.advance(1)
        middle = clock()
        journal.append("a", st.user("now the newest"))
        assert unsettled(path) == 1
        assert [thread.id for thread in journal.list_threads()] == ["a", "c", "b"]
        assert [thread.id for thread in journal.list_threads(updated_after_ns=middle)] == ["a"]
        assert [thread.id for thread in journal.list_threads(updated_before_ns=middle)] == ["c", "b"]
        pages = []
        cursor = None
        while not pages or cursor:
            page = journal.list_threads(limit=1, cursor=cursor)
            pages += [thread.id for thread in page]
            cursor = page.cursor
        assert pages == ["a", "c", "b"]


def test_an_entry_of_the_past_does_not_turn_the_time_of_its_thread_back(path):
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


def test_an_append_under_an_id_of_the_tail_is_the_same_append(path):
    with st.open(path) as journal, st.open(path) as other:
        journal.create_thread("t")
        first = journal.append("t", st.user("hello"), id="e1")
        assert unsettled(path) == 1
        assert journal.append("t", st.user("hello"), id="e1") == first
        assert other.append("t", st.user("hello"), id="e1") == first
        for one in (journal, other):
            with pytest.raises(st.DuplicateEntryError):
                one.append("t", st.user("something else"), id="e1")


def test_ids_of_other_programs_that_come_after_ours_are_found_as_well(path):
    """In the order of ids, one of letters comes after all of ours."""
    with st.open(path) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("theirs"), id="zzz")
        mine = [journal.append("t", st.user(str(number))).id for number in range(LONGEST + 5)]
        assert [entry.id for entry in journal.path("t")] == ["zzz", *mine]
        with pytest.raises(st.DuplicateEntryError):
            journal.append("t", st.user("again"), id=mine[-1])


@pytest.mark.parametrize("place", ["memory:", "s.db"])
def test_a_new_id_that_somebody_gave_before_is_refused(tmp_path, place):
    """Within a millisecond new ids count up, so the next one can be told, and given, in advance."""
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


def test_what_was_in_the_tail_can_be_rewound_forked_and_deleted(path):
    with st.open(path) as journal:
        journal.create_thread("t")
        one, two, three = (journal.append("t", st.user(text)).id for text in ("one", "two", "three"))
        journal.move_leaf("t", one)
        assert journal.thread("t").leaf == one
        four = journal.append("t", st.user("four")).id
        assert [entry.id for entry in journal.path("t")] == [one, four]
        fork = journal.fork("t", at=two, new_id="fork")
        journal.append(fork.id, st.user("five"))
        journal.undo("t")
        assert journal.thread("t").leaf == three
    with st.open(path) as journal:
        assert [entry.id for entry in journal.path("t")] == [one, two, three]
        journal.delete_thread("t")
        assert [entry.payload.message.text for entry in journal.path("fork")] == ["one", "two", "five"]
        with pytest.raises(st.EntryNotFoundError):
            journal.entry("fork", four)
        assert journal.check() == []


def test_a_tree_is_not_taken_for_empty_because_its_key_was_once_asked_for(path):
    """A thread that was refused here, then made by another: this one must look for its ids."""
    with st.open(path) as journal, st.open(path) as other:
        thread = st.Thread(id="t", tree="t", created_ns=1, updated_ns=1)
        with pytest.raises(st.EntryNotFoundError):
            journal.store.commit(ImportThread(thread=thread, base="nowhere"))
        other.create_thread("t")
        first = other.append("t", st.user("hello"), id="e1")
        journal.update_thread("t", title="new")
        assert journal.append("t", st.user("hello"), id="e1") == first
        assert journal.check() == []


def test_writers_that_take_turns_continue_each_others_tail(path):
    with st.open(path, durability="process_crash") as journal, st.open(path, durability="process_crash") as other:
        journal.create_thread("t")
        for number in range(LONGEST + 30):
            one = other if number % 3 == 0 else journal
            one.append("t", st.user(str(number)))
        texts = [entry.payload.message.text for entry in other.path("t")]
        assert texts == [str(number) for number in range(LONGEST + 30)]
        assert journal.thread("t") == other.thread("t")
        assert other.check() == []


def test_a_store_of_a_build_before_the_first_release_is_left_untouched(path):
    with st.open(path) as journal:
        journal.create_thread("t")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    before = path.read_bytes()
    with pytest.raises(st.ForeignStoreError, match="export it there"):
        st.open(path)
    assert path.read_bytes() == before


LOST = "the entry is missing from the table of ids"
LED_ASTRAY = "the table of ids leads to another entry or to none"
LATE = "the thread does not know its newest entry"


@pytest.mark.parametrize(
    ("damage", "problems"),
    [
        ("DELETE FROM entry_id WHERE id = 'b'", [LOST]),
        ("UPDATE entry_id SET key = 1 WHERE id = 'b'", [LOST, LED_ASTRAY]),
        ("INSERT INTO entry_id VALUES ('ghost', 1, 999)", [LED_ASTRAY]),
        ("INSERT INTO entry_id VALUES ('ghost', 1, 2)", [LED_ASTRAY]),
        ("UPDATE thread SET leaf = 2, newest = 2", [LATE]),
    ],
)
def test_ids_and_heads_that_do_not_fit_the_entries_are_found_and_made_anew(path, damage, problems):
    with st.open(path) as journal:
        journal.create_thread("t")
        kept = journal.append_many("t", [st.NewEntry(content=st.user(name), id=name) for name in ("a", "b", "c")])
    with closing(sqlite3.connect(path)) as connection:
        settle(connection, 3)
        connection.execute(damage)
        connection.commit()
    with st.open(path) as journal:
        assert [finding.problem for finding in journal.check()] == problems
        assert [finding.problem for finding in journal.store.backend.repair()] == problems
        assert journal.check() == []
        assert journal.path("t") == kept
        assert [journal.entry("t", name) for name in ("a", "b", "c")] == kept


@pytest.mark.parametrize("settled", [False, True])
def test_an_id_that_is_there_twice_is_found_and_keeps_nobody_from_writing(path, settled):
    with st.open(path) as journal:
        journal.create_thread("t")
        journal.append_many("t", [st.NewEntry(content=st.user(name), id=name) for name in ("a", "b")])
    with closing(sqlite3.connect(path)) as connection:
        if settled:
            settle(connection, 2)
        connection.execute("UPDATE entry SET id = 'a'")
        connection.commit()
    with st.open(path, durability="process_crash") as journal:
        for number in range(LONGEST + 3):
            journal.append("t", st.user(str(number)))
        journal.store.backend.repair()
        assert [(finding.kind, finding.entry_id) for finding in journal.check()] == [("duplicate", "a")]
        assert journal.entry("t", "a").payload == st.user("a")
