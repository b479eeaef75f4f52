"""The command line: ``main`` is the entry point of the command ``sessiontree``."""

import gc
import sys
from contextlib import suppress

__all__ = ["main"]


_INTERRUPTED = 130


def main() -> None:
    """Run the command and exit with its code."""
    try:
        # Loaded here, so that Ctrl-C during the imports ends the command without a traceback.
        from sessiontree.cli.app import run  # noqa: PLC0415
        from sessiontree.cli.streams import prepare_streams  # noqa: PLC0415

        prepare_streams()
        run()
    except KeyboardInterrupt:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("✗ Interrupted.\n")
        sys.exit(_INTERRUPTED)
    finally:
        # The process ends: looking for unused objects one last time would take a sixth of a short command.
        gc.freeze()
