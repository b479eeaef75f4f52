"""A cluster whose nodes drop their connections and whose shards move, under load: callers go on, nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TypeVar

import psycopg
import pytest
from msgspec.structs import replace

import sessiontree as st
from known import of_kind
from postgres_server import CLUSTER, new_database, with_options
from sessiontree.stores.commands import CreateThread
from sessiontree.stores.postgres import PostgresStore
from sessiontree.stores.postgres.driver import run
from sessiontree.stores.postgres.steps import COMMIT, Steps

pytestmark = [
    pytest.mark.skipif(not CLUSTER, reason="SESSIONTREE_TEST_CITUS_DSN does not name a Citus coordinator"),
    pytest.mark.deep,
]

T = TypeVar("T")

_DROP = """
SELECT run_command_on_workers($$
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
$$)"""
_SHARDS = """
SELECT s.shardid, s.nodename, s.nodeport, n.node_name, n.node_port FROM citus_shards s
JOIN citus_get_active_worker_nodes() n ON n.node_port <> s.nodeport
WHERE s.table_name = 'sessiontree.head'::regclass ORDER BY s.shardid LIMIT 2"""
_WORKERS = "SELECT node_name, node_port FROM citus_get_active_worker_nodes() ORDER BY node_port"
_PLACED = "SELECT count(*) FROM citus_shards WHERE nodeport = %s"
_MOVE = "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'block_writes')"


class Load:
    """Threads that append until they are stopped, and what was acknowledged to them."""

    def __init__(self, url: str) -> None:
        self._journal = st.open(with_options(url, pool_size=8))
        self._stop = threading.Event()
        self.acknowledged: dict[str, list[str]] = {f"t{number}": [] for number in range(8)}
        for name in self.acknowledged:
            self._journal.create_thread(name, title=name)
        self._workers = [threading.Thread(target=self._append, args=(name,)) for name in self.acknowledged]
        for worker in self._workers:
            worker.start()

    def _append(self, thread_id: str) -> None:
        acknowledged = self.acknowledged[thread_id]
        while not self._stop.is_set():
            acknowledged.append(self._journal.append(thread_id, st.user("x")).id)

    def reaches(self, more: int) -> None:
        """Until every thread has that many entries more: nobody is stuck."""
        goals = {name: len(done) + more for name, done in self.acknowledged.items()}
        end = time.monotonic() + 60
        while any(len(self.acknowledged[name]) < goal for name, goal in goals.items()):
            assert time.monotonic() < end, "a caller does not go on"
            assert all(worker.is_alive() for worker in self._workers), "a caller was given an error"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for worker in self._workers:
            worker.join()

    def verify(self) -> None:
        for name, ids in self.acknowledged.items():
            assert [entry.id for entry in self._journal.path(name)] == ids
        assert self._journal.check() == []
        self._journal.close()


@pytest.fixture
def load() -> Iterator[tuple[Load, str]]:
    url = new_database()
    running = Load(url)
    yield running, url
    running.stop()
    running.verify()


def test_nodes_that_drop_their_connections_lose_nothing(load: tuple[Load, str]) -> None:
    running, url = load
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(5):
            running.reaches(5)
            connection.execute(_DROP)
        running.reaches(5)


def test_a_node_that_is_lost_at_a_commit_is_asked_whether_it_has_it() -> None:
    """The name and the tree of about every second thread are on one node, which commits without being prepared."""
    url = new_database()
    with st.open(url) as journal, psycopg.connect(url, autocommit=True) as observer:
        store = of_kind(PostgresStore, journal.store)
        first = journal.create_thread("t0")
        for name in (f"t{number}" for number in range(1, 10)):
            command = CreateThread(thread=replace(first, id=name, tree=name))
            run(_dropping_nodes_at_commit(store._operations.commit(command), observer), store._pool)
        assert len(journal.list_threads()) == 10
        assert journal.check() == []


def _dropping_nodes_at_commit(steps: Steps[T], observer: psycopg.Connection) -> Steps[T]:
    """The steps, with every node dropping its connections before the first commit."""
    was_dropped = False
    try:
        request = next(steps)
        while True:
            if request == COMMIT and not was_dropped:
                observer.execute(_DROP)
                was_dropped = True
            try:
                answer = yield request
            except psycopg.Error as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


def test_shards_move_between_nodes_while_they_are_written(load: tuple[Load, str]) -> None:
    running, url = load
    with psycopg.connect(url, autocommit=True) as connection:
        for shard in connection.execute(_SHARDS).fetchall():
            running.reaches(5)
            connection.execute(_MOVE, shard)
        running.reaches(5)


def test_a_worker_is_replaced_while_the_others_are_written(load: tuple[Load, str]) -> None:
    """All its shards move away, it leaves the cluster, and comes back as a new one."""
    running, url = load
    with psycopg.connect(url, autocommit=True) as connection:
        *_, worker = connection.execute(_WORKERS).fetchall()
        running.reaches(5)
        connection.execute("SELECT citus_drain_node(%s, %s, 'block_writes')", worker)
        running.reaches(5)
        connection.execute("SELECT citus_remove_node(%s, %s)", worker)
        running.reaches(5)
        connection.execute("SELECT citus_add_node(%s, %s)", worker)
        connection.execute("SELECT rebalance_table_shards('sessiontree.head', shard_transfer_mode => 'block_writes')")
        running.reaches(5)
        assert connection.execute(_PLACED, worker[1:]).fetchone() != (0,)
