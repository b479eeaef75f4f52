"""Namespaces keep tenants apart; a role that is bound to one cannot reach another, whatever it sends."""

import re
import secrets
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import sessiontree as st
from known import of_kind, present
from postgres_server import with_options
from sessiontree.stores.postgres import PostgresStore, bind_role


@pytest.fixture
def role(database: str) -> str:
    """A role that may log in and nothing else."""
    name = f"tenant_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
    return name


@pytest.fixture
def tenants(database: str, role: str) -> str:
    """Two tenants with a thread each; ``role`` is bound to the first."""
    for tenant in ("acme", "rival"):
        with st.open(with_options(database, namespace=tenant)) as journal:
            journal.create_thread("t", title=tenant)
            journal.append("t", st.user(f"secret of {tenant}"), id="e")
    bind_role(database, role, "acme")
    return database.replace("postgres@", f"{role}@")


def channel_of(database: str, namespace: str) -> str:
    with psycopg.connect(database) as owner:
        question = "SELECT name FROM sessiontree.channel WHERE namespace = %s"
        return str(present(owner.execute(question, (namespace,)).fetchone())[0])


def test_the_same_ids_in_two_namespaces_are_two_threads(tenants: str, database: str) -> None:
    with st.open(with_options(database, namespace="rival")) as journal:
        journal.delete_thread("t")
    with st.open(with_options(database, namespace="acme")) as journal:
        assert journal.thread("t").title == "acme"
        assert journal.stats().threads == 1
        assert journal.check() == []


def test_a_bound_role_works_in_its_namespace(tenants: str) -> None:
    with st.open(with_options(tenants, namespace="acme")) as journal:
        journal.append("t", st.user("mine"))
        fork = journal.fork("t")
        with journal.turn(fork.id) as turn:
            turn.append(st.assistant("yes"))
        journal.rewind("t", "e")
        assert len(journal.list_threads()) == 2
        journal.delete_thread(fork.id)
        assert journal.check() == []


def test_a_bound_role_cannot_open_another_namespace(tenants: str) -> None:
    for namespace in ("rival", "nobody's"):
        with pytest.raises(st.StoreAccessError, match="row-level security"):
            st.open(with_options(tenants, namespace=namespace))


def test_rows_in_the_tree_of_another_tenant_get_in_nobodys_way(tenants: str, database: str) -> None:
    """The attack of a bound role that has learnt the number of another's tree."""
    with psycopg.connect(database, row_factory=dict_row) as owner:
        head = present(owner.execute("SELECT * FROM sessiontree.head WHERE namespace = 'rival'").fetchone())
        rows = {
            table: owner.execute(f"SELECT * FROM sessiontree.{table} WHERE namespace = 'rival'").fetchall()
            for table in ("thread", "head", "entry")
        }
    with psycopg.connect(tenants, autocommit=True) as attacker:
        for table, found in rows.items():
            for row in found:
                # Where the rows of the other tenant are: a unique violation would say that they exist.
                planted = {**row, "namespace": "acme"}
                planted.pop("is_empty", None)  # generated
                _insert(attacker, table, planted)
        for number in range(1, 4):
            # Where its next entries will be.
            _insert(
                attacker, "entry", {**rows["entry"][0], "namespace": "acme", "seq": head["seq"] + number, "id": b"e2"}
            )
            attacker.execute("UPDATE sessiontree.entry SET id = id || %s WHERE id = 'e2'", (str(number).encode(),))
    with st.open(with_options(tenants, namespace="acme")) as journal:
        assert journal.search("secret", limit=50).hits  # its own copies, which are in its index now
    with st.open(with_options(database, namespace="rival")) as journal:
        journal.append("t", st.user("still mine"), id="e21")
        assert [present(entry.message).text for entry in journal.path("t")] == ["secret of rival", "still mine"]
        assert [entry.id for entry in journal.entries("t")] == ["e", "e21"]
        for word, expected in (("secret", ["e"]), ("mine", ["e21"])):
            assert [hit.entry.id for hit in journal.search(word, limit=50).hits] == expected
        fork = journal.fork("t")
        journal.rewind("t", "e")
        journal.delete_thread(fork.id)
        assert journal.check() == []
    with st.open(with_options(database, namespace="acme")) as journal:
        assert {finding.kind for finding in journal.check()} != set(), "what was planted is damage of its own namespace"


def _insert(connection: psycopg.Connection, table: str, row: dict[str, Any]) -> None:
    places = ", ".join("%s" for _ in row)
    connection.execute(f"INSERT INTO sessiontree.{table} ({', '.join(row)}) VALUES ({places})", list(row.values()))


_CHANNELS = "SELECT name FROM sessiontree.channel WHERE namespace IN ('acme', 'rival')"


def test_a_bound_role_learns_no_channel_but_its_own(tenants: str, database: str) -> None:
    with psycopg.connect(tenants) as tenant, psycopg.connect(database) as owner:
        names = {name for (name,) in owner.execute(_CHANNELS).fetchall()}
        own = tenant.execute("SELECT name FROM sessiontree.channel").fetchall()
    assert (len(names), len(own)) == (2, 1)
    assert all(len(name.removeprefix("sessiontree_")) == 32 for name in names)


def test_the_catalogue_of_policies_can_be_closed(tenants: str, database: str) -> None:
    """Policies name the namespaces of all tenants; a bound role works without seeing them."""
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("REVOKE SELECT ON pg_catalog.pg_policy, pg_catalog.pg_policies FROM PUBLIC")
    with psycopg.connect(tenants) as tenant, pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.execute("SELECT * FROM pg_catalog.pg_policies")
    with st.open(with_options(tenants, namespace="acme")) as journal:
        journal.append("t", st.user("works"))
        assert journal.thread("t").entries == 2


_CONTENTS = (
    ("entry", "body", "'a'::bytea"),
    ("thread", "body", "'a'::bytea"),
    ("thread", "title_folded", "'plan 7'::bytea"),
    ("search_block", "words", "'plan'"),
    ("search_block", "files", "'b'"),
    ("json_document", "body", "'a'::bytea"),
    ("chunk", "body", "'a'::bytea"),
)


def test_estimates_tell_a_bound_role_nothing_of_what_another_tenant_wrote(
    tenants: str, database: str, tmp_path: Path
) -> None:
    """Estimates are made of samples of all rows: compared with enough values, they would say what the samples are."""
    for name in ("acme", "rival"):
        with st.open(with_options(database, namespace=name)) as journal:
            for number in range(12):
                (tmp_path / name).write_text(f"content {number} of {name}")
                journal.create_thread(f"t{number}", title=f"Plan {number}")
                journal.append(f"t{number}", st.user(f"secret {number} of {name}"), id=f"e{number}")
                journal.documents.put("app", f"k{number}", {"secret": number, "of": name})
                journal.workspace.snapshot(f"t{number}", f"e{number}", tmp_path)
            journal.search("secret")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("ANALYZE")
    with psycopg.connect(tenants, autocommit=True) as tenant:
        for table, column, value in _CONTENTS:
            estimates = {
                tuple(re.findall(r"rows=(\d+)", "\n".join(row[0] for row in tenant.execute(question).fetchall())))
                for bound in ("''", value, "'z'")
                for question in (f"EXPLAIN SELECT 1 FROM sessiontree.{table} WHERE {column} < {bound}",)
            }
            assert len(estimates) == 1, f"{table}.{column}: {estimates}"


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("thread", "sessiontree.title_parts(title_folded) @> (sessiontree.title_parts('{words}'::bytea))[1:1]"),
        ("channel", "(name <= '{words}' OR generate_series IS NULL)"),
    ],
)
def test_estimates_tell_neither_titles_nor_channels_of_another_tenant(
    tenants: str, database: str, table: str, condition: str
) -> None:
    """An index of an expression has a sample of its own, and a channel that is known can be listened to."""
    for name, word in (("acme", "plan"), ("rival", "xylophone"), ("third", "plan")):
        with st.open(with_options(database, namespace=name)) as journal:
            for number in range(200):
                journal.create_thread(f"t{number}", title=f"{word} {number}")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("ANALYZE")
    with psycopg.connect(tenants, autocommit=True) as tenant:
        estimates = set()
        for words in ("xylophone", "qqqqqqqqq", "sessiontree_", "zzz"):
            asked = f"FROM sessiontree.{table}, generate_series(1, 1000000) WHERE {condition.format(words=words)}"
            plan = tenant.execute(f"EXPLAIN SELECT 1 {asked}").fetchall()
            estimates.add(re.findall(r"rows=(\d+)", plan[0][0])[0])
    assert len(estimates) == 1


_NAMES_OF_POLICIES = """
SELECT DISTINCT pg_describe_object(classid, objid, objsubid) FROM pg_depend WHERE classid = 'pg_policy'::regclass"""


def test_the_names_of_policies_do_not_say_whom_they_are_about(tenants: str, database: str, role: str) -> None:
    """They can be read without the catalogue of policies. Those of an earlier release go when a role is bound again."""
    with psycopg.connect(database, autocommit=True) as owner:
        other = f"{role}_other"
        owner.execute(f"CREATE ROLE {other} LOGIN")
        owner.execute(
            f"""CREATE POLICY "{other} in rival" ON sessiontree.head TO {other} USING (namespace = 'rival')"""
        )
    bind_role(database, other, "rival")
    with psycopg.connect(tenants) as tenant:
        names = [name for (name,) in tenant.execute(_NAMES_OF_POLICIES)]
    assert names
    assert not [name for name in names if "rival" in name]


@pytest.mark.parametrize("right", ["SCHEMA public", "DATABASE {database}"])
def test_a_role_that_could_plant_functions_for_others_is_not_bound(database: str, role: str, right: str) -> None:
    """Until PostgreSQL 14 every role may create functions in the schema in which all look for them."""
    st.open(database).close()
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f"GRANT CREATE ON {right} TO {role}".format(database=owner.info.dbname))
    with pytest.raises(st.StoreError, match="may create objects"):
        bind_role(database, role, "acme")


def test_a_role_that_could_become_one_that_plants_functions_is_not_bound(database: str, role: str) -> None:
    st.open(database).close()
    maker = f"{role}_maker"
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f"ALTER ROLE {role} NOINHERIT")
        owner.execute(f"CREATE ROLE {maker}")
        owner.execute(f"GRANT {maker} TO {role}")
        owner.execute(f"GRANT CREATE ON SCHEMA public TO {maker}")
        try:
            with pytest.raises(st.StoreError, match="may create objects in schema public"):
                bind_role(database, role, "acme")
        finally:
            owner.execute(f"DROP OWNED BY {maker}")
            owner.execute(f"DROP ROLE {maker}")


def test_the_server_itself_keeps_the_rows_apart(tenants: str) -> None:
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


def test_a_role_that_is_bound_to_nothing_is_refused(database: str, role: str) -> None:
    st.open(database).close()
    with pytest.raises(st.StoreAccessError):
        st.open(database.replace("postgres@", f"{role}@"))


def test_a_role_may_be_bound_to_namespaces_whose_long_names_begin_alike(database: str, role: str) -> None:
    st.open(database).close()
    names = [f"{'tenant' * 12}-{number}" for number in range(2)]
    for name in names:
        bind_role(database, role, name)
    for name in names:
        with st.open(with_options(database.replace("postgres@", f"{role}@"), namespace=name)) as journal:
            assert journal.create_thread("t").id == "t"


def test_a_bound_role_searches_snapshots_and_copies_within_its_namespace_only(tenants: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("content")
    with st.open(with_options(tenants, namespace="acme")) as journal, st.open("memory:") as copy:
        journal.workspace.snapshot("t", "e", tmp_path)
        assert [present(hit.entry.message).text for hit in journal.search("secret").hits] == ["secret of acme"]
        assert st.copy_store(journal, copy).threads == 1
        assert journal.check() == []
    with psycopg.connect(tenants) as connection:
        for table in ("blob", "chunk", "stock", "checkpoint", "search_block", "horizon"):
            assert connection.execute(f"SELECT DISTINCT namespace FROM sessiontree.{table}").fetchall() in (
                [],
                [("acme",)],
            )


def test_notifications_of_one_namespace_do_not_wake_another(tenants: str, database: str) -> None:
    with psycopg.connect(tenants, autocommit=True) as ear:
        ear.execute(f"LISTEN {channel_of(database, 'acme')}")
        for tenant in ("rival", "acme"):
            with st.open(with_options(database, namespace=tenant)) as journal:
                watched = journal.watch("t", timeout=5)
                journal.append("t", st.user("new"), id="new")
                assert next(watched).id == "new"
                (place,) = present(ear.execute("SELECT tree || ':' || key FROM sessiontree.head").fetchone())
                journal.append("t", st.user("newer"))
        heard = {notice.payload for notice in ear.notifies(timeout=5, stop_after=1)}
    assert heard == {place}


def test_strange_notifications_are_not_kept(tenants: str, database: str) -> None:
    with (
        st.open(with_options(database, namespace="acme")) as journal,
        psycopg.connect(tenants, autocommit=True) as tenant,
    ):
        watched = journal.watch("t", timeout=10)
        journal.append("t", st.user("a"), id="a")
        assert next(watched).id == "a"
        for number in range(50):
            tenant.execute("SELECT pg_notify(%s, %s)", (channel_of(database, "acme"), f"{number}{'x' * 7000}"))
        journal.append("t", st.user("b"), id="b")
        assert next(watched).id == "b"
        assert len(of_kind(PostgresStore, journal.store)._listener._notices._topics) == 1
