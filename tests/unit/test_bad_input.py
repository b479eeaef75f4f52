"""Whatever is wrong outside gives a typed error that says what to do; nothing is lost or half written."""

import os
import socket
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores._io import file_system_of, refuse_network
from stores import DURABLE, fill, ids, open_journal, sqlite_backend, url_of

on_durable = pytest.mark.parametrize("store", DURABLE)
NOBODY = 65534


def test_an_sqlite_file_of_a_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    open_journal("sqlite", tmp_path).close()
    file = tmp_path / "journal"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(st.NewerFormatError, match="upgrade sessiontree") as caught:
        open_journal("sqlite", tmp_path)
    assert (caught.value.found, caught.value.place) == (99, str(file))
    assert file.read_bytes() == before


def test_a_jsonl_folder_of_a_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    open_journal("jsonl", tmp_path).close()
    marker = tmp_path / "journal" / "sessiontree.json"
    marker.write_text('{"format":"sessiontree-jsonl","version":99}')
    before = _content_of(tmp_path)
    with pytest.raises(st.NewerFormatError, match="upgrade sessiontree"):
        open_journal("jsonl", tmp_path)
    assert _content_of(tmp_path) == before


@pytest.mark.parametrize("content", [b"hello", b"SQLite format 3\x00", b"x" * 5000])
def test_a_file_that_is_not_ours_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)
    for store in DURABLE:
        with pytest.raises(st.ForeignStoreError, match="choose another path"):
            open_journal(store, tmp_path)
    assert _content_of(tmp_path) == {"journal": content}


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal") as connection:
        connection.execute("CREATE TABLE thread (id TEXT)")
    connection.close()
    before = _content_of(tmp_path)
    with pytest.raises(st.ForeignStoreError, match="another program"):
        open_journal("sqlite", tmp_path)
    assert _content_of(tmp_path) == before


def test_a_folder_that_is_not_ours_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "thesis.txt").write_text("mine")
    for store in DURABLE:
        with pytest.raises(st.ForeignStoreError):
            open_journal(store, tmp_path)
    assert _content_of(tmp_path) == {"journal/thesis.txt": b"mine"}


@on_durable
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_a_pipe_a_socket_or_a_device_is_refused_untouched_and_not_waited_for(
    store: str, kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "journal"
    with socket.socket(socket.AF_UNIX) as listener:
        match kind:
            case "pipe":
                os.mkfifo(place)
            case "socket":
                listener.bind(str(place))
            case "device":
                place.symlink_to("/dev/null")
        with pytest.raises(st.ForeignStoreError, match=f"it is a {kind}"):
            open_journal(store, tmp_path)
    assert list(tmp_path.iterdir()) == [place]
    assert not Path("/dev/null-gate").exists()


def test_a_folder_whose_marker_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    os.mkfifo(tmp_path / "journal" / "sessiontree.json")
    with pytest.raises(st.ForeignStoreError, match="is a pipe"):
        open_journal("jsonl", tmp_path)


@on_durable
def test_a_path_through_a_file_is_a_store_error(store: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(st.ForeignStoreError, match="a part of its path is a file"):
        open_journal(store, tmp_path / "file" / "below")


def test_a_full_disk_keeps_what_was_there_and_takes_nothing_of_the_new(tmp_path: Path) -> None:
    with open_journal("sqlite", tmp_path) as journal:
        journal.create_thread("t")
        fill(journal, "t", "a")
        writer = sqlite_backend(journal)._writer
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = [st.NewEntry(content=st.user("small"), id="small"), st.NewEntry(content=st.user("x" * 100_000), id="big")]
        with pytest.raises(st.StoreFullError, match="free some space"):
            journal.append_many("t", big)
        assert ids(journal.entries("t")) == ["a"]
        assert journal.thread("t").leaf == "a"
        writer.execute("PRAGMA max_page_count = 1000000")
        assert ids(journal.append_many("t", big)) == ["small", "big"]
        assert journal.check() == []


def test_a_write_that_the_system_refuses_poisons_and_its_outcome_is_settled_by_id(tmp_path: Path) -> None:
    """A limit on the size of files makes SQLite's own write fail, as a broken disk would."""
    printed = _in_child(
        tmp_path,
        """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal.create_thread("t")
        journal.append("t", st.user("a"), id="a")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        for attempt in range(2):
            try:
                journal.append("t", st.user("x" * 300_000), id="big")
            except st.StoreError as error:
                print(type(error).__name__, getattr(error, "entry_ids", ""))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        """,
    )
    assert printed == ["CommitUnknownError ('big',)", "StorePoisonedError "]
    with open_journal("sqlite", tmp_path) as journal:
        assert journal.check() == []
        assert ids(journal.entries("t")) in (["a"], ["a", "big"])
        journal.append("t", st.user("x" * 300_000), id="big")
        assert ids(journal.entries("t")) == ["a", "big"]


@on_durable
def test_a_folder_without_write_permission_says_so(store: str, tmp_path: Path) -> None:
    """In a child that is nobody, as root may write everywhere."""
    tmp_path.chmod(0o755)
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    code = f"""
        import os, sys
        import sessiontree as st
        if os.getuid() == 0:
            for name in ("sessiontree.journal.opening", "sessiontree.stores.sqlite", "sessiontree.stores.jsonl"):
                __import__(name)
            os.chdir("/")
            os.setuid({NOBODY})
        try:
            st.open(sys.argv[1])
        except st.StoreReadOnlyError as error:
            print(error.place)
    """
    # The way down to the folder may be closed to nobody, so the child gets there by its open working folder.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code).replace('os.chdir("/")', "pass"), f"{store}:///journal"],
        cwd=shut, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(shut / "journal")
    assert list(shut.iterdir()) == []


def test_a_network_file_system_is_refused_by_its_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    shared = tmp_path / "shared disk"
    shared.mkdir()
    place = str(shared).replace(" ", "\\040")
    mounts.write_text(
        "21 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
        f"99 21 0:50 / {place} rw,relatime shared:1 - nfs4 server:/export rw\n"
        f"100 99 8:2 / {place}/local rw - xfs /dev/b rw\n"
    )
    with pytest.raises(st.NetworkFileSystemError, match=r"nfs4.*local disk") as caught:
        refuse_network(shared / "new" / "journal.db", mounts)
    assert caught.value.file_system == "nfs4"
    refuse_network(shared / "local" / "journal.db", mounts)
    refuse_network(tmp_path / "shared diskette", mounts)
    assert file_system_of(tmp_path, mounts) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "no such file") == ""


@on_durable
def test_stores_refuse_a_network_file_system_before_they_touch_it(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"99 21 0:50 / {tmp_path} rw - cifs //server/share rw\n")
    monkeypatch.setattr("sessiontree.stores._io.refuse_network.__defaults__", (mounts,))
    with pytest.raises(st.NetworkFileSystemError, match="cifs"):
        open_journal(store, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("body", [b"not json", b"\xff\xfe", b'{"type":"user_message"}', b"[]"])
def test_a_spoiled_body_is_shown_as_damaged_and_hides_no_neighbour(tmp_path: Path, body: bytes) -> None:
    with open_journal("sqlite", tmp_path) as journal:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
    with sqlite3.connect(tmp_path / "journal") as connection:
        connection.execute("UPDATE entry SET body = ? WHERE id = 'b'", (body,))
    connection.close()
    with open_journal("sqlite", tmp_path) as journal:
        assert ids(journal.path("t")) == ids(journal.entries("t")) == ["a", "b", "c"]
        assert journal.entry("t", "b").type == "damaged"
        assert "b" in {finding.entry_id for finding in journal.check()}
        fill(journal, "t", "d")


@pytest.mark.parametrize(
    ("damage", "kind", "shown"),
    [
        ("UPDATE entry SET parent = 3 WHERE key = 1", "cycle", "a b c"),
        ("UPDATE entry SET parent = 2 WHERE key = 2", "cycle", "b c"),
        ("UPDATE entry SET parent = 99 WHERE key = 2", "parent", "b c"),
        ("UPDATE thread SET leaf = 99 WHERE id = 't'", "leaf", ""),
        ("UPDATE entry SET depth = 7 WHERE key = 2", "counters", "a b c"),
        ("DELETE FROM move WHERE number = 1", "reflog", "a b c"),
    ],
)
def test_a_spoiled_chain_never_hangs_hides_nothing_and_is_found(
    tmp_path: Path, damage: str, kind: str, shown: str
) -> None:
    """In a child with a time limit, as a loop inside SQLite could not be interrupted here."""
    with open_journal("sqlite", tmp_path) as journal:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.rewind("t", "a")
        journal.undo("t")
    with sqlite3.connect(tmp_path / "journal") as connection:
        connection.execute(damage)
    connection.close()
    printed = _in_child(
        tmp_path,
        """
        print(*(entry.id for entry in journal.path("t")))
        print(*(entry.id for entry in journal.entries("t")))
        print(*(finding.kind for finding in journal.check()))
        print(journal.append("t", st.user("d"), id="d").id)
        """,
    )
    assert printed[:2] == [shown, "a b c"]
    assert kind in printed[2].split()
    assert printed[3] == "d"


@pytest.mark.parametrize("url", ["", "mysql://x", "sqlite:", "sqlite:///", "sqlite://host/x", "jsonl:///", "memory:x"])
def test_an_address_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(st.StoreUrlError, match="use memory:"):
        st.open(url)


def _content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _in_child(folder: Path, code: str) -> list[str]:
    head = f"import sessiontree as st\njournal = st.open({url_of('sqlite', folder)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.splitlines()
