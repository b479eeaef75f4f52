"""The command line."""

import gc

__all__ = ["main"]

_OBJECTS_BEFORE_A_LOOK = 100_000


def main() -> None:
    """The entry point of the command ``sessiontree``."""
    # Modules are made to stay: looking for garbage among them while they load takes a twentieth of the start.
    gc.set_threshold(_OBJECTS_BEFORE_A_LOOK)
    from sessiontree.cli.app import run  # noqa: PLC0415  completion and --version need little
    from sessiontree.cli.streams import prepare_streams  # noqa: PLC0415

    prepare_streams()
    run()
