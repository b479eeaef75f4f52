"""The command line."""

__all__ = ["main"]


def main() -> None:
    """The entry point of the command ``sessiontree``."""
    from sessiontree.cli.app import run  # noqa: PLC0415  completion and --version need little

    run()
