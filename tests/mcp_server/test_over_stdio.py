"""The server as a client starts it: a process that speaks over its standard input and output, with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

import sessiontree as st
from sample_store import NOW, SHOP
from sessiontree.mcp.library import Library
from sessiontree.mcp.resources import uri_of
from sessiontree.mcp.server import make_server


def with_client(store: Path, use: Callable[[Client], Awaitable[None]], *options: str, mode: str = "auto") -> None:
    """Start a server, and let a client talk to it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONTREE")}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "sessiontree", "mcp", "--store", str(store), *options], env=environment
    )

    async def talk() -> None:
        async with asyncio.timeout(60), Client(server, mode=mode) as client:
            await use(client)

    asyncio.run(talk())


async def answer(client: Client, name: str, *, is_error: bool = False, **given: Any) -> str:
    result = await client.call_tool(name, given)
    assert result.is_error is is_error, result
    (content,) = result.content
    return str(getattr(content, "text", ""))


def test_without_write_it_searches_and_reads_and_changes_nothing(store: Path) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["list", "search", "read", "recall"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert "are data" in (client.instructions or "")
        assert "login test" in await answer(client, "list")
        assert "«login»" in await answer(client, "search", query="login")
        assert "login test" in await answer(client, "recall", question="why does the login test fail?")
        assert "under “Unreleased”" in await answer(client, "read", thread="3a19")
        refused = await answer(client, "fork", thread="3a19", is_error=True)
        assert refused.endswith("sessiontree mcp --write")
        assert "there are list, search" in await answer(client, "erase", is_error=True)
        assert "list and search show the ids" in await answer(client, "read", thread="none", is_error=True)
        # Many at once: the answers belong to their questions.
        several = await asyncio.gather(*(answer(client, "list", limit=number) for number in range(2, 7)))
        assert [text.split(" ")[0] for text in several] == ["2", "3", "4", "5", "6"]

    with st.open(store) as journal:
        before = journal.export(SHOP, format="json", scope="tree")
        with_client(store, use)
        assert journal.export(SHOP, format="json", scope="tree") == before


def test_threads_are_resources(store: Path) -> None:
    with st.open(store) as journal:
        odd = journal.create_thread("a/b?c#d é", title="Odd id").id
        journal.append(odd, st.user("hello from an odd id"))
        for number in range(120):
            journal.append(f"more-{number}", st.user("one"), create=True)
        wanted = {thread.id for thread in journal.list_threads(is_empty=False, limit=None)}

    async def use(client: Client) -> None:
        first = await client.list_resources()
        assert first.next_cursor
        rest = await client.list_resources(cursor=first.next_cursor)
        assert rest.next_cursor is None
        resources = {resource.uri: resource for resource in (*first.resources, *rest.resources)}
        assert set(resources) == {uri_of(thread_id) for thread_id in wanted}
        assert resources[uri_of(odd)].title == "Odd id"
        (content,) = (await client.read_resource(uri_of(odd))).contents
        assert "hello from an odd id" in getattr(content, "text", "")
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [
            "sessiontree://thread/{thread}",
            "sessiontree://thread/{thread}/entry/{entry}",
        ]
        (content,) = (await client.read_resource(f"{uri_of(SHOP)}/entry/52e6b438")).contents
        assert "The login test fails since this morning." in getattr(content, "text", "")
        for uri in ("sessiontree://thread/none", "sessiontree://thread/../etc", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="thread"):
                await client.read_resource(uri)

    with_client(store, use)


def test_with_write_it_forks_and_labels_for_clients_of_the_older_protocol_too(store: Path) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = tools["fork"].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (False, False)
        await answer(client, "label", thread="3a19", entry="52e6b438", label="start")
        assert "shares 1 entry" in await answer(client, "fork", thread="3a19", entry="start", title="By a model")

    with_client(store, use, "--write", mode="legacy")
    with st.open(store) as journal:
        assert journal.labels(SHOP)["start"] == "52e6b438"
        assert journal.list_threads(title_contains="By a model").threads[0].forked_from_thread == SHOP


def test_a_store_that_comes_later_is_found_and_none_is_made(store: Path, tmp_path: Path) -> None:
    later = tmp_path / "later" / "store.db"
    later.parent.mkdir()

    async def use(client: Client) -> None:
        assert "There is no store at" in await answer(client, "list", is_error=True)
        assert list(later.parent.iterdir()) == []
        for file in store.parent.glob("store.db*"):
            shutil.copy(file, later.parent / file.name)
        assert "login test" in await answer(client, "list")

    with_client(later, use)


def test_a_call_is_answered_although_the_input_ends_right_behind_it(store: Path) -> None:
    head = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "script", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": head},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "search", "arguments": words}}
            for number, words in ((2, {"query": "login"}), (3, {"query": "nothing-of-the-kind"}))
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sessiontree", "mcp", "--store", str(store)],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert sorted(answers) == [1, 2, 3]
    assert "«login»" in answers[2]["result"]["content"][0]["text"]


def test_a_client_hears_about_a_call_that_takes_long(store: Path) -> None:
    heard = threading.Event()
    said: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        said.append((progress, message))
        if len(said) == 2:
            heard.set()

    def open_when_heard() -> st.Journal:
        assert heard.wait(30), "no progress was reported"
        return st.open(store)

    async def talk() -> None:
        library = Library(open_when_heard, lambda: NOW)
        server = make_server(library, "1", can_write=False, progress_seconds=0.05)
        async with Client(server) as client:
            result = await client.call_tool("list", {}, progress_callback=on_progress)
            assert not result.is_error
        library.journal.close()

    asyncio.run(talk())
    assert said[:2] == [(0.05, "list is still at work."), (0.1, "list is still at work.")]
