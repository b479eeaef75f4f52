"""The server over streamable HTTP on loopback: a token, and no answer to other host names and origins."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from httpx2 import AsyncClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from cli_shell import COMMAND, Shell
from sessiontree.model import Record

pytestmark = pytest.mark.xdist_group("mcp over http")  # one server for all of them

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


class Served(Record, frozen=True, kw_only=True):
    """A server that runs."""

    url: str
    token: str

    @property
    def address(self) -> str:
        """Its host and port."""
        return urlsplit(self.url).netloc


def start(store: Path, *options: str, **environment: str) -> tuple[subprocess.Popen[str], Served]:
    base = {name: value for name, value in os.environ.items() if not name.startswith("SESSIONTREE")}
    process = subprocess.Popen(
        [*COMMAND, "mcp", "--http", "--port", "0", "--json", "--store", str(store), *options],
        env={**base, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    text = ""
    while not text.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.wait()
        text += line
    told = json.loads(text)
    return process, Served(url=told["url"], token=told["token"])


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    code = process.wait(30)
    if process.stdout is not None:
        process.stdout.close()
    return code


@pytest.fixture(scope="module")
def served(sample: Path) -> Iterator[Served]:
    process, found = start(sample)
    yield found
    stop(process)


def test_clients_with_the_token_talk_to_it_at_the_same_time(served: Served) -> None:
    async def talk() -> str:
        async with (
            AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=60) as http,
            Client(streamable_http_client(served.url, http_client=http)) as client,
        ):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["list", "search", "read", "recall"]
            found = await client.call_tool("search", {"query": "login"})
            return str(getattr(found.content[0], "text", ""))

    async def several() -> list[str]:
        async with asyncio.timeout(60):
            return await asyncio.gather(*(talk() for _ in range(4)))

    answers = asyncio.run(several())
    assert len(answers) == 4
    assert all("«login»" in answer for answer in answers)


def ask(served: Served, *, path: str = "/mcp", method: str = "POST", **headers: str) -> tuple[int, str]:
    """Send a request as any program on this machine, or a page in a browser, could; answer status and body."""
    connection = HTTPConnection(served.address, timeout=30)
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Host": served.address,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    try:
        connection.request(method, path, PING, given)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_without_the_token_nothing_is_answered(served: Served) -> None:
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": served.token}, {"Authorization": "Bearer "}):
        for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/"), ("POST", "/mcp/x")):
            status, body = ask(served, path=path, method=method, **given)
            assert status == 401, (given, method, path)
            assert "Authorization: Bearer TOKEN" in body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1"]
)
def test_a_foreign_host_name_is_refused_even_with_the_token(served: Served, host: str) -> None:
    assert ask(served, Authorization=f"Bearer {served.token}", Host=host)[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example:80"])
def test_a_foreign_origin_is_refused_even_with_the_token(served: Served, origin: str) -> None:
    assert ask(served, Authorization=f"Bearer {served.token}", Origin=origin)[0] == 403


def test_it_listens_on_loopback_with_a_token_of_the_environment_and_ends_when_told(sample: Path) -> None:
    token = "a token of at least sixteen"
    process, served = start(sample, SESSIONTREE_MCP_TOKEN=token)
    assert served.token == token
    assert urlsplit(served.url).hostname == "127.0.0.1"
    assert ask(served, Authorization=f"Bearer {token}")[0] != 401
    assert stop(process) in {0, -signal.SIGTERM}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((urlsplit(served.url).hostname or "", urlsplit(served.url).port or 0)).close()


def test_a_short_token_and_a_taken_port_are_refused_with_a_sentence(sample: Path) -> None:
    shell = Shell(sample.parent, sample.name)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = ("mcp", "--http", "--port", str(taken.getsockname()[1]))
        assert "in use" in shell.run(*options, code=5).stderr
        shell.environment["SESSIONTREE_MCP_TOKEN"] = "short"
        assert "at least 16" in shell.run(*options, code=2).stderr


def test_the_sdk_is_an_extra(sample: Path) -> None:
    hide = "import sys; sys.modules['mcp'] = None; from sessiontree.cli.app import run; run(['mcp'])"
    shell = Shell(sample.parent, sample.name)
    done = subprocess.run(
        [sys.executable, "-c", hide], env=shell.environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 5
    assert "pip install 'sessiontree[mcp]'" in done.stderr
