"""Servers for the tests of the PostgreSQL store."""

from collections.abc import Iterator

import pytest

from postgres_server import CLUSTER, Coordinator, Server, new_database


@pytest.fixture
def database() -> str:
    """An empty database on the shared server."""
    return new_database()


@pytest.fixture(scope="session")
def tcp_server() -> Iterator[Server | Coordinator]:
    """A server on a TCP port, for tests that put something in between; the coordinator of a cluster if there is one."""
    if CLUSTER:
        yield Coordinator()
        return
    server = Server.create("fsync = on")
    yield server
    server.remove()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that the test may stop and kill."""
    server = Server.create()
    yield server
    server.remove()
