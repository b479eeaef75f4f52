"""A standby takes over that has not received all commits: what this process knows of its threads is not true there."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import sessiontree as st
from known import of_kind
from postgres_server import Server
from sessiontree.stores.postgres import PostgresStore


class Pair:
    """A primary and its asynchronous standby."""

    def __init__(self) -> None:
        self.primary = Server.create()
        self.standby = self.primary.standby()
        self.url = f"postgresql://postgres@127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}/postgres"

    def cut_off(self) -> None:
        """Stop the standby when it has everything that was committed so far."""
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            ended = connection.execute("SELECT pg_current_wal_lsn()").fetchone()
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            while connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", ended).fetchone() != (True,):
                pass
        self.standby.stop("fast")

    def fail_over(self) -> None:
        """Put the standby in the place of the primary, without what was committed since it was cut off."""
        self.primary.stop("immediate")
        self.standby.start()
        self.standby.promote()

    def remove(self) -> None:
        self.primary.remove()
        self.standby.remove()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.remove()


@pytest.mark.parametrize("is_noticed", [True, False], ids=["a connection is lost", "the pool closed it before"])
def test_a_standby_with_fewer_commits_takes_over_and_threads_stay_whole(pair: Pair, *, is_noticed: bool) -> None:
    """The other caller brings the thread to the version that this one knows, with another leaf."""
    with st.open(f"{pair.url}?pool_size=1") as journal:
        journal.create_thread("t", title="Old")
        journal.append("t", st.user("kept"), id="a")
        pair.cut_off()
        journal.append("t", st.user("lost"), id="b")
        assert journal.thread("t").leaf == "b"
        pair.fail_over()
        with st.open(pair.url) as other:
            other.append("t", st.user("after"), id="c")
        if not is_noticed:  # as the pool itself does with connections that are idle or old
            with of_kind(PostgresStore, journal.store)._pool.connection() as connection:
                connection.close()
        assert journal.update_thread("t", title="New").leaf == "c"
        assert [entry.id for entry in journal.path("t")] == ["a", "c"]
        assert journal.append("t", st.user("next"), id="b").parent == "c"
        assert journal.check() == []
