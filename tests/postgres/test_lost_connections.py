"""Connections that break at the worst moment: every outcome is settled, nothing happens twice."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from msgspec.structs import replace

import sessiontree as st
from known import of_kind
from postgres_server import CLUSTER, Coordinator, Server, with_options
from sessiontree.stores.commands import CreateThread, Deleted
from sessiontree.stores.postgres import PostgresStore
from sessiontree.stores.postgres import steps as postgres_steps
from sessiontree.stores.postgres.driver import run
from sessiontree.stores.postgres.steps import Steps
from tcp_proxy import Proxy

COMMIT = b"COMMIT\0"
WRITE = b"write_thread("

T = TypeVar("T")


@pytest.fixture
def proxy(tcp_server: Server | Coordinator) -> Iterator[Proxy]:
    with Proxy(tcp_server.port) as proxy:
        yield proxy


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """One that is new even if the server is a cluster that earlier runs used."""
    return f"{request.node.name} {secrets.token_hex(4)}"


@pytest.fixture
def far(proxy: Proxy, namespace: str) -> Iterator[st.Journal]:
    """A journal whose connections can be cut, with a thread and three entries in it."""
    with st.open(url_of(proxy, namespace)) as journal:
        journal.create_thread("t")
        for name in ("a", "b", "c"):
            journal.append("t", st.user(name), id=name)
        yield journal


def url_of(proxy: Proxy, namespace: str, **options: object) -> str:
    """Not encrypted, as Citus has it otherwise: the proxy looks for words in what is sent."""
    options = {"namespace": namespace, "sslmode": "disable", **options}
    return with_options(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres", **options)


def prepare_changes(proxy: Proxy, namespace: str) -> None:
    """By another connection: after some transactions a COMMIT is not sent as text any more."""
    with st.open(url_of(proxy, namespace)) as journal:
        journal.create_thread("u")
        journal.documents.put("app", "k", 1)


def eventually(verb: Callable[[], T]) -> T:
    """Try again while the store is not available, as its error says one may."""
    end = time.monotonic() + 30
    while True:
        try:
            return verb()
        except st.StoreUnavailableError:
            if time.monotonic() > end:
                raise


def wait_until_gone(observer: psycopg.Connection) -> None:
    """Until the server has ended every transaction that dozed."""
    asleep = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'sessiontree'"
    while observer.execute(asleep).fetchone():
        pass


@pytest.mark.parametrize("after", [False, True])
class TestACutConnection:
    def test_an_append_is_there_exactly_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(after=after)
        entry = far.append("t", st.user("d"))
        assert proxy.was_cut.wait(10)
        assert entry.parent == "c"
        assert [found.id for found in far.path("t")] == ["a", "b", "c", entry.id]
        assert far.thread("t").entries == 4

    def test_a_batch_is_there_exactly_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(after=after)
        stored = far.append_many("t", [st.user("d"), st.user("e")], expect_leaf="c")
        assert proxy.was_cut.wait(10)
        assert far.path("t")[3:] == stored

    def test_a_lease_is_granted_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(after=after)
        lease = far.acquire_lease("t", owner="me")
        assert proxy.was_cut.wait(10)
        assert far.active_lease("t") == lease
        far.append("t", st.user("under it"), lease=lease)

    def test_a_rewind_is_one_move(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(WRITE, after=after)
        assert far.rewind("t", "a").leaf == "a"
        assert proxy.was_cut.wait(10)
        assert [move.to_entry for move in far.reflog("t")] == ["a"]

    def test_a_thread_is_created_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(COMMIT, after=after)
        created = far.create_thread("new", title="n")
        assert proxy.was_cut.wait(10)
        assert far.thread("new") == created
        with pytest.raises(st.ThreadExistsError):
            far.create_thread("new")

    def test_a_fork_is_made_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(COMMIT, after=after)
        fork = far.fork("t", at="b")
        assert proxy.was_cut.wait(10)
        assert far.thread(fork.id) == fork
        assert far.stats().threads == 2

    def test_an_update_counts_once(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(WRITE, after=after)
        assert far.update_thread("t", title="once").version == 2
        assert proxy.was_cut.wait(10)
        assert far.thread("t").version == 2

    def test_a_snapshot_is_there_with_its_files(
        self, far: st.Journal, proxy: Proxy, after: bool, tmp_path: Path
    ) -> None:
        (tmp_path / "a").write_text("content")
        proxy.cut_at(COMMIT, after=after)
        far.workspace.snapshot("t", "c", tmp_path)
        assert proxy.was_cut.wait(10)
        assert len(far.path("t")) == 4
        assert far.check() == []

    def test_changes_of_several_threads_are_made_once(
        self, far: st.Journal, proxy: Proxy, namespace: str, after: bool
    ) -> None:
        prepare_changes(proxy, namespace)
        changes = st.Changes().append("t", st.user("d")).delete_thread("u").put_document("app", "k", 2)
        proxy.cut_at(COMMIT, after=after)
        appended, deleted, document = far.commit(changes)
        assert proxy.was_cut.wait(10)
        assert isinstance(appended, list)
        assert [found.id for found in far.path("t")] == ["a", "b", "c", appended[0].id]
        assert far.documents.get("app", "k") == document
        assert of_kind(Deleted, deleted).thread_id == "u"
        assert far.stats().threads == 1

    def test_deleted_threads_and_documents_say_what_they_took(
        self, far: st.Journal, proxy: Proxy, namespace: str, after: bool
    ) -> None:
        prepare_changes(proxy, namespace)
        proxy.cut_at(COMMIT, after=after)
        deleted = far.commit(st.Changes().delete_thread("u").delete_thread("t").delete_document("app", "k"))
        assert proxy.was_cut.wait(10)
        assert [of_kind(Deleted, one).entries_removed for one in deleted[:2]] == [0, 3]
        assert deleted[2] is True
        assert far.stats().threads == 0

    def test_a_delete_says_what_it_took(self, far: st.Journal, proxy: Proxy, after: bool) -> None:
        proxy.cut_at(COMMIT, after=after)
        assert far.delete_thread("t").entries_removed == 3
        assert proxy.was_cut.wait(10)
        with pytest.raises(st.ThreadNotFoundError):
            far.thread("t")


def test_what_cannot_be_settled_is_said_and_repeating_settles_it(
    far: st.Journal, proxy: Proxy, tcp_server: Server | Coordinator, namespace: str
) -> None:
    with st.open(url_of(proxy, namespace, retry_seconds=0.5, pool_timeout_seconds=0.5)) as journal:
        journal.append("t", st.user("warm"), id="warm")
        proxy.cut_at(after=True)
        proxy.refuse()
        with pytest.raises(st.CommitUnknownError) as raised:
            journal.append("t", st.user("d"), id="d")
        assert raised.value.entry_ids == ("d",)
        proxy.admit()
        assert journal.append("t", st.user("d"), id="d").parent == "warm"
        assert [entry.id for entry in journal.path("t")] == ["a", "b", "c", "warm", "d"]


def test_a_lease_that_may_have_been_granted_is_not_said_to_have_failed(
    far: st.Journal, proxy: Proxy, namespace: str
) -> None:
    with st.open(url_of(proxy, namespace, retry_seconds=0.5, pool_timeout_seconds=0.5)) as journal:
        journal.append("t", st.user("warm"))
        proxy.cut_at(after=True)
        proxy.refuse()
        with pytest.raises(st.CommitUnknownError):
            journal.acquire_lease("t", owner="me", turn_id="turn")
        proxy.admit()
        lease = eventually(lambda: journal.acquire_lease("t", owner="me", turn_id="turn"))
        assert journal.active_lease("t") == lease


@pytest.mark.skipif(bool(CLUSTER), reason="a coordinator that only reads still passes calls to nodes that write")
def test_a_server_that_only_reads_has_certainly_written_nothing(
    far: st.Journal, tcp_server: Server | Coordinator, namespace: str
) -> None:
    reader = with_options(
        tcp_server.url, namespace=namespace, retry_seconds=0, options="-c default_transaction_read_only=on"
    )
    with st.open(reader) as journal:
        assert [entry.id for entry in journal.path("t")] == ["a", "b", "c"]
        for verb in (
            lambda: journal.append("t", st.user("d")),
            lambda: journal.rewind("t", "a"),
            journal.create_thread,
        ):
            with pytest.raises(st.StoreUnavailableError, match="read-only"):
                verb()


def test_a_transaction_that_dozed_off_is_done_again(tcp_server: Server | Coordinator, namespace: str) -> None:
    """As after SIGSTOP in mid-transaction on a server with an idle_in_transaction_session_timeout."""
    sleepy = with_options(
        tcp_server.url, namespace=namespace, pool_size=1, options="-c idle_in_transaction_session_timeout=20ms"
    )
    with st.open(sleepy) as journal, psycopg.connect(tcp_server.url, autocommit=True) as observer:
        journal.create_thread("t")
        store = of_kind(PostgresStore, journal.store)
        attempts: list[postgres_steps.Statement] = []

        def dozing(steps: Steps[T]) -> Steps[T]:
            request = next(steps)
            while True:
                if request == postgres_steps.COMMIT and not attempts:
                    attempts.append(request)
                    wait_until_gone(observer)
                try:
                    request = steps.send((yield request))
                except psycopg.Error as error:
                    request = steps.throw(error)
                except StopIteration as finished:
                    answer: T = finished.value
                    return answer

        command = CreateThread(thread=replace(journal.thread("t"), id="u", tree="u", title="awake"))
        run(dozing(store._operations.commit(command)), store._pool)
        assert attempts
        assert journal.thread("u").title == "awake"


def test_where_nothing_was_sent_the_store_is_just_not_available(far: st.Journal, proxy: Proxy, namespace: str) -> None:
    with st.open(url_of(proxy, namespace, retry_seconds=0.3, pool_timeout_seconds=0.3)) as journal:
        proxy.refuse()
        proxy.cut_all()
        with pytest.raises(st.StoreUnavailableError):
            journal.thread("t")
        proxy.admit()
        assert eventually(lambda: journal.thread("t")).entries == 3


def test_a_move_that_others_wrote_over_is_not_claimed(
    far: st.Journal, proxy: Proxy, tcp_server: Server | Coordinator, namespace: str
) -> None:
    outcome: list[st.Thread | st.SessionTreeError] = []

    def rewind() -> None:
        try:
            outcome.append(far.rewind("t", "a"))
        except st.SessionTreeError as error:
            outcome.append(error)

    proxy.cut_at(WRITE, after=True)
    proxy.refuse()
    worker = threading.Thread(target=rewind)
    worker.start()
    assert proxy.was_cut.wait(10)
    with st.open(with_options(tcp_server.url, namespace=namespace)) as near:
        near.update_thread("t", title="somebody else")
    proxy.admit()
    worker.join()
    assert isinstance(outcome[0], st.CommitUnknownError)
    assert "read the thread" in str(outcome[0])


def test_a_watcher_misses_nothing_when_its_connections_are_cut(
    far: st.Journal, proxy: Proxy, tcp_server: Server | Coordinator, namespace: str
) -> None:
    watched = far.watch("t", timeout=20)
    with st.open(with_options(tcp_server.url, namespace=namespace)) as near:
        seen = []
        for number in range(20):
            near.append("t", st.user("x"), id=f"n{number}")
            if number % 5 == 2:
                proxy.cut_all()
            seen.append(next(watched).id)
    assert seen == [f"n{number}" for number in range(20)]


def test_behind_a_pooler_nothing_is_prepared_and_watching_still_works(
    tcp_server: Server | Coordinator, namespace: str
) -> None:
    with Proxy(tcp_server.port, pretends_to_pool=True) as pooler, st.open(url_of(pooler, namespace)) as journal:
        journal.create_thread("t")
        watched = journal.watch("t")
        for number in range(10):
            journal.append("t", st.user("x"), id=str(number))
        assert next(watched).id == "0"
        with of_kind(PostgresStore, journal.store)._pool.connection() as connection:
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    with st.open(with_options(tcp_server.url, namespace=namespace)) as direct:
        for number in range(10):
            direct.append("t", st.user("x"), id=f"direct-{number}")
        with of_kind(PostgresStore, direct.store)._pool.connection() as connection:
            assert connection.execute("SELECT count(*) > 0 FROM pg_prepared_statements").fetchone() == (True,)
