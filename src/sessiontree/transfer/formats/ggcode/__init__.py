"""The ``ggcode`` format (seed 002): a file of records per session, and ``index.json`` with the newest titles."""

from sessiontree.transfer.formats.ggcode.read import detect, sessions, size
from sessiontree.transfer.formats.ggcode.write import write

__all__ = ["detect", "sessions", "size", "write"]
