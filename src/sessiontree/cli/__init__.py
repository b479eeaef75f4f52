"""The command line."""

import gc
import os
import sys
from contextlib import suppress

__all__ = ["main"]


_OBJECTS_BEFORE_A_LOOK = 100_000
_INTERRUPTED = 130


def main() -> None:
    """The entry point of the command ``sessiontree``."""
    try:
        _main()
    except KeyboardInterrupt:
        # While the command was still loading, or a second time while it was leaving.
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("sessiontree: interrupted\n")
        _leave_at_once(_INTERRUPTED)


def _main() -> None:
    # Modules are made to stay: looking for garbage among them while they load takes a twentieth of the start.
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK)
    from sessiontree.cli.app import run  # noqa: PLC0415  completion and --version need little
    from sessiontree.cli.output import prepare_streams  # noqa: PLC0415

    prepare_streams()
    try:
        run()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        _leave_at_once(end.code)


def _leave_at_once(code: int) -> None:
    """The store is closed and everything is written: taking all modules apart would take longer than most verbs."""
    for stream in (sys.stdout, sys.stderr):
        # A stream that was closed or whose reader is gone has had its say in the exit code.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
