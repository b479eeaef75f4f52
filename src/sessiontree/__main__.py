"""``python -m sessiontree`` is the command ``sessiontree``."""

from sessiontree.cli import main

if __name__ == "__main__":
    main()
