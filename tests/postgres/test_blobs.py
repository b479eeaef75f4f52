"""Workspace checkpoints in PostgreSQL: blobs are put once, stay while needed, and go with the last who sees them."""

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import sessiontree as st
from known import present
from postgres_server import CLUSTER, empty_database, make_schema, process_database, with_options
from sessiontree.model.blobs import CHUNK_BYTES, blob_of, data_of
from sessiontree.stores.commands import PutBlobs
from sessiontree.stores.postgres import bind_role
from sessiontree.stores.postgres.schema import MIGRATIONS
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs
from sessiontree.testing import SyncOverAsync
from sessiontree.workspace.disk import Disk

BLOB_TABLES = ("blob", "chunk", "checkpoint")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return with_options(process_database(), namespace=tmp_path)


@pytest.fixture(params=["sync", "async"])
def journal(request: pytest.FixtureRequest, url: str) -> Iterator[st.Journal]:
    with st.open(url) if request.param == "sync" else SyncOverAsync(st.open_async(url)) as opened:
        opened.create_thread("t")
        yield opened
        assert opened.check() == []


@pytest.fixture
def plain(url: str) -> Iterator[st.Journal]:
    with st.open(url) as opened:
        opened.create_thread("t")
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def snapshot(journal: st.Journal, root: Path, thread: str = "t") -> str:
    said = journal.append(thread, st.user("x")).id
    journal.workspace.snapshot(thread, said, root)
    return said


def rows(namespace: Path, table: str) -> int:
    with psycopg.connect(process_database()) as connection:
        question = f"SELECT count(*) FROM sessiontree.{table} WHERE namespace = %s"
        return int(present(connection.execute(question, (str(namespace),)).fetchone())[0])


def put(journal: st.Journal, *datas: bytes) -> list[str]:
    blobs = [blob_of(data) for data in datas]
    journal.store.commit(PutBlobs(blobs=tuple(blobs)))
    return [blob.hash for blob in blobs]


def relying_on(*hashes: str) -> st.NewEntry:
    return st.NewEntry(content=st.Checkpoint(root="/w", manifest=""), blobs=tuple(hashes))


def test_files_and_conversation_go_back_and_forth(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = snapshot(journal, root)
    (root / "a").write_text("two")
    (root / "b").write_text("new")
    journal.append("t", st.assistant("done"))
    journal.rewind("t", one, files=root)
    assert not (root / "b").exists()
    assert (root / "a").read_text() == "one"
    journal.undo("t")
    assert ((root / "a").read_text(), (root / "b").read_text()) == ("two", "new")
    journal.redo("t")
    assert (root / "a").read_text() == "one"


def test_the_last_thread_that_sees_a_checkpoint_takes_its_files_along(
    journal: st.Journal, root: Path, tmp_path: Path
) -> None:
    (root / "shared").write_text("shared")
    snapshot(journal, root)
    journal.fork("t", new_id="fork")
    (root / "own").write_bytes(random.Random(1).randbytes(CHUNK_BYTES + 1))
    snapshot(journal, root)
    assert (rows(tmp_path, "blob"), rows(tmp_path, "chunk"), rows(tmp_path, "checkpoint")) == (4, 4, 2)
    journal.delete_thread("t")
    assert (rows(tmp_path, "blob"), rows(tmp_path, "chunk"), rows(tmp_path, "checkpoint")) == (2, 1, 1)
    assert journal.check() == []
    journal.delete_thread("fork")
    assert [rows(tmp_path, table) for table in BLOB_TABLES] == [0, 0, 0]


def test_a_pack_that_loses_a_blob_keeps_the_others_and_not_a_byte_of_it(
    plain: st.Journal, root: Path, tmp_path: Path
) -> None:
    source = random.Random(2)
    for name in ("before", "secret", "empty", "after"):
        (root / name).write_bytes(source.randbytes(3000) if name != "empty" else b"")
    secret = (root / "secret").read_bytes()
    snapshot(plain, root)
    (root / "secret").unlink()
    plain.create_thread("u")
    said = snapshot(plain, root, "u")
    assert is_kept(tmp_path, secret)
    plain.delete_thread("t")
    assert not is_kept(tmp_path, secret)
    assert plain.check() == []
    kept = {name: (root / name).read_bytes() for name in ("before", "empty", "after")}
    for name in kept:
        (root / name).write_text("changed")
    plain.rewind("u", said, files=root)
    assert {name: (root / name).read_bytes() for name in kept} == kept


def is_kept(namespace: Path, data: bytes) -> bool:
    with psycopg.connect(process_database()) as connection:
        question = "SELECT count(*) FROM sessiontree.chunk WHERE namespace = %s AND position(%s::bytea in body) > 0"
        return int(present(connection.execute(question, (str(namespace), data)).fetchone())[0]) > 0


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7])
def test_a_blob_of_any_size_comes_back(plain: st.Journal, tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    (name,) = put(plain, data)
    assert rows(tmp_path, "chunk") == -(-size // CHUNK_BYTES)
    (blob,) = plain.store.read(ReadBlobs(hashes=(name,)))
    assert data_of(blob) == data
    assert plain.stats().bytes == size


def test_blobs_are_answered_in_the_order_asked_for_and_missing_ones_are_named(plain: st.Journal) -> None:
    one, two = put(plain, b"one", b"two")
    unknown = blob_of(b"three").hash
    assert plain.store.read(FindMissingBlobs(hashes=(one, unknown, two))) == {unknown}
    assert [blob.hash for blob in plain.store.read(ReadBlobs(hashes=(two, one, two)))] == [two, one, two]
    with pytest.raises(st.BlobNotFoundError) as raised:
        plain.store.read(ReadBlobs(hashes=(one, unknown)))
    assert raised.value.hash == unknown


def test_an_entry_that_needs_a_blob_which_is_not_there_is_refused(journal: st.Journal, url: str) -> None:
    with st.open(url) as other:
        (there,) = put(other, b"there")
    gone = blob_of(b"gone").hash
    with pytest.raises(st.MissingBlobsError) as raised:
        journal.append_many("t", [relying_on(there, gone)])
    assert raised.value.hashes == (gone,)
    assert journal.path("t") == []
    journal.append_many("t", [relying_on(there)])


def test_before_the_first_blob_every_blob_is_missing(plain: st.Journal) -> None:
    with pytest.raises(st.MissingBlobsError):
        plain.append_many("t", [relying_on(blob_of(b"x").hash)])


DIES_BETWEEN = """
import os, signal, sys, sessiontree as st
from sessiontree.stores.commands import Append
journal = st.open(sys.argv[1])
commit = journal.store.commit
def dying(command):
    if isinstance(command, Append) and command.drafts[0].blobs:
        os.kill(os.getpid(), signal.SIGKILL)
    return commit(command)
journal.store.commit = dying
journal.workspace.snapshot("u", journal.append("u", st.user("x")).id, sys.argv[2])
"""


def test_what_a_killed_snapshot_left_goes_with_the_next_collection(
    plain: st.Journal, url: str, root: Path, tmp_path: Path
) -> None:
    (root / "a").write_text("kept")
    snapshot(plain, root)
    plain.create_thread("u")
    (root / "b").write_text("never referred to")
    died = subprocess.run([sys.executable, "-c", DIES_BETWEEN, url, root], check=False, timeout=60)
    assert died.returncode == -9
    assert rows(tmp_path, "checkpoint") == 1
    assert rows(tmp_path, "blob") > 2
    assert plain.check() == []
    (root / "b").unlink()
    plain.create_thread("v")
    snapshot(plain, root, "v")
    plain.delete_thread("t")
    assert blob_of(b"never referred to").hash in plain.store.read(
        FindMissingBlobs(hashes=(blob_of(b"never referred to").hash, blob_of(b"kept").hash))
    )
    assert plain.check() == []


def test_a_collection_waits_for_an_append_that_relies_on_blobs(plain: st.Journal, url: str, root: Path) -> None:
    """The append is held open between its look at the blobs and its commit; the delete must not slip through."""
    (root / "a").write_text("shared content")
    snapshot(plain, root)
    with psycopg.connect(process_database()) as appending:
        appending.execute("SELECT 1 FROM sessiontree.stock WHERE namespace = %s FOR KEY SHARE", (str(root.parent),))
        with ThreadPoolExecutor(1) as pool:
            deleting = pool.submit(plain.delete_thread, "t")
            _wait_for_a_waiter(appending)
            assert not deleting.done()
            appending.rollback()
            deleting.result(30)
    assert plain.stats().bytes == 0


def test_an_append_that_relies_on_blobs_waits_for_a_collection(plain: st.Journal, root: Path) -> None:
    """Blobs that the collection takes are missing then, however early the append came."""
    (name,) = put(plain, b"about to go")
    with psycopg.connect(process_database()) as collecting:
        namespace = str(root.parent)
        collecting.execute("SELECT 1 FROM sessiontree.stock WHERE namespace = %s FOR UPDATE", (namespace,))
        with ThreadPoolExecutor(1) as pool:
            appending = pool.submit(plain.append_many, "t", [relying_on(name)])
            _wait_for_a_waiter(collecting)
            collecting.execute("DELETE FROM sessiontree.blob WHERE namespace = %s", (namespace,))
            collecting.commit()
            with pytest.raises(st.MissingBlobsError):
                appending.result(30)


def _wait_for_a_waiter(connection: psycopg.Connection) -> None:
    """Until some other session waits for a lock that this one holds."""
    question = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    if CLUSTER:  # where the locks are on other nodes, and a process is known by the number of its node and its own
        question = "SELECT count(*) FROM citus_lock_waits WHERE blocking_gpid %% 10000000000 = %s"
    with psycopg.connect(process_database(), autocommit=True) as looking:
        while looking.execute(question, (connection.info.backend_pid,)).fetchone() == (0,):
            pass


def test_snapshots_and_deletes_at_once_leave_no_checkpoint_without_its_files(url: str, root: Path) -> None:
    """Everybody has the same files, so every delete would collect what the others are about to rely on."""
    for name in "abc":
        (root / name).write_text(name)
    problems: list[BaseException] = []

    def work(journal: st.Journal, number: int) -> None:
        try:
            for turn in range(6):
                thread = f"{number}-{turn}"
                journal.create_thread(thread)
                snapshot(journal, root, thread)
                if turn < 5:
                    journal.delete_thread(thread)
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    with st.open(url) as journal:
        workers = [threading.Thread(target=work, args=(journal, number)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert problems == []
        assert journal.check() == []
        assert len(journal.list_threads()) == 3


def test_the_same_blobs_put_by_many_at_once_are_there_once(plain: st.Journal, tmp_path: Path) -> None:
    datas = [random.Random(number).randbytes(2000) for number in range(50)]
    with ThreadPoolExecutor(4) as pool:
        puts = [pool.submit(put, plain, *random.Random(n).sample(datas, 50)) for n in range(8)]
        for done in puts:
            done.result(30)
    assert rows(tmp_path, "blob") == 50


def test_namespaces_do_not_share_blobs(plain: st.Journal, tmp_path: Path, root: Path) -> None:
    (root / "a").write_text("the same content")
    snapshot(plain, root)
    other = with_options(process_database(), namespace=f"{tmp_path}/other")
    with st.open(other) as journal:
        journal.create_thread("t")
        name = blob_of(b"the same content").hash
        assert journal.store.read(FindMissingBlobs(hashes=(name,))) == {name}
        with pytest.raises(st.MissingBlobsError):
            journal.append_many("t", [relying_on(name)])
        snapshot(journal, root)
        journal.delete_thread("t")
        assert rows(tmp_path / "other", "blob") == 0
    assert plain.check() == []
    assert rows(tmp_path, "blob") == 2


def test_doctor_finds_blobs_that_are_damaged_cut_short_or_gone(plain: st.Journal, tmp_path: Path, root: Path) -> None:
    for name, size in (("damaged", 5000), ("cut", CHUNK_BYTES + 5), ("gone", 5000), ("sound", 5000)):
        (root / name).write_bytes(random.Random(name).randbytes(size))
    snapshot(plain, root)
    names = {name: blob_of((root / name).read_bytes()).hash for name in ("damaged", "cut", "gone")}
    with psycopg.connect(process_database()) as connection:
        places = {
            name: present(
                connection.execute(
                    "SELECT pack, start FROM sessiontree.blob WHERE hash = %s AND namespace = %s",
                    (bytes.fromhex(names[name]), str(tmp_path)),
                ).fetchone()
            )
            for name in names
        }
        damage = (
            "UPDATE sessiontree.chunk SET body = overlay(body PLACING '\\x00ff00' FROM %s::integer) WHERE pack = %s"
        )
        connection.execute(damage, (places["damaged"][1] + 9, places["damaged"][0]))
        connection.execute("DELETE FROM sessiontree.chunk WHERE number = 1 AND pack = %s", (places["cut"][0],))
        connection.execute("DELETE FROM sessiontree.blob WHERE hash = %s", (bytes.fromhex(names["gone"]),))
    problems = [finding.problem for finding in plain.check() if finding.kind == "blob"]
    assert len(problems) == 3
    assert all(any(name in problem for problem in problems) for name in names.values())


def test_a_store_from_before_checkpoints_is_upgraded_with_its_tenants(tmp_path: Path, root: Path) -> None:
    database = empty_database()
    old = with_options(database, namespace="acme")
    role = f"tenant_{tmp_path.name[-8:]}_{random.SystemRandom().randrange(10**9)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{role}" LOGIN')
        make_schema(database, MIGRATIONS[:1])
        for table in ("thread", "head", "entry", "home", "move", "departed", "document", "horizon"):
            connection.execute(f'GRANT SELECT, INSERT, UPDATE, DELETE ON sessiontree.{table} TO "{role}"')
            connection.execute(
                f'CREATE POLICY "{role} in acme" ON sessiontree.{table} TO "{role}"'
                " USING (namespace = 'acme') WITH CHECK (namespace = 'acme')"
            )
        connection.execute(f'GRANT USAGE ON SCHEMA sessiontree TO "{role}"')
        connection.execute(f'GRANT SELECT ON sessiontree.migration TO "{role}"')
    with st.open(old) as journal:
        journal.create_thread("t")
    (root / "a").write_text("acme's")
    with st.open(old.replace("postgres@", f"{role}@")) as journal:
        said = snapshot(journal, root)
        (root / "a").write_text("changed")
        journal.rewind("t", said, files=root)
        assert (root / "a").read_text() == "acme's"
        assert journal.check() == []
    bind_role(database, role, "acme")
    with st.open(with_options(database, namespace="rival")) as journal:
        put(journal, b"rival's")
    tenant = database.replace("postgres@", f"{role}@")
    with psycopg.connect(tenant, autocommit=True) as connection:
        for table in ("stock", "blob", "checkpoint"):
            assert connection.execute(f"SELECT DISTINCT namespace FROM sessiontree.{table}").fetchall() == [("acme",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO sessiontree.stock VALUES ('rival')")
    with st.open(with_options(tenant, namespace="acme")) as journal:
        journal.delete_thread("t")
        assert journal.stats().bytes == 0


def test_a_program_from_before_checkpoints_may_delete_beside_a_new_one(
    plain: st.Journal, url: str, root: Path, tmp_path: Path
) -> None:
    """It leaves the marks of the entries that it deletes; they keep nothing."""
    (root / "a").write_text("old")
    snapshot(plain, root)
    with psycopg.connect(process_database()) as connection:
        kept = connection.execute(
            "SELECT tree, owner, seq, namespace, manifest FROM sessiontree.checkpoint WHERE namespace = %s",
            (str(tmp_path),),
        ).fetchone()
    plain.delete_thread("t")
    with psycopg.connect(process_database()) as connection:
        connection.execute("INSERT INTO sessiontree.checkpoint VALUES (%s, %s, %s, %s, %s)", kept)
    assert plain.check() == []
    plain.create_thread("u")
    (root / "a").write_text("new")
    snapshot(plain, root, "u")
    plain.delete_thread("u")
    assert rows(tmp_path, "blob") == 0


def test_an_interrupted_restore_is_settled_by_its_own_namespace_alone(root: Path, tmp_path: Path) -> None:
    """Threads of two tenants may have the same name; only one of them knows whether its leaf moved."""
    addresses = [with_options(process_database(), namespace=f"{tmp_path}/{name}") for name in ("one", "two")]
    with st.open(addresses[0]) as one, st.open(addresses[1]) as two:
        assert one.workspace.cache.place != two.workspace.cache.place
        for journal in (one, two):
            journal.create_thread("t")
        (root / "a").write_text("one")
        entry = one.append("t", st.user("x")).id
        one.workspace.snapshot("t", entry, root)
        (root / "a").write_text("two")

        class Untidy(Disk):
            """Everything is done but the tidying up."""

            def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
                if to_name == "restore.done":
                    raise OSError(5, "Input/output error")
                super().rename(from_fd, from_name, to_fd, to_name)

        one.workspace.cache.disk = Untidy()
        one.rewind("t", entry, files=root)
        with pytest.raises(st.PendingRestoreError):
            two.workspace.recover(root)
        one.workspace.cache.disk = Disk()
        assert one.workspace.recover(root) == "new"
        assert (root / "a").read_text() == "one"
