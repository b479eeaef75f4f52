"""Namespaces keep tenants apart; a role that is bound to one cannot reach another, whatever it sends."""

import secrets

import psycopg
import pytest

import sessiontree as st
from postgres_server import with_options
from sessiontree.stores.postgres import bind_role


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
