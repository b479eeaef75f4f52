"""The main job from end to end, in a temporary folder: write, crash, resume, branch, go back, undo.

``python -m sessiontree.demo`` runs it.
"""

__all__ = ["run"]


def run() -> None:
    """Run the demo and print what happens."""
    from sessiontree.demo.run import play  # noqa: PLC0415  the crashing agent imports this package too

    play()
