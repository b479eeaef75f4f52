"""Times that people write as the value of an option."""

from __future__ import annotations

from sessiontree.cli.context import CliContext
from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import InvalidInputError

__all__ = ["nanoseconds"]


def nanoseconds(cli: CliContext, option: str, text: str) -> int:
    """Parse the value of an option: a date, a word or an age, as in search."""
    from sessiontree.search.query import moment_of, nanoseconds_of  # noqa: PLC0415  compiling its patterns is slow

    try:
        return nanoseconds_of(moment_of(f"{option} ", text, cli.now))
    except InvalidInputError as error:
        raise UsageError(str(error)) from error
