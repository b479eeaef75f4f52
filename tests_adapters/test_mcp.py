"""Resumable streams of the MCP SDK with events in a journal."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from mcp.server.streamable_http import EventMessage
from mcp.types import JSONRPCMessage, JSONRPCNotification, JSONRPCResponse

import sessiontree as st
from doc_pages import FRAMEWORKS, run
from opened import url_of
from postgres_server import free_port
from sessiontree.adapters.mcp import SessionTreeEventStore

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def note(number: int) -> JSONRPCMessage:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": number, "é": None})


async def replayed(store: SessionTreeEventStore, after: str) -> tuple[str | None, list[EventMessage]]:
    found: list[EventMessage] = []

    async def send(event: EventMessage) -> None:
        found.append(event)

    return await store.replay_events_after(after, send), found


def test_a_stream_is_replayed_after_an_event(url: str) -> None:
    async def main() -> None:
        async with SessionTreeEventStore(url) as store:
            first = await store.store_event("a/1", None)
            ids = [await store.store_event("a/1", note(number)) for number in range(250)]
            await store.store_event("b", note(-1))
            last = await store.store_event("a/1", JSONRPCResponse(jsonrpc="2.0", id=1, result={"ok": True}))
            stream, events = await replayed(store, first)
            assert stream == "a/1"
            assert [event.event_id for event in events] == [*ids, last]
            assert [event.message for event in events[:250]] == [note(number) for number in range(250)]
            assert await replayed(store, ids[-1]) == ("a/1", events[-1:])
            assert await replayed(store, last) == ("a/1", [])
            assert all(event_id.isascii() and "\n" not in event_id for event_id in (first, *ids))

    asyncio.run(main())


@pytest.mark.parametrize("event_id", ["", "a", "a/nothing", "nowhere/x", "/"])
def test_an_unknown_event_replays_nothing(url: str, event_id: str) -> None:
    async def main() -> None:
        async with SessionTreeEventStore(url) as store:
            await store.store_event("a", note(1))
            assert await replayed(store, event_id) == (None, [])

    asyncio.run(main())


def test_sessions_with_stores_of_their_own_do_not_see_each_other(url: str) -> None:
    async def main() -> None:
        async with st.open_async(url) as journal:
            one, two = (SessionTreeEventStore(journal, session_id=name) for name in ("one", "two"))
            start = await one.store_event("1", None)
            await two.store_event("1", note(2))
            await one.store_event("1", note(1))
            assert [event.message for event in (await replayed(one, start))[1]] == [note(1)]
            assert await replayed(two, start) == (None, [])

    asyncio.run(main())


def test_events_survive_a_restart_and_are_deleted_when_they_are_old(tmp_path: Path) -> None:
    async def stored(path: str) -> str:
        async with SessionTreeEventStore(path) as store:
            start = await store.store_event("a", None)
            await store.store_event("a", note(1))
            return start

    async def after_restart(path: str, start: str) -> None:
        async with SessionTreeEventStore(path) as store:
            assert len((await replayed(store, start))[1]) == 1
            assert await store.delete_older_than(3_600) == 0
            assert await store.delete_older_than(0) == 1
            assert await replayed(store, start) == (None, [])

    path = str(tmp_path / "events.db")
    asyncio.run(after_restart(path, asyncio.run(stored(path))))


def test_several_servers_delete_old_streams_at_once(url: str) -> None:
    async def main() -> None:
        async with SessionTreeEventStore(url) as store:
            for number in range(10):
                await store.store_event(f"stream {number}", None)
            assert sum(await asyncio.gather(*(store.delete_older_than(0) for _ in range(4)))) == 10

    asyncio.run(main())


@contextmanager
def served(app: Any) -> Iterator[str]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join()


def sse(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    event_id = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            event_id = value
        elif name == "data" and value:
            yield event_id, json.loads(value)


def resumed(client: httpx.Client, url: str, event_id: str) -> Iterator[dict[str, Any]]:
    """What comes after an event. A stream falls silent if the server has not noticed yet that the former one was cut: ask again."""
    while True:
        headers = {"Last-Event-ID": event_id}
        with suppress(httpx.ReadTimeout), client.stream("GET", url, headers=headers, timeout=3) as answer:
            for event in sse(answer.iter_lines()):
                event_id, message = event
                yield message


def await_result(store: str, thread: str) -> None:
    """Wait until the result of a call is stored. The SDK does not send what is stored while it goes from replay to live events."""
    with st.open(store) as journal:
        for entry in journal.watch(thread, after=None):
            if isinstance(entry.payload, st.Event) and "result" in (entry.payload.data or {}):
                return


def test_a_client_of_the_how_to_gets_what_it_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = run(FRAMEWORKS / "mcp.md")["app"]
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "cook", "arguments": {"dish": "soup"}, "_meta": {"progressToken": "p"}},
    }
    with served(app) as url, httpx.Client(headers=headers, timeout=30) as client:
        client.headers["Mcp-Session-Id"] = client.post(url, json=hello).headers["mcp-session-id"]
        client.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        with client.stream("POST", url, json=call) as answer:
            event_id, first = next(sse(answer.iter_lines()))  # then the connection is cut
        assert first["params"]["message"] == "step 0"
        await_result("events.db", "mcp//2")
        missed = list(islice(resumed(client, url, event_id), 3))
    assert [one["params"]["message"] for one in missed[:2]] == ["step 1", "step 2"]
    assert missed[2]["result"]["content"][0]["text"] == "soup is ready"
