"""A SQLite store of the previous layout is upgraded when it is opened: completely, or not at all."""

import json
import lzma
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.model.blobs import data_of
from sessiontree.stores.sqlite import schema
from sessiontree.stores.sqlite.upgrade import UPGRADES, VERIFICATION
from stores import sqlite_backend

DATA = Path(__file__).parent.parent / "data" / "sqlite_layout2"
EXPECTED = json.loads((DATA / "expected.json").read_text())

# The process is killed before the given statement. A cache of one page makes SQLite write changed pages to the WAL
# before the commit, as it does with a large store.
KILLED_AT = """
import os, signal, sys
from pathlib import Path
from sessiontree.model.blobs import data_of
from sessiontree.stores.sqlite import schema
from sessiontree.stores.sqlite.upgrade import upgrade

class Connection:
    def __init__(self, connection, statements):
        self.connection, self.left = connection, statements
    def execute(self, *arguments):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return self.connection.execute(*arguments)

path = Path(sys.argv[1])
connection = schema.connect(path)
schema.prepare_writer(connection, "power_loss", path)
connection.execute("PRAGMA cache_size = 1")
connection.execute("PRAGMA cache_spill = 1")
upgrade(Connection(connection, int(sys.argv[2])), path)
os.kill(os.getpid(), signal.SIGKILL)
"""
STATEMENTS = 5 + sum(len(UPGRADES[layout][1]) for layout in range(2, schema.LAYOUT)) + 2 * len(VERIFICATION)
"""Those of the upgrade with PRAGMA user_version, table_info, BEGIN, the verification and COMMIT."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.write_bytes(lzma.decompress((DATA / "store.db.xz").read_bytes()))
    return path


def ask(path: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def layout_of(path: Path) -> int:
    return int(ask(path, "PRAGMA user_version")[0][0])


def content_of(journal: st.Journal) -> dict[str, Any]:
    """What ``expected.json`` has of every thread, in the order of the list."""
    found = {}
    for thread in journal.list_threads(limit=100):
        lease = sqlite_backend(journal).lease(thread.id)
        found[thread.id] = {
            "title": thread.title,
            "tree": thread.tree,
            "leaf": thread.leaf,
            "entries": thread.entries,
            "tags": list(thread.tags),
            "created_ns": thread.created_ns,
            "updated_ns": thread.updated_ns,
            "path": [entry.id for entry in journal.path(thread.id)],
            "seen": [
                [
                    entry.id,
                    entry.thread_id,
                    entry.parent,
                    entry.created_ns,
                    entry.message.text if entry.message else type(entry.payload).__name__,
                ]
                for entry in journal.entries(thread.id)
            ],
            "moves": [
                [move.number, move.from_entry, move.to_entry, move.reason, move.at_ns]
                for move in journal.reflog(thread.id)
            ],
            "lease": lease and [lease.token, lease.owner, lease.turn_id, lease.expires_ns],
        }
    return found


def test_the_old_file_is_what_the_tests_need(old: Path) -> None:
    assert layout_of(old) == 2
    assert ask(old, "SELECT count(*) > 0 FROM entry WHERE key > (SELECT settled FROM floor)") == [(1,)]
    assert ask(old, "SELECT count(*) FROM thread t JOIN entry e ON e.owner = t.key WHERE e.key > t.newest")[0][0] > 0
    assert ask(old, "SELECT (SELECT count(*) FROM departed), (SELECT count(*) > 0 FROM blob)") == [(1, 1)]


def test_an_upgraded_store_has_everything_that_was_in_it(old: Path) -> None:
    with st.open(old) as journal:
        assert layout_of(old) == schema.LAYOUT
        assert content_of(journal) == EXPECTED
        assert list(content_of(journal)) == list(EXPECTED)
        assert journal.check() == []
        hashes = [name for (name,) in ask(old, "SELECT lower(hex(hash)) FROM blob")]
        files = [data_of(blob) for blob in sqlite_backend(journal).blobs(hashes)]
        assert b"first version\n" in files
        assert bytes(range(256)) in files
    with st.open(old) as journal:
        assert journal.check() == []


def test_an_upgraded_store_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    st.open(tmp_path / "new.db").close()
    st.open(old).close()
    assert shape_of(old) == shape_of(tmp_path / "new.db")


def shape_of(path: Path) -> list[list[tuple[Any, ...]]]:
    names = "SELECT type, name, tbl_name FROM sqlite_schema ORDER BY type, name"
    columns = (
        "SELECT s.name, i.* FROM sqlite_schema s, pragma_table_info(s.name) i WHERE s.type = 'table' ORDER BY 1, 2"
    )
    indexes = (
        "SELECT s.name, l.'unique', i.* FROM sqlite_schema s, pragma_index_list(s.name) l, pragma_index_info(l.name) i"
        " WHERE s.type = 'table' ORDER BY 1, l.name, 3"
    )
    return [ask(path, question) for question in (names, columns, indexes)]


def test_an_upgraded_store_goes_on_where_the_old_one_ended(old: Path) -> None:
    last = ask(old, "SELECT max(key) FROM entry")[0][0]
    with st.open(old) as journal:
        for name, expected in EXPECTED.items():
            assert journal.append(name, st.user("new")).parent == expected["leaf"]
        for name in ("s4", "long-0", "h1"):
            thread = next(entry[1] for each in EXPECTED.values() for entry in each["seen"] if entry[0] == name)
            with pytest.raises(st.DuplicateEntryError):
                journal.append(thread, st.user("another"), id=name)
        assert journal.check() == []
        journal.delete_thread("heir")
        journal.delete_thread("source")
        assert journal.check() == []
        assert [hit.entry.id for hit in journal.search("line")]
    assert ask(old, "SELECT last_entry_key > ?1, deletions FROM store_meta".replace("?1", str(last))) == [(1, 4)]
    assert ask(old, "SELECT count(*) FROM deleted_thread") == [(1,)]


@pytest.mark.parametrize("statements", range(STATEMENTS + 1))
def test_a_process_that_is_killed_during_the_upgrade_leaves_the_old_store(old: Path, statements: int) -> None:
    before = old.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED_AT, old, str(statements)], check=False)
    assert done.returncode == -signal.SIGKILL
    if statements < STATEMENTS:
        assert layout_of(old) == 2
        assert ask(old, "SELECT count(*) FROM floor, departed") == [(1,)]
        assert ask(old, "PRAGMA integrity_check") == [("ok",)]
        assert old.read_bytes() == before
    else:
        assert layout_of(old) == schema.LAYOUT
    with st.open(old) as journal:
        assert content_of(journal) == EXPECTED
        assert journal.check() == []


def test_processes_that_open_an_old_store_at_once_upgrade_it_once(old: Path) -> None:
    script = "import sys, sessiontree as st\nwith st.open(sys.argv[1]) as journal: journal.append('t', st.user('x'))"
    command = [sys.executable, "-c", script.replace("'t'", "'leased'"), str(old)]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    with st.open(old) as journal:
        assert len(journal.path("leased")) == 4
        assert journal.check() == []


def test_an_old_store_with_a_repeated_id_is_refused_and_left_unchanged(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE entry SET id = 'long-1' WHERE id = 'long-2'")
    before = old.read_bytes()
    with pytest.raises(st.StoreError, match=r"'long-1'.*export its threads"):
        st.open(old)
    assert old.read_bytes() == before
    assert layout_of(old) == 2


def test_an_old_store_with_a_damaged_page_is_refused_and_left_unchanged(old: Path) -> None:
    ((root,),) = ask(old, "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'")
    ((page_size,),) = ask(old, "PRAGMA page_size")
    with old.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(b"\xff" * 100)
    before = old.read_bytes()
    with pytest.raises(st.StoreError, match=r"malformed.*export its threads"):
        st.open(old)
    assert old.read_bytes() == before
    assert layout_of(old) == 2


def test_a_store_of_layout_4_gets_its_indexes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(lzma.decompress((DATA.with_name("sqlite_layout4") / "store.db.xz").read_bytes()))
    assert layout_of(path) == 4
    with st.open(path) as journal:
        assert journal.labels("t") == {"good": "b"}
        assert journal.labels("f") == {"own": "g"}
        assert [entry.id for entry in journal.children("t", "b")] == ["c", "e"]
        # These moves were written without what can be undone after them.
        assert [journal.undo("t").leaf for _ in range(2)] == ["e", journal.reflog("t")[0].from_entry]
        assert journal.redo("t").leaf == "e"
        assert journal.check() == []
    assert layout_of(path) == schema.LAYOUT
