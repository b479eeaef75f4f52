"""Our own files, as ``journal.export(format="json")`` and ``"jsonl"`` write them."""

from sessiontree.formats.native.read import detect, sessions, size
from sessiontree.formats.native.write import write

__all__ = ["detect", "sessions", "size", "write"]
