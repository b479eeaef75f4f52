"""pgbouncer in transaction mode: many clients on two connections of the server."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

import sessiontree as st
from known import present
from postgres_load import crowd, make_threads, verify
from postgres_server import Pooler, Server, with_options

pytestmark = [
    pytest.mark.skipif(Pooler.binary is None, reason="pgbouncer is not on the PATH"),
    pytest.mark.xdist_group("pooler"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server.create()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def pooler(server: Server) -> Iterator[Pooler]:
    pooler = Pooler(server)
    yield pooler
    pooler.remove()


def test_a_crowd_shares_two_connections_and_loses_nothing(pooler: Pooler, server: Server) -> None:
    make_threads(pooler.url, 10)
    reports = []
    crews = [threading.Thread(target=lambda: reports.extend(crowd(pooler.url, 3, 4, threads=10))) for _ in range(3)]
    for crew in crews:
        crew.start()
    for crew in crews:
        crew.join()
    assert verify(server.url, reports) > 0
    with psycopg.connect(pooler.url, prepare_threshold=None) as connection:
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    with psycopg.connect(server.url) as connection:
        held = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sessiontree'"
        assert present(connection.execute(held).fetchone())[0] <= 2


@pytest.mark.parametrize("has_direct_address", [False, True])
def test_watching_works_with_and_without_a_direct_address(
    pooler: Pooler, server: Server, has_direct_address: bool
) -> None:
    options = {"listen_url": server.url} if has_direct_address else {}
    with st.open(with_options(pooler.url, namespace=f"watch {has_direct_address}", **options)) as journal:
        journal.create_thread("t")
        watched = journal.watch("t", timeout=20)
        for number in range(10):
            journal.append("t", st.user("x"), id=str(number))
        assert [next(watched).id for _ in range(10)] == [str(number) for number in range(10)]


def test_a_restart_of_the_server_behind_it_is_survived(pooler: Pooler, server: Server) -> None:
    with st.open(with_options(pooler.url, namespace="restart")) as journal:
        journal.create_thread("t")
        stored = []
        for number in range(30):
            stored.append(journal.append("t", st.user("x")).id)
            if number == 10:
                server.stop()
                server.start()
        assert [entry.id for entry in journal.path("t")] == stored
