"""The command postgres."""

from __future__ import annotations

import click

from sessiontree.cli.context import CliContext
from sessiontree.cli.declare import argument, command
from sessiontree.cli.exit_codes import UsageError
from sessiontree.journal.address import load_postgres, parse_url
from sessiontree.render.figures import plural

__all__ = ["postgres"]


@command(
    "postgres",
    examples=["sessiontree postgres distribute --shards 64 --store postgresql://coordinator/talks"],
)
@argument("action", "The only action is distribute.", type=click.Choice(["distribute"]))
@click.option("--shards", type=click.IntRange(1, 64_000), default=64, show_default=True, help="Pieces of each table.")
def postgres(cli: CliContext, *, action: str, shards: int) -> None:  # noqa: ARG001  there is only one
    """Spread a PostgreSQL store over the nodes of a Citus cluster.

    Run it on the coordinator, as the owner of the tables, and again after an upgrade. What is in its place is left alone.
    Writers wait while rows are moved.
    """
    url = cli.location.url
    if parse_url(url).kind != "postgres":
        raise UsageError(f"{cli.location.shown} is no PostgreSQL store; name one with --store postgresql://…")
    cli.journal.stats()  # makes or upgrades the tables
    with cli.progress("distributing the tables"):
        done = load_postgres().distribute(url, shards)
    if cli.out.is_json:
        cli.out.json(store=cli.location.shown, tables=done.tables, functions=done.functions)
        return
    placed = [*done.tables, *done.functions]
    for name in placed:
        cli.out.line(name)
    what = f"{plural(len(done.tables), 'table')} and {plural(len(done.functions), 'function')} distributed."
    cli.out.info(what if placed else "Everything is where it belongs.")
