"""The command mcp."""

from __future__ import annotations

import os
import secrets
import sys
from ipaddress import ip_address

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command
from sessiontree.cli.exit_codes import UsageError
from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.errors import MissingExtraError

__all__ = ["mcp"]


TOKEN_VARIABLE = "SESSIONTREE_MCP_TOKEN"  # noqa: S105  the name of a variable
_PORT = 8731
_SHORTEST_TOKEN = 16


@command(
    "mcp",
    examples=[
        "sessiontree mcp                      what a client starts",
        "claude mcp add sessiontree -- sessiontree mcp",
        "sessiontree mcp --http --port 8731",
    ],
)
@click.option("--write", is_flag=True, help="Offer the tools that change the store: fork and label.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="The port to listen on, with --http; 0 takes a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on, with --http."
)
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A host name under which others reach this machine."
)
def mcp(cli: CliContext, *, write: bool, http: bool, host: str, port: int, names: tuple[str, ...]) -> None:
    """Serve your conversations to AI agents by the Model Context Protocol: list, search, read and recall.

    A client starts this command and talks to it over standard input and output. With --http, clients connect to an
    address with a token: that of SESSIONTREE_MCP_TOKEN, or a random one. Only reads, unless --write is given.
    """
    token = _token() if http else ""
    try:
        from sessiontree.mcp.library import Library  # noqa: PLC0415  the SDK takes a second to load
        from sessiontree.mcp.server import make_server  # noqa: PLC0415
        from sessiontree.mcp.stdio import serve_stdio  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("sessiontree mcp", "mcp") from error
    from sessiontree import __version__  # noqa: PLC0415

    server = make_server(Library(cli.open_existing, lambda: cli.now), __version__, can_write=write)
    if not http:
        serve_stdio(server)
        return
    from sessiontree.mcp.http import listen, serve_http  # noqa: PLC0415

    at = listen(host, port)
    try:
        _print_address(cli, host, at.getsockname()[1], token)
        serve_http(server, at, token, names if _is_any(host) else (*names, _shown(host)))
    except KeyboardInterrupt:
        cli.out.info("stopped the server")


def _print_address(cli: CliContext, host: str, port: int, token: str) -> None:
    url = f"http://{_shown(host)}:{port}/mcp"
    if cli.out.is_json:
        cli.out.json(url=url, token=token)
    else:
        cli.out.line(url)
        cli.out.say([Line(("  header:  ", DIM), f"Authorization: Bearer {token}")])
    sys.stdout.flush()


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"{TOKEN_VARIABLE} must have at least {_SHORTEST_TOKEN} printable ASCII characters.")
    return token or secrets.token_urlsafe(24)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_any(host: str) -> bool:
    """Whether this address means all of the machine, so that it is no name that a client uses."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
