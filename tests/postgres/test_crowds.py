"""Many callers in many processes on the same threads, with and without a server that goes away."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

import sessiontree as st
from known import present
from postgres_load import crowd, make_threads, patient, start_processes, verify
from postgres_server import Server

HOLDER = """
import sys, sessiontree as st
journal = st.open(sys.argv[1])
lease = journal.acquire_lease("t", owner="sleeper", ttl_seconds=0.5)
print("held", flush=True)
sys.stdin.readline()
try:
    journal.append("t", st.assistant("too late"), lease=lease)
except st.FencedError:
    print("fenced", flush=True)
else:
    print("written", flush=True)
"""


def test_a_crowd_on_shared_threads_loses_and_doubles_nothing(database: str, tmp_path: Path) -> None:
    make_threads(database, 10)
    finish = start_processes(database, 2, 2, 4, tmp_path, threads=10)
    assert verify(database, [*crowd(database, 2, 4, threads=10), *finish()]) > 0


def test_a_holder_that_was_stopped_writes_nothing_when_it_wakes_up(database: str) -> None:
    with st.open(database) as journal:
        journal.create_thread("t")
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert present(holder.stdout).readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        held = present(journal.active_lease("t"))
        while journal.active_lease("t") is not None:
            assert journal.active_lease("t") in (held, None)
        lease = journal.acquire_lease("t", owner="successor")
        journal.append("t", st.assistant("mine"), lease=lease)
        holder.send_signal(signal.SIGCONT)
        assert holder.communicate("go\n", timeout=30)[0] == "fenced\n"
        assert [present(entry.message).text for entry in journal.path("t")] == ["mine"]
        assert lease.token > held.token


def test_callers_go_on_by_themselves_when_the_server_restarts(own_server: Server) -> None:
    make_threads(own_server.url, 5)
    reports = []
    worker = threading.Thread(target=lambda: reports.extend(crowd(own_server.url, 6, 4, threads=5)))
    worker.start()
    restart_under_load(own_server, times=1)
    worker.join()
    assert verify(own_server.url, reports) > 0


@pytest.mark.deep
def test_eight_processes_with_eight_threads_for_twenty_seconds(own_server: Server, tmp_path: Path) -> None:
    make_threads(own_server.url)
    reports = start_processes(own_server.url, 20, 8, 8, tmp_path)()
    print(verify(own_server.url, reports), "acknowledged")


@pytest.mark.deep
def test_three_immediate_stops_lose_nothing(own_server: Server, tmp_path: Path) -> None:
    make_threads(own_server.url)
    finish = start_processes(own_server.url, 25, 4, 4, tmp_path)
    restart_under_load(own_server, times=3)
    print(verify(own_server.url, finish()), "acknowledged")


@pytest.mark.deep
def test_a_fail_over_to_a_synchronous_standby_loses_nothing(tmp_path: Path) -> None:
    primary = Server.create()
    standby = primary.standby()
    try:
        primary.configure("synchronous_standby_names = 'standby'")
        primary.reload()
        both = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        make_threads(both)
        finish = start_processes(both, 15, 2, 4, tmp_path)
        wait_for_entries(primary.url, 200)
        primary.stop("immediate")
        # Without this the old primary's name would make the new one wait for a standby that is not there.
        standby.configure("synchronous_standby_names = ''")
        standby.promote()
        standby.reload()
        assert verify(both, finish()) > 200
    finally:
        primary.remove()
        standby.remove()


@pytest.mark.deep
def test_an_append_that_is_found_stored_is_acknowledged_only_when_the_standby_has_it() -> None:
    """A backend that is ended while it waits for the standby leaves its entry in sight on the primary alone."""
    primary = Server.create()
    standby = primary.standby()
    try:
        with st.open(primary.url) as journal, psycopg.connect(primary.url, autocommit=True) as observer:
            journal.create_thread("t")
            primary.configure("synchronous_standby_names = 'standby'")
            primary.reload()
            standby.stop()
            done = []
            append = threading.Thread(target=lambda: done.append(journal.append("t", st.user("x"), id="x")))
            append.start()
            first = wait_for_waiter(observer, besides=0)
            observer.execute("SELECT pg_terminate_backend(%s)", [first])
            wait_for_waiter(observer, besides=first)
            assert observer.execute("SELECT count(*) FROM sessiontree.entry").fetchone() == (1,)
            assert not done
            standby.start()
            append.join(60)
            assert [entry.id for entry in done] == ["x"]
    finally:
        primary.remove()
        standby.remove()


def wait_for_waiter(observer: psycopg.Connection, *, besides: int) -> int:
    """The process that waits for the standby, another one than before."""
    waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> %s"
    end = time.monotonic() + 30
    while not (found := observer.execute(waits, [besides]).fetchone()):
        assert time.monotonic() < end, "nobody waits for the standby"
    return int(found[0])


def restart_under_load(server: Server, *, times: int) -> None:
    for number in range(1, times + 1):
        wait_for_entries(server.url, 100 * number)
        server.stop("immediate")
        server.start()


def wait_for_entries(url: str, count: int) -> None:
    """Until the load has written that much more."""
    with st.open(patient(url)) as journal:
        end, start = time.monotonic() + 60, journal.stats().entries
        while journal.stats().entries < start + count:
            assert time.monotonic() < end, "the load does not write"
