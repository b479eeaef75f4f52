"""ZimaOS-Blue's sessions (seed 003): one SQLite database, one row a session."""

from sessiontree.formats.zimaos.read import detect, sessions, size
from sessiontree.formats.zimaos.write import write

__all__ = ["detect", "sessions", "size", "write"]
