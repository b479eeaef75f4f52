"""The ``pi`` format: pi's session files, versions 1 to 3, a header line and then entries with parents."""

from sessiontree.transfer.formats.pi.read import detect, sessions, size
from sessiontree.transfer.formats.pi.write import write

__all__ = ["detect", "sessions", "size", "write"]
