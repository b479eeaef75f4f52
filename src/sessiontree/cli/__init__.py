"""The command line: ``main`` is the entry point of the command ``sessiontree``."""

import gc
import sys
from contextlib import suppress

__all__ = ["main"]


_INTERRUPTED = 130
_RARELY = 50_000
"""Unused objects are looked for after this many new ones: by default that happens dozens of times while modules are loaded."""


def main() -> None:
    """Run the command and exit with its code."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_RARELY)
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
        gc.set_threshold(*thresholds)
