"""The schema: made once, upgraded while programs run, refused when it is too new."""

import math
import secrets
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import sessiontree as st
from known import present
from postgres_server import CLUSTER, Coordinator, Server, empty_database, free_port, make_schema, with_options
from sessiontree.stores.postgres import PostgresOptions, PostgresStore, distribute
from sessiontree.stores.postgres.schema import MIGRATIONS, Migration

KNOWN = [migration.version for migration in MIGRATIONS]
NEXT = KNOWN[-1] + 1
ADDED = {"version", "previous_leaf", "bytes", "is_empty"}
"""Columns of ``head`` that schema 7 did not have."""
ADDITION = Migration(
    version=NEXT, readable_by=1, statements=("ALTER TABLE sessiontree.thread ADD COLUMN note text NOT NULL DEFAULT ''",)
)
REBUILD = Migration(
    version=NEXT + 1,
    readable_by=NEXT + 1,
    statements=("ALTER TABLE sessiontree.thread RENAME COLUMN body TO meta",),
)


@pytest.fixture
def database() -> str:
    return empty_database()


def versions(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT version FROM sessiontree.migration ORDER BY version")]


def test_programs_that_start_at_once_make_the_schema_once(database: str) -> None:
    script = "import sys, sessiontree as st; st.open(sys.argv[1]).close()"
    starting = [subprocess.Popen([sys.executable, "-c", script, database]) for _ in range(6)]
    assert [process.wait(60) for process in starting] == [0] * 6
    assert versions(database) == KNOWN


def test_a_migration_that_fails_leaves_nothing_behind(database: str) -> None:
    broken = Migration(version=NEXT, readable_by=1, statements=(*ADDITION.statements, "SELECT no_such_function()"))
    st.open(database).close()
    with pytest.raises(st.StoreError):
        PostgresStore(database, migrations=(*MIGRATIONS, broken))
    assert versions(database) == KNOWN
    PostgresStore(database, migrations=(*MIGRATIONS, ADDITION)).close()
    assert versions(database) == [*KNOWN, NEXT]


def test_old_and_new_programs_work_side_by_side_in_a_rolling_upgrade(database: str) -> None:
    with st.open(database) as old:
        old.create_thread("t")
        old.append("t", st.user("before"))
        with st.Journal(PostgresStore(database, migrations=(*MIGRATIONS, ADDITION))) as new:
            new.append("t", st.user("new"))
            old.append("t", st.user("old"))
            old.fork("t", new_id="f")
            new.create_thread("by the new one")
            with st.open(database) as late:
                late.create_thread("by a late old one")
            assert [present(entry.message).text for entry in new.path("f")] == ["before", "new", "old"]
    assert versions(database) == [*KNOWN, NEXT]


def test_the_rows_of_deleted_threads_keep_through_the_new_name_of_their_table(database: str) -> None:
    make_schema(database, MIGRATIONS[:3])
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO sessiontree.departed (tree, key, namespace, id) VALUES (gen_random_uuid(), 7, '', 'gone')"
        )
    st.open(database).close()
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT key, id, is_indexed FROM sessiontree.deleted_thread").fetchall()
    assert rows == [(7, b"gone", False)]


def test_every_row_of_schema_7_keeps_through_the_new_keys(database: str) -> None:
    """The rows of a new store, in the tables as they were before."""
    source = empty_database()
    with st.open(source) as journal:
        journal.create_thread("t", title="Mine")
        journal.append_many("t", [st.NewEntry(content=st.user(name), id=name) for name in "abc"])
        journal.fork("t", at="b", new_id="f")
        journal.rewind("t", "a")
        before = (journal.entries("t"), journal.path("f"), journal.reflog("t"), journal.stats())
    make_schema(database, MIGRATIONS[:7])
    with psycopg.connect(source) as old, psycopg.connect(database) as new:
        for table in ("home", "thread", "head", "entry", "move"):
            cursor = old.execute(f"SELECT * FROM sessiontree.{table}")
            names = [column.name for column in cursor.description or ()]
            kept = [number for number, name in enumerate(names) if name not in ADDED]
            columns = ", ".join(names[number].removeprefix("last_") for number in kept)
            values = ", ".join("%s" for _ in kept)
            for row in cursor:
                statement = f"INSERT INTO sessiontree.{table} ({columns}) VALUES ({values})"
                new.execute(statement.encode(), [row[number] for number in kept])
    if CLUSTER:
        assert distribute(database, shards=4).functions == ()
    with st.open(database) as journal:
        if CLUSTER:  # what the upgrade added
            assert distribute(database).tables == ("search_block", "channel")
        assert (journal.entries("t"), journal.path("f"), journal.reflog("t"), journal.stats()) == before
        assert journal.undo("t").leaf == "c"
        assert journal.append("t", st.user("d"), fields={"title": "New"}).parent == "c"
        assert journal.check() == []


def test_a_program_before_schema_8_cannot_write_any_more(database: str) -> None:
    """It would not count versions, and others would take its write for none."""
    st.open(database).close()
    with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("UPDATE sessiontree.head SET leaf = 'x', previous = leaf")


def test_a_program_before_schema_10_can_do_nothing_any_more(database: str) -> None:
    """It would not count the bytes that it writes; all that it does names the stamp of a thread."""
    st.open(database).close()
    with psycopg.connect(database) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT stamp FROM sessiontree.head")


def test_only_the_text_that_makes_the_title_takes_the_slower_way(database: str) -> None:
    with st.open(database) as journal, psycopg.connect(database, autocommit=True) as connection:
        threads = [journal.create_thread(origin={"format": "other"}), journal.create_thread(title="Mine")]
        threads += [journal.create_thread(), journal.create_thread()]
        journal.append(threads[-2].id, st.user("Fix the login page"))
        rows: dict[bytes, bool] = dict(connection.execute("SELECT id, needs_title FROM sessiontree.head").fetchall())
        assert [rows[thread.id.encode()] for thread in threads] == [False, False, False, True]
        stamps = connection.execute("SELECT id, last_stamp FROM sessiontree.head").fetchall()
        for thread in threads[:-1]:
            journal.append(thread.id, st.user("and the logout page"))
        # Every locked transaction leaves a new stamp.
        assert connection.execute("SELECT id, last_stamp FROM sessiontree.head ORDER BY id").fetchall() == sorted(
            stamps
        )


def test_a_thread_from_before_titles_were_made_takes_the_slower_way_once(database: str) -> None:
    with st.open(database) as journal:
        journal.create_thread("old", title="Mine")
    with st.open(database) as journal, psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER TABLE sessiontree.head DROP COLUMN needs_title")
        for statement in MIGRATIONS[4].statements:
            connection.execute(statement.encode())
        assert connection.execute("SELECT needs_title FROM sessiontree.head").fetchall() == [(True,)]
        journal.append("old", st.user("Fix the login page"))
        assert connection.execute("SELECT needs_title FROM sessiontree.head").fetchall() == [(False,)]
        assert journal.thread("old").title == "Mine"


def test_a_schema_that_is_too_new_is_refused_untouched(database: str) -> None:
    PostgresStore(database, migrations=(*MIGRATIONS, ADDITION, REBUILD)).close()
    with pytest.raises(st.NewerFormatError, match="upgrade sessiontree"):
        st.open(database)
    assert versions(database) == [*KNOWN, NEXT, NEXT + 1]


def test_a_server_that_may_lose_what_it_acknowledges_is_refused(database: str) -> None:
    careless = with_options(database, options="-c synchronous_commit=off")
    with pytest.raises(st.StoreError, match="synchronous_commit"):
        st.open(careless)
    st.open(careless, durability="process_crash").close()


def test_an_unknown_option_or_a_wrong_one_is_named(database: str) -> None:
    with pytest.raises(
        st.StoreUrlError, match=r"no_such_option.*; options of sessiontree are .*namespace, .*pool_size"
    ):
        st.open(with_options(database, no_such_option=1))
    with pytest.raises(st.StoreUrlError, match="pool_size"):
        st.open(with_options(database, pool_size="many"))


def test_a_port_that_is_not_a_number_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(st.StoreUrlError, match="the port 'five' is not a number") as raised:
        st.open("postgresql://ann:secret@localhost:five/db")
    assert "secret" not in str(raised.value)


def test_what_a_role_or_the_environment_prefers_changes_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    odd = f"odd_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {odd} LOGIN SUPERUSER")
        for setting in (
            "search_path = ''", "standard_conforming_strings = off", "bytea_output = 'escape'", "TimeZone = 'Asia/Kolkata'",
            "DateStyle = 'German'", "client_encoding = 'LATIN1'", "plan_cache_mode = force_generic_plan",
            "default_transaction_isolation = 'serializable'", "extra_float_digits = 0", "IntervalStyle = 'iso_8601'",
        ):  # fmt: skip
            connection.execute(f"ALTER ROLE {odd} SET {setting}")
    with st.open(database.replace("postgres@", f"{odd}@")) as journal:
        journal.create_thread("t", title="日本")
        journal.append("t", st.user("日本 \\ ' é"), id="\\")
        journal.fork("t", at="\\")
        assert [present(hit.entry.message).text for hit in journal.search("日本").hits] == ["日本 \\ ' é"]
        assert next(journal.watch("t", after=None)).id == "\\"
        assert journal.check() == []


def test_a_database_that_cannot_hold_every_text_is_refused(database: str) -> None:
    narrow = f"narrow_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {narrow} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    name = str(conninfo_to_dict(database)["dbname"])
    with pytest.raises(st.StoreError, match="LATIN1"):
        st.open(database.replace(name, narrow))


@pytest.mark.parametrize(
    "wrong",
    [{"namespace": "\0"}, {"namespace": "\ud800"}, {"pool_size": 0}, {"retry_seconds": -1.0}, {"retry_seconds": math.nan},
     {"statement_timeout_seconds": math.inf}, {"connect_timeout_seconds": -1}],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused_before_anything_is_asked(
    wrong: dict[str, Any],
) -> None:
    nobody = f"postgresql://127.0.0.1:{free_port()}/postgres"
    with pytest.raises(st.InvalidInputError, match=next(iter(wrong))):
        PostgresStore(nobody, options=PostgresOptions(**wrong))


def test_a_statement_that_takes_too_long_is_given_up(database: str) -> None:
    with st.open(with_options(database, statement_timeout_seconds=0.2)) as journal:
        journal.create_thread("t")
        with psycopg.connect(database) as blocker:
            blocker.execute("SELECT * FROM sessiontree.head FOR UPDATE")
            with pytest.raises(st.StoreUnavailableError, match="statement timeout"):
                journal.append("t", st.user("waits for a lock"))
            blocker.rollback()
        assert journal.path("t") == []


def test_messages_do_not_show_the_password(tcp_server: Server | Coordinator) -> None:
    with pytest.raises(st.StoreError) as raised:
        st.open(f"postgresql://postgres:secret@127.0.0.1:{tcp_server.port}/no_such_database")
    assert "secret" not in str(raised.value)


def test_an_upgrade_drops_the_statistics_of_what_people_wrote(database: str) -> None:
    make_schema(database, MIGRATIONS[:12])
    sampled = "SELECT tablename, attname FROM pg_stats WHERE schemaname = 'sessiontree' AND attname IN ('body', 'id')"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO sessiontree.json_document (namespace, scope, key, version, updated_ns, body)"
            " SELECT '', 'app', n::text::bytea, 1, 1, n::text::bytea FROM generate_series(1, 50) n"
        )
        connection.execute("ANALYZE sessiontree.json_document")
        assert connection.execute(sampled).fetchall() == [("json_document", "body")]
        st.open(database).close()
        connection.execute("ANALYZE sessiontree.json_document")
        assert connection.execute(sampled).fetchall() == []
