"""The sockets of the viewer and of the MCP server."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from sessiontree.mcp import http
from sessiontree.web import serving


def viewer() -> socket.socket:
    listener = serving.listen(serving.Binding())
    listener.listen()
    return listener


@pytest.mark.parametrize("listening", [viewer, lambda: http.listen("127.0.0.1", 0)], ids=["web", "mcp"])
def test_an_answer_does_not_wait_until_its_headers_are_acknowledged(listening: Callable[[], socket.socket]) -> None:
    with listening() as listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
