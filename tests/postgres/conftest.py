"""Servers for the tests of the PostgreSQL store."""

import pytest

import postgres_server


@pytest.fixture
def database():
    """An empty database on the shared server."""
    return postgres_server.new_database()


@pytest.fixture(scope="session")
def tcp_server():
    """A server on a TCP port, for tests that put something in between; the coordinator of a cluster if there is one."""
    if postgres_server.CLUSTER:
        yield postgres_server.Coordinator()
        return
    server = postgres_server.Server.create("fsync = on")
    yield server
    server.remove()


@pytest.fixture
def own_server():
    """A server that the test may stop and kill."""
    server = postgres_server.Server.create()
    yield server
    server.remove()
