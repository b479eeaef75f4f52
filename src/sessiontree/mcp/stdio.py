"""Serving one client over standard input and output.

A client may close its end right behind its last request, as a script that pipes requests in does. The SDK ends with the
input and drops what is still being answered; so the end of the input is passed on when every request has its answer.
"""

from __future__ import annotations

from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

__all__ = ["serve_stdio"]

Incoming = SessionMessage | Exception


def serve_stdio(server: Server[dict[str, Any]]) -> None:
    """Serve one client until it closes its end, and answer what it asked before."""

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
            asked, requests = anyio.create_memory_object_stream[Incoming]()
            answers, answered = anyio.create_memory_object_stream[SessionMessage]()
            open_requests = _OpenRequests()
            group.start_soon(_pass_requests, incoming, asked, open_requests)
            group.start_soon(_pass_answers, answered, outgoing, open_requests)
            await server.run(requests, answers, server.create_initialization_options())

    anyio.run(serve)


class _OpenRequests:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[types.RequestId] = set()
        self._changed = anyio.Event()

    def begin(self, message: Incoming) -> None:
        """Note a request, or that one was cancelled: that one gets no answer."""
        if isinstance(message, Exception):
            return
        match message.message:
            case types.JSONRPCRequest(id=request):
                self._ids.add(request)
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": cancelled}):
                self._forget(cancelled)

    def end(self, message: SessionMessage) -> None:
        """Note an answer."""
        match message.message:
            case types.JSONRPCResponse(id=request) | types.JSONRPCError(id=request):
                self._forget(request)

    async def wait_for_answers(self) -> None:
        """Wait until every request has its answer."""
        while self._ids:
            await self._changed.wait()

    def _forget(self, request: types.RequestId | None) -> None:
        if request is not None:
            self._ids.discard(request)
        self._changed.set()
        self._changed = anyio.Event()


async def _pass_requests(
    source: ObjectReceiveStream[Incoming], target: ObjectSendStream[Incoming], open_requests: _OpenRequests
) -> None:
    async with target:
        async for message in source:
            open_requests.begin(message)
            await target.send(message)
        await open_requests.wait_for_answers()


async def _pass_answers(
    source: ObjectReceiveStream[SessionMessage], target: ObjectSendStream[SessionMessage], open_requests: _OpenRequests
) -> None:
    async with target:
        async for message in source:
            await target.send(message)
            open_requests.end(message)
