"""The main job from end to end, in a temporary folder: write, crash, resume, branch, go back, undo.

``python -m sessiontree.demo`` runs it.
"""

__all__ = ["run"]


def run(*, has_colour: bool = True) -> None:
    """Run the demo and print what happens; in a pipe there is no colour either way."""
    from sessiontree.demo.run import play  # noqa: PLC0415  the crashing agent imports this package too

    play(has_colour=has_colour)
