"""The server over streamable HTTP: a token, and answers only to requests for a known host name from a known origin."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from hmac import compare_digest
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["listen", "serve_http"]


_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LAST_SECONDS = 2


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)
    # Connections inherit it. Without it the body of an answer waits 40 ms until the client has acknowledged the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve_http(server: Server[dict[str, Any]], at: socket.socket, token: str, hosts: Iterable[str] = ()) -> None:
    """Serve until the process is told to stop. ``hosts`` are names beside those of loopback that clients may use."""
    names = (*_LOOPBACK, *hosts)
    security = TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[
            f"{scheme}://{name}{port}" for name in names for scheme in ("http", "https") for port in ("", ":*")
        ],
    )
    app = server.streamable_http_app(streamable_http_path=_PATH, transport_security=security)
    config = uvicorn.Config(
        _TokenGuard(app, token), access_log=False, log_level="warning", timeout_graceful_shutdown=_LAST_SECONDS
    )
    uvicorn.Server(config).run(sockets=[at])


class _TokenGuard:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or compare_digest(dict(scope["headers"]).get(b"authorization", b""), self._expected):
            await self._app(scope, receive, send)
            return
        refusal = PlainTextResponse(
            "The token is missing or wrong: send the header Authorization: Bearer TOKEN, as sessiontree mcp printed it.\n",
            status_code=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await refusal(scope, receive, send)
