"""The tables over several nodes: one verb distributes them, and a command about one thread is one command to one node."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import sessiontree as st
from cli_shell import Shell
from known import of_kind
from postgres_server import CLUSTER, empty_database, make_schema, new_database, process_database, with_options
from sessiontree.stores.commands import Redo, Undo
from sessiontree.stores.postgres import PostgresStore, bind_role, distribute, distribution
from sessiontree.stores.postgres.distribution import DISTRIBUTED_BY, Distribution
from sessiontree.stores.postgres.functions import WRITE_THREAD
from sessiontree.stores.postgres.schema import MIGRATIONS, TABLES
from sessiontree.stores.postgres.unsampled import UNSAMPLED

on_cluster = pytest.mark.skipif(not CLUSTER, reason="SESSIONTREE_TEST_CITUS_DSN does not name a Citus coordinator")
Verb = Callable[[st.Journal], object]

_TITLE_SHARDS = """
SELECT sum(result::integer) FROM run_command_on_workers(
    $$SELECT count(*) FROM pg_indexes WHERE schemaname = 'sessiontree' AND indexname ~ 'thread_title_parts_[0-9]+$'$$)"""
_SAMPLED_SHARDS = """
SELECT sum(result::integer) FROM run_command_on_workers(
    $$SELECT count(*) FROM pg_attribute WHERE attrelid::regclass::text ~ 'sessiontree.*_[0-9]+$' AND attname = 'body'
        AND attstattarget <> 0$$)"""
_BODIES = """
SELECT md5(string_agg(prosrc || coalesce(proconfig::text, ''), '' ORDER BY proname))
FROM pg_proc WHERE pronamespace = 'sessiontree'::regnamespace"""
_BODIES_ON_WORKERS = f"SELECT result FROM run_command_on_workers($$ {_BODIES} $$)"


def test_every_table_but_that_of_locks_has_a_column_to_be_distributed_by() -> None:
    assert {*DISTRIBUTED_BY, "stock"} == set(TABLES)


@pytest.mark.skipif(bool(CLUSTER), reason="the server has Citus")
def test_a_server_without_citus_is_named(database: str) -> None:
    with pytest.raises(st.StoreError, match="has no Citus"):
        distribute(database)


def test_a_number_of_shards_that_cannot_be_is_refused() -> None:
    with pytest.raises(st.InvalidInputError, match="shards"):
        distribute("postgresql://nowhere/x", shards=0)


def test_the_command_is_for_postgresql_only(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    failed = shell.run("postgres", "distribute", "--store", str(tmp_path / "x.db"), code=2)
    assert "is no PostgreSQL store" in failed.stderr


def test_a_batch_is_not_passed_on_whole_for_each_of_its_entries() -> None:
    """Citus copies the values of a statement into its plan, which it makes for each entry: an array would be copied each time."""
    statements = re.findall(r"INSERT INTO sessiontree.entry .*?;", WRITE_THREAD, re.DOTALL)
    assert len(statements) == 1
    assert not re.search(r"p_words|p_numbers", statements[0])


@on_cluster
def test_a_database_without_tables_is_named() -> None:
    with pytest.raises(st.StoreError, match="open the store once before"):
        distribute(empty_database())


@on_cluster
def test_rows_from_before_are_moved_and_what_an_upgrade_adds_is_found_by_doctor(tmp_path: Path) -> None:
    database = empty_database()
    with st.open(database) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("before"), id="a")
        journal.documents.put("app", "k", {"n": 1})
    shell = Shell(tmp_path)
    done = shell.json("postgres", "distribute", "--shards", "4", "--store", database)
    assert set(done["tables"]) == set(DISTRIBUTED_BY)
    with st.open(database) as journal, psycopg.connect(database, autocommit=True) as connection:
        assert [entry.id for entry in journal.path("t")] == ["a"]
        assert journal.check() == []
        connection.execute("SELECT undistribute_table('sessiontree.json_document')")
        (finding,) = journal.check()
        assert (finding.kind, "json_document is not distributed" in finding.problem) == ("placement", True)
        assert distribute(database, 4).tables == ("json_document",)
        assert journal.documents.get("app", "k") is not None
        assert (journal.check(), distribute(database)) == ([], distribute(database))


@on_cluster
def test_a_distributed_store_of_schema_11_is_upgraded_on_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the function that the new index is made of. Functions that the upgrade replaces are without their setting."""
    database = empty_database()
    make_schema(database, MIGRATIONS[:11])
    with monkeypatch.context() as earlier:
        earlier.setattr(distribution, "STILL_SAMPLED", "SELECT 1 WHERE false")
        distribute(database, 4)
    with st.open(database) as journal:
        journal.create_thread("t", title="Mend the build")
        journal.append("t", st.user("x"))
        assert [thread.id for thread in journal.list_threads(title_contains="build")] == ["t"]
        assert {finding.kind for finding in journal.check()} == {"placement"}
        assert distribute(database) == Distribution(
            tables=tuple(sorted(UNSAMPLED)), functions=("append_entry", "write_thread", "thread_now")
        )
        assert (journal.check(), distribute(database)) == ([], Distribution())
        journal.append("t", st.user("y"))
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute(_TITLE_SHARDS).fetchone() == (4,)
        assert connection.execute(_SAMPLED_SHARDS).fetchone() == (0,)
        assert set(connection.execute(_BODIES_ON_WORKERS)) == set(connection.execute(_BODIES))


@on_cluster
def test_locks_against_the_collection_of_blobs_return_to_the_coordinator() -> None:
    """On a node they would end with its part of a commit, while others have not committed theirs."""
    database = new_database()
    role = f"tenant_{secrets.token_hex(4)}"
    with (
        st.open(with_options(database, namespace="acme")) as journal,
        psycopg.connect(database, autocommit=True) as owner,
    ):
        owner.execute(f"CREATE ROLE {role} LOGIN")
        bind_role(database, role, "acme")
        journal.put_artifact(b"picture", mime="image/png")
        owner.execute("SELECT create_distributed_table('sessiontree.stock', 'namespace', colocate_with => 'none')")
        (finding,) = journal.check()
        assert "stock" in finding.problem
        assert distribute(database).tables == ("stock",)
        assert (journal.check(), distribute(database)) == ([], Distribution())
    with psycopg.connect(database.replace("postgres@", f"{role}@")) as tenant:
        assert tenant.execute("SELECT namespace FROM sessiontree.stock").fetchall() == [("acme",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            tenant.execute("INSERT INTO sessiontree.stock VALUES ('rival')")


@pytest.fixture
def spied(tmp_path: Path) -> Iterator[tuple[st.Journal, list[str]]]:
    """A journal with one connection, and the commands that the coordinator sends to other nodes for it."""
    url = with_options(process_database(), namespace=tmp_path, pool_size=1, options="-c citus.log_remote_commands=on")
    sent: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        text = f"{notice.message_primary}\n{notice.message_detail}"
        if found := re.match(r"issuing (.*)", text, re.DOTALL):
            sent.append(found[1])

    with st.open(url) as journal:
        with of_kind(PostgresStore, journal.store)._pool.connection() as connection:
            connection.add_notice_handler(hear)
        journal.create_thread("t", title="Mine")
        for name in ("a", "b", "c"):
            journal.append("t", st.user(name), id=name)
        yield journal, sent


def refused(journal: st.Journal) -> None:
    with pytest.raises(st.StaleLeafError):
        journal.append("t", st.user("x"), expect_leaf="a")


ONE_COMMAND: dict[str, Verb] = {
    "append": lambda journal: journal.append("t", st.user("x")),
    "append with an id, a leaf and fields": lambda journal: journal.append(
        "t", st.user("x"), id="d", expect_leaf="c", fields={"title": "New"}
    ),
    "append_many": lambda journal: journal.append_many("t", [st.user("x"), st.user("y")]),
    "append that is refused": refused,
    "path": lambda journal: journal.path("t"),
    "thread": lambda journal: journal.thread("t"),
    "entry": lambda journal: journal.entry("t", "a"),
    "acquire_lease": lambda journal: journal.acquire_lease("t", owner="me"),
    "rewind": lambda journal: journal.rewind("t", "a"),
    "update_thread": lambda journal: journal.update_thread("t", title="New"),
}


@on_cluster
@pytest.mark.parametrize("verb", ONE_COMMAND)
def test_a_verb_about_one_thread_is_one_command_to_one_node(spied: tuple[st.Journal, list[str]], verb: str) -> None:
    journal, sent = spied
    journal.thread("t")
    sent.clear()
    ONE_COMMAND[verb](journal)
    assert len(sent) == 1, sent


@on_cluster
def test_undo_redo_and_a_lease_to_its_end_are_one_command_each(spied: tuple[st.Journal, list[str]]) -> None:
    journal, sent = spied
    journal.rewind("t", "a")
    lease = journal.acquire_lease("t", owner="me")
    sent.clear()
    journal.store.commit(Undo(thread_id="t", at_ns=1))
    journal.store.commit(Redo(thread_id="t", at_ns=2))
    lease = journal.renew_lease(lease)
    journal.release_lease(lease)
    assert len(sent) == 4, sent


@on_cluster
def test_undo_and_redo_after_another_writer_are_two_commands_each(
    spied: tuple[st.Journal, list[str]], tmp_path: Path
) -> None:
    """One that reads the moves, one that writes."""
    journal, sent = spied
    with st.open(with_options(process_database(), namespace=tmp_path)) as other:
        for verb in (journal.undo, journal.redo):
            other.rewind("t", "b")
            other.rewind("t", "a")
            other.undo("t")
            sent.clear()
            verb("t")
            assert len(sent) == 2, sent
