"""Namespaces keep tenants apart; a role that is bound to one cannot reach another, whatever it sends."""

import secrets

import psycopg
import pytest

import sessiontree as st
from postgres_server import with_options
from sessiontree.stores.postgres import bind_role
from sessiontree.stores.postgres.listen import channel_of


@pytest.fixture
def role(database):
    """A role that may log in and nothing else."""
    name = f"tenant_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
    return name


@pytest.fixture
def tenants(database, role):
    """Two tenants with a thread each; ``role`` is bound to the first."""
    for tenant in ("acme", "rival"):
        with st.open(with_options(database, namespace=tenant)) as journal:
            journal.create_thread("t", title=tenant)
            journal.append("t", st.user(f"secret of {tenant}"), id="e")
    bind_role(database, role, "acme")
    return database.replace("postgres@", f"{role}@")


def test_the_same_ids_in_two_namespaces_are_two_threads(tenants, database):
    with st.open(with_options(database, namespace="rival")) as journal:
        journal.delete_thread("t")
    with st.open(with_options(database, namespace="acme")) as journal:
        assert journal.thread("t").title == "acme"
        assert journal.stats().threads == 1
        assert journal.check() == []


def test_a_bound_role_works_in_its_namespace(tenants):
    with st.open(with_options(tenants, namespace="acme")) as journal:
        journal.append("t", st.user("mine"))
        fork = journal.fork("t")
        with journal.turn(fork.id) as turn:
            turn.append(st.assistant("yes"))
        journal.rewind("t", "e")
        assert len(journal.list_threads()) == 2
        journal.delete_thread(fork.id)
        assert journal.check() == []


def test_a_bound_role_sees_nothing_of_another_namespace(tenants):
    with st.open(with_options(tenants, namespace="rival")) as journal:
        assert len(journal.list_threads()) == 0
        with pytest.raises(st.ThreadNotFoundError):
            journal.path("t")


def test_a_bound_role_writes_nothing_into_another_namespace(tenants):
    with st.open(with_options(tenants, namespace="rival")) as journal:
        with pytest.raises(st.StoreAccessError):
            journal.create_thread("mine now")
        with pytest.raises(st.NotFoundError):
            journal.append("t", st.user("x"))


def test_the_server_itself_keeps_the_rows_apart(tenants):
    with psycopg.connect(tenants, autocommit=True) as connection:
        for table in ("home", "thread", "head", "entry"):
            assert connection.execute(f"SELECT DISTINCT namespace FROM sessiontree.{table}").fetchall() == [("acme",)]
        assert connection.execute("UPDATE sessiontree.head SET fence = 9 WHERE namespace = 'rival'").rowcount == 0
        assert connection.execute("DELETE FROM sessiontree.entry WHERE namespace = 'rival'").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE sessiontree.entry SET namespace = 'rival'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO sessiontree.home (id, namespace) VALUES ('x', 'rival')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("ALTER TABLE sessiontree.entry DISABLE ROW LEVEL SECURITY")


def test_a_role_that_is_bound_to_nothing_is_refused(database, role):
    st.open(database).close()
    with pytest.raises(st.StoreAccessError):
        st.open(database.replace("postgres@", f"{role}@"))


def test_a_role_may_be_bound_to_namespaces_whose_long_names_begin_alike(database, role):
    st.open(database).close()
    names = [f"{'tenant' * 12}-{number}" for number in range(2)]
    for name in names:
        bind_role(database, role, name)
    for name in names:
        with st.open(with_options(database.replace("postgres@", f"{role}@"), namespace=name)) as journal:
            assert journal.create_thread("t").id == "t"


def test_a_bound_role_searches_snapshots_and_copies_within_its_namespace_only(tenants, tmp_path):
    (tmp_path / "f").write_text("content")
    with st.open(with_options(tenants, namespace="acme")) as journal, st.open("memory:") as copy:
        journal.workspace.snapshot("t", "e", tmp_path)
        assert [hit.entry.message.text for hit in journal.search("secret").hits] == ["secret of acme"]
        assert st.copy_store(journal, copy).threads == 1
        assert journal.check() == []
    with st.open(with_options(tenants, namespace="rival")) as rival, st.open("memory:") as mine:
        mine.create_thread("smuggled")
        with pytest.raises(st.StoreAccessError):
            st.copy_store(mine, rival)
        with pytest.raises(st.StoreAccessError):
            rival.search("secret")
    with psycopg.connect(tenants) as connection:
        for table in ("blob", "chunk", "stock", "checkpoint", "search_block", "horizon"):
            assert connection.execute(f"SELECT DISTINCT namespace FROM sessiontree.{table}").fetchall() in (
                [],
                [("acme",)],
            )


def test_notifications_of_one_namespace_do_not_wake_another(tenants, database):
    with psycopg.connect(tenants, autocommit=True) as ear:
        ear.execute(f"LISTEN {channel_of('acme')}")
        for tenant in ("rival", "acme"):
            with st.open(with_options(database, namespace=tenant)) as journal:
                watched = journal.watch("t", timeout=5)
                journal.append("t", st.user("new"), id="new")
                assert next(watched).id == "new"
                (place,) = ear.execute("SELECT tree || ':' || key FROM sessiontree.head").fetchone()
                journal.append("t", st.user("newer"))
        heard = {notice.payload for notice in ear.notifies(timeout=5, stop_after=1)}
    assert heard == {place}


def test_strange_notifications_are_not_kept(tenants, database):
    with (
        st.open(with_options(database, namespace="acme")) as journal,
        psycopg.connect(tenants, autocommit=True) as tenant,
    ):
        watched = journal.watch("t", timeout=10)
        journal.append("t", st.user("a"), id="a")
        assert next(watched).id == "a"
        for number in range(50):
            tenant.execute("SELECT pg_notify(%s, %s)", (channel_of("acme"), f"{number}{'x' * 7000}"))
        journal.append("t", st.user("b"), id="b")
        assert next(watched).id == "b"
        assert len(journal.store._listener._notices._topics) == 1
