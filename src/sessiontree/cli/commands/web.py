"""The command web."""

from __future__ import annotations

import sys

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import command
from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.errors import MissingExtraError

__all__ = ["web"]


@command(
    "web",
    examples=[
        "sessiontree web",
        "sessiontree web --store team.db --port 8421 --no-open",
        "sessiontree web --host 0.0.0.0     for others to read; --write lets them change things",
    ],
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    metavar="N",
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="A host name under which others reach this machine."
)
@click.option("--write", is_flag=True, help="Allow changes from other machines too.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def web(cli: CliContext, *, port: int, host: str, names: tuple[str, ...], write: bool, no_open: bool) -> None:
    """Show the store in the browser: read, search, branch and compare conversations, live.

    The address that is printed contains a token; the browser keeps a cookie instead of it. Only this machine can reach
    the server unless --host says otherwise, and other machines can only read unless --write is given.
    """
    try:
        from sessiontree.web.serving import Binding, is_loopback, serve  # noqa: PLC0415  slow to load
        from sessiontree.web.site import Site  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("the viewer in the browser", "web") from error

    def tell(address: str) -> None:
        if cli.out.is_json:
            cli.out.json(url=address)
        elif cli.out.is_terminal:
            cli.out.draw([Line(address), Line(("Ctrl-C stops the viewer", DIM))])
        else:
            cli.out.line(address)
        sys.stdout.flush()
        if not no_open:
            click.launch(address)

    site = Site(cli.readable_url, store=cli.location.name, is_read_only=not (is_loopback(host) or write))
    try:
        serve(site, Binding(host=host, port=port, names=names), on_ready=tell)
    except KeyboardInterrupt:
        cli.out.info("stopped the viewer")
